// Kills the runtime at every relevant point of a turn. Afterwards the user's message exists once,
// the turn is finished, no executed tool runs again, and every call has a result. A client that
// reconnects gets the whole answer.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Chat } from "@ai-sdk/react";
import { AgentClient } from "agents/client";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { call, callsIn, openTurns, startChatServer, textOf, roleAndText, until } from "./chat_server.mjs";
import { startProxy } from "./proxy.mjs";
import { callTool, callTools, gate, say, USAGE } from "./model_server.mjs";
import { openTab } from "./browser_tab.mjs";
import { startTools } from "./tool_server.mjs";

const tools = await startTools();
const { server, model, stop } = await startChatServer({ vars: { TOOL_ORIGINS: tools.origin } });
const proxy = await startProxy(server);
const tabs = [];
let points = 0;

after(async () => {
  console.log(`${points} points of a turn at which the runtime was killed`);
  await Promise.all(tabs.map((tab) => tab.close()));
  await proxy.stop();
  await stop();
  await tools.stop();
});
afterEach(() => model.forget());

const LONG = "All work and no play. ".repeat(2_000);
const CUT_OFF = /was interrupted while it ran/;

const walk = (to, id) => ["walk", { to }, id];

/**
 * Each point has the model's answers until the kill, with a gate `at` where the runtime is
 * killed, and how the tools run. `again` has the model's answers after the kill. `calls`
 * is how often tools are called in all. `cut` lists the calls whose end the runtime did
 * not see.
 */
const POINTS = {
  before_the_models_first_byte: { first: (at) => [say(at, "One two.")], again: [say("One two.")] },
  between_chunks_of_text: { first: (at) => [say("One ", at, "two.")], again: [say("One two.")] },
  after_much_text: { first: (at) => [say(LONG, at, "two.")], again: [say("One two.")] },
  after_the_last_chunk_of_text: { first: (at) => [say("One ", "two.", at)], again: [say("One two.")] },
  between_text_and_a_call: {
    first: (at) => [concatenated("Let me see. ", at, callTool("walk", { to: "Rome" }, "a"))],
    again: [callTool("walk", { to: "Rome" }, "a"), say("One two.")],
    calls: 1,
  },
  between_two_pieces_of_a_calls_arguments: {
    first: (at) => [within(callTool("walk", { to: "Rome" }, "a"), 2, at)],
    again: [callTool("walk", { to: "Rome" }, "a"), say("One two.")],
    calls: 1,
  },
  right_before_the_tool_is_called: {
    first: (at) => [within(callTool("walk", { to: "Rome" }, "a"), 3, at)],
    again: [callTool("walk", { to: "Rome" }, "a"), say("One two.")],
    calls: 1,
  },
  while_the_tool_runs: {
    first: () => [callTool("walk", { to: "Rome" }, "a")],
    run: (at) => async () => await reach(at),
    again: [say("One two.")],
    calls: 1,
    cut: ["a"],
  },
  before_the_second_answers_first_byte: {
    first: (at) => [callTool("walk", { to: "Rome" }, "a"), say(at, "One two.")],
    again: [say("One two.")],
    calls: 1,
  },
  during_the_second_answer: {
    first: (at) => [callTool("walk", { to: "Rome" }, "a"), say("One ", at, "two.")],
    again: [say("One two.")],
    calls: 1,
  },
  after_the_second_answers_last_chunk: {
    first: (at) => [callTool("walk", { to: "Rome" }, "a"), say("One two.", at)],
    again: [say("One two.")],
    calls: 1,
  },
  between_two_calls_of_one_answer: {
    first: (at) => [within(callTools(walk("Rome", "a"), walk("Oslo", "b")), 3, at)],
    again: [callTools(walk("Rome", "a"), walk("Oslo", "b")), say("One two.")],
    calls: 2,
  },
  while_two_tools_run: {
    first: () => [callTools(walk("Rome", "a"), walk("Oslo", "b"))],
    run: (at) => async () => await reach(at, 2),
    again: [say("One two.")],
    calls: 2,
    cut: ["a", "b"],
  },
  while_one_of_two_tools_runs_and_the_other_has_answered: {
    first: () => [callTools(walk("Rome", "a"), walk("Oslo", "b"))],
    run:
      (at) =>
      async ({ arguments: { to } }) =>
        to === "Rome" ? { to } : await at.gate,
    when: (chat) => callsIn(chat.messages[1]).some(({ state }) => state === "output-available"),
    again: [say("One two.")],
    calls: 2,
    cut: ["b"],
  },
  after_two_tools_and_before_the_next_answer: {
    first: (at) => [callTools(walk("Rome", "a"), walk("Oslo", "b")), say(at, "One two.")],
    again: [say("One two.")],
    calls: 2,
  },
  during_the_answer_after_two_tools: {
    first: (at) => [callTools(walk("Rome", "a"), walk("Oslo", "b")), say("One ", at, "two.")],
    again: [say("One two.")],
    calls: 2,
  },
  in_the_third_step: {
    first: (at) => [
      callTool("walk", { to: "Rome" }, "a"),
      callTool("walk", { to: "Oslo" }, "b"),
      say("One ", at, "two."),
    ],
    again: [say("One two.")],
    calls: 2,
  },
  while_the_second_steps_tool_runs: {
    first: () => [callTool("walk", { to: "Rome" }, "a"), callTool("walk", { to: "Oslo" }, "b")],
    run:
      (at) =>
      async ({ arguments: { to } }) =>
        to === "Rome" ? { to } : await reach(at),
    again: [say("One two.")],
    calls: 2,
    cut: ["b"],
  },
  while_an_approved_tool_runs: {
    asks: callTool("pay", { to: "Rome" }, "a"),
    first: () => [],
    run: (at) => async () => await reach(at),
    again: [say("One two.")],
    calls: 1,
    cut: ["a"],
  },
  after_an_approved_tool_and_before_the_next_answer: {
    asks: callTool("pay", { to: "Rome" }, "a"),
    first: (at) => [say(at, "One two.")],
    again: [say("One two.")],
    calls: 1,
  },
  during_the_answer_after_an_approved_tool: {
    asks: callTool("pay", { to: "Rome" }, "a"),
    first: (at) => [say("One ", at, "two.")],
    again: [say("One two.")],
    calls: 1,
  },
};

