// The `agents` package's clients over a WebSocket (`AgentClient`, and `useAgentChat` in React)
// against the built Worker with a scripted model.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, afterEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { AgentClient } from "agents/client";
import { WebSocketChatTransport } from "ai";
import { call, callsIn, history, startChatServer, textOf, roleAndText } from "./chat_server.mjs";
import { openPage, openTab, useAgent, useAgentChat, useEffect } from "./browser_tab.mjs";
import { callTool, gate, refuse, say } from "./model_server.mjs";

const { server, model, stop } = await startChatServer();
const opened = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((client) => client.close()));
  assert.equal(model.unusedAnswers, 0, "a scripted answer was never requested");
});
after(stop);

const PLACE = {
  name: "place",
  description: "Where the user is.",
  parameters: { type: "object", properties: {} },
};

const PAY = {
  name: "pay",
  description: "Pays an amount.",
  parameters: { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] },
  service: "TOOLS",
  needsApproval: true,
};

function connect(name, options = {}) {
  const client = new AgentClient({
    agent: "SessionAgent",
    name,
    host: new URL(server.url).host,
    protocol: "ws",
    ...options,
  });
  opened.push(client);
  return client;
}

async function open(name, options) {
  const tab = await openTab(server, name, options);
  opened.push(tab);
  return tab;
}

const isReady = ({ chat }) => chat.status === "ready" && !chat.isStreaming;

/** Waits until the tab is idle and shows these messages. */
async function shows(tab, expected) {
  await tab.reaches(
    (tab) => isReady(tab) && JSON.stringify(tab.messages.map(roleAndText)) === JSON.stringify(expected),
  );
}

function lastOf(list) {
  return list.at(-1);
}

function lastInput() {
  return lastOf(model.requests).messages.filter(({ role }) => role !== "system");
}

test("a_client_learns_its_agent_and_calls_operations", async () => {
  const client = connect("rpc");
  await client.ready;
  assert.deepEqual([client.name, client.agent], ["rpc", "session-agent"]);
  const { id } = await client.call("createSession", [{ name: "by socket" }]);
  assert.equal((await client.stub.getSession({ sessionId: id })).name, "by socket");
  assert.equal((await call(server, "rpc", "getSession", { sessionId: id })).name, "by socket");
  assert.equal((await client.call("listSessions")).sessions.length, 1);
});

test("a_failed_call_is_reported_and_the_socket_stays_open", async () => {
  const client = connect("rpc-errors");
  await assert.rejects(client.call("createSesion"), /no such operation.*createSession/is);
  await assert.rejects(client.call("getHistory", [{}]), /sessionId/);
  await assert.rejects(client.call("createSession", [{}, {}]), /one object/);
  assert.deepEqual((await client.call("listSessions")).sessions, []);
});

test("unknown_frames_are_ignored", async () => {
  const client = connect("nonsense");
  await client.ready;
  for (const frame of [
    "",
    "{",
    "null",
    "[]",
    '{"type":"cf_agent_from_the_future"}',
    "x".repeat(100_000),
    new Uint8Array([1, 2]),
  ]) {
    client.send(frame);
  }
  assert.deepEqual((await client.call("listSessions")).sessions, []);
});

test("a_socket_survives_the_objects_eviction", async () => {
  const client = connect("evicted");
  await client.ready;
  await client.call("createSession", [{ id: "s" }]);
  await server.evict("evicted", { webSockets: "hibernate" });
  assert.equal((await client.call("getSession", [{ sessionId: "s" }])).id, "s");
});

test("a_page_is_limited_to_its_tokens_session", async () => {
  const token = "the secret of this test, long enough";
  const locked = await startChatServer({ token });
  after(locked.stop);
  const authorization = { authorization: `Bearer ${token}` };
  const scope = { sessionId: "mine", expiresIn: 60 };
  const minted = await call(locked.server, "locked", "mintToken", scope, authorization);
  const query = { token: minted.token, sessionId: "mine" };
  const tab = await openTab(locked.server, "locked", { query });
  opened.push(tab);
  locked.model.next(say("Come in."));
  await tab.chat.sendMessage({ text: "Knock." });
  await shows(tab, [
    ["user", "Knock."],
    ["assistant", "Come in."],
  ]);
  await assert.rejects(tab.agent.call("getHistory", [{ sessionId: "another" }]), /token/i);
  await tab.close();
  const again = await openTab(locked.server, "locked", { query });
  opened.push(again);
  await shows(again, [
    ["user", "Knock."],
    ["assistant", "Come in."],
  ]);
});

