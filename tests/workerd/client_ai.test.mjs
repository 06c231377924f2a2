// The AI SDK's loop over the client: its own `streamText` and `generateText` with a scripted model,
// against the built Worker.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  convertToModelMessages,
  generateText,
  isStepCount,
  jsonSchema,
  readUIMessageStream,
  streamText,
  tool,
} from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { LeafMovedError, sessionAgent } from "../../packages/session-agent/dist/index.js";
import { startServer } from "./harness.mjs";

const server = await startServer();
after(() => server.stop());

const FEW_STEPS = isStepCount(5);
const USAGE = {
  inputTokens: { total: 10, noCache: 8, cacheRead: 2, cacheWrite: 0 },
  outputTokens: { total: 3, text: 3, reasoning: 0 },
};

const reply = (text) => ({
  content: [{ type: "text", text }],
  finishReason: { unified: "stop", raw: "stop" },
  usage: USAGE,
  warnings: [],
});
const calls = (name, input, id = `call ${name}`) => ({
  content: [{ type: "tool-call", toolCallId: id, toolName: name, input: JSON.stringify(input) }],
  finishReason: { unified: "tool-calls", raw: "tool_calls" },
  usage: USAGE,
  warnings: [],
});

/** An answer of several parts. */
const answers = (content, unified = "stop") => ({
  content,
  finishReason: { unified, raw: unified },
  usage: USAGE,
  warnings: [],
});

/** A model that returns these answers one after the other, streamed or not. */
function scripted(...answers) {
  const streamed = answers.map(({ content, finishReason, usage }) => ({
    stream: simulateReadableStream({
      chunks: [
        { type: "stream-start", warnings: [] },
        ...content.flatMap(({ type, text, providerMetadata, ...part }, n) => {
          if (type !== "text" && type !== "reasoning") return [{ type, providerMetadata, ...part }];
          return [
            { type: `${type}-start`, id: `${n}` },
            { type: `${type}-delta`, id: `${n}`, delta: text },
            { type: `${type}-end`, id: `${n}`, providerMetadata },
          ];
        }),
        { type: "finish", finishReason, usage },
      ],
      initialDelayInMs: null,
      chunkDelayInMs: null,
    }),
  }));
  return new MockLanguageModelV4({ doGenerate: [...answers], doStream: streamed });
}

const user = (id, text) => ({ id, role: "user", parts: [{ type: "text", text }] });

/** An agent with memory and a runbook, and a session with a question. */
async function openWithQuestion(name, text = "Walk me through a deployment.") {
  const agent = sessionAgent(server.url, name);
  await agent.defineBlock({ label: "soul", kind: "readonly", defaultContent: "You are a careful engineer." });
  await agent.defineBlock({ label: "memory", kind: "writable", maxTokens: 1100 });
  await agent.defineBlock({ label: "skills", kind: "loadable" });
  await agent.putSkill({ label: "skills", key: "deploy", content: "1. Test. 2. Ship.", description: "How we deploy" });
  const session = agent.session("s");
  await session.create();
  await session.appendMessage({ message: user("ask", text) });
  return { agent, session };
}

const actions = (events) => events.map(({ action }) => action);

test("the_documented_loop_runs_with_the_memory", async () => {
  const { agent, session } = await openWithQuestion("loop");
  const model = scripted(
    calls("load_context", { label: "skills", key: "deploy" }),
    calls("set_context", { label: "memory", content: "Deploys on Fridays." }),
    reply("Test first, then ship."),
  );
  const { system, messages, tools } = await session.modelInput();
  assert.deepEqual(Object.keys(tools).sort(), ["forget", "load_context", "set_context", "unload_context"]);
  const result = streamText({ model, system, messages, tools, stopWhen: FEW_STEPS });
  assert.equal(await result.text, "Test first, then ship.");

  const [first, second] = model.doStreamCalls;
  assert.match(first.prompt[0].content, /^═{46}\nSOUL \[readonly\]\n═{46}\nYou are a careful engineer\./);
  assert.deepEqual(first.prompt.slice(1), [
    { role: "user", content: [{ type: "text", text: "Walk me through a deployment." }], providerOptions: undefined },
  ]);
  assert.deepEqual(first.tools.find((tool) => tool.name === "set_context").inputSchema.properties.label.enum, [
    "memory",
    "skills",
  ]);
  assert.equal(second.prompt.at(-1).content[0].output.value, "1. Test. 2. Ship.");

  const outcome = await session.persist(result);
  assert.equal(outcome.events.length, 5);
  await server.evict("loop");
  const events = await session.loadEvents();
  assert.deepEqual(actions(events), [
    "user_message",
    "tool_call_request",
    "tool_result",
    "tool_call_request",
    "tool_result",
    "agent_message",
  ]);
  assert.equal(events.at(-1).id, outcome.leafId);
  assert.equal((await agent.getBlock({ label: "memory" })).content, "Deploys on Fridays.");
  const { messages: stored } = await session.getHistory();
  assert.deepEqual(
    stored.map(({ role, parts }) => [role, parts.map(({ type }) => type)]),
    [
      ["user", ["text"]],
      ["assistant", ["tool-load_context", "tool-set_context", "text"]],
    ],
  );
});

