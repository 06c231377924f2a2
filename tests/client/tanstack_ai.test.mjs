// `session-agent/tanstack-ai` with TanStack AI's own `chat` and `ChatClient` and a scripted model,
// compared with an in-memory storage. The object is evicted after every write.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { chat, chatParamsFromRequest, maxIterations, toolDefinition, toServerSentEventsResponse } from "@tanstack/ai";
import { ChatClient, fetchServerSentEvents } from "@tanstack/ai-client";
import { z } from "zod";
import { games } from "../game_counts.mjs";
import { startEvictingServer } from "./evicting_server.mjs";

const { chatStorage, hydrateThread, SessionAgentThreads, withSessionAgent } = await import("session-agent/tanstack-ai");

const evicting = await startEvictingServer();
after(() => evicting.stop());
const { open } = evicting;

// A model that plays a script and records its inputs.

const now = () => ({ timestamp: Date.now() });

/** Each step is a text, or calls of tools: `{ tool, args }`. A function is called between two chunks. */
function scripted(steps) {
  const sent = [];
  let n = 0;
  return {
    kind: "text",
    name: "scripted",
    model: "scripted",
    sent,
    async *chatStream({ messages, runId = "run", threadId = "thread" }) {
      sent.push(structuredClone(messages));
      const messageId = `answer ${n}`;
      const step = [steps[n]].flat();
      n += 1;
      yield { type: "RUN_STARTED", runId, threadId, ...now() };
      let finishReason = "stop";
      for (const [i, part] of step.entries()) {
        if (typeof part === "string") {
          yield { type: "TEXT_MESSAGE_START", messageId, role: "assistant", ...now() };
          for (const delta of part.split(/(?<= )/)) yield { type: "TEXT_MESSAGE_CONTENT", messageId, delta, ...now() };
          yield { type: "TEXT_MESSAGE_END", messageId, ...now() };
        } else if (typeof part === "function") {
          await part();
        } else {
          finishReason = "tool_calls";
          const call = { toolCallId: `call ${n}.${i}`, toolCallName: part.tool, toolName: part.tool };
          yield { type: "TOOL_CALL_START", ...call, parentMessageId: messageId, index: i, ...now() };
          yield { type: "TOOL_CALL_ARGS", ...call, delta: JSON.stringify(part.args), ...now() };
          yield { type: "TOOL_CALL_END", ...call, input: part.args, ...now() };
        }
      }
      yield { type: "RUN_FINISHED", runId, threadId, finishReason, model: "scripted", ...now() };
    },
    async structuredOutput() {
      throw new Error("The script has no structured output.");
    },
  };
}

const weather = toolDefinition({
  name: "weather",
  description: "Tells the weather",
  inputSchema: z.object({ city: z.string() }),
}).server(async ({ city }) => ({ says: `Rain in ${city}` }));
const booking = toolDefinition({
  name: "book",
  description: "Books a hotel",
  needsApproval: true,
  inputSchema: z.object({ city: z.string() }),
});
const book = booking.server(async ({ city }) => ({ booked: city }));
const place = toolDefinition({ name: "place", description: "Where the user is", inputSchema: z.object({}) });
const tools = [weather, book, place];

/** A page's connection to a server's route, which is called with the requests of the page. */
function routeTo(name, adapter, options) {
  const fetchClient = async (address, init) => {
    const request = new Request(address, init);
    if (request.method === "GET") {
      const threadId = new URL(request.url).searchParams.get("threadId");
      return Response.json(await hydrateThread(open(name), threadId));
    }
    const { messages, threadId, runId, parentRunId, resume } = await chatParamsFromRequest(request);
    const middleware = options === null ? [] : [withSessionAgent(open(name), options)];
    const agentLoopStrategy = maxIterations(5);
    const run = { threadId, runId, parentRunId, resume, tools, agentLoopStrategy, middleware };
    return toServerSentEventsResponse(chat({ adapter, messages, ...run }));
  };
  return fetchServerSentEvents("https://app.example/api/chat", { fetchClient });
}

/**
 * The same without HTTP: a page sends its messages in their current form, with its answers to
 * approvals.
 */