test("a_message_is_answered_in_every_tab", async () => {
  const here = await open("tabs");
  const there = await open("tabs");
  model.next(say("Hello ", "there."));
  await here.chat.sendMessage({ text: "Hi!" });
  const expected = [
    ["user", "Hi!"],
    ["assistant", "Hello there."],
  ];
  await shows(here, expected);
  await shows(there, expected);
  assert.deepEqual(
    there.messages.map(({ id }) => id),
    here.messages.map(({ id }) => id),
  );
  assert.deepEqual(await history(server, "tabs", "default"), expected);
});

test("open_tabs_show_writes_of_operations", async () => {
  const here = await open("open tabs");
  const there = await open("open tabs");
  const other = await open("open tabs", { query: { sessionId: "other" } });
  const append = (text, role = "user") =>
    call(server, "open tabs", "appendMessage", {
      sessionId: "default",
      message: { id: text, role, parts: [{ type: "text", text }] },
    });
  await call(server, "open tabs", "createSession", { id: "default" });
  await append("by a server");
  for (const tab of [here, there]) await shows(tab, [["user", "by a server"]]);
  // Many writes within a second cause one more list with all of them. A busy machine takes several
  // seconds.
  let lists = 0;
  here.agent.addEventListener("message", ({ data }) => (lists += data.includes("cf_agent_chat_messages") ? 1 : 0));
  const texts = Array.from({ length: 20 }, (_, n) => `number ${n}`);
  const startedAt = Date.now();
  for (const text of texts) await append(text, "assistant");
  const expected = [["user", "by a server"], ...texts.map((text) => ["assistant", text])];
  for (const tab of [here, there]) await shows(tab, expected);
  const seconds = Math.ceil((Date.now() - startedAt) / 1000);
  assert.ok(lists <= 3 + seconds, `${lists} lists for 20 writes in ${seconds} s`);
  await there.agent.call("deleteMessages", [{ sessionId: "default", messageIds: texts }]);
  for (const tab of [here, there]) await shows(tab, expected.slice(0, 1));
  assert.deepEqual(other.messages, []);
});

test("open_tabs_receive_a_changed_message_without_the_list", async () => {
  const here = await open("changed");
  const there = await open("changed");
  const write = (operation, id, text) =>
    call(server, "changed", operation, {
      sessionId: "default",
      message: { id, role: "user", parts: [{ type: "text", text }] },
    });
  await call(server, "changed", "createSession", { id: "default" });
  for (const id of ["a", "b", "c"]) await write("appendMessage", id, id);
  for (const tab of [here, there])
    await shows(tab, [
      ["user", "a"],
      ["user", "b"],
      ["user", "c"],
    ]);
  // A list may arrive up to a second later.
  await quiet(here);
  const types = [];
  here.agent.addEventListener("message", ({ data }) => types.push(JSON.parse(data).type));
  await write("updateMessage", "b", "B");
  for (const tab of [here, there])
    await shows(tab, [
      ["user", "a"],
      ["user", "B"],
      ["user", "c"],
    ]);
  await write("updateMessage", "a", "A");
  await write("upsertMessage", "c", "C");
  for (const tab of [here, there])
    await shows(tab, [
      ["user", "A"],
      ["user", "B"],
      ["user", "C"],
    ]);
  assert.deepEqual([...new Set(types)], ["cf_agent_message_updated"]);
  // A new message is sent with the list, and so is a message changed together with it.
  await write("updateMessage", "a", "a");
  await write("upsertMessage", "d", "D");
  for (const tab of [here, there])
    await shows(tab, [
      ["user", "a"],
      ["user", "B"],
      ["user", "C"],
      ["user", "D"],
    ]);
  assert.ok(types.includes("cf_agent_chat_messages"));
});

/** Waits until the tab's socket has received nothing for longer than the interval between two lists. */
async function quiet(tab) {
  let last = Date.now();
  const listen = () => (last = Date.now());
  tab.agent.addEventListener("message", listen);
  while (Date.now() - last < 1_500) await pause(100);
  tab.agent.removeEventListener("message", listen);
}

