// `session-agent/openai-agents` with the SDK's own runner and its scripted model, compared with the
// SDK's in-memory session. The object is evicted after every write.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Agent, MemorySession, Runner, setTracingDisabled, tool } from "@openai/agents-core";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { z } from "zod";
import { startEvictingServer } from "./evicting_server.mjs";

const { SessionAgentSession } = await import("session-agent/openai-agents");

setTracingDisabled(true);
const evicting = await startEvictingServer();
after(() => evicting.stop());

const { open } = evicting;
const sessionOf = (name) => new SessionAgentSession(open(name).session("s"));

const weather = tool({
  name: "weather",
  description: "Tells the weather",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `Rain in ${city}`,
});
const agentWith = (model, more) =>
  new Agent({ name: "Guide", instructions: "Be kind.", model, tools: [weather], ...more });
const script = () => [
  [functionCall("weather", { city: "Oslo" }, { callId: "c1" })],
  [assistantMessage("It rains.")],
  [assistantMessage("Take a coat.")],
];

/** The contents of two SDK sessions after the same runs, and the inputs of their models. */
async function ran(session) {
  const model = new ScriptedModel(script());
  const runner = new Runner();
  const first = await runner.run(agentWith(model), "How is the weather in Oslo?", { session });
  const second = await runner.run(agentWith(model), "And what should I wear?", { session });
  assert.deepEqual([first.finalOutput, second.finalOutput], ["It rains.", "Take a coat."]);
  return { items: await session.getItems(), sent: model.calls.map(({ request }) => request.input) };
}

const plain = (value) => JSON.parse(JSON.stringify(value));

test("a_run_stores_the_same_as_the_sdks_own_session", async () => {
  const ours = await ran(sessionOf("runner"));
  const theirs = await ran(new MemorySession());
  assert.deepEqual(plain(ours), plain(theirs));
  assert.equal(ours.items.length, 6);
  // After each write. Reading a session that does not exist writes nothing.
  assert.ok(evicting.evictions >= 3);
});

test("a_streamed_run_stores_the_same", async () => {
  const results = [];
  for (const session of [sessionOf("streamed"), new MemorySession()]) {
    const result = await new Runner().run(agentWith(new ScriptedModel(script().slice(0, 2))), "Oslo?", {
      session,
      stream: true,
    });
    for await (const _ of result);
    await result.completed;
    results.push(plain(await session.getItems()));
  }
  assert.deepEqual(results[0], results[1]);
  assert.equal(results[0].length, 4);
});

test("a_run_awaiting_approval_continues_in_another_process", async () => {
  const results = [];
  for (const session of [
    () => sessionOf("approval"),
    (
      (memory) => () =>
        memory
    )(new MemorySession()),
  ]) {
    const asking = tool({
      name: "weather",
      description: "",
      parameters: z.object({ city: z.string() }),
      needsApproval: true,
      execute: async ({ city }) => `Rain in ${city}`,
    });
    const model = new ScriptedModel(script().slice(0, 2));
    const agent = agentWith(model, { tools: [asking] });
    const waiting = await new Runner().run(agent, "Oslo?", { session: session() });
    const [interruption] = waiting.interruptions;
    waiting.state.approve(interruption);
    const done = await new Runner().run(agent, waiting.state, { session: session() });
    assert.equal(done.finalOutput, "It rains.");
    results.push(plain(await session().getItems()));
  }
  assert.deepEqual(results[0], results[1]);
});

const user = (text) => ({ type: "message", role: "user", content: text });
const items = (...texts) => texts.map(user);