for (const [name, point] of Object.entries(POINTS)) {
  test(`killed_${name}`, async () => {
    const { agent, callsBefore, resumeModel } = await killedAt(name, point);
    // The model answers after the client has reconnected.
    const chat = openChat(agent, { messages: await getMessages(agent), onAnswer: resumeModel });
    await chat.resumeStream();
    assert.equal(chat.error, undefined);
    assert.deepEqual(
      chat.messages.map(withoutTime),
      (await getMessages(agent)).map(withoutTime),
      "the client has what the log has",
    );
    await assertFinishedOnce(agent, point, callsBefore);
  });
}

for (const name of [
  "between_chunks_of_text",
  "while_one_of_two_tools_runs_and_the_other_has_answered",
  "during_the_second_answer",
]) {
  test(`killed_${name}_and_a_page_with_a_socket_reconnects`, async () => {
    const point = POINTS[name];
    const agent = `socket ${name}`;
    await prepare(agent);
    const callsBefore = tools.calls.length;
    const at = begin(point);
    const tab = await openTab({ url: proxy.url }, agent, { query: { sessionId: "s" } });
    tabs.push(tab);
    void tab.chat.sendMessage({ text: "Go." });
    await (point.when ? tab.reaches(({ chat }) => chat.messages.length > 1 && point.when(chat)) : at.reached);
    const resumeModel = await kill(point);
    resumeModel();
    await isOver(agent);
    const expected = (await getMessages(agent)).map(withoutTime);
    assert.deepEqual(
      expected.map(({ role, text }) => [role, text]),
      [
        ["user", "Go."],
        ["assistant", "One two."],
      ],
    );
    await tab.reaches(
      ({ chat, messages }) =>
        !chat.isStreaming && chat.status === "ready" && isDeepStrictEqual(messages.map(withoutTime), expected),
    );
    await assertFinishedOnce(agent, point, callsBefore);
  });
}

