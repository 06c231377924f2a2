// Sockets that outlive the object's activation, receive another tab's answer, or outlive their
// token.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, afterEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { AgentClient } from "agents/client";
import { call, callsIn, history, startChatServer, textOf, roleAndText } from "./chat_server.mjs";
import { callTool, gate, say } from "./model_server.mjs";
import { openTab } from "./browser_tab.mjs";
import { startTools } from "./tool_server.mjs";

const SECRET = "the secret of this test, long enough";
const authorization = { authorization: `Bearer ${SECRET}` };

const tools = await startTools();
const open = await startChatServer({ vars: { TOOL_ORIGINS: tools.origin } });
const locked = await startChatServer({ token: SECRET, vars: { TOOL_ORIGINS: tools.origin } });
const opened = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((client) => client.close()));
  for (const { model } of [open, locked]) assert.equal(model.unusedAnswers, 0, "a scripted answer was never requested");
});
after(async () => {
  await open.stop();
  await locked.stop();
  await tools.stop();
});

const PAY = { name: "pay", description: "Pays.", url: `${tools.origin}/pay`, needsApproval: true };

async function tabOf(server, name, options) {
  const tab = await openTab(server, name, options);
  opened.push(tab);
  return tab;
}

function connect(server, name, query) {
  const client = new AgentClient({
    agent: "SessionAgent",
    name,
    host: new URL(server.url).host,
    protocol: "ws",
    query,
  });
  opened.push(client);
  return client;
}

async function mint(agent, scope) {
  const { token } = await call(locked.server, agent, "mintToken", scope, authorization);
  return token;
}

const isReady = ({ chat }) => chat.status === "ready" && !chat.isStreaming;
const stateIn = ({ messages }) => callsIn(messages.at(-1) ?? { parts: [] })[0]?.state;

test("an_approval_survives_eviction_and_one_tab_answers_for_both", async () => {
  const { server, model } = open;
  await call(server, "approval", "defineTool", PAY);
  const here = await tabOf(server, "approval");
  const there = await tabOf(server, "approval");
  const callsBefore = tools.calls.length;
  model.next(callTool("pay", { amount: 5 }, "a"));
  await here.chat.sendMessage({ text: "Pay 5." });
  for (const tab of [here, there]) await tab.reaches((tab) => isReady(tab) && stateIn(tab) === "approval-requested");
  const activation = await server.incarnation("approval");
  await server.evict("approval", { webSockets: "hibernate" });
  assert.notEqual(await server.incarnation("approval"), activation);
  assert.equal(tools.calls.length, callsBefore);
  model.next(say("Paid."));
  there.chat.addToolApprovalResponse({ id: callsIn(there.messages.at(-1))[0].approval.id, approved: true });
  for (const tab of [here, there]) {
    await tab.reaches(
      (tab) => isReady(tab) && stateIn(tab) === "output-available" && textOf(tab.messages.at(-1)) === "Paid.",
    );
    assert.deepEqual(tab.messages.map(roleAndText), [
      ["user", "Pay 5."],
      ["assistant", "Paid."],
    ]);
  }
  assert.equal(tools.calls.length - callsBefore, 1);
});

test("a_hibernated_socket_receives_another_ones_question", async () => {
  const { server, model } = open;
  const here = await tabOf(server, "woken");
  const there = await tabOf(server, "woken");
  await server.evict("woken", { webSockets: "hibernate" });
  model.next(say("Good ", "morning."));
  await here.chat.sendMessage({ text: "Hi!" });
  await there.reaches(
    (tab) => isReady(tab) && tab.messages.length === 2 && textOf(tab.messages[1]) === "Good morning.",
  );
});

test("a_socket_that_breaks_as_the_turn_ends_shows_its_answer", async () => {
  const { server, model } = open;
  const tab = await tabOf(server, "away");
  const rest = gate();
  model.next(say("Before ", rest, "and after."));
  void tab.chat.sendMessage({ text: "Go." });
  await tab.reaches(({ messages }) => messages.length === 2 && textOf(messages[1]) === "Before ");
  const closed = once(tab.agent, "close");
  tab.agent.reconnect();
  await closed;
  // The turn ends before the tab has reconnected, or right after: timing decides.
  rest.open();
  await tab.reaches(
    (tab) => isReady(tab) && tab.messages.length === 2 && textOf(tab.messages[1]) === "Before and after.",
  );
  assert.deepEqual(await history(server, "away", "default"), tab.messages.map(roleAndText));
});