test("open_tabs_show_an_automatic_compaction", async () => {
  const tab = await open("compacted");
  await call(server, "compacted", "createSession", { id: "default" });
  const settings = { compactAfter: 300, protectHead: 1, tailTokenBudget: 50, minTailMessages: 1 };
  await call(server, "compacted", "configureCompaction", { sessionId: "default", ...settings });
  const rest = gate();
  model.next(say("The talk ", rest, "in short."));
  const events = Array.from({ length: 8 }, (_, n) => ({
    action: "user_message",
    content: `Number ${n}. ${"Word upon word. ".repeat(20)}`,
  }));
  await call(server, "compacted", "appendEvents", { sessionId: "default", events });
  await tab.reaches(({ messages }) => messages.length === 8);
  rest.open();
  await tab.reaches(
    ({ messages }) => messages.length < 8 && messages.some((message) => textOf(message).includes("The talk in short.")),
  );
});

test("writes_during_a_turn_are_shown_and_the_stream_continues", async () => {
  const here = await open("news");
  const there = await open("news");
  const rest = gate();
  model.next(say("Once ", rest, "upon a time."));
  const sent = here.chat.sendMessage({ text: "Tell me." });
  for (const tab of [here, there])
    await tab.reaches(({ messages }) => messages.length === 2 && textOf(messages[1]) === "Once ");
  const message = { id: "news", role: "user", parts: [{ type: "text", text: "News." }] };
  await call(server, "news", "appendMessage", { sessionId: "default", message });
  for (const tab of [here, there])
    await tab.reaches(
      ({ messages }) =>
        messages.some(({ id }) => id === "news") && messages.some((message) => textOf(message) === "Once "),
    );
  rest.open();
  await sent;
  const stored = await history(server, "news", "default");
  for (const tab of [here, there])
    await tab.reaches(
      ({ chat, messages }) => isReady({ chat }) && messages.some((message) => textOf(message) === "Once upon a time."),
    );
  assert.ok(stored.length >= 2);
});

test("the_other_tab_sees_the_answer_as_it_streams", async () => {
  const here = await open("onlooker");
  const there = await open("onlooker");
  const rest = gate();
  model.next(say("Once ", rest, "upon a time."));
  const sent = here.chat.sendMessage({ text: "Tell me." });
  await there.reaches(({ messages }) => messages.length === 2 && textOf(messages[1]) === "Once ");
  assert.equal(textOf(there.messages[0]), "Tell me.");
  rest.open();
  await sent;
  await shows(there, [
    ["user", "Tell me."],
    ["assistant", "Once upon a time."],
  ]);
});

test("a_tab_opened_later_shows_the_history_and_continues", async () => {
  const before = await open("later");
  model.next(say("One."));
  await before.chat.sendMessage({ text: "1?" });
  await before.close();
  const tab = await open("later");
  await shows(tab, [
    ["user", "1?"],
    ["assistant", "One."],
  ]);
  model.next(say("Two."));
  await tab.chat.sendMessage({ text: "2?" });
  await shows(tab, [
    ["user", "1?"],
    ["assistant", "One."],
    ["user", "2?"],
    ["assistant", "Two."],
  ]);
  assert.deepEqual(
    lastInput().map(({ role, content }) => [role, content]),
    [
      ["user", "1?"],
      ["assistant", "One."],
      ["user", "2?"],
    ],
  );
});

test("a_tab_uses_the_session_in_its_url", async () => {
  const tab = await open("sessions", { query: { sessionId: "mine" } });
  const other = await open("sessions");
  model.next(say("Yours."));
  await tab.chat.sendMessage({ text: "Whose?" });
  await shows(tab, [
    ["user", "Whose?"],
    ["assistant", "Yours."],
  ]);
  assert.deepEqual(await history(server, "sessions", "mine"), tab.messages.map(roleAndText));
  assert.deepEqual(other.messages, []);
  // The hook reads an agent's history once per page, whatever its query.
  await Promise.all([tab.close(), other.close()]);
  const again = await open("sessions", { query: { sessionId: "mine" } });
  await shows(again, tab.messages.map(roleAndText));
});

test("a_client_tool_runs_in_the_page_and_continues_the_same_message", async () => {
  const tab = await open("place", {
    tools: { place: { ...PLACE, execute: () => {} } },
    onToolCall: ({ toolCall, addToolOutput }) => {
      addToolOutput({ toolCallId: toolCall.toolCallId, output: { city: "Rome" } });
    },
  });
  const requestsBefore = model.requests.length;
  model.next(callTool("place", {}, "c1"), say("You are in Rome."));
  await tab.chat.sendMessage({ text: "Where am I?" });
  await shows(tab, [
    ["user", "Where am I?"],
    ["assistant", "You are in Rome."],
  ]);
  await tab.reaches(({ messages }) => callsIn(messages[1]).length === 1);
  const [part] = callsIn(tab.messages[1]);
  assert.deepEqual([part.state, part.output], ["output-available", { city: "Rome" }]);
  const result = lastOf(lastInput());
  assert.deepEqual([result.role, result.tool_call_id, JSON.parse(result.content)], ["tool", "c1", { city: "Rome" }]);
  assert.equal(model.requests.length - requestsBefore, 2);
});