test("killed_after_a_clients_answer_during_the_turn_the_answer_is_applied", async () => {
  const agent = "early answer";
  await prepare(agent);
  const at = gate();
  model.next(callTools(["place", {}, "c"], walk("Rome", "a")));
  tools.run = async () => await reach(at);
  const client = new AgentClient({
    agent: "SessionAgent",
    name: agent,
    host: new URL(server.url).host,
    protocol: "ws",
    query: { sessionId: "s" },
  });
  await client.ready;
  const place = [{ name: "place", description: "Says where one is.", parameters: { type: "object" } }];
  const message = { id: "u", role: "user", parts: [{ type: "text", text: "Where am I?" }] };
  const body = JSON.stringify({ messages: [message], tools: place });
  client.send(JSON.stringify({ type: "cf_agent_use_chat_request", id: "r", init: { method: "POST", body } }));
  await at.reached;
  client.send(
    JSON.stringify({
      type: "cf_agent_tool_result",
      toolCallId: "c",
      toolName: "place",
      output: "Rome",
      autoContinue: true,
      clientTools: place,
    }),
  );
  // The object handles frames in order. Once it answers this call, it has received the tool's
  // answer.
  await client.call("listSessions");
  client.close();
  await kill({ again: [say("In Rome.")] }).then((resumeModel) => resumeModel());
  await isOver(agent);
  const events = await call(server, agent, "loadEvents", { sessionId: "s" });
  const results = events.filter(({ action }) => action === "tool_result");
  assert.deepEqual(
    results.map(({ toolCallId }) => toolCallId),
    ["a", "c"],
  );
  assert.equal(results[1].content, "Rome");
  assert.equal(events.at(-1).content, "In Rome.");
  assert.deepEqual(await server.sql(agent, "SELECT * FROM cf_agents_early_answers"), []);
});

test("killed_with_many_turns_all_finish_and_another_request_is_served_at_once", async () => {
  const agent = "many";
  await prepare(agent);
  const never = gate();
  const count = 10;
  model.next(...Array.from({ length: count }, () => say("One ", never, "two.")));
  const before = model.requests.length;
  for (let n = 0; n < count; n += 1)
    void post(agent, "Go.", `s${n}`)
      .then((response) => response.text())
      .catch(() => {});
  await model.untilRequests(before + count);
  points += 1;
  model.forget();
  model.next(...Array.from({ length: count }, () => say("One two.")));
  await server.kill9();
  const { sessions } = await call(server, agent, "listSessions", {});
  assert.equal(sessions.length, count);
  for (let n = 0; n < count; n += 1) {
    await isOver(agent, `s${n}`);
    const { messages } = await call(server, agent, "getHistory", { sessionId: `s${n}` });
    assert.deepEqual(messages.map(roleAndText), [
      ["user", "Go."],
      ["assistant", "One two."],
    ]);
  }
  assert.deepEqual(await openTurns(server, agent), []);
});

test("killed_between_chunks_without_a_request_the_alarm_finishes_the_turn", async () => {
  const { agent, callsBefore, resumeModel } = await killedAt("alone", POINTS.between_chunks_of_text);
  resumeModel();
  const answered = model.requests.length;
  await until(
    () => model.requests.length > answered,
    (check) => {
      const timer = setInterval(check, 50);
      return () => clearInterval(timer);
    },
    () => "for the alarm",
  );
  await isOver(agent);
  await assertFinishedOnce(agent, POINTS.between_chunks_of_text, callsBefore);
});

