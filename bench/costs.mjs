// The rows that operations cost, as the `x-rows-*` headers tell: rows.mjs writes them
// down, and a test compares them with what is written.

import { startChatServer } from "../tests/workerd/chat_server.mjs";
import { callTools, say } from "../tests/workerd/model_server.mjs";

const user = (more = {}) => ({ action: "user_message", content: "What is the weather like in Oslo today?", ...more });
const batch = (length) => Array.from({ length }, () => user());
const message = (id, text) => ({ ...(id && { id }), role: "user", parts: [{ type: "text", text }] });

/** The most events of one append. */
const MOST = 1_000;

/** The cost of each operation in a session of `length` events: `"rows read / rows written"`. */
export async function costsInASessionOf(server, length) {
  const agent = `of ${length} events`;
  const { table, ok, measure } = meter(server, agent, { sessionId: "s" });
  await server.call(agent, "createSession", { id: "s" });
  for (let left = length; left > 0; left -= MOST) await ok("appendEvents", { events: batch(Math.min(left, MOST)) });

  await measure("append an event", "appendEvents", { events: [user()] });
  await measure("append an event with an id of the caller's", "appendEvents", { events: [user({ id: "mine" })] });
  await measure("send it again", "appendEvents", { events: [user({ id: "mine" })] });
  await measure("append ten events", "appendEvents", { events: batch(10) });
  await measure("append a message", "appendMessage", { message: message(undefined, "a") });
  await measure("append a message with an id of the caller's", "appendMessage", { message: message("m", "a") });
  await measure("update it, unchanged", "updateMessage", { message: message("m", "a") });
  await measure("update it", "updateMessage", { message: message("m", "b") });
  await measure("load the newest 50 events", "loadEvents", { limit: 50, tail: true });
  await measure("load the oldest 50 events", "loadEvents", { limit: 50 });
  await measure("read the newest 50 messages", "getHistory", { limit: 50 });
  await measure("build a working context of 50 events", "buildWorkingContext", { limit: 50 });
  await measure("start a branch", "appendEvents", { parentId: "mine", events: [user()] });
  await measure("append to the branch", "appendEvents", { events: [user()] });
  await measure("read the newest 10 messages, after a branch", "getHistory", { limit: 10 });
  await measure("read a message's branches", "getBranches", { messageId: "mine" });
  await server.evict(agent);
  await measure("append an event, first after eviction", "appendEvents", { events: [user()] });
  await measure("choose a branch", "setLeaf", { id: "m" });
  await measure("show the session", "getSession");
  await measure("rename the session", "updateSession", { name: "Oslo" });

  await measure("follow the feed, 50 changes", "getChanges", { limit: 50 });
  await measure("load events by `actions`, finding none", "loadEvents", { actions: ["compaction"] });
  await measure("count a branch's messages", "getPathLength", { leafId: "m" });
  const fork = await measure("fork the session", "forkSession", { atId: "m" });
  await measure("clear the fork", "clearMessages", { sessionId: fork.id });
  const another = await ok("forkSession", { atId: "m" });
  await measure("delete a fork", "deleteSession", { sessionId: another.id });
  const [middle] = await ok("loadEvents", { afterSeq: Math.floor(length / 2), limit: 1 });
  await measure("delete an event from the middle", "deleteEvents", { eventIds: [middle.id] });
  const gapped = await measure("fork the session, after that", "forkSession", { atId: "m" });
  await ok("deleteSession", { sessionId: gapped.id });

  await ok("appendEvents", { events: [user({ content: "Take an umbrella." })] });
  await measure("search, first of the agent's", "search", { query: "umbrellas" });
  await measure("search for what one event says", "search", { query: "umbrellas" });
  await measure("search for what all events say", "search", { query: "weather in Oslo" });
  await measure("append an event, once searched", "appendEvents", { events: [user()] });
  return table;
}

/** The cost of each operation in an agent of `length` sessions with two events each. */
export async function costsInAnAgentOf(server, length) {
  const { table, ok, measure } = meter(server, `of ${length} sessions`);
  for (let n = 0; n < length; n += 1) {
    await ok("createSession", { id: `s${n}` });
    await ok("appendEvents", { sessionId: `s${n}`, events: batch(2) });
  }
  await measure("list sessions", "listSessions", { limit: 50 });
  await measure("create a session", "createSession");
  return table;
}

/** The cost of each kind of turn: of a session's first turn, and of a later one. */
export async function costsOfTurns() {
  const { server, model, stop } = await startChatServer();
  const agent = "of turns";
  const turn = async (sessionId, ...answers) => {
    model.next(...answers);
    const costs = await server.metered(agent, async () => {
      const body = JSON.stringify({ id: sessionId, message: message(crypto.randomUUID(), "What is the weather like?") });
      const response = await server.fetch(`/agents/session-agent/${encodeURIComponent(agent)}/chat`, { method: "POST", body });
      const said = await response.text();
      if (!said.endsWith("data: [DONE]\n\n") || said.includes('"error"')) throw new Error(said);
    });
    return `${costs.read} / ${costs.written}`;
  };
  const weather = (city) => ["weather", { city }];
  const kinds = {
    "a chat turn": () => [say("It ", "rains.")],
    "a chat turn with a tool": () => [callTools(weather("Oslo")), say("It rains.")],
    "a chat turn with two tools": () => [callTools(weather("Oslo"), weather("Rome")), say("It rains.")],
  };
  try {
    await server.call(agent, "defineTool", { name: "weather", description: "The weather.", service: "TOOLS" });
    // A turn of another session first: afterwards the object is awake and its alarm is
    // set.
    await turn("awake", say("Good morning."));
    const table = new Map();
    for (const [name, answers] of Object.entries(kinds)) {
      table.set(name, [await turn(name, ...answers()), await turn(name, ...answers())]);
    }
    return table;
  } finally {
    await stop();
  }
}

function meter(server, agent, always = {}) {
  const table = new Map();
  const call = async (operation, input) => {
    const answer = await server.call(agent, operation, { ...always, ...input });
    if (answer.status !== 200) throw new Error(`${operation}: ${JSON.stringify(answer.body)}`);
    return answer;
  };
  return {
    table,
    ok: async (operation, input) => (await call(operation, input)).body,
    measure: async (name, operation, input) => {
      const { body, rowsRead, rowsWritten } = await call(operation, input);
      table.set(name, `${rowsRead} / ${rowsWritten}`);
      return body;
    },
  };
}