for (const [name, approved] of [
  ["approved", true],
  ["declined", false],
]) {
  test(`a_call_that_needs_approval_and_is_${name}`, async () => {
    await call(server, name, "defineTool", PAY);
    const tab = await open(name);
    model.next(callTool("pay", { amount: 5 }, "c1"), say(approved ? "Paid." : "Not paid."));
    await tab.chat.sendMessage({ text: "Pay 5." });
    await tab.reaches((tab) => isReady(tab) && callsIn(lastOf(tab.messages))[0]?.state === "approval-requested");
    tab.chat.addToolApprovalResponse({ id: callsIn(lastOf(tab.messages))[0].approval.id, approved });
    const outcome = approved ? { state: "output-available", output: { paid: 5 } } : { state: "output-denied" };
    await tab.reaches(({ messages }) => {
      const [part] = callsIn(lastOf(messages));
      return part?.state === outcome.state && isDeepStrictEqual(part.output, outcome.output);
    });
    await shows(tab, [
      ["user", "Pay 5."],
      ["assistant", approved ? "Paid." : "Not paid."],
    ]);
    assert.deepEqual([lastOf(lastInput()).role, lastOf(lastInput()).tool_call_id], ["tool", "c1"]);
  });
}

test("stopping_cancels_the_turn_and_keeps_its_text", async () => {
  const tab = await open("stopped");
  const never = gate();
  model.next(say("Half a ", never, "sentence."));
  const sent = tab.chat.sendMessage({ text: "Go." });
  await tab.reaches(({ messages }) => messages.length === 2 && textOf(messages[1]) === "Half a ");
  await tab.chat.stop();
  await sent;
  const expected = [
    ["user", "Go."],
    ["assistant", "Half a "],
  ];
  await shows(tab, expected);
  await tab.close();
  const later = await open("stopped");
  await shows(later, expected);
});

test("regenerating_adds_a_sibling_answer_in_every_tab", async () => {
  const here = await open("again");
  const there = await open("again");
  model.next(say("First."), say("Second."));
  await here.chat.sendMessage({ text: "Say it." });
  await shows(there, [
    ["user", "Say it."],
    ["assistant", "First."],
  ]);
  await here.chat.regenerate();
  const expected = [
    ["user", "Say it."],
    ["assistant", "Second."],
  ];
  await shows(here, expected);
  await shows(there, expected);
  const [user] = here.messages;
  const { messages } = await call(server, "again", "getBranches", { sessionId: "default", messageId: user.id });
  assert.deepEqual(messages.map(textOf).sort(), ["First.", "Second."]);
});

test("a_reloaded_page_resumes_the_whole_running_turn", async () => {
  const before = await open("resumed");
  const rest = gate();
  model.next(say("Before, ", rest, "and after."));
  void before.chat.sendMessage({ text: "Go." });
  await before.reaches(({ messages }) => messages.length === 2 && textOf(messages[1]) === "Before, ");
  await before.close();
  const tab = await open("resumed");
  await tab.reaches(({ chat, messages }) => chat.isStreaming && textOf(lastOf(messages)) === "Before, ");
  rest.open();
  await shows(tab, [
    ["user", "Go."],
    ["assistant", "Before, and after."],
  ]);
});

test("a_page_that_acknowledges_after_the_turn_gets_its_chunks", async () => {
  const client = connect("late");
  const frames = [];
  client.addEventListener("message", ({ data }) => frames.push(JSON.parse(data)));
  await client.ready;
  const seen = async (is) => {
    for (; ; await pause(10)) if (frames.some(is)) return frames.find(is);
  };
  const rest = gate();
  model.next(say("Before, ", rest, "and after."));
  const body = JSON.stringify({ messages: [{ id: "u", role: "user", parts: [{ type: "text", text: "Go." }] }] });
  client.send(JSON.stringify({ type: "cf_agent_use_chat_request", id: "r", init: { method: "POST", body } }));
  client.send(JSON.stringify({ type: "cf_agent_stream_resume_request", probeId: "p" }));
  await seen(({ type }) => type === "cf_agent_stream_resuming");
  rest.open();
  for (let list = []; list.length < 2; await pause(20)) list = await history(server, "late", "default");
  const before = frames.length;
  client.send(JSON.stringify({ type: "cf_agent_stream_resume_ack", id: "r" }));
  await seen(({ id, done }) => id === "r" && done);
  const replayed = frames.slice(before).filter(({ type, body }) => type === "cf_agent_use_chat_response" && body);
  const deltas = replayed.map(({ body }) => JSON.parse(body)).filter(({ type }) => type === "text-delta");
  assert.equal(deltas.map(({ delta }) => delta).join(""), "Before, and after.");
  assert.ok(replayed.every(({ replay }) => replay));
});