test("a_turn_persisted_again_is_written_and_counted_once", async () => {
  const { session } = await openWithQuestion("again");
  const result = streamText({ model: scripted(reply("Hello.")), ...(await session.modelInput()) });
  await result.text;
  const first = await session.persist(result);
  const again = await session.persist(result);
  assert.deepEqual(
    again.events,
    first.events.map((event) => ({ ...event, inserted: false })),
  );
  assert.equal((await session.loadEvents()).length, 2);
  assert.deepEqual((await session.getSession()).usage, {
    inputTokens: 10,
    outputTokens: 3,
    cachedInputTokens: 2,
    cost: 0,
  });
  // The next turn has the same text but is another turn.
  await session.appendMessage({ message: user("more", "Walk me through a deployment.") });
  const next = streamText({ model: scripted(reply("Hello.")), ...(await session.modelInput()) });
  await next.text;
  assert.deepEqual(
    (await session.persist(next)).events.map(({ inserted }) => inserted),
    [true],
  );
});

test("reported_usage_corrects_the_sessions_estimates", async () => {
  const { agent, session } = await openWithQuestion("counted");
  await session.appendMessage({ message: user("long", "some words of a question ".repeat(400)) });
  const estimate = async (leafId) => (await session.buildWorkingContext({ memory: true, leafId })).tokensEstimate;
  const before = await estimate();
  const other = agent.session("other");
  await other.create();
  await other.appendMessage({ message: user("long", "some words of a question ".repeat(400)) });
  const others = (await other.buildWorkingContext({ memory: true })).tokensEstimate;
  // A provider that counts twice as many, in a turn of two steps.
  const counted = (answer) => ({
    ...answer,
    usage: { ...USAGE, inputTokens: { total: 2 * before, noCache: 2 * before, cacheRead: 0, cacheWrite: 0 } },
  });
  const model = scripted(
    counted(calls("set_context", { label: "memory", content: "A note." })),
    counted(reply("Done.")),
  );
  const result = streamText({ model, ...(await session.modelInput()), stopWhen: FEW_STEPS });
  await result.text;
  const { leafId } = await session.persist(result);
  const after = await estimate();
  assert.ok(after > 1.6 * before && after <= 2.1 * before, `${before} ${after}`);
  await session.persist(result);
  assert.equal(await estimate(), after, "a repetition teaches nothing");
  await server.evict("counted");
  assert.equal(await estimate(), after);
  assert.equal((await other.buildWorkingContext({ memory: true })).tokensEstimate, others);
  // A turn at another leaf does not belong to the input that was read.
  await session.modelInput();
  const elsewhere = await generateText({ model: scripted(counted(reply("Else."))), prompt: "Else?" });
  await session.persist(elsewhere, { parentId: "ask" });
  assert.equal(await estimate(leafId), after);
});

test("a_turn_overtaken_by_another_write_is_refused", async () => {
  const { session } = await openWithQuestion("overtaken");
  const result = streamText({ model: scripted(reply("Late.")), ...(await session.modelInput()) });
  await result.text;
  await session.appendMessage({ message: user("other", "Wait!") });
  await assert.rejects(session.persist(result), LeafMovedError);
  assert.deepEqual(
    (await session.loadEvents()).map(({ id }) => id),
    ["ask", "other"],
  );
  const { usage } = await session.getSession();
  assert.equal(usage.inputTokens, 0);
  // Another client object knows no leaf, so the caller names one.
  const elsewhere = sessionAgent(server.url, "overtaken").session("s");
  await assert.rejects(elsewhere.persist(result, { expectedLeafId: "ask" }), LeafMovedError);
  assert.equal((await elsewhere.persist(result, { expectedLeafId: "other" })).events.length, 1);
});

