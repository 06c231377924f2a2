// `session-agent/openai-agents` under the SDK's own runner, with its scripted model, and
// beside its own session in memory. The object is evicted after every write.

import "./resolve.mjs";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Agent, MemorySession, Runner, setTracingDisabled, tool } from "@openai/agents-core";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { z } from "zod";
import { startEvicting } from "./evicting.mjs";

const { sessionAgent } = await import("session-agent");
const { SessionAgentSession } = await import("session-agent/openai-agents");

setTracingDisabled(true);
const evicting = await startEvicting();
after(() => evicting.stop());

const open = (name) => sessionAgent(evicting.url, name, { fetch: evicting.fetch });
const sessionOf = (name) => new SessionAgentSession(open(name).session("s"));

const weather = tool({ name: "weather", description: "Tells the weather", parameters: z.object({ city: z.string() }), execute: async ({ city }) => `Rain in ${city}` });
const agentWith = (model, more) => new Agent({ name: "Guide", instructions: "Be kind.", model, tools: [weather], ...more });
const script = () => [[functionCall("weather", { city: "Oslo" }, { callId: "c1" })], [assistantMessage("It rains.")], [assistantMessage("Take a coat.")]];

/** What two sessions of the SDK hold after the same runs, and what their models were sent. */
async function ran(session) {
  const model = new ScriptedModel(script());
  const runner = new Runner();
  const first = await runner.run(agentWith(model), "How is the weather in Oslo?", { session });
  const second = await runner.run(agentWith(model), "And what should I wear?", { session });
  assert.deepEqual([first.finalOutput, second.finalOutput], ["It rains.", "Take a coat."]);
  return { items: await session.getItems(), sent: model.calls.map(({ request }) => request.input) };
}

const plain = (value) => JSON.parse(JSON.stringify(value));

test("a_run_leaves_and_finds_what_the_sdks_own_session_would", async () => {
  const ours = await ran(sessionOf("runner"));
  const theirs = await ran(new MemorySession());
  assert.deepEqual(plain(ours), plain(theirs));
  assert.equal(ours.items.length, 6);
  assert.ok(evicting.evictions > 3);
});

test("a_streamed_run_does_the_same", async () => {
  const results = [];
  for (const session of [sessionOf("streamed"), new MemorySession()]) {
    const result = await new Runner().run(agentWith(new ScriptedModel(script().slice(0, 2))), "Oslo?", { session, stream: true });
    for await (const _ of result) continue;
    await result.completed;
    results.push(plain(await session.getItems()));
  }
  assert.deepEqual(results[0], results[1]);
  assert.equal(results[0].length, 4);
});