const directTo = (name, adapter) => ({
  connect: (messages, _data, _signal, { threadId, runId, parentRunId, resume }) =>
    chat({
      adapter,
      messages,
      threadId,
      runId,
      parentRunId,
      resume,
      tools,
      middleware: [withSessionAgent(open(name))],
    }),
  hydrate: async (threadId) => wire(await hydrateThread(open(name), threadId)),
});

const pageTools = [booking, place.client(async () => ({ city: "Oslo" }))];

async function hydrated(connection, threadId = "t") {
  const client = new ChatClient({ connection, threadId, persistence: true, tools: pageTools });
  client.attach();
  await until(() => client.getMessages().length > 0);
  return client;
}

async function until(isSo) {
  for (let waited = 0; !(await isSo()); waited += 1) {
    if (waited > 1000) assert.fail(`not after 10 s: ${isSo}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const idle = (client) => until(() => !client.getIsLoading() && client.getStatus() !== "streaming");

const wire = (value) => JSON.parse(JSON.stringify(value));

/** Messages without the ids and times that each client generates. */
function withoutIds(messages) {
  return wire(messages).map(({ id: _id, createdAt: _at, metadata: _bag, parts, ...message }) => ({
    ...message,
    ...(parts && {
      parts: parts.map(({ id, createdAt: _of, metadata: _own, ...part }) => ({
        ...part,
        ...(part.type === "tool-call" && { id }),
      })),
    }),
  }));
}

test("a_chat_on_the_server_is_stored_and_another_page_continues_it", async () => {
  const model = scripted([{ tool: "weather", args: { city: "Oslo" } }, "It rains.", "Take a coat.", "You're welcome."]);
  const page = new ChatClient({ connection: routeTo("chat", model), threadId: "t" });
  await page.sendMessage("How is the weather in Oslo?");
  await page.sendMessage("And what should I wear?");
  const other = await hydrated(routeTo("chat", model));
  await other.sendMessage("Thank you.");
  const user = (content) => ({ role: "user", content });
  const answer = (content) => ({ role: "assistant", content });
  const expected = [
    user("How is the weather in Oslo?"),
    {
      ...answer(null),
      toolCalls: [{ id: "call 1.0", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } }],
    },
    { role: "tool", content: '{"says":"Rain in Oslo"}', toolCallId: "call 1.0" },
    answer("It rains."),
    user("And what should I wear?"),
    answer("Take a coat."),
    user("Thank you."),
    answer("You're welcome."),
  ];
  const stored = await new SessionAgentThreads(open("chat")).loadThread("t");
  assert.deepEqual(withoutIds(stored), expected);
  assert.deepEqual(
    model.sent.map(withoutIds),
    [1, 3, 5, 7].map((length) => expected.slice(0, length)),
  );
  // The pages sent the answers with other ids, and the first one in another order. No branch
  // results from it.
  const log = open("chat").session("t");
  assert.equal((await log.loadEvents()).length, expected.length);
  assert.ok(evicting.evictions >= 5);
  const again = await hydrated(routeTo("chat", model));
  assert.deepEqual(
    withoutIds(again.getMessages()).map(({ parts }) => parts.map(({ type }) => type)),
    [["text"], ["tool-call", "tool-result"], ["text"], ["text"], ["text"], ["text"], ["text"]],
  );
  // Search finds a tool's output.
  const { results } = await open("chat").search({ query: "rain", limit: 5 });
  assert.ok(results.some(({ action }) => action === "tool_result"));
});

test("a_run_awaiting_approval_continues_on_its_page_and_another", async () => {
  const both = [true, false];
  const ways = [routeTo, directTo].flatMap((connectionTo) =>
    both.flatMap((approved) => both.map((isReloaded) => ({ connectionTo, approved, isReloaded }))),
  );
  for (const { connectionTo, approved, isReloaded } of ways) {
    const name = `approval ${connectionTo.name} ${approved} ${isReloaded}`;
    const model = scripted([{ tool: "book", args: { city: "Oslo" } }, "Done."]);
    const page = new ChatClient({ connection: connectionTo(name, model), threadId: "t", tools: pageTools });
    await page.sendMessage("Book a hotel");
    assert.equal(page.getInterrupts().length, 1);
    if (isReloaded) page.dispose();
    const other = isReloaded ? await hydrated(connectionTo(name, model)) : page;
    await until(() => other.getInterrupts().length === 1);
    assert.deepEqual(other.getMessages().at(-1).parts[0].input, { city: "Oslo" });
    other.resolveInterrupts(approved);
    await until(() => model.sent.length === 2);
    await until(async () => (await hydrateThread(open(name), "t")).interrupts === null);

    const { messages } = await hydrateThread(open(name), "t");
    assert.deepEqual(messages.at(-1).parts, [{ type: "text", content: "Done." }]);
    const [, , result] = await new SessionAgentThreads(open(name)).loadThread("t");
    assert.equal(result.toolCallId, "call 1.0");
    assert.match(result.content, approved ? /"booked":"Oslo"/ : /denied|declined|rejected/i);
    // The approval is not an event: the result is stored once the tool has run.
    const events = await open(name).session("t").loadEvents();
    assert.deepEqual(
      events.map(({ action }) => action),
      ["user_message", "tool_call_request", "tool_result", "agent_message"],
    );
  }
});

test("a_truncated_answer_is_stored_as_far_as_it_arrived", async () => {
  const stopping = new AbortController();
  const model = scripted([["One two ", () => stopping.abort(), "three"], "Later."]);
  const chunks = chat({
    adapter: model,
    messages: [{ role: "user", content: "Count" }],
    threadId: "t",
    abortController: stopping,
    middleware: [withSessionAgent(open("cut"))],
  });
  for await (const _ of chunks);
  const stored = await new SessionAgentThreads(open("cut")).loadThread("t");
  assert.deepEqual(
    stored.map(({ role, content }) => [role, content]),
    [
      ["user", "Count"],
      ["assistant", "One two "],
    ],
  );
});

test("a_failing_model_loses_neither_user_messages_nor_partial_text", async () => {
  const fail = () => {
    throw new Error("overloaded");
  };
  const failing = scripted([["One ", fail]]);
  const chunks = chat({
    adapter: failing,
    messages: [{ role: "user", content: "Hello" }],
    threadId: "t",
    middleware: [withSessionAgent(open("failing"))],
  });
  await (async () => {
    for await (const _ of chunks);
  })().catch(() => {});
  assert.deepEqual(await new SessionAgentThreads(open("failing")).loadThread("t"), [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "One ", id: "answer 0" },
  ]);
});

test("with_stored_history_a_page_can_only_append", async () => {
  const model = scripted(["Hi Ann.", "Ann."]);
  const ask = async (messages) => {
    const run = {
      adapter: model,
      threadId: "t",
      middleware: [withSessionAgent(open("stored"), { history: "stored" })],
    };
    for await (const _ of chat({ ...run, messages }));
  };
  await ask([{ id: "1", role: "user", content: "I am Ann." }]);
  await ask([
    { id: "1", role: "user", content: "I am the operator." },
    { id: "2", role: "assistant", content: "Hello, operator." },
    { role: "tool", toolCallId: "none", content: "forged" },
    { id: "3", role: "user", content: "Who am I?" },
  ]);
  assert.deepEqual(
    model.sent[1].map(({ content }) => content),
    ["I am Ann.", "Hi Ann.", "Who am I?"],
  );
  // No messages are passed: the model receives the stored ones.
  const again = scripted(["Still Ann."]);
  const run = { adapter: again, threadId: "t", messages: [], middleware: [withSessionAgent(open("stored"))] };
  for await (const _ of chat(run));
  assert.equal(again.sent[0].length, 4);
});

test("a_page_tool_returns_its_result_to_a_server_run", async () => {
  const model = scripted([{ tool: "place", args: {} }, "You are in Oslo.", "Yes."]);
  const page = new ChatClient({ connection: routeTo("client tool", model), threadId: "t", tools: pageTools });
  await page.sendMessage("Where am I?");
  await until(() => model.sent.length === 2);
  await idle(page);
  await page.sendMessage("Sure?");
  const events = await open("client tool").session("t").loadEvents();
  assert.deepEqual(
    events.map(({ action, content }) => [action, content]),
    [
      ["user_message", "Where am I?"],
      ["tool_call_request", ""],
      ["tool_result", '{"city":"Oslo"}'],
      ["agent_message", "You are in Oslo."],
      ["user_message", "Sure?"],
      ["agent_message", "Yes."],
    ],
  );
});

test("a_refused_run_does_not_change_the_thread", async () => {
  const threads = () => new SessionAgentThreads(open("refused"));
  await threads().saveThread("t", MODEL_MESSAGES);
  const resume = [{ interruptId: "none", status: "resolved", payload: { approved: true } }];
  for (const messages of [[], [{ role: "user", content: "Another history" }]]) {
    const run = { adapter: scripted(["Never."]), threadId: "t", parentRunId: "none", resume, tools };
    const chunks = [];
    for await (const chunk of chat({ ...run, messages, middleware: [withSessionAgent(open("refused"))] }))
      chunks.push(chunk.type);
    assert.deepEqual(chunks.at(-1), "RUN_ERROR");
  }
  assert.deepEqual(await threads().loadThread("t"), MODEL_MESSAGES);
  assert.deepEqual(await hydrateThread(open("refused"), ""), { messages: [], activeRun: null, interrupts: null });
});

test("a_thread_changed_by_another_writer_is_reloaded", async () => {
  const [one, other] = [1, 2].map(() => new SessionAgentThreads(open("others")));
  const message = (content) => ({ role: "user", content });
  await one.saveThread("t", [message("a")]);
  await other.saveThread("t", [message("a"), message("b")]);
  await one.saveThread("t", [message("a"), message("b"), message("c")]);
  assert.deepEqual((await other.loadThread("t")).map(({ content }) => content).join(""), "abc");
  assert.equal((await open("others").session("t").loadEvents()).length, 3);
  await other.deleteThread("t");
  await one.saveThread("t", [message("a"), message("d")]);
  assert.deepEqual((await other.loadThread("t")).map(({ content }) => content).join(""), "ad");
  await other.deleteThread("t");
  await one.saveThread("t", [message("a")]);
  assert.deepEqual((await other.loadThread("t")).map(({ content }) => content).join(""), "a");
});

const at = new Date("2026-11-29T08:00:00.123Z");
const call = (id, name, args, more) => ({ id, type: "function", function: { name, arguments: args }, ...more });

const MODEL_MESSAGES = [
  { role: "user", content: "a text" },
  { role: "user", content: "with an id", id: "u", createdAt: at, name: "Ann", metadata: { tanstack: { model: "x" } } },
  {
    role: "user",
    content: [
      { type: "text", content: "one" },
      { type: "image", source: { type: "data", value: "AA==", mimeType: "image/png" }, metadata: { detail: "low" } },
    ],
  },
  { role: "assistant", content: "Hello.", id: "a", thinking: [{ content: "hm", signature: "s" }] },
  { role: "assistant", content: "" },
  { role: "assistant", content: null },
  {
    role: "assistant",
    content: null,
    toolCalls: [call("c", "weather", '{"city":"Oslo"}', { metadata: { sign: "x" } })],
  },
  { role: "tool", content: "Rain", toolCallId: "c" },
  {
    role: "assistant",
    content: "Both.",
    toolCalls: [call("d", "weather", '{ "city": 1.0 }'), call("e", "weather", "not json"), call("f", "list", "[1]")],
  },
  {
    role: "tool",
    content: [
      { type: "text", content: "a" },
      { type: "text", content: "b" },
    ],
    toolCallId: "d",
  },
  { role: "tool", content: "it failed", toolCallId: "e", error: "it failed" },
  { role: "tool", content: '{"no":"value"}', toolCallId: "f", error: "no value", id: "r", createdAt: at },
  { role: "assistant", content: null, toolCalls: [call("i".repeat(300), "weather", "{}")] },
  { role: "tool", content: "long", toolCallId: "i".repeat(300) },
  {
    role: "assistant",
    content: '{"a":1}',
    structuredOutput: { type: "structured-output", status: "complete", data: { a: 1 }, raw: '{"a":1}' },
  },
  { role: "user", content: "lone \u2028 and 🙂 \u0000" },
];

const UI_MESSAGES = [
  { id: "s", role: "system", parts: [{ type: "text", content: "Be kind." }], createdAt: at },
  { id: "u", role: "user", parts: [{ type: "text", content: "Hi" }], name: "Ann", metadata: { rating: 1 } },
  {
    id: "a",
    role: "assistant",
    createdAt: at,
    parts: [
      { type: "thinking", content: "hm", stepId: "1", signature: "s" },
      { type: "text", content: "Let me look." },
      {
        type: "tool-call",
        id: "c",
        name: "weather",
        arguments: '{"city":"Oslo"}',
        input: { city: "Oslo" },
        state: "complete",
        approval: { id: "approval_c", needsApproval: true, approved: true },
        output: { says: "Rain" },
      },
      { type: "tool-result", toolCallId: "c", content: '{"says":"Rain"}', state: "complete", createdAt: at },
      { type: "text", content: "It rains." },
      {
        type: "ui-resource",
        resource: { uri: "ui://x", mimeType: "text/html", text: "<b>" },
        toolCallId: "c",
        toolName: "w",
      },
    ],
  },
  {
    id: "b",
    role: "assistant",
    parts: [
      {
        type: "tool-call",
        id: "d",
        name: "book",
        arguments: "{}",
        state: "approval-requested",
        approval: { id: "approval_d", needsApproval: true },
      },
    ],
  },
  { id: "e", role: "assistant", parts: [] },
];

test("every_message_round_trips", async () => {
  const threads = () => new SessionAgentThreads(open("exact"));
  await threads().saveThread("model", MODEL_MESSAGES);
  assert.deepEqual(await threads().loadThread("model"), MODEL_MESSAGES);
  await threads().saveUiMessages("page", UI_MESSAGES);
  assert.deepEqual(await threads().loadUiMessages("page"), UI_MESSAGES);
  // The model receives the same messages that TanStack AI itself makes of the page's.
  assert.deepEqual((await threads().loadThread("page")).map(({ role }) => role).slice(0, 4), [
    "user",
    "assistant",
    "tool",
    "assistant",
  ]);
});

test("a_repeated_save_writes_nothing_and_a_longer_one_only_the_new", async () => {
  for (const [kind, save, load, messages] of [
    ["model", "saveThread", "loadThread", MODEL_MESSAGES],
    ["page", "saveUiMessages", "loadUiMessages", UI_MESSAGES],
  ]) {
    const threads = new SessionAgentThreads(open(`repeated ${kind}`));
    const log = open(`repeated ${kind}`).session("t");
    for (let length = 1; length <= messages.length; length += 1) {
      await threads[save]("t", messages.slice(0, length));
      assert.deepEqual(await threads[load]("t"), messages.slice(0, length));
    }
    const events = await log.loadEvents();
    const before = evicting.evictions;
    await threads[save]("t", messages);
    await threads[save]("t", structuredClone(messages));
    assert.equal(evicting.evictions, before, "nothing was written");
    assert.deepEqual(await log.loadEvents(), events);
    assert.deepEqual(new Set(events.map(({ parentId }) => parentId)).size, events.length, "one branch");
  }
});

test("a_diverging_history_becomes_a_branch_and_both_are_kept", async () => {
  const threads = new SessionAgentThreads(open("branches"));
  const log = open("branches").session("t");
  const user = (content) => ({ role: "user", content });
  const answer = (content) => ({ role: "assistant", content });
  await threads.saveThread("t", [user("a"), answer("b"), user("c"), answer("d")]);
  // A regenerated answer: the old one is removed first, then the new one is added.
  await threads.saveThread("t", [user("a"), answer("b"), user("c")]);
  assert.deepEqual(await threads.loadThread("t"), [user("a"), answer("b"), user("c")]);
  await threads.saveThread("t", [user("a"), answer("b"), user("c"), answer("D")]);
  // A message that was edited.
  await threads.saveThread("t", [user("A"), answer("B")]);
  assert.deepEqual(await threads.loadThread("t"), [user("A"), answer("B")]);
  const events = await log.loadEvents();
  assert.deepEqual(
    events.map(({ content }) => content),
    ["a", "b", "c", "d", "D", "A", "B"],
  );
  assert.deepEqual(
    (await log.getBranches({ messageId: events[2].id })).messages.map(({ parts }) => parts[0].text),
    ["d", "D"],
  );
  await threads.saveThread("t", []);
  assert.deepEqual(await threads.loadThread("t"), []);
});

test("only_one_of_equal_concurrent_saves_is_stored", async () => {
  const threads = () => new SessionAgentThreads(evicting.openPlain("busy"));
  const messages = MODEL_MESSAGES.slice(0, 8);
  await threads().saveThread("t", messages.slice(0, 1));
  await Promise.all([1, 2, 3, 4].map(() => threads().saveThread("t", messages)));
  assert.deepEqual(await threads().loadThread("t"), messages);
  assert.equal((await open("busy").session("t").loadEvents()).length, messages.length);
});

test("a_conversation_written_by_chat_continues_here", async () => {
  const log = open("foreign").session("t");
  await log.create();
  await log.appendEvents({
    events: [
      { action: "user_message", content: "Oslo?" },
      {
        action: "tool_call_request",
        content: "Let me look.",
        toolCalls: [{ id: "1", name: "weather", arguments: { city: "Oslo" } }],
      },
      { action: "tool_result", content: "no network", toolCallId: "1", toolName: "weather", isError: true },
      { action: "system_instruction", content: "Be brief." },
      { action: "agent_message", content: "I can't say." },
    ],
  });
  const page = await hydrated(routeTo("foreign", scripted(["Try again."])));
  assert.deepEqual(
    page.getMessages().map(({ parts }) => parts.map(({ type }) => type)),
    [["text"], ["text", "tool-call", "tool-result"], ["text"]],
  );
  await page.sendMessage("And now?");
  assert.deepEqual(
    (await log.loadEvents({ tail: true, limit: 2 })).map(({ content, parentId }) => [content, parentId !== null]),
    [
      ["And now?", true],
      ["Try again.", true],
    ],
  );
  assert.equal((await log.loadEvents()).length, 7);
});

test("a_long_thread_with_a_long_id_is_stored_whole", async () => {
  const threads = new SessionAgentThreads(open("long"));
  const many = Array.from({ length: 450 }, (_, n) => ({ role: n % 2 ? "assistant" : "user", content: `${n}` }));
  const threadId = "thread ".repeat(60);
  await threads.saveThread(threadId, many);
  assert.deepEqual(await threads.loadThread(threadId), many);
});

// The storage of a page.

const inMemory = () => {
  const states = new Map();
  return {
    getItem: (id) => states.get(id),
    setItem: (id, state) => void states.set(id, structuredClone(state)),
    removeItem: (id) => void states.delete(id),
  };
};

/** The same sequence of random numbers for a seed. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

test("random_programs_match_the_in_memory_storage", async () => {
  for (let seed = 1; seed <= games(3, 6); seed += 1) {
    const roll = random(seed);
    const steps = Array.from({ length: 60 }, () =>
      [
        "Yes.",
        "No, never.",
        { tool: "weather", args: { city: "Oslo" } },
        { tool: "place", args: {} },
        [
          { tool: "weather", args: { city: "Rome" } },
          { tool: "book", args: { city: "Rome" } },
        ],
      ].at(roll(5)),
    );
    const errors = [];
    const storages = [chatStorage(open(`storage ${seed}`), { onError: (error) => errors.push(error) }), inMemory()];
    const clientOf = (storage) =>
      new ChatClient({
        connection: routeTo("", scripted(steps), null),
        threadId: "t",
        tools: pageTools,
        persistence: storage,
      });
    const clients = storages.map(clientOf);
    for (let n = 0; n < 8; n += 1) {
      const action = roll(6);
      for (const client of clients) {
        if (action === 0) await client.reload();
        else if (action === 1 && roll(1) === 0) client.setMessagesManually(client.getMessages().slice(0, -1));
        else if (action === 2) client.setMessagesManually(client.getMessages().map(rated));
        else if (action === 3 && n > 5) client.clear();
        else if (client.getInterrupts().length > 0) client.resolveInterrupts(action === 4);
        else await client.sendMessage(`Question ${n}`);
        await idle(client);
      }
      await storages[0].settled();
      assert.deepEqual(errors, []);
      const [ours, theirs] = await Promise.all(storages.map((storage) => storage.getItem("t")));
      assert.deepEqual(withoutIds(ours?.messages ?? []), withoutIds(theirs?.messages ?? []), `seed ${seed}, step ${n}`);
      assert.deepEqual(
        ours?.resume?.pendingInterrupts?.map(({ id }) => id),
        theirs?.resume?.pendingInterrupts?.map(({ id }) => id),
      );
      const ratings = (state) => state?.messages.map(({ metadata }) => metadata?.rating);
      assert.deepEqual(ratings(ours), ratings(theirs));
    }
    for (const client of clients) client.dispose();
  }
});

const rated = (message, n) => ({ ...message, metadata: { ...message.metadata, rating: n } });

test("a_reloaded_page_restores_the_conversation_and_its_approval", async () => {
  const model = scripted([{ tool: "book", args: { city: "Oslo" } }, "Booked."]);
  const storage = () => chatStorage(open("reloaded"));
  const pageOf = (persistence) =>
    new ChatClient({ connection: routeTo("", model, null), threadId: "t", tools: pageTools, persistence });
  const first = storage();
  await pageOf(first).sendMessage("Book a hotel");
  await first.settled();

  const second = storage();
  const page = pageOf(second);
  await until(() => page.getInterrupts().length === 1);
  page.resolveInterrupts(true);
  await until(() => model.sent.length === 2);
  await idle(page);
  await second.settled();
  const { messages, resume } = await storage().getItem("t");
  assert.equal(resume, undefined);
  assert.deepEqual(messages.at(-1).parts, [{ type: "text", content: "Booked." }]);
  // A server's chat reads what a page has stored.
  const roles = (await new SessionAgentThreads(open("reloaded")).loadThread("t")).map(({ role }) => role);
  assert.deepEqual(roles, ["user", "assistant", "tool", "assistant"]);
  storage().removeItem("t");
  second.removeItem("t");
  await second.settled();
  assert.equal(await storage().getItem("t"), null);
});

test("a_streaming_answer_is_stored_as_a_throttled_draft", async () => {
  let seen;
  const words = "word ".repeat(200);
  const storage = chatStorage(open("draft"), { pauseMs: 60_000 });
  const model = scripted([
    [
      words,
      () =>
        until(async () => {
          seen = await chatStorage(open("draft")).getItem("t");
          return seen?.messages.length === 2;
        }),
      "end",
    ],
  ]);
  const before = evicting.evictions;
  const page = new ChatClient({ connection: routeTo("", model, null), threadId: "t", persistence: storage });
  await page.sendMessage("Talk");
  await storage.settled();
  assert.ok(evicting.evictions - before < 12, `${evicting.evictions - before} writes`);
  assert.equal(seen.messages.length, 2);
  assert.match(seen.messages[1].parts[0].content, /^(word ){1,200}$/);
  assert.ok(seen.resume.resumeState.runId);
  const events = await open("draft").session("t").loadEvents();
  assert.deepEqual(
    events.map(({ content }) => content),
    ["Talk", `${words}end`],
  );
});

test("a_failed_write_is_reported_and_the_next_one_includes_its_data", async () => {
  const errors = [];
  let isDown = true;
  const options = { retry: { attempts: 1 } };
  const agent = evicting.openPlain("down", options);
  const failing = new Proxy(agent, {
    get: (target, name) => {
      if (isDown && name === "session") throw new Error("no network");
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const storage = chatStorage(failing, { onError: (error) => errors.push(error.message) });
  storage.setItem("t", { messages: UI_MESSAGES.slice(0, 2) });
  await storage.settled();
  assert.deepEqual(errors, ["no network"]);
  isDown = false;
  storage.setItem("t", { messages: UI_MESSAGES });
  await storage.settled();
  assert.deepEqual((await storage.getItem("t")).messages, UI_MESSAGES);
});