test("pages_that_send_on_open_show_their_answers", async () => {
  for (let n = 0; n < 25; n += 1) {
    model.next(say(`Hello ${n}.`));
    const name = `opening ${n}`;
    const tab = await openPage(server, () => {
      const agent = useAgent({ agent: "SessionAgent", name, host: new URL(server.url).host, protocol: "ws" });
      const chat = useAgentChat({ agent, throttle: false });
      useEffect(() => void chat.sendMessage({ text: "Hi!" }), []);
      return { agent, chat };
    });
    opened.push(tab);
    await shows(tab, [
      ["user", "Hi!"],
      ["assistant", `Hello ${n}.`],
    ]);
  }
});

test("a_page_that_switches_sessions_writes_nothing_of_the_old_one", async () => {
  model.next(say("Of one."));
  const message = (id, role, text) => ({ id, role, parts: [{ type: "text", text }] });
  const earlier = [message("u1", "user", "One."), message("a1", "assistant", "Of one.")];
  const client = connect("changed", { query: { sessionId: "two" } });
  await client.ready;
  const ended = new Promise((resolve) =>
    client.addEventListener("message", ({ data }) => JSON.parse(data).done && resolve()),
  );
  const body = JSON.stringify({ messages: [...earlier, message("u2", "user", "Two.")] });
  client.send(JSON.stringify({ type: "cf_agent_use_chat_request", id: "r", init: { method: "POST", body } }));
  await ended;
  assert.deepEqual(await history(server, "changed", "two"), [
    ["user", "Two."],
    ["assistant", "Of one."],
  ]);
});

test("a_socket_that_reconnects_during_a_turn_resumes_it", async () => {
  const tab = await open("broken");
  const rest = gate();
  model.next(say("Before, ", rest, "and after."));
  void tab.chat.sendMessage({ text: "Go." });
  await tab.reaches(({ messages }) => messages.length === 2 && textOf(messages[1]) === "Before, ");
  const closed = once(tab.agent, "close");
  tab.agent.reconnect();
  await closed;
  await tab.reaches(({ chat, messages }) => chat.isStreaming && textOf(lastOf(messages)) === "Before, ");
  rest.open();
  await shows(tab, [
    ["user", "Go."],
    ["assistant", "Before, and after."],
  ]);
});

test("a_cleared_history_disappears_from_every_tab_and_the_log", async () => {
  const here = await open("cleared");
  const there = await open("cleared");
  model.next(say("Hello."));
  await here.chat.sendMessage({ text: "Hi!" });
  await shows(there, [
    ["user", "Hi!"],
    ["assistant", "Hello."],
  ]);
  here.chat.clearHistory();
  await shows(here, []);
  await shows(there, []);
  assert.deepEqual(await history(server, "cleared", "default"), []);
});

test("a_concurrent_turn_is_refused_without_side_effects", async () => {
  const here = await open("busy");
  const there = await open("busy");
  const rest = gate();
  model.next(say("Slow", rest, "ly."));
  const sent = here.chat.sendMessage({ text: "Go." });
  await here.reaches(({ messages }) => messages.length === 2 && textOf(messages[1]) === "Slow");
  await there.chat.sendMessage({ text: "Me too!" });
  await there.reaches(({ chat }) => chat.status === "error");
  assert.match(there.chat.error.message, /turn/i);
  rest.open();
  await sent;
  await shows(here, [
    ["user", "Go."],
    ["assistant", "Slowly."],
  ]);
});

test("a_model_error_is_reported_and_the_message_is_kept", async () => {
  const tab = await open("refused");
  model.next(refuse(400, "No such model."));
  await tab.chat.sendMessage({ text: "Hi?" });
  await tab.reaches(({ chat }) => chat.status === "error");
  assert.match(tab.chat.error.message, /model/i);
  assert.deepEqual(await history(server, "refused", "default"), [["user", "Hi?"]]);
});