test("the_model_input_carries_the_leaf_for_any_client_object", async () => {
  const { agent, session } = await openWithQuestion("passed on");
  const input = await agent.session("s").modelInput();
  assert.deepEqual([input.leafId, input.expectedLeafId, "parentId" in input], ["ask", "ask", false]);
  const result = await generateText({ model: scripted(reply("Late.")), ...input });
  // A client object that has read nothing knows no leaf, so it refuses to write.
  await assert.rejects(agent.session("s").persist(result), {
    name: "TypeError",
    message: /needs the input of the turn/,
  });
  await session.appendMessage({ message: user("other", "Wait!") });
  await assert.rejects(agent.session("s").persist(result, input), LeafMovedError);
  assert.deepEqual(
    (await session.loadEvents()).map(({ id }) => id),
    ["ask", "other"],
  );
  // Another read of the same object changes nothing for a turn that has its own input.
  await session.modelInput();
  await assert.rejects(session.persist(result, input), LeafMovedError);
  const branch = await agent.session("s").modelInput({ leafId: "ask" });
  assert.deepEqual([branch.leafId, branch.parentId, "expectedLeafId" in branch], ["ask", "ask", false]);
  await agent.session("s").persist(result, branch);
  const { messages } = await session.getBranches({ messageId: "ask" });
  assert.deepEqual(
    messages.map(({ parts }) => parts[0].text),
    ["Wait!", "Late."],
  );
});

test("a_result_its_steps_and_its_messages_persist_the_same_turn", async () => {
  const script = () => [
    calls("set_context", { label: "memory", content: "x" }),
    calls("load_context", { label: "skills", key: "none" }),
    reply("Done."),
  ];
  const written = [];
  for (const [name, read] of Object.entries({
    streamed: async (input) => streamText({ model: scripted(...script()), ...input, stopWhen: FEW_STEPS }),
    generated: (input) => generateText({ model: scripted(...script()), ...input, stopWhen: FEW_STEPS }),
    steps: async (input) => (await generateText({ model: scripted(...script()), ...input, stopWhen: FEW_STEPS })).steps,
    messages: async (input) =>
      (await generateText({ model: scripted(...script()), ...input, stopWhen: FEW_STEPS })).responseMessages,
    ended: (input) =>
      new Promise(
        (onEnd) =>
          void streamText({ model: scripted(...script()), ...input, stopWhen: FEW_STEPS, onEnd }).consumeStream(),
      ),
  })) {
    const { session } = await openWithQuestion(`same ${name}`);
    await session.persist(await read(await session.modelInput()));
    written.push((await session.loadEvents()).map(({ createdAt, ...event }) => event));
  }
  assert.equal(written[0].length, 6);
  for (const events of written) assert.deepEqual(events, written[0]);
});

test("a_tool_failure_is_sent_to_the_model_and_stored", async () => {
  const { session } = await openWithQuestion("failing");
  const model = scripted(
    calls("load_context", { label: "skills", key: "nothing" }),
    reply("There is no such document."),
  );
  const result = streamText({ model, ...(await session.modelInput()), stopWhen: FEW_STEPS });
  await result.text;
  const { output } = model.doStreamCalls[1].prompt.at(-1).content[0];
  assert.deepEqual(
    [output.type, output.value],
    ["error-text", 'Error: skills has no such document. It has: "deploy".'],
  );
  await session.persist(result);
  const { content, isError, toolName } = (await session.loadEvents())[2];
  assert.deepEqual({ content, isError, toolName }, { content: output.value, isError: true, toolName: "load_context" });
  // The next turn reads it as a failure, too.
  const { messages } = await session.modelInput();
  assert.equal(messages.at(-2).content[0].output.type, "error-text");
});