test("killed_after_the_answer_was_written_the_turn_stays_finished", async () => {
  for (const [n, action] of Object.entries({
    nothing: async () => {},
    "the answer is deleted": async (agent, [, answer]) =>
      await call(server, agent, "deleteMessages", { sessionId: "s", messageIds: [answer.id] }),
    "the session is cleared": async (agent) => await call(server, agent, "clearMessages", { sessionId: "s" }),
    "more is appended": async (agent) =>
      await call(server, agent, "appendEvents", {
        sessionId: "s",
        events: [{ action: "user_message", content: "Unanswered." }],
      }),
  })) {
    const agent = `over ${n}`;
    model.next(say("One ", "two."));
    await (await post(agent, "Go.")).text();
    points += 1;
    await server.kill9();
    await action(agent, await getMessages(agent));
    const requestsBefore = model.requests.length;
    await server.kill9();
    assert.equal((await resume(agent)).status, 204, n);
    assert.deepEqual(await openTurns(server, agent), [], n);
    assert.equal(model.requests.length, requestsBefore, `${n}: the model is not called again`);
    const { usage } = await call(server, agent, "getSession", { sessionId: "s" });
    assert.deepEqual([usage.inputTokens, usage.outputTokens], [USAGE.prompt_tokens, USAGE.completion_tokens], n);
  }
});

test("killed_while_an_append_moves_the_answer_the_turn_finishes_once", async () => {
  const agent = "place taken";
  const at = gate();
  model.next(say(at, "One two."));
  void post(agent, "Go.")
    .then((response) => response.text())
    .catch(() => {});
  await at.reached;
  const callsBefore = tools.calls.length;
  await call(server, agent, "appendEvents", {
    sessionId: "s",
    events: [{ action: "system_instruction", content: "In between." }],
  });
  const resumeModel = await kill({ again: [say("One two.")] });
  resumeModel();
  await isOver(agent);
  await assertFinishedOnce(agent, {}, callsBefore);
  await server.kill9();
  assert.deepEqual(await openTurns(server, agent), []);
  const { usage } = await call(server, agent, "getSession", { sessionId: "s" });
  assert.equal(usage.inputTokens, USAGE.prompt_tokens);
});

test("killed_repeatedly_the_turn_is_closed_with_an_error", async () => {
  const { agent } = await killedAt("again and again", { first: (at) => [say("One ", at, "two.")], again: [] });
  // Each activation finds an answer of the model, even if an alarm resumes the turn first.
  const gates = [gate(), gate()];
  model.next(...gates.map((at) => say("One ", at, "two.")));
  for (const at of gates) {
    await resume(agent);
    await at.reached;
    points += 1;
    await server.kill9();
  }
  const requestsBefore = model.requests.length;
  const chat = openChat(agent);
  await chat.resumeStream();
  assert.match(chat.error.message, /interrupted several times/);
  const messages = await getMessages(agent);
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant"],
  );
  assert.match(textOf(messages[1]), /interrupted several times/);
  assert.equal(model.requests.length, requestsBefore, "the model is not called any more");
  assert.equal((await resume(agent)).status, 204);
});

test("killed_and_then_sent_another_turn_the_first_is_finished_before_it", async () => {
  const { agent, resumeModel } = await killedAt("impatient", POINTS.between_chunks_of_text);
  const other = await post(agent, "And now?");
  assert.equal(other.status, 409);
  assert.equal((await other.json()).error.code, "turn_in_progress");
  resumeModel();
  await isOver(agent);
  model.next(say("Now."));
  const next = await post(agent, "And now?");
  assert.equal(next.status, 200);
  await next.text();
  const expected = [
    ["user", "Go."],
    ["assistant", "One two."],
    ["user", "And now?"],
    ["assistant", "Now."],
  ];
  assert.deepEqual((await getMessages(agent)).map(roleAndText), expected);
});

test("killed_and_cancelled_by_the_user_the_turn_ends", async () => {
  const { agent } = await killedAt("stopped", { first: (at) => [say("One ", at, "two.")], again: [] });
  const never = gate();
  model.next(say(never, "One two."));
  assert.deepEqual(await call(server, agent, "cancelTurn", { sessionId: "s" }), { cancelled: true });
  await isOver(agent);
  assert.equal((await getMessages(agent))[0].role, "user");
});