test("a_socket_whose_token_has_expired_is_closed_with_4401", async () => {
  const { server, model } = locked;
  const lasting = connect(server, "expired", { token: await mint("expired", { expiresIn: 600 }) });
  await lasting.ready;
  /** Two sockets that received an answer before their tokens expired; `null` if that took too long. */
  const connectFor = async (expiresIn) => {
    const startedAt = Date.now();
    const clients = [];
    for (let n = 0; n < 2; n += 1)
      clients.push(connect(server, "expired", { token: await mint("expired", { expiresIn }) }));
    const ends = Date.now() + expiresIn * 1000;
    const received = Promise.all(
      clients.map(async (client) => {
        await client.ready;
        return (await client.call("listSessions")).sessions;
      }),
    );
    const answers = await Promise.race([
      received.catch(() => null),
      pause(startedAt + expiresIn * 1000 - Date.now(), null),
    ]);
    if (answers !== null) assert.deepEqual(answers, [[], []]);
    return answers && { ends, clients };
  };
  let connected = null;
  for (let expiresIn = 2; connected === null; expiresIn *= 2) connected = await connectFor(expiresIn);
  const {
    ends,
    clients: [speaker, listener],
  } = connected;
  const closes = [speaker, listener].map((client) => once(client, "close"));
  // The test waits for the token to expire: no event reports it.
  await pause(ends - Date.now() + 100);
  speaker.send(JSON.stringify({ type: "rpc", id: "1", method: "listSessions", args: [] }));
  const [closed] = await closes[0];
  assert.equal(closed.code, 4401);
  // A socket that only listens is closed when there is something to send.
  model.next(say("For who may hear it."));
  const request = { id: "s", message: { id: "u", role: "user", parts: [{ type: "text", text: "Go." }] } };
  // The sent message closes the socket. The answer arrives later.
  const isOver = new Promise((resolve) => {
    lasting.addEventListener("message", ({ data }) => {
      const { type, id, done } = JSON.parse(data);
      if (type === "cf_agent_use_chat_response" && id === "r" && done) resolve();
    });
  });
  lasting.send(
    JSON.stringify({
      type: "cf_agent_use_chat_request",
      id: "r",
      init: { method: "POST", body: JSON.stringify(request) },
    }),
  );
  const [received] = await closes[1];
  assert.equal(received.code, 4401);
  await isOver;
});

test("a_page_over_http_is_limited_by_its_token", async () => {
  const { server, model } = locked;
  const token = await mint("http", { sessionId: "mine", expiresIn: 60 });
  const api = new URL("/agents/session-agent/http/chat", server.url).href;
  const chatOf = (id) =>
    new Chat({ id, transport: new DefaultChatTransport({ api, headers: { authorization: `Bearer ${token}` } }) });
  const [mine, other] = [chatOf("mine"), chatOf("other")];
  model.next(say("Come in."));
  await mine.sendMessage({ text: "Knock." });
  assert.deepEqual(mine.messages.map(roleAndText), [
    ["user", "Knock."],
    ["assistant", "Come in."],
  ]);
  await other.sendMessage({ text: "Knock." });
  assert.equal(JSON.parse(other.error.message).error.code, "forbidden");
});

test("a_sockets_calls_are_limited_by_its_token", async () => {
  const { server } = locked;
  await call(server, "scoped", "createSession", { id: "mine" }, authorization);
  await call(server, "scoped", "createSession", { id: "other" }, authorization);
  const token = await mint("scoped", { sessionId: "mine", operations: ["chat", "getPathLength"], expiresIn: 60 });
  const client = connect(server, "scoped", { token, sessionId: "mine" });
  await client.ready;
  assert.deepEqual(await client.call("getPathLength", [{ sessionId: "mine" }]), { length: 0 });
  await assert.rejects(client.call("getPathLength", [{ sessionId: "other" }]), /another session/);
  await assert.rejects(client.call("deleteSession", [{ sessionId: "mine" }]), /does not allow/);
  await assert.rejects(client.call("listSessions", [{}]), /token/);
  await assert.rejects(client.call("mintToken", [{ expiresIn: 60 }]), /secret|token/);
  await assert.rejects(client.call("destroy", [{ confirm: "scoped" }]), /secret|token/);
});

test("a_session_has_at_most_64_sockets", async () => {
  const { server } = open;
  const address = `${server.url.href.replace(/^http/, "ws")}agents/session-agent/crowded`;
  const dial = async () => {
    const socket = new WebSocket(address);
    const outcome = await Promise.race([
      once(socket, "open").then(() => "open"),
      once(socket, "error").then(() => "refused"),
    ]);
    return { socket, outcome };
  };
  const sockets = [];
  for (let n = 0; n < 64; n += 1) sockets.push(await dial());
  assert.ok(sockets.every(({ outcome }) => outcome === "open"));
  assert.equal((await dial()).outcome, "refused");
  const first = sockets.shift().socket;
  first.close();
  await once(first, "close");
  const again = await dial();
  assert.equal(again.outcome, "open");
  for (const { socket } of [...sockets, again]) socket.close();
});