/** Runs a turn with a scripted model and returns the model's input. */
async function turn(session, id, ...answers) {
  await session.appendMessage({ message: user(id, `Question ${id}`) });
  const model = scripted(...answers);
  const result = streamText({ model, ...(await session.modelInput()), stopWhen: FEW_STEPS });
  await result.text;
  await session.persist(result);
  return JSON.stringify(model.doStreamCalls[0].prompt);
}

test("an_unloaded_document_and_long_outputs_leave_the_context", async () => {
  const { agent, session } = await openWithQuestion("compacted");
  const runbook = `The runbook. ${"Check everything twice. ".repeat(100)}`;
  await agent.putSkill({ label: "skills", key: "long", content: runbook });
  const log = "a line of a log\n".repeat(200);
  await turn(session, "1", calls("load_context", { label: "skills", key: "long" }, "c1"), reply("Loaded."));
  assert.ok(
    (
      await turn(session, "2", calls("unload_context", { label: "skills", key: "long" }, "c2"), reply("Unloaded."))
    ).includes("Check everything twice."),
  );
  await session.appendEvents({
    events: [
      { action: "tool_call_request", content: "", toolCalls: [{ id: "c3", name: "read_log", arguments: {} }] },
      { action: "tool_result", content: log, toolCallId: "c3", toolName: "read_log" },
    ],
  });
  const sent = await turn(session, "3", reply("Fine."));
  assert.ok(!sent.includes("Check everything twice."), "the document is unloaded");
  assert.ok(sent.includes(JSON.stringify(log).slice(1, -1)), "the newest output is complete");
  for (const id of ["4", "5", "6", "7"]) await turn(session, id, reply("Fine."));
  assert.ok(
    !(await turn(session, "8", reply("Fine."))).includes(JSON.stringify(log).slice(1, -1)),
    "an older output is shortened",
  );
  const events = await session.loadEvents();
  assert.ok(
    events.some(({ content }) => content === runbook) && events.some(({ content }) => content === log),
    "the log keeps both",
  );
});

test("instructions_and_reminders_are_where_the_sdk_accepts_them", async () => {
  const { agent, session } = await openWithQuestion("instructed");
  await agent.configureAgent({ systemInstructions: ["Speak Norwegian."] });
  await agent.defineBlock({ label: "today", kind: "writable", whenChanged: "remind" });
  await session.freezePrompt();
  await agent.setBlock({ label: "today", content: "It is Sunday." });
  await session.appendEvents({ events: [{ action: "system_instruction", content: "The user is a pilot." }] });
  const { system, messages } = await session.modelInput({ systemInstructions: ["Be brief."] });
  assert.ok(system.endsWith("\n\nSpeak Norwegian.\n\nBe brief.\n\nThe user is a pilot."), system);
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "user"],
  );
  assert.match(messages[1].content, /It is Sunday\./);
  const { text } = await generateText({ model: scripted(reply("Ja.")), system, messages });
  assert.equal(text, "Ja.");
});

test("a_users_image_reaches_the_model", async () => {
  const { session } = await openWithQuestion("seeing");
  const url = "data:image/png;base64,iVBORw0KGgo=";
  await session.appendMessage({
    message: {
      id: "look",
      role: "user",
      parts: [
        { type: "text", text: "What is it?" },
        { type: "file", mediaType: "image/png", url },
      ],
    },
  });
  const model = scripted(reply("A pixel."));
  await generateText({ model, ...(await session.modelInput()) });
  const part = model.doGenerateCalls[0].prompt.at(-1).content.find(({ type }) => type === "file");
  assert.equal(part.mediaType, "image/png");
  assert.ok(JSON.stringify(part.data).includes("iVBORw0KGgo="), JSON.stringify(part.data));
});

