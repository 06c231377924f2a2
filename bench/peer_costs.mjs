// The rows that the peers' operations cost, under the names that costs.mjs gives ours.

import { openChatPeer } from "./frame/chat.mjs";
import { pathOf, startFrame } from "./frame/frame.mjs";
import { callTools, say, startModel } from "../tests/workerd/model_server.mjs";

const TEXT = "What is the weather like in Oslo today?";
const message = (id, text = TEXT) => ({ ...(id && { id }), role: "user", parts: [{ type: "text", text }] });
const MOST = 1_000;
/** How long the peer cleans up its stream after a turn's end. */
const SETTLED_MS = 1_500;

/** The cost of each operation in a session of `length` messages: `"rows read / rows written"`. */
export async function costsOfPeer(length) {
  const frame = await startFrame({ targets: ["PEER"], meter: true });
  const order = { target: "PEER", entryPoint: "object", agent: "costs" };
  const ask = (operation, input = {}) =>
    frame.ask({ ...order, path: pathOf("costs", operation), body: JSON.stringify(input) });
  const table = new Map();
  const measure = async (name, operation, input) => {
    await frame.ask({ ...order, path: "/__meter" });
    await ask(operation, input);
    const { read, written } = JSON.parse(await frame.ask({ ...order, path: "/__metered" }));
    table.set(name, `${read} / ${written}`);
  };
  await ask("createSession");
  for (let left = length; left > 0; left -= MOST) {
    const messages = Array.from({ length: Math.min(left, MOST) }, (_, at) => message(`m${left - at}`));
    await ask("appendMessages", { messages });
  }
  await measure("append a message with an id of the caller's", "appendMessage", { message: message("mine") });
  await measure("append ten events", "appendMessages", { messages: Array.from({ length: 10 }, () => message()) });
  await measure("update it, unchanged", "updateMessage", { message: message("mine") });
  await measure("update it", "updateMessage", { message: message("mine", "b") });
  await measure("read the newest 50 messages", "getHistory", { limit: 50 });
  await measure("start a branch", "appendMessage", { message: message("branch"), parentId: "mine" });
  await measure("append to the branch", "appendMessage", { message: message("on") });
  await measure("read a message's branches", "getBranches", { messageId: "mine" });
  await measure("delete an event from the middle", "deleteMessages", { messageIds: [`m${Math.floor(length / 2)}`] });
  await ask("appendMessage", { message: message("umbrella", "Take an umbrella.") });
  await measure("search, first of the agent's", "search", { query: "umbrella", limit: 20 });
  await measure("search for the text of one event", "search", { query: "umbrella", limit: 20 });
  await measure("search for what all events say", "search", { query: "weather in Oslo", limit: 20 });
  await measure("append an event, once searched", "appendMessage", { message: message("last") });
  await frame.stop();
  return table;
}

/** The cost of each kind of the chat peer's turns: of a session's first turn, and of a later one. */
export async function costsOfPeersTurns() {
  const model = await startModel();
  const frame = await startFrame({ targets: ["CHAT_PEER"], meter: true, vars: { OPENAI_BASE_URL: model.url } });
  const weather = (city) => ["weather", { city }];
  const kinds = {
    "a chat turn": () => [say("It ", "rains.")],
    "a chat turn with a tool": () => [callTools(weather("Oslo")), say("It rains.")],
    "a chat turn with two tools": () => [callTools(weather("Oslo"), weather("Rome")), say("It rains.")],
  };
  const table = new Map();
  for (const [name, answers] of Object.entries(kinds)) {
    const agent = name.replaceAll(" ", "-");
    const meter = async (path) =>
      (await fetch(new URL(`/agents/chat-peer/${agent}/${path}`, frame.urls.CHAT_PEER))).json();
    const peer = await openChatPeer(frame.urls.CHAT_PEER, agent);
    const costs = [];
    for (let turn = 0; turn < 2; turn += 1) {
      model.next(...answers());
      await meter("__meter");
      await peer.turn();
      await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
      const { read, written } = await meter("__metered");
      costs.push(`${read} / ${written}`);
    }
    peer.close();
    table.set(name, costs);
  }
  await frame.stop();
  await model.stop();
  return table;
}