test("killed_around_a_turns_start_and_end_nothing_is_duplicated", async () => {
  for (let n = 0; n < 8; n += 1) {
    const agent = `any ${n}`;
    await prepare(agent);
    model.forget();
    model.next(callTool("walk", { to: "Rome" }, "a"), say("One ", "two."));
    const callsBefore = tools.calls.length;
    const received = post(agent, "Go.")
      .then((response) => response.text())
      .catch(() => "");
    // The time only varies the moment of the kill. The test's claims are true at every moment.
    await new Promise((resolve) => setTimeout(resolve, 4 * n));
    points += 1;
    await server.kill9();
    const answer = await received;
    model.forget();
    model.next(callTool("walk", { to: "Rome" }, "a"), say("One two."), say("One two."));
    if (tools.calls.length > callsBefore) {
      model.forget();
      model.next(say("One two."), say("One two."));
    }
    await (await resume(agent)).text();
    const messages = await getMessages(agent).catch(() => []);
    if (messages.length === 0) {
      assert.equal(answer, "", "an answer was lost");
      continue;
    }
    assert.deepEqual(messages.map(roleAndText), [
      ["user", "Go."],
      ["assistant", "One two."],
    ]);
    // The tool may have been running when the runtime was killed.
    await assertFinishedOnce(agent, { calls: 1, cut: ["a"], mayBeCut: true }, callsBefore);
  }
});

/**
 * Where the runtime is killed while two messages are queued behind a first one: in which answer.
 */
const LINES = {
  in_the_first_turn: (at) => [say("One", at, ".")],
  in_the_second_turn: (at) => [say("One."), say("Two", at, ".")],
  in_the_last_turn: (at) => [say("One."), say("Two."), say("Three", at, ".")],
};

const LINE = [
  ["user", "first"],
  ["assistant", "One."],
  ["user", "second"],
  ["assistant", "Two."],
  ["user", "third"],
  ["assistant", "Three."],
];

for (const [name, first] of Object.entries(LINES)) {
  test(`killed_${name}_of_a_queue_each_message_is_answered_once_and_in_order`, async () => {
    const agent = `line ${name}`;
    const modelStarts = gate();
    const at = gate();
    const [firstAnswer, ...others] = first(at);
    model.next(within(firstAnswer, 0, modelStarts), ...others);
    for (const text of ["first", "second", "third"]) {
      await waitsOrRuns(agent, text);
      if (text === "first") await modelStarts.reached;
    }
    modelStarts.open();
    await at.reached;
    points += 1;
    model.forget();
    const done = { in_the_first_turn: 0, in_the_second_turn: 1, in_the_last_turn: 2 }[name];
    model.next(...["One.", "Two.", "Three."].slice(done).map((text) => say(text)));
    await server.kill9();
    // A server that lost its connection repeats its request.
    const ran = await call(server, agent, "runTurn", asks("third"));
    assert.equal(textOf(ran.message), "Three.");
    assert.deepEqual((await getMessages(agent)).map(roleAndText), LINE);
    assert.deepEqual(await server.sql(agent, "SELECT * FROM cf_agents_waiting"), []);
    assert.equal(model.unusedAnswers, 0);
  });
}

test("killed_with_queued_messages_an_alarm_continues_without_a_request", async () => {
  const agent = "line alarm";
  const at = gate();
  model.next(say("One", at, "."));
  await waitsOrRuns(agent, "first");
  await at.reached;
  await waitsOrRuns(agent, "second");
  await waitsOrRuns(agent, "third");
  points += 1;
  model.forget();
  const requestsBefore = model.requests.length;
  model.next(say("One."), say("Two."), say("Three."));
  await server.kill9();
  await model.untilRequests(requestsBefore + 3);
  await isOver(agent);
  assert.deepEqual((await getMessages(agent)).map(roleAndText), LINE);
});