test("a_run_that_waits_for_an_approval_goes_on_in_another_life", async () => {
  const results = [];
  for (const session of [() => sessionOf("approval"), ((memory) => () => memory)(new MemorySession())]) {
    const asking = tool({ name: "weather", description: "", parameters: z.object({ city: z.string() }), needsApproval: true, execute: async ({ city }) => `Rain in ${city}` });
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

/** What is done to both sessions, one step after the other. */
const STEPS = [
  (session) => session.getItems(),
  (session) => session.popItem(),
  (session) => session.clearSession(),
  (session) => session.addItems(items("a", "b", "c")),
  (session) => session.getItems(2),
  (session) => session.getItems(0),
  (session) => session.popItem(),
  (session) => session.applyHistoryTransaction({ operationId: "1", transaction: { type: "append_items", items: items("d", "e") } }),
  (session) => session.applyHistoryTransaction({ operationId: "1", transaction: { type: "append_items", items: items("d", "e") } }),
  (session) => session.applyHistoryTransaction({ operationId: "1", transaction: { type: "append_items", items: items("d", "e", "f") } }),
  (session) => session.applyHistoryTransaction({ operationId: "2", transaction: { type: "replace_suffix", expectedSuffix: items("b", "d", "e"), replacement: items("x") } }),
  (session) => session.applyHistoryTransaction({ operationId: "2", transaction: { type: "replace_suffix", expectedSuffix: items("b", "d", "e"), replacement: items("x") } }),
  (session) => session.applyHistoryTransaction({ operationId: "3", transaction: { type: "replace_suffix", expectedSuffix: items("e"), replacement: items("y") } }),
  (session) => session.applyHistoryTransaction({ operationId: "4", transaction: { type: "replace_suffix", expectedSuffix: items("0", "a", "x"), replacement: [] } }),
  (session) => session.applyHistoryTransaction({ operationId: "5", transaction: { type: "replace_suffix", expectedSuffix: [], replacement: items("z") } }),
  (session) => session.applyHistoryTransaction({ operationId: "6", transaction: { type: "replace_suffix", expectedSuffix: items("a", "x", "z"), replacement: [] } }),
  (session) => session.popItem(),
  (session) => session.applyHistoryTransaction({ operationId: "7", transaction: { type: "append_items", items: [] } }),
  (session) => session.applyHistoryTransaction({ operationId: " ", transaction: { type: "append_items", items: [] } }),
  (session) => session.applyHistoryTransaction({ operationId: "8", transaction: { type: "none" } }),
  (session) => session.addItems([]),
  (session) => session.applyHistoryTransaction({ operationId: "9", transaction: { type: "append_items", items: items("n") } }),
  (session) => session.popItem(),
  (session) => session.applyHistoryTransaction({ operationId: "9", transaction: { type: "append_items", items: items("n") } }),
  (session) => session.clearSession(),
  (session) => session.applyHistoryTransaction({ operationId: "9", transaction: { type: "append_items", items: items("n") } }),
];

test("each_method_does_what_the_sdks_own_session_does", async () => {
  const [ours, theirs] = [sessionOf("steps"), new MemorySession()];
  for (const [n, step] of STEPS.entries()) {
    const [one, other] = await Promise.all([ours, theirs].map((session) => step(session).then((value) => ({ value }), () => "refused")));
    assert.deepEqual(one, other, `step ${n}: ${step}`);
    assert.deepEqual(await ours.getItems(), await theirs.getItems(), `after step ${n}: ${step}`);
  }
});

test("every_item_comes_back_as_it_was", async () => {
  const kept = [
    user("a text"),
    { role: "user", content: "without a type" },
    { type: "message", role: "user", content: [{ type: "input_text", text: "one" }, { type: "input_image", image: "data:image/png;base64,AA==" }] },
    { type: "message", role: "user", content: [{ type: "input_file", file: new Uint8Array([0, 127, 255]), filename: "f" }] },
    { type: "message", role: "system", content: "Be kind." },
    { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "Hello." }] },
    { type: "message", role: "assistant", status: "completed", id: "msg_1", content: [{ type: "output_text", text: "" }], providerData: { phase: "x" } },
    { type: "reasoning", id: "rs_1", content: [{ type: "input_text", text: "thinking" }], providerData: { encrypted_content: "…" } },
    { type: "function_call", callId: "c", name: "weather", status: "completed", arguments: '{"city":"Oslo"}' },
    { type: "function_call", callId: "d", name: "weather", status: "completed", arguments: '{ "city": 1.0 }' },
    { type: "function_call", callId: "e", name: "weather", status: "incomplete", arguments: "not json" },
    { type: "function_call_result", callId: "c", name: "weather", status: "completed", output: { type: "text", text: "Rain" } },
    { type: "function_call_result", callId: "d", name: "weather", status: "completed", output: [{ type: "input_text", text: "a" }, { type: "input_image", image: "b" }] },
    { type: "hosted_tool_call", name: "web_search_call", id: "ws", arguments: "{}", status: "completed", providerData: { n: 1 } },
    { type: "compaction", encrypted_content: "…" },
    { type: "message", role: "user", content: "lone \u2028 and 🙂 \u0000" },
  ];
  const session = sessionOf("exact");
  await session.addItems(kept);
  assert.deepEqual(await session.getItems(), kept);
  // In the log they are events that search and other frameworks read.
  const found = await open("exact").search({ query: "rain" });
  assert.deepEqual(found.results.map(({ action }) => action), ["tool_result"]);
});

test("a_conversation_that_chat_wrote_goes_on_here", async () => {
  const agent = open("foreign");
  const log = agent.session("s");
  await log.create();
  await log.appendEvents({ events: [
    { action: "user_message", content: "Oslo?" },
    { action: "tool_call_request", content: "Let me look.", toolCalls: [{ id: "1", name: "weather", arguments: { city: "Oslo" } }] },
    { action: "tool_result", content: "Rain", toolCallId: "1", toolName: "weather" },
    { action: "agent_message", content: "It rains." },
  ] });
  const session = sessionOf("foreign");
  assert.deepEqual((await session.getItems()).map(({ type, role }) => role ?? type), ["user", "assistant", "function_call", "function_call_result", "assistant"]);
  const [, said, call, result, last] = await session.getItems();
  await session.applyHistoryTransaction({ operationId: "1", transaction: { type: "replace_suffix", expectedSuffix: [call, result, last], replacement: [] } });
  assert.deepEqual(await session.getItems(), [user("Oslo?"), said]);
  assert.deepEqual(await session.popItem(), said);
  assert.equal((await log.loadEvents()).filter(({ content }) => content === "It rains.").length, 1, "the log keeps what was replaced");
});

test("of_writers_at_the_same_time_none_is_lost", async () => {
  const session = sessionOf("busy");
  await session.addItems(items("first"));
  const plainSession = new SessionAgentSession(sessionAgent(evicting.url, "busy").session("s"));
  const append = (n) => plainSession.applyHistoryTransaction({ operationId: `op ${n}`, transaction: { type: "append_items", items: items(`${n}`) } });
  await Promise.all([1, 2, 3, 4, 1, 2].map(append));
  assert.deepEqual((await session.getItems()).map(({ content }) => content).sort(), ["1", "2", "3", "4", "first"]);
});

test("a_long_history_is_read_whole_and_its_end_alone", async () => {
  const session = sessionOf("long");
  const many = Array.from({ length: 450 }, (_, n) => user(`item ${n}`));
  await session.addItems(many);
  assert.deepEqual(await session.getItems(), many);
  assert.deepEqual(await session.getItems(3), many.slice(-3));
});