test("an_empty_session_and_a_branch_can_be_expected", async () => {
  const session = sessionAgent(server.url, "empty").session("s");
  await session.create();
  const input = await session.modelInput();
  assert.deepEqual([input.system, input.messages, input.tools, input.leafId], ["", [], {}, null]);
  const question = { role: "user", content: "Hello?" };
  const result = await generateText({ model: scripted(reply("Hello.")), ...input, messages: [question] });
  const messages = [question, ...result.responseMessages];
  await session.persist(messages);
  await session.persist(messages);
  const events = await session.loadEvents();
  assert.deepEqual(
    events.map(({ action, content }) => [action, content]),
    [
      ["user_message", "Hello?"],
      ["agent_message", "Hello."],
    ],
  );
  const earlier = await session.modelInput({ leafId: events[0].id });
  assert.deepEqual([earlier.leafId, earlier.messages.length], [events[0].id, 1]);
  assert.deepEqual(await session.persist([]), { events: [], leafId: events[0].id });
  // An answer to an older message becomes a sibling branch of the first answer.
  const other = await generateText({ model: scripted(reply("Hi.")), ...earlier });
  for (const _ of ["first", "again"]) await session.persist(other);
  const { messages: answers } = await session.getBranches({ messageId: events[0].id });
  assert.deepEqual(
    answers.map(({ parts }) => parts[0].text),
    ["Hello.", "Hi."],
  );
});

test("the_sessions_history_converts_to_sdk_messages", async () => {
  const { session } = await openWithQuestion("converted");
  const tools = await session.tools();
  const { messages } = await session.getHistory();
  const { prompt: system } = await session.freezePrompt();
  const result = await generateText({
    model: scripted(reply("Ship it.")),
    system,
    messages: await convertToModelMessages(messages),
    tools,
  });
  assert.equal(result.text, "Ship it.");
});

const PIXEL = "iVBORw0KGgo=";

/** A turn that reasons, calls two tools at once, one of which fails, and creates an image. */
const thinking = () => [
  answers(
    [
      { type: "reasoning", text: "Both, then.", providerMetadata: { maker: { signature: "abc" } } },
      { type: "text", text: "I look." },
      {
        type: "tool-call",
        toolCallId: "c1",
        toolName: "load_context",
        input: JSON.stringify({ label: "skills", key: "deploy" }),
      },
      { type: "tool-call", toolCallId: "c2", toolName: "draw", input: JSON.stringify({ what: "a map" }) },
    ],
    "tool-calls",
  ),
  answers([
    { type: "reasoning", text: "Now the picture." },
    { type: "file", mediaType: "image/png", data: { type: "data", data: PIXEL } },
    { type: "text", text: "Here." },
  ]),
];
const draw = tool({
  description: "Draws",
  inputSchema: jsonSchema({ type: "object", properties: { what: { type: "string" } } }),
  execute: async () => {
    throw new Error("No pencil.");
  },
});
const inputWith = async (session) => {
  const { leafId, ...input } = await session.modelInput();
  return { ...input, tools: { ...input.tools, draw } };
};

test("reasoning_parallel_calls_and_files_read_back_as_in_the_sdk", async () => {
  const { session } = await openWithQuestion("thinking");
  const result = streamText({ model: scripted(...thinking()), ...(await inputWith(session)), stopWhen: FEW_STEPS });
  let shown;
  for await (const message of readUIMessageStream({ stream: result.toUIMessageStream({ onError: String }) }))
    shown = message;
  const { events, leafId } = await session.persist(result);
  assert.deepEqual([events.length, events[0].inserted, events[0].id], [1, true, leafId]);
  await server.evict("thinking");

  const stored = await session.getMessage({ messageId: leafId });
  const plain = (parts) => JSON.parse(JSON.stringify(parts)).map(({ id, title, ...part }) => part);
  assert.deepEqual(plain(stored.parts), plain(shown.parts));
  assert.deepEqual(
    stored.parts.map(({ type, state }) => [type, state]),
    [
      ["step-start", undefined],
      ["reasoning", "done"],
      ["text", "done"],
      ["tool-load_context", "output-available"],
      ["tool-draw", "output-error"],
      ["step-start", undefined],
      ["reasoning", "done"],
      ["file", undefined],
      ["text", "done"],
    ],
  );
  assert.deepEqual(stored.parts[1].providerMetadata, { maker: { signature: "abc" } });
  assert.equal(stored.parts[7].url, `data:image/png;base64,${PIXEL}`);

  // Read by the SDK, the stored message equals the turn's.
  const comparable = (messages) =>
    messages.flatMap(({ role, content }) =>
      content.map(({ type, text, toolCallId, toolName, output }) => ({
        role,
        type,
        text,
        toolCallId,
        toolName,
        output,
      })),
    );
  const back = await convertToModelMessages([stored]);
  assert.deepEqual(comparable(back), comparable(await result.responseMessages));
  assert.deepEqual((await session.getSession()).usage, {
    inputTokens: 20,
    outputTokens: 6,
    cachedInputTokens: 4,
    cost: 0,
  });

  // The next turn receives the texts, the calls and their results.
  const { messages } = await session.modelInput();
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant", "tool", "tool", "assistant"],
  );
  assert.deepEqual(
    messages[1].content.map(({ type }) => type),
    ["text", "tool-call", "tool-call"],
  );
  assert.deepEqual(
    messages.slice(2, 4).map(({ content }) => content[0].output.type),
    ["text", "error-text"],
  );
  await generateText({ model: scripted(reply("Yes.")), ...(await session.modelInput()) });
});