// The AI SDK's own transport: another protocol, on the same socket.

/** A transport on a session's socket, and a function that sends a message with it. */
function transportTo(name, sessionId = "s") {
  const url = new URL(`/agents/session-agent/${name}?sessionId=${sessionId}`, server.url).href;
  const transport = new WebSocketChatTransport({ url });
  opened.push(transport);
  const message = (text) => ({ id: text, role: "user", parts: [{ type: "text", text }] });
  const send = (text, more = {}) =>
    transport.sendMessages({ chatId: "page", trigger: "submit-message", messages: [message(text)], ...more });
  return { transport, send };
}

const all = async (stream) => await Array.fromAsync(stream);

const deltas = (chunks) => chunks.filter(({ type }) => type === "text-delta").map(({ delta }) => delta);

/** Reads until a text has arrived. */
async function until(reader, text) {
  const chunks = [];
  for (;;) {
    const { value, done } = await reader.read();
    assert.ok(!done, JSON.stringify(chunks));
    chunks.push(value);
    if (value.delta === text) return chunks;
  }
}

test("the_ai_sdk_transport_chats_over_the_socket", async () => {
  const { transport, send } = transportTo("transport");
  for (const n of ["first", "second"]) {
    model.next(say("Hello ", `${n}.`));
    const chunks = await all(await send(n));
    assert.deepEqual([chunks[0].type, deltas(chunks), lastOf(chunks).type], ["start", ["Hello ", `${n}.`], "finish"]);
  }
  assert.equal(await transport.reconnectToStream({ chatId: "page" }), null);
  model.next(refuse(400, "No such model."));
  await assert.rejects(all(await send("third")), /model/i);
  await assert.rejects(all(await send("fourth", { body: { systemInstructions: 5 } })), /systemInstructions/);
  // Writes of others to the session disturb nothing.
  await call(server, "transport", "appendEvents", {
    sessionId: "s",
    events: [{ action: "user_message", content: "By another." }],
  });
  model.next(say("Still here."));
  assert.deepEqual(deltas(await all(await send("fifth"))), ["Still here."]);
  assert.deepEqual(await history(server, "transport", "s"), [
    ["user", "first"],
    ["assistant", "Hello first."],
    ["user", "second"],
    ["assistant", "Hello second."],
    ["user", "third"],
    ["user", "By another."],
    ["user", "fifth"],
    ["assistant", "Still here."],
  ]);
});

test("the_ai_sdk_transport_follows_a_running_turn_and_stops_its_own", async () => {
  const [one, other, leaving] = [transportTo("followed"), transportTo("followed"), transportTo("followed")];
  const rest = gate();
  model.next(say("Slow", rest, "ly."));
  const reader = (await one.send("Go.")).getReader();
  const chunk = await until(reader, "Slow");
  const resumed = await other.transport.reconnectToStream({ chatId: "page" });
  const followed = resumed.getReader();
  assert.deepEqual(await until(followed, "Slow"), chunk);
  // A page that only followed the turn does not end it by leaving.
  const leave = new AbortController();
  const seen = await leaving.transport.reconnectToStream({ chatId: "page", abortSignal: leave.signal });
  await until(seen.getReader(), "Slow");
  leave.abort();
  rest.open();
  assert.deepEqual(deltas(await until(reader, "ly.")), ["ly."]);
  assert.deepEqual(deltas(await until(followed, "ly.")), ["ly."]);
  for (const each of [reader, followed]) while (!(await each.read()).done);

  const never = gate();
  model.next(say("Half", never, "."));
  const stop = new AbortController();
  const stopped = await one.send("Stop.", { abortSignal: stop.signal });
  await until(stopped.getReader(), "Half");
  stop.abort();
  for (let list = []; list.length < 4; await pause(20)) list = await history(server, "followed", "s");
  assert.deepEqual((await history(server, "followed", "s")).slice(2), [
    ["user", "Stop."],
    ["assistant", "Half"],
  ]);
  never.open();
});

test("the_ai_sdk_transport_shows_a_tool_call", async () => {
  const { send } = transportTo("tooling");
  await call(server, "tooling", "defineBlock", { label: "memory", kind: "writable" });
  model.next(callTool("set_context", { label: "memory", content: "Likes tea." }, "c1"), say("Noted."));
  const chunks = await all(await send("I like tea."));
  const output = chunks.find(({ type }) => type === "tool-output-available");
  assert.equal(output.toolCallId, "c1");
  assert.deepEqual(deltas(chunks), ["Noted."]);
});