/** The operations on both sessions, one after the other. */
const STEPS = [
  (session) => session.getItems(),
  (session) => session.popItem(),
  (session) => session.clearSession(),
  (session) => session.addItems(items("a", "b", "c")),
  (session) => session.getItems(2),
  (session) => session.getItems(0),
  (session) => session.popItem(),
  (session) =>
    session.applyHistoryTransaction({
      operationId: "1",
      transaction: { type: "append_items", items: items("d", "e") },
    }),
  (session) =>
    session.applyHistoryTransaction({
      operationId: "1",
      transaction: { type: "append_items", items: items("d", "e") },
    }),
  (session) =>
    session.applyHistoryTransaction({
      operationId: "1",
      transaction: { type: "append_items", items: items("d", "e", "f") },
    }),
  (session) =>
    session.applyHistoryTransaction({
      operationId: "2",
      transaction: { type: "replace_suffix", expectedSuffix: items("b", "d", "e"), replacement: items("x") },
    }),
  (session) =>
    session.applyHistoryTransaction({
      operationId: "2",
      transaction: { type: "replace_suffix", expectedSuffix: items("b", "d", "e"), replacement: items("x") },
    }),
  (session) =>
    session.applyHistoryTransaction({
      operationId: "3",
      transaction: { type: "replace_suffix", expectedSuffix: items("e"), replacement: items("y") },
    }),
  (session) =>
    session.applyHistoryTransaction({
      operationId: "4",
      transaction: { type: "replace_suffix", expectedSuffix: items("0", "a", "x"), replacement: [] },
    }),
  (session) =>
    session.applyHistoryTransaction({
      operationId: "5",
      transaction: { type: "replace_suffix", expectedSuffix: [], replacement: items("z") },
    }),
  (session) =>
    session.applyHistoryTransaction({
      operationId: "6",
      transaction: { type: "replace_suffix", expectedSuffix: items("a", "x", "z"), replacement: [] },
    }),
  (session) => session.popItem(),
  (session) => session.applyHistoryTransaction({ operationId: "7", transaction: { type: "append_items", items: [] } }),
  (session) => session.applyHistoryTransaction({ operationId: " ", transaction: { type: "append_items", items: [] } }),
  (session) => session.applyHistoryTransaction({ operationId: "8", transaction: { type: "none" } }),
  (session) => session.addItems([]),
  (session) =>
    session.applyHistoryTransaction({ operationId: "9", transaction: { type: "append_items", items: items("n") } }),
  (session) => session.popItem(),
  (session) =>
    session.applyHistoryTransaction({ operationId: "9", transaction: { type: "append_items", items: items("n") } }),
  (session) => session.clearSession(),
  (session) =>
    session.applyHistoryTransaction({ operationId: "9", transaction: { type: "append_items", items: items("n") } }),
];

test("each_method_matches_the_sdks_own_session", async () => {
  const [ours, theirs] = [sessionOf("steps"), new MemorySession()];
  for (const [n, step] of STEPS.entries()) {
    const [one, other] = await Promise.all(
      [ours, theirs].map((session) =>
        step(session).then(
          (value) => ({ value }),
          () => "refused",
        ),
      ),
    );
    assert.deepEqual(one, other, `step ${n}: ${step}`);
    assert.deepEqual(await ours.getItems(), await theirs.getItems(), `after step ${n}: ${step}`);
  }
});

test("every_item_round_trips", async () => {
  const items = [
    user("a text"),
    { role: "user", content: "without a type" },
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "one" },
        { type: "input_image", image: "data:image/png;base64,AA==" },
      ],
    },
    {
      type: "message",
      role: "user",
      content: [{ type: "input_file", file: new Uint8Array([0, 127, 255]), filename: "f" }],
    },
    { type: "message", role: "system", content: "Be kind." },
    { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "Hello." }] },
    {
      type: "message",
      role: "assistant",
      status: "completed",
      id: "msg_1",
      content: [{ type: "output_text", text: "" }],
      providerData: { phase: "x" },
    },
    {
      type: "reasoning",
      id: "rs_1",
      content: [{ type: "input_text", text: "thinking" }],
      providerData: { encrypted_content: "…" },
    },
    { type: "function_call", callId: "c", name: "weather", status: "completed", arguments: '{"city":"Oslo"}' },
    { type: "function_call", callId: "d", name: "weather", status: "completed", arguments: '{ "city": 1.0 }' },
    { type: "function_call", callId: "e", name: "weather", status: "incomplete", arguments: "not json" },
    {
      type: "function_call_result",
      callId: "c",
      name: "weather",
      status: "completed",
      output: { type: "text", text: "Rain" },
    },
    {
      type: "function_call_result",
      callId: "d",
      name: "weather",
      status: "completed",
      output: [
        { type: "input_text", text: "a" },
        { type: "input_image", image: "b" },
      ],
    },
    {
      type: "hosted_tool_call",
      name: "web_search_call",
      id: "ws",
      arguments: "{}",
      status: "completed",
      providerData: { n: 1 },
    },
    { type: "compaction", encrypted_content: "…" },
    { type: "message", role: "user", content: "lone \u2028 and 🙂 \u0000" },
  ];
  const session = sessionOf("exact");
  await session.addItems(items);
  assert.deepEqual(await session.getItems(), items);
  // In the log they are events that search and other frameworks read.
  const found = await open("exact").search({ query: "rain" });
  assert.deepEqual(
    found.results.map(({ action }) => action),
    ["tool_result"],
  );
});