test("a_turn_with_reasoning_is_stored_once_in_any_shape", async () => {
  const shapes = {
    generated: (turn) => turn,
    steps: (turn) => turn.steps,
    messages: (turn) => turn.responseMessages,
  };
  const written = [];
  for (const [name, shape] of Object.entries(shapes)) {
    const { session } = await openWithQuestion(`thinking ${name}`);
    const turn = await generateText({
      model: scripted(...thinking()),
      ...(await inputWith(session)),
      stopWhen: FEW_STEPS,
    });
    const first = await session.persist(shape(turn));
    assert.deepEqual(await session.persist(shape(turn)), {
      ...first,
      events: first.events.map((event) => ({ ...event, inserted: false })),
    });
    const { createdAt, ...stored } = (await session.getHistory()).messages.at(-1);
    written.push(stored);
  }
  for (const message of written) assert.deepEqual(message, written[0]);
});

test("a_question_with_a_file_and_its_answer_persist_in_order_repeatably", async () => {
  const { session } = await openWithQuestion("pictured");
  const { leafId } = await session.modelInput();
  const question = {
    role: "user",
    content: [
      { type: "text", text: "What is it?" },
      { type: "file", mediaType: "image/png", filename: "it.png", data: new Uint8Array([137, 80, 78, 71]) },
    ],
  };
  const answer = {
    role: "assistant",
    content: [
      { type: "reasoning", text: "Small." },
      { type: "text", text: "A pixel." },
    ],
  };
  const first = await session.persist([question, answer]);
  assert.deepEqual(
    first.events.map(({ inserted }) => inserted),
    [true, true],
  );
  const again = await session.persist([question, answer]);
  assert.deepEqual([again.leafId, again.events.map(({ inserted }) => inserted)], [first.leafId, [false, false]]);
  // A turn whose second half was lost is completed.
  await session.deleteMessages({ messageIds: [first.leafId] });
  assert.deepEqual(
    (await session.persist([question, answer])).events.map(({ inserted }) => inserted),
    [false, true],
  );
  const { messages } = await session.getHistory();
  assert.deepEqual(
    messages.map(({ role, parts }) => [role, parts.map(({ type }) => type)]),
    [
      ["user", ["text"]],
      ["user", ["text", "file"]],
      ["assistant", ["step-start", "reasoning", "text"]],
    ],
  );
  assert.deepEqual(messages[1].parts[1], {
    type: "file",
    mediaType: "image/png",
    filename: "it.png",
    url: "data:image/png;base64,iVBORw==",
  });
  await assert.rejects(session.persist([question], { expectedLeafId: leafId, parentId: undefined }), LeafMovedError);
});

test("an_earlier_calls_result_is_written_before_an_answer_with_reasoning", async () => {
  const { session } = await openWithQuestion("earlier");
  await session.modelInput();
  await session.persist([
    { role: "assistant", content: [{ type: "tool-call", toolCallId: "c9", toolName: "draw", input: { what: "x" } }] },
  ]);
  await session.modelInput();
  await session.persist([
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "c9", toolName: "draw", output: { type: "json", value: { drawn: true } } },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Drawn." },
        { type: "text", text: "Done." },
      ],
    },
  ]);
  const { messages } = await session.modelInput();
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant", "tool", "assistant"],
  );
  assert.equal(messages[2].content[0].output.value, '{"drawn":true}');
});