test("killed_during_a_callback_the_call_is_repeated_with_the_same_id", async () => {
  const agent = "told";
  await call(server, agent, "configureAgent", { onTurnEnd: { url: `${tools.origin}/ended` } });
  const at = gate();
  tools.run = async () => await reach(at);
  const before = tools.calls.length;
  model.next(say("One two."));
  void post(agent, "Go.")
    .then((response) => response.text())
    .catch(() => {});
  await at.reached;
  points += 1;
  await server.kill9();
  tools.run = async () => ({ ok: true });
  await tools.untilCalls(before + 2);
  const [first, second] = tools.calls.slice(before);
  assert.deepEqual(second, first);
  assert.equal(textOf(second.message), "One two.");
  while ((await call(server, agent, "getStats", {})).callbacks.waiting > 0);
  assert.deepEqual((await call(server, agent, "getStats", {})).callbacks.failed, []);
  assert.equal(tools.calls.length, before + 2);
});

test("killed_during_a_memory_callback_the_call_is_repeated_with_the_same_id", async () => {
  const agent = "told of memory";
  await call(server, agent, "configureAgent", { onMemoryChange: { url: `${tools.origin}/changed` } });
  await call(server, agent, "defineBlock", { label: "facts", kind: "searchable" });
  const at = gate();
  tools.run = async () => await reach(at);
  const before = tools.calls.length;
  await call(server, agent, "setEntry", { label: "facts", key: "seat", content: "Window." });
  await at.reached;
  points += 1;
  await server.kill9();
  tools.run = async () => ({ ok: true });
  // No request reaches the agent: its alarm repeats the call.
  await tools.untilCalls(before + 2);
  const [first, second] = tools.calls.slice(before);
  assert.deepEqual(second, first);
  assert.deepEqual([second.kind, second.key, second.version.content], ["entry", "seat", "Window."]);
  while ((await call(server, agent, "getStats", {})).callbacks.waiting > 0);
  assert.deepEqual((await call(server, agent, "getStats", {})).callbacks.failed, []);
  assert.equal(tools.calls.length, before + 2);
});

const asks = (text) => ({
  sessionId: "s",
  whenBusy: "queue",
  message: { id: text, role: "user", parts: [{ type: "text", text }] },
});

/** Sends a server's message over a connection that will break, until the message is stored. */
async function waitsOrRuns(agent, text) {
  void server.call(agent, "runTurn", asks(text)).catch(() => {});
  const sql =
    "SELECT id FROM cf_agents_events WHERE id = ? UNION ALL SELECT turn_id FROM cf_agents_waiting WHERE message_ids = ?";
  for (;;) {
    const rows = await server.sql(agent, sql, text, JSON.stringify([text])).catch(() => []);
    if (rows.length > 0) return;
  }
}

/** Brings a turn to its point and kills the runtime there. The runtime is up again afterwards. */
async function killedAt(name, point) {
  const agent = `kill ${name}`;
  await prepare(agent);
  const chat = openChat(agent, { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
  if (point.asks) {
    model.next(point.asks);
    await chat.sendMessage({ text: "Go." });
  }
  const callsBefore = tools.calls.length;
  const at = begin(point);
  if (point.asks) void chat.addToolApprovalResponse({ id: callsIn(chat.messages[1])[0].approval.id, approved: true });
  else void chat.sendMessage({ text: "Go." });
  await (point.when ? reaches(chat, (chat) => chat.messages.length > 1 && point.when(chat)) : at.reached);
  return { agent, callsBefore, resumeModel: await kill(point) };
}

async function prepare(agent) {
  const tool = { description: "Goes there.", url: `${tools.origin}/tool`, parameters: { type: "object" } };
  await call(server, agent, "defineTool", { ...tool, name: "walk" });
  await call(server, agent, "defineTool", { ...tool, name: "pay", needsApproval: true });
}

function begin(point) {
  const at = gate();
  model.next(...point.first(at));
  tools.run = point.run?.(at) ?? (async ({ arguments: { to } }) => ({ to }));
  return at;
}

/** Kills the runtime. Returns the function that makes the model answer again. */
async function kill({ again: [first, ...others] }) {
  points += 1;
  const later = gate();
  model.forget();
  if (first) model.next(within(first, 0, later), ...others);
  await server.kill9();
  tools.run = async ({ arguments: { to } }) => ({ to });
  return later.open;
}

/** Called in a tool: opens the point once this many calls have arrived. None of them continues. */
async function reach(at, when = 1) {
  at.count = (at.count ?? 0) + 1;
  if (at.count === when) at.reach();
  await at.gate;
}

/** Checks the session after the turn. */
async function assertFinishedOnce(agent, { calls = 0, cut = [], mayBeCut = false }, callsBefore) {
  const events = await call(server, agent, "loadEvents", { sessionId: "s", limit: 1000 });
  assert.deepEqual(
    events.filter(({ action }) => action === "user_message").map(({ content }) => content),
    ["Go."],
  );
  const requests = events.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id));
  const results = events.filter(({ action }) => action === "tool_result");
  assert.deepEqual(
    results.map(({ toolCallId }) => toolCallId).sort(),
    [...requests].sort(),
    "each call has its one result",
  );
  assert.equal(new Set(requests).size, requests.length);
  assert.equal(events.at(-1).action, "agent_message");
  assert.ok(events.at(-1).content.endsWith("One two."), events.at(-1).content);
  for (const { toolCallId, isError = false, content } of results) {
    if (!mayBeCut || !cut.includes(toolCallId)) assert.equal(isError, cut.includes(toolCallId), content);
    if (isError) assert.match(content, CUT_OFF);
  }
  assert.equal(tools.calls.length - callsBefore, calls, "calls of tools");
  assert.deepEqual(await openTurns(server, agent), []);
  // Each answer that the model completed is counted once.
  const { usage } = await call(server, agent, "getSession", { sessionId: "s" });
  const answers = events.filter(({ action }) => ["agent_message", "tool_call_request"].includes(action));
  assert.equal(usage.inputTokens, answers.length * USAGE.prompt_tokens, "the usage");
}