test("a_conversation_written_by_chat_continues_here", async () => {
  const agent = open("foreign");
  const log = agent.session("s");
  await log.create();
  await log.appendEvents({
    events: [
      { action: "user_message", content: "Oslo?" },
      {
        action: "tool_call_request",
        content: "Let me look.",
        toolCalls: [{ id: "1", name: "weather", arguments: { city: "Oslo" } }],
      },
      { action: "tool_result", content: "Rain", toolCallId: "1", toolName: "weather" },
      { action: "agent_message", content: "It rains." },
    ],
  });
  const session = sessionOf("foreign");
  assert.deepEqual(
    (await session.getItems()).map(({ type, role }) => role ?? type),
    ["user", "assistant", "function_call", "function_call_result", "assistant"],
  );
  const [, message, call, result, last] = await session.getItems();
  await session.applyHistoryTransaction({
    operationId: "1",
    transaction: { type: "replace_suffix", expectedSuffix: [call, result, last], replacement: [] },
  });
  assert.deepEqual(await session.getItems(), [user("Oslo?"), message]);
  assert.deepEqual(await session.popItem(), message);
  assert.equal(
    (await log.loadEvents()).filter(({ content }) => content === "It rains.").length,
    1,
    "the log keeps what was replaced",
  );
});

test("concurrent_writers_lose_nothing", async () => {
  const session = sessionOf("busy");
  await session.addItems(items("first"));
  const plainSession = new SessionAgentSession(evicting.openPlain("busy").session("s"));
  const append = (n) =>
    plainSession.applyHistoryTransaction({
      operationId: `op ${n}`,
      transaction: { type: "append_items", items: items(`${n}`) },
    });
  await Promise.all([1, 2, 3, 4, 1, 2].map(append));
  assert.deepEqual((await session.getItems()).map(({ content }) => content).sort(), ["1", "2", "3", "4", "first"]);
});

test("a_long_history_can_be_read_whole_or_from_its_end", async () => {
  const session = sessionOf("long");
  const many = Array.from({ length: 450 }, (_, n) => user(`item ${n}`));
  await session.addItems(many);
  assert.deepEqual(await session.getItems(), many);
  assert.deepEqual(await session.getItems(3), many.slice(-3));
});

/** The SDK's in-memory sessions accept initial items. */
async function openBoth(name, ...initial) {
  const [ours, theirs] = [sessionOf(name), new MemorySession({ initialItems: initial })];
  if (initial.length > 0) await ours.addItems(initial);
  return [ours, theirs];
}

const userItem = (text, more) => ({ role: "user", content: [{ type: "input_text", text }], ...more });
const called = (callId, value, more) => ({
  type: "function_call",
  callId,
  name: "lookup",
  status: "completed",
  arguments: JSON.stringify({ value }),
  ...more,
});
const transaction = (operationId, ...given) => ({ operationId, transaction: { type: "append_items", items: given } });
const suffix = (operationId, expectedSuffix, replacement) => ({
  operationId,
  transaction: { type: "replace_suffix", expectedSuffix, replacement },
});
const cyclic = {};
cyclic.self = cyclic;

/** Creates new arguments for each session, since some are read once. */
const REFUSED_TRANSACTIONS = {
  blank: () => transaction("   "),
  unknownType: () => ({ operationId: "1", transaction: { type: "unknown" } }),
  nothing: () => ({ operationId: "1", transaction: null }),
  noArguments: () => null,
  number: () => transaction("1", 42),
  text: () => transaction("1", "x"),
  date: () => transaction("1", userItem("x", { providerData: { at: new Date(0) } })),
  map: () => transaction("1", userItem("x", { providerData: new Map() })),
  cycle: () => transaction("1", userItem("x", { providerData: cyclic })),
  bigint: () => transaction("1", userItem("x", { providerData: { n: 42n } })),
  function: () => transaction("1", userItem("x", { providerData: { f() {} } })),
  symbol: () => transaction("1", userItem("x", { providerData: { secret: Symbol("api-key-secret") } })),
  symbolKey: () => transaction("1", userItem("x", { [Symbol("s")]: 1 })),
  sparse: () => ({ operationId: "1", transaction: { type: "append_items", items: new Array(1) } }),
  otherBytes: () => transaction("1", userItem("x", { providerData: { values: new Uint16Array([300]) } })),
  buffer: () => transaction("1", userItem("x", { providerData: { values: new ArrayBuffer(2) } })),
  proxy: () => ({ operationId: "1", transaction: { type: "append_items", items: new Proxy([userItem("x")], {}) } }),
  hidden: () =>
    transaction("1", Object.defineProperty(userItem("x"), "providerData", { value: {}, enumerable: false })),
  accessor: () =>
    transaction("1", Object.defineProperty(userItem("x"), "providerData", { get: () => "x", enumerable: true })),
  throwingAccessor: () =>
    transaction(
      "1",
      Object.defineProperty(userItem("x"), "providerData", {
        get() {
          throw new Error("api-key-secret");
        },
        enumerable: true,
      }),
    ),
  moreInAppend: () => ({
    operationId: "1",
    transaction: { type: "append_items", items: [userItem("x")], metadata: {} },
  }),
  moreInReplace: () => ({
    operationId: "1",
    transaction: { type: "replace_suffix", expectedSuffix: [], replacement: [userItem("x")], metadata: {} },
  }),
  throwingEnvelope: () =>
    Object.defineProperty({}, "operationId", {
      get() {
        throw new Error("api-key-secret");
      },
    }),
  otherSuffix: () => suffix("1", [userItem("different")], [userItem("x")]),
};