test("calls_that_share_an_id_keep_their_results_with_reasoning", async () => {
  const { session } = await openWithQuestion("repeated");
  const call = (n) => ({ type: "tool-call", toolCallId: "call_0", toolName: "draw", input: { n } });
  const result = (n) => ({
    type: "tool-result",
    toolCallId: "call_0",
    toolName: "draw",
    output: { type: "text", value: `${n}` },
  });
  await session.modelInput();
  await session.persist([
    { role: "assistant", content: [{ type: "reasoning", text: "Both." }, call(1), call(2)] },
    { role: "tool", content: [result(1), result(2)] },
    { role: "assistant", content: [call(3)] },
    { role: "tool", content: [result(3)] },
  ]);
  const {
    messages: [, { parts }],
  } = await session.getHistory();
  assert.deepEqual(
    parts.filter(({ input }) => input).map(({ input, output }) => [input.n, output]),
    [
      [1, "1"],
      [2, "2"],
      [3, "3"],
    ],
  );
  const { messages } = await session.modelInput();
  const toolParts = messages
    .flatMap(({ role, content }) => (role === "user" ? [] : content))
    .filter(({ toolCallId }) => toolCallId);
  assert.deepEqual(
    toolParts.map(({ type, toolCallId }) => [type, toolCallId]),
    [
      ["tool-call", "call_0"],
      ["tool-call", "call_0_2"],
      ["tool-result", "call_0"],
      ["tool-result", "call_0_2"],
      ["tool-call", "call_0_3"],
      ["tool-result", "call_0_3"],
    ],
  );
});

test("one_request_returns_all_of_a_models_input_that_fits", async () => {
  const { agent } = await openWithQuestion("window");
  const seen = [];
  const counted = sessionAgent(server.url, "window", {
    fetch: (url, init) => {
      seen.push(new URL(url).pathname.split("/").at(-1));
      return fetch(url, init);
    },
  }).session("s");
  const events = Array.from({ length: 120 }, (_, n) => ({
    action: n % 2 ? "agent_message" : "user_message",
    content: `${n} ${"word ".repeat(60)}`,
  }));
  await agent.session("s").appendEvents({ events });
  const { system, messages, tools } = await counted.modelInput({ maxTokens: 4_000 });
  assert.deepEqual(seen, ["buildWorkingContext"]);
  assert.deepEqual(Object.keys(tools).sort(), ["forget", "load_context", "set_context", "unload_context"]);
  assert.match(system, /SOUL[\s\S]+earlier messages of this conversation are not shown here/);
  assert.ok(messages.length > 10 && messages.length < 60, `${messages.length}`);
  assert.ok(JSON.stringify([system, messages]).length < 4_000 * 5);
  assert.equal((await counted.modelInput()).messages.length, 50);
  await assert.rejects(counted.modelInput({ maxTokens: 10 }), { code: "invalid_request" });
});

test("the_history_is_truncated_for_a_model_called_by_the_sdk", async () => {
  const { session } = await openWithQuestion("for a model");
  const log = "a line of a log\n".repeat(200);
  await session.appendEvents({
    events: [
      { action: "tool_call_request", content: "", toolCalls: [{ id: "c3", name: "read_log", arguments: {} }] },
      { action: "tool_result", content: log, toolCallId: "c3", toolName: "read_log" },
      { action: "agent_message", content: "Read." },
    ],
  });
  // Outputs are shortened in steps, so that the beginning stays the same for a while.
  for (let n = 1; n <= 12; n++) await session.appendMessage({ message: user(`${n}`, "And?") });
  const sent = async (forModel) =>
    JSON.stringify(await convertToModelMessages((await session.getHistory({ forModel })).messages));
  assert.ok((await sent(false)).length - (await sent(true)).length > 2_000);
  assert.match(await sent(true), /a line of a log/);
});

test("an_invalid_turn_is_refused_before_anything_is_sent", async () => {
  const { session } = await openWithQuestion("refused");
  await assert.rejects(session.persist({}), TypeError);
  await assert.rejects(
    session.persist([{ role: "robot", content: "x" }]),
    /role is user, assistant, tool or system, not `robot`/,
  );
  await assert.rejects(
    session.persist([{ role: "user", content: [{ type: "image", image: "x" }] }]),
    /part of type `image` with `appendMessage`/,
  );
  await assert.rejects(
    session.persist([{ role: "user", content: [{ type: "file", mediaType: "image/png" }] }]),
    /this file has neither/,
  );
  assert.equal((await session.loadEvents()).length, 1);
});