/** Waits until no turn runs. */
async function isOver(agent, session = "s") {
  for (;;) {
    const response = await resume(agent, session);
    if (response.status === 204) return;
    await response.text();
  }
}

function resume(agent, session = "s") {
  return server.fetch(`/agents/session-agent/${encodeURIComponent(agent)}/chat/${session}/stream`);
}

function post(agent, text, session = "s") {
  const body = JSON.stringify({ id: session, message: { id: text, role: "user", parts: [{ type: "text", text }] } });
  return server.fetch(`/agents/session-agent/${encodeURIComponent(agent)}/chat`, { method: "POST", body });
}

async function getMessages(agent) {
  const response = await server.fetch(`/agents/session-agent/${encodeURIComponent(agent)}/get-messages?sessionId=s`);
  assert.equal(response.status, 200);
  return await response.json();
}

function openChat(agent, { onAnswer = () => {}, ...options } = {}) {
  const api = new URL(`/agents/session-agent/${encodeURIComponent(agent)}/chat`, server.url).href;
  const fetched = async (...request) => {
    const response = await fetch(...request);
    onAnswer();
    return response;
  };
  return new Chat({ id: "s", transport: new DefaultChatTransport({ api, fetch: fetched }), ...options });
}

async function reaches(chat, holds) {
  const listen = (check) => {
    const ends = [
      chat["~registerMessagesCallback"](check),
      chat["~registerStatusCallback"](check),
      chat["~registerErrorCallback"](check),
    ];
    return () => ends.forEach((end) => end());
  };
  const describe = () => JSON.stringify({ status: chat.status, error: chat.error?.message, messages: chat.messages });
  await until(() => holds(chat), listen, describe);
}

/** The parts of a message that a client shows. */
function withoutTime({ id, role, parts }) {
  return {
    id,
    role,
    text: textOf({ parts }),
    calls: callsIn({ parts }).map(({ toolCallId, state, output, errorText }) => ({
      toolCallId,
      state,
      output,
      errorText,
    })),
  };
}

/** An answer with a text, a gate, and then the pieces of another answer. */
function concatenated(text, at, answer) {
  return { ...answer, pieces: [...say(text).pieces, at, ...answer.pieces] };
}

/** The answer, with a gate after this many of its pieces. */
function within(answer, count, at) {
  return { ...answer, pieces: [...answer.pieces.slice(0, count), at, ...answer.pieces.slice(count)] };
}