test("what_the_sdk_refuses_is_refused_with_the_same_message", async () => {
  for (const [name, make] of Object.entries(REFUSED_TRANSACTIONS)) {
    const [ours, theirs] = await openBoth(`refused ${name}`, userItem("start"));
    const [own, other] = await Promise.all(
      [ours, theirs].map((session) =>
        session.applyHistoryTransaction(make()).then(
          () => assert.fail(name),
          (error) => error.message,
        ),
      ),
    );
    // Our message may continue with advice.
    const words = other.replace(/( the transaction precondition)?\.$/, "");
    assert.ok(own.startsWith(words), `${name}: ${own} | ${other}`);
    assert.doesNotMatch(own, /api-key-secret/);
    assert.deepEqual(await ours.getItems(), [userItem("start")]);
    // The name is still free.
    await ours.applyHistoryTransaction(transaction("1", userItem("after")));
    assert.deepEqual(await ours.getItems(), [userItem("start"), userItem("after")]);
  }
});

test("values_without_json_are_refused_with_their_position", async () => {
  const session = sessionOf("unsupported");
  const of = (value) => userItem("x", { providerData: { deep: [value] } });
  const others = [
    new Date(0),
    NaN,
    Infinity,
    new Map(),
    new Set(),
    new ArrayBuffer(2),
    new Uint16Array(1),
    1n,
    () => {},
    Symbol("x"),
    undefined,
    new (class Point {})(),
    /x/,
    cyclic,
  ];
  for (const value of others) {
    await assert.rejects(
      session.addItems([userItem("fine"), of(value)]),
      (error) =>
        (error instanceof TypeError &&
          /^Item 2 can't be stored: `providerData\.deep\.0(\.self)?` is /.test(error.message)) ||
        assert.fail(error.message),
    );
  }
  for (const item of [42, "x", null, undefined, [], new Date(0), true, new Uint8Array(1)])
    await assert.rejects(session.addItems([userItem("fine"), item]), /^TypeError: Item 2 can't be stored: /);
  const throwing = Object.defineProperty(userItem("x"), "providerData", {
    get() {
      throw new Error("secret");
    },
    enumerable: true,
  });
  await assert.rejects(session.addItems([throwing]), (error) => !error.message.includes("secret"));
  const revoked = Proxy.revocable(userItem("x"), {});
  revoked.revoke();
  await assert.rejects(session.addItems([revoked.proxy]), TypeError);
  assert.deepEqual(await session.getItems(), []);
  assert.equal(await open("unsupported").getSession({ sessionId: "s" }), null);
});

test("bytes_and_text_that_looks_like_stored_bytes_round_trip", async () => {
  const session = sessionOf("bytes");
  const shared = new Uint8Array(new SharedArrayBuffer(2));
  shared.set([3, 7]);
  const items = [
    { $bytes: "not base64!" },
    { $bytes: ["AA=="] },
    { $bytes: { $bytes: 1 } },
    { $bytes: "AA==", more: 1 },
    new Uint8Array([1, 2]),
    shared,
  ].map((value) => userItem("x", { providerData: { value } }));
  await session.addItems(items);
  shared[0] = 9;
  const read = await session.getItems();
  assert.deepEqual(read.slice(0, -1), items.slice(0, -1));
  assert.deepEqual([...read.at(-1).providerData.value], [3, 7]);
});

test("function_calls_are_replaced_as_in_the_sdks_own_session", async () => {
  const replacement = called("1", "new", { id: "new" });
  const replace = (callId, more) => ({ type: "replace_function_call", callId, replacement, ...more });
  const history = [
    userItem("start"),
    called("1", 1),
    called("1", 2),
    userItem("between"),
    called("2", 3),
    called("1", 4),
  ];
  const batches = [
    [],
    [replace("1")],
    [replace("2")],
    [replace("none")],
    [replace("2"), replace("1")],
    [replace("1"), replace("1")],
  ];
  for (const [n, mutations] of batches.entries()) {
    const [ours, theirs] = await openBoth(`mutations ${n}`, ...history);
    for (const session of [ours, theirs]) await session.applyHistoryMutations({ mutations });
    assert.deepEqual(await ours.getItems(), await theirs.getItems(), JSON.stringify(mutations));
  }
  // A mutation may name the call it expects. All of them are checked against one history.
  const [ours] = await openBoth("expected", ...history);
  const refused = [
    [
      [replace("1", { expected: called("1", 2) }), replace("2", { expected: called("2", 999) })],
      /could not be compared safely/,
    ],
    [[replace("2", { expected: called("2", 3) }), replace("2", { expected: replacement })], /could not find/],
    [[{ type: "other" }], /replace_function_call/],
    [[replace("1", { replacement: 1 })], /replacement/],
    [[replace("1", { replacement: { at: new Date() } })], /class `Date`/],
  ];
  for (const [mutations, message] of refused) {
    await assert.rejects(ours.applyHistoryMutations({ mutations }), message);
    assert.deepEqual(await ours.getItems(), history);
  }
  await ours.applyHistoryMutations({ mutations: [replace("1", { expected: called("1", 2) })] });
  assert.deepEqual(await ours.getItems(), history.with(2, replacement));
});

test("a_transaction_uses_its_arguments_as_passed", async () => {
  const [ours, theirs] = await openBoth("given", userItem("start"));
  for (const session of [ours, theirs]) {
    const item = userItem("committed");
    const args = transaction("1", item);
    const applied = session.applyHistoryTransaction(args);
    item.content = "changed";
    await applied;
    await session.addItems([userItem("later")]);
    await session.applyHistoryTransaction(transaction("1", userItem("committed")));
    const plainly = userItem("plain", { providerData: Object.assign(Object.create(null), { source: "provider" }) });
    await session.applyHistoryTransaction(transaction("2", plainly));
    await session.applyHistoryTransaction(transaction("2", (await session.getItems(1))[0]));
    let reads = 0;
    const once = Object.defineProperty({ transaction: transaction("", userItem("once")).transaction }, "operationId", {
      get: () => (reads += 1) && "3",
    });
    await session.applyHistoryTransaction(once);
    assert.equal(reads, 1);
    await session.applyHistoryTransaction(transaction("4"));
    await assert.rejects(
      session.applyHistoryTransaction(transaction("4", userItem("unexpected"))),
      /already applied with a different transaction/,
    );
  }
  assert.deepEqual(plain(await ours.getItems()), plain(await theirs.getItems()));
});

test("items_are_logged_unless_disabled", async () => {
  for (const [dontLogModelData, dontLogToolData] of [
    [false, false],
    [true, false],
    [false, true],
    [true, true],
  ]) {
    const lines = [];
    const logger = {
      namespace: "test",
      debug: (line) => lines.push(line),
      error() {},
      warn() {},
      dontLogModelData,
      dontLogToolData,
    };
    const session = new SessionAgentSession(open(`logger ${dontLogModelData} ${dontLogToolData}`).session("s"), {
      logger,
    });
    await session.addItems([userItem("a secret")]);
    await session.getItems();
    await session.popItem();
    assert.equal(lines.filter((line) => line.includes("a secret")).length, dontLogModelData || dontLogToolData ? 0 : 3);
  }
});

test("a_read_during_removals_is_never_empty_while_items_exist", async () => {
  const session = new SessionAgentSession(evicting.openPlain("removals").session("s"));
  await session.addItems(items(..."abcdefghijklmnop"));
  let isOver = false;
  const popping = (async () => {
    while (!isOver) await session.addItems([await session.popItem()]);
  })();
  const reads = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const lengths = [];
      for (let n = 0; n < 30; n += 1) lengths.push((await session.getItems()).length);
      return lengths;
    }),
  );
  isOver = true;
  await popping;
  assert.deepEqual(
    [...new Set(reads.flat())].sort().filter((length) => length !== 15 && length !== 16),
    [],
  );
  assert.equal((await session.getItems(3)).length, 3);
});
