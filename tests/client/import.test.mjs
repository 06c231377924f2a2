// `session-agent/import` against the built Worker: dry runs, imports, and repeated imports. The
// Agents SDK's own code creates its tables.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { startEvictingServer } from "./evicting_server.mjs";

const {
  importAgentsTables,
  importChatGPT,
  importClaude,
  importLangChainMessages,
  importMem0,
  importOpenAIItems,
  importUIMessages,
  importZepFacts,
  importZepMessages,
} = await import("session-agent/import");
const { SessionAgentSession } = await import("session-agent/openai-agents");

const evicting = await startEvictingServer();
after(() => evicting.stop());

const { open } = evicting;
const message = (id, text, role = "user") => ({ id, role, parts: [{ type: "text", text }] });
const withoutTime = ({ createdAt, ...rest }) => rest;

test("a_dry_run_writes_nothing_and_predicts_the_import", async () => {
  const agent = open("dry");
  const messages = [
    message("1", "one"),
    message("2", "two", "assistant"),
    { id: "3", role: "tool", parts: [] },
    { id: "4", role: "user", content: "of version 4" },
    { role: "user", parts: [] },
    { id: "blank", role: "user", parts: [{ type: "text", text: " " }] },
    message("2", "again"),
    null,
  ];
  const expected = { id: "s", exists: false, write: 3, known: 0, compactions: 0 };
  const planned = await importUIMessages(agent.session("s"), messages, { dryRun: true });
  const { skipped, ...counts } = planned.sessions[0];
  assert.deepEqual([planned.dryRun, counts], [true, expected]);
  assert.deepEqual(
    skipped.map(({ id }) => id),
    ["3", null, "blank", "2", null],
  );
  assert.match(skipped[0].reason, /role is "tool"/);
  assert.equal(await agent.session("s").getSession(), null);
  assert.deepEqual((await agent.listSessions()).sessions, []);

  const progress = [];
  const done = await importUIMessages(agent.session("s"), messages, { onProgress: (step) => progress.push(step) });
  assert.deepEqual(done, { ...planned, dryRun: false });
  assert.deepEqual(progress.at(-1), { done: 3, total: 3 });
  const { messages: stored } = await agent.session("s").getHistory();
  assert.deepEqual(stored.map(withoutTime), [
    message("1", "one"),
    message("2", "two", "assistant"),
    message("4", "of version 4"),
  ]);

  const again = await importUIMessages(agent.session("s"), [...messages, message("5", "new")]);
  assert.deepEqual([again.sessions[0].exists, again.sessions[0].write, again.sessions[0].known], [true, 1, 3]);
  assert.deepEqual(
    (await agent.session("s").getHistory()).messages.map(({ id }) => id),
    ["1", "2", "4", "5"],
  );
});

test("an_ai_sdk_message_round_trips", async () => {
  const rich = {
    id: "r",
    role: "assistant",
    metadata: { model: "m" },
    parts: [
      { type: "reasoning", text: "hm", providerMetadata: { a: { signature: "x" } } },
      {
        type: "tool-weather",
        toolCallId: "c",
        state: "output-available",
        input: { city: "Oslo" },
        output: { rain: true },
      },
      { type: "file", mediaType: "image/png", url: "data:image/png;base64,iVBORw0KGgo=" },
      { type: "text", text: "It rains.", state: "done" },
    ],
  };
  const session = open("rich").session("s");
  await importUIMessages(session, [{ ...rich, createdAt: new Date(5) }]);
  assert.deepEqual(await session.getMessage({ messageId: "r" }), { ...rich, createdAt: 5 });
});

test("openai_items_become_events_and_round_trip", async () => {
  const agent = open("openai");
  const session = agent.session("s");
  const items = [
    { role: "user", content: "Oslo?" },
    { type: "function_call", call_id: "c1", name: "weather", arguments: '{"city":"Oslo"}' },
    { type: "function_call_output", call_id: "c1", output: "Rain" },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "Yes." }] },
    { role: "user", content: "Oslo?" },
  ];
  const planned = await importOpenAIItems(session, items, { dryRun: true });
  assert.deepEqual(planned.sessions[0], { id: "s", exists: false, write: 5, known: 0, compactions: 0, skipped: [] });
  await importOpenAIItems(session, items);
  assert.equal((await importOpenAIItems(session, items)).sessions[0].write, 0);
  assert.equal(
    (await importOpenAIItems(session, [...items, { role: "assistant", content: "As I said." }])).sessions[0].write,
    1,
  );
  const events = await session.loadEvents();
  assert.deepEqual(
    events.map(({ action }) => action),
    ["user_message", "tool_call_request", "tool_result", "agent_message", "user_message", "agent_message"],
  );
  assert.deepEqual(await new SessionAgentSession(session).getItems(5), [
    ...items.slice(1),
    { role: "assistant", content: "As I said." },
  ]);
});

test("unknown_openai_items_are_refused_by_type_and_write_nothing", async () => {
  const session = open("no items").session("s");
  const fine = { role: "user", content: "Hello" };
  const exported = { author: { role: "user" }, content: { content_type: "text", parts: ["Hi"] }, id: "m" };
  const node = { id: "n", message: exported, parent: null, children: [] };
  const conversation = { title: "Trip", create_time: 1, mapping: { n: node }, current_node: "n" };
  for (const [items, words] of [
    [conversation, /takes a list of items, but got a conversation of ChatGPT's data export/],
    ["[]", /takes a list of items, but got a string/],
    [null, /got null/],
    [{}, /got an empty object/],
    [
      [conversation],
      /^Item 1 is neither an item .* it is a conversation of ChatGPT's data export, which `importChatGPT` takes/,
    ],
    [[fine, node], /^Item 2 is neither an item .* it is a node of ChatGPT's data export/],
    [[fine, exported], /^Item 2 is neither an item .* it is a message of ChatGPT's data export\. `importChatGPT`/],
    [
      [fine, { type: "human", data: { content: "Hi" } }],
      /it is a message of LangChain's, which `importLangChainMessages` takes/,
    ],
    [
      [{ lc: 1, type: "constructor", id: ["langchain_core", "messages", "HumanMessage"], kwargs: { content: "Hi" } }],
      /a message of LangChain's/,
    ],
    [
      [{ uuid: "z", role: "user", role_type: "user", content: "Hi" }],
      /it is a message of Zep's, which `importZepMessages` takes/,
    ],
    [[{ uuid: "z", fact: "Likes tea." }], /it is a fact of Zep's, which `importZepFacts` takes/],
    [[{ id: "m", memory: "Likes tea." }], /it is a memory of mem0's, which `importMem0` takes/],
    [[message("u", "Hi")], /it is a message of the AI SDK, which `importUIMessages` takes/],
    [[fine, { role: "user" }], /^Item 2 is empty: a message has a `content`/],
    [[fine, { role: "assistant", content: null }], /^Item 2 is empty/],
    [[fine, 42], /it is a number/],
    [[fine, null], /it is null/],
    [[fine, [fine]], /it is a list/],
    [[fine, "Hello"], /it is a string/],
    [[fine, new Date(0)], /it is an empty object/],
    [[fine, { content: "no role" }], /it is an object with `content`/],
    [[fine, { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 }], /with `a`, `b`, `c`, `d`, `e` and more/],
    [[fine, { role: "narrator", content: "x" }], /an object with `role`, `content`/],
    [[fine, { ...fine, at: new Date(0) }], /^Item 2 can't be stored: `at` is an object of the class `Date`/],
  ]) {
    await assert.rejects(
      importOpenAIItems(session, items),
      (error) => (error instanceof TypeError && words.test(error.message)) || assert.fail(error.message),
    );
  }
  assert.equal(await session.getSession(), null);
});

test("chat_completions_messages_become_calls_and_results", async () => {
  const session = open("completions").session("s");
  await importOpenAIItems(session, [
    { role: "developer", content: "Be kind." },
    { role: "user", content: [{ type: "text", text: "Oslo?" }] },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } }],
    },
    { role: "tool", tool_call_id: "c1", content: "Rain" },
    { role: "assistant", content: "It rains." },
  ]);
  const { messages } = await session.buildWorkingContext();
  assert.deepEqual(
    messages.map(({ role, content }) => [role, content]),
    [
      ["system", "Be kind."],
      ["user", "Oslo?"],
      ["assistant", ""],
      ["tool", "Rain"],
      ["assistant", "It rains."],
    ],
  );
  assert.deepEqual(messages[2].toolCalls, [{ id: "c1", name: "weather", arguments: { city: "Oslo" } }]);
  assert.deepEqual([messages[3].toolCallId, messages[3].toolName], ["c1", "weather"]);
});

test("a_chatgpt_export_becomes_sessions_with_branches", async () => {
  const messageOf = (id, role, text, more = {}) => ({
    id,
    author: { role },
    create_time: 1700000000.5,
    content: { content_type: "text", parts: [text] },
    ...more,
  });
  const conversation = {
    id: "c1",
    title: "Oslo",
    current_node: "a1",
    mapping: {
      a2: { id: "a2", parent: "q", children: [], message: messageOf("a2", "assistant", "Second answer.") },
      root: { id: "root", parent: null, children: ["hidden"], message: null },
      hidden: {
        id: "hidden",
        parent: "root",
        children: ["q"],
        message: messageOf("hidden", "system", "x", { metadata: { is_visually_hidden_from_conversation: true } }),
      },
      q: { id: "q", parent: "hidden", children: ["call", "a2"], message: messageOf("q", "user", "Rain?") },
      call: {
        id: "call",
        parent: "q",
        children: ["tool"],
        message: messageOf("call", "assistant", "search", { recipient: "browser" }),
      },
      tool: {
        id: "tool",
        parent: "call",
        children: ["image"],
        message: { ...messageOf("tool", "tool", "found"), author: { role: "tool", name: "browser" } },
      },
      image: {
        id: "image",
        parent: "tool",
        children: ["a1"],
        message: messageOf("image", "user", "", {
          content: { content_type: "multimodal_text", parts: [{ content_type: "image_asset_pointer" }] },
        }),
      },
      a1: { id: "a1", parent: "image", children: [], message: messageOf("a1", "assistant", "A little.") },
    },
  };
  const agent = open("chatgpt");
  const planned = await importChatGPT(agent, [conversation], { dryRun: true });
  assert.deepEqual(planned.sessions[0].skipped, [
    { id: "call", reason: "It is a call of the tool `browser`." },
    { id: "tool", reason: "It is what the tool `browser` answered." },
    { id: "image", reason: "It is `multimodal_text` without a text. The export has its files apart." },
  ]);
  assert.deepEqual((await agent.listSessions()).sessions, []);
  assert.deepEqual(await importChatGPT(agent, JSON.stringify([conversation])), { ...planned, dryRun: false });
  const session = agent.session("c1");
  assert.deepEqual((await session.getHistory()).messages, [
    { id: "q", role: "user", parts: [{ type: "text", text: "Rain?" }], createdAt: 1700000000500 },
    { id: "a1", role: "assistant", parts: [{ type: "text", text: "A little." }], createdAt: 1700000000500 },
  ]);
  assert.deepEqual(
    (await session.getBranches({ messageId: "q" })).messages.map(({ id }) => id),
    ["a1", "a2"],
  );
  assert.equal((await session.getSession()).name, "Oslo");
  assert.deepEqual(
    (await importChatGPT(agent, conversation)).sessions.map(({ write, known }) => [write, known]),
    [[0, 3]],
  );
  await assert.rejects(importChatGPT(agent, "{"), /importChatGPT received text that is not JSON/);
  await assert.rejects(
    importChatGPT(agent, [{ role: "user", content: "x" }]),
    /Conversation 1 is an object with `role`, `content`/,
  );
});

test("an_import_beside_newer_messages_is_a_branch_and_reported", async () => {
  const session = open("newer").session("s");
  const message = (id, role) => ({ id, role, parts: [{ type: "text", text: id }] });
  const old = [message("q1", "user"), message("a1", "assistant")];
  await importUIMessages(session, old);
  await session.appendMessages({ messages: [message("mine", "user")] });
  const grown = [...old, message("q2", "user"), message("a2", "assistant")];
  const [{ write, known, isBranch }] = (await importUIMessages(session, grown)).sessions;
  assert.deepEqual([write, known, isBranch], [2, 2, true]);
  const ids = async () => (await session.getMessages()).map(({ id }) => id);
  assert.deepEqual(await ids(), ["q1", "a1", "mine"]);
  assert.deepEqual(
    (await session.getBranches({ messageId: "a1" })).messages.map(({ id }) => id),
    ["mine", "q2"],
  );
  // If nothing was written since, the conversation continues with the imported messages.
  const other = open("grown").session("s");
  await importUIMessages(other, old);
  const [again] = (await importUIMessages(other, grown)).sessions;
  assert.deepEqual([again.write, again.isBranch], [2, undefined]);
  assert.equal((await other.getMessages()).at(-1).id, "a2");
});

test("chatgpt_content_that_is_not_text_is_reported", async () => {
  const node = (id, parent, children, message) => ({ id, parent, children, message });
  const messageOf = (role, content, more = {}) => ({ author: { role, name: "web" }, create_time: 1, content, ...more });
  const conversation = {
    id: "c",
    current_node: "d",
    mapping: {
      a: node("a", null, ["b"], {
        ...messageOf("user", {
          content_type: "multimodal_text",
          parts: ["What is this?", { content_type: "image_asset_pointer" }],
        }),
        metadata: { attachments: [{ name: "a.pdf" }] },
      }),
      b: node("b", "a", ["c"], messageOf("tool", { content_type: "tether_browsing_display", result: "A page" })),
      c: node("c", "b", ["d"], messageOf("assistant", { content_type: "thoughts", thoughts: [{ content: "Hm." }] })),
      d: node("d", "c", [], messageOf("assistant", { content_type: "text", parts: ["A cat."] })),
    },
  };
  const [{ write, skipped }] = (await importChatGPT(open("parts"), conversation)).sessions;
  assert.equal(write, 2);
  assert.deepEqual(skipped, [
    { id: "a", reason: "Its text is imported without its 2 pictures or files. The export has its files apart." },
    { id: "b", reason: "It is what the tool `web` answered." },
    { id: "c", reason: "It is `thoughts`, which is not a text of the conversation." },
  ]);
});

test("claudes_export_becomes_sessions_and_api_messages_are_refused", async () => {
  const message = (uuid, sender, content, more = {}) => ({
    uuid,
    sender,
    text: "",
    content,
    created_at: "2026-01-02T03:04:05Z",
    ...more,
  });
  const text = (words) => ({ type: "text", text: words });
  const conversation = {
    uuid: "c1",
    name: "Oslo",
    chat_messages: [
      message("q", "human", [text("Rain?")], { attachments: [{ file_name: "a.txt" }] }),
      message("t", "assistant", [{ type: "tool_use", name: "web" }]),
      message("a", "assistant", [{ type: "thinking", thinking: "Hm." }, text("A little.")]),
    ],
  };
  const agent = open("claude");
  const planned = await importClaude(agent, JSON.stringify([conversation]), { dryRun: true });
  assert.deepEqual(planned.sessions[0].skipped, [
    { id: "q", reason: "Its text is imported without `attachments`." },
    { id: "t", reason: "It has no text, but `tool_use`." },
    { id: "a", reason: "Its text is imported without `thinking`." },
  ]);
  assert.deepEqual(await importClaude(agent, conversation), { ...planned, dryRun: false });
  const createdAt = Date.UTC(2026, 0, 2, 3, 4, 5);
  assert.deepEqual((await agent.session("c1").getHistory()).messages, [
    { id: "q", role: "user", parts: [{ type: "text", text: "Rain?" }], createdAt },
    { id: "a", role: "assistant", parts: [{ type: "text", text: "A little." }], createdAt },
  ]);
  await assert.rejects(
    importChatGPT(agent, [conversation]),
    /Conversation 1 is a conversation of Claude's data export/,
  );
  await assert.rejects(importClaude(agent, [{ id: "x", mapping: {} }]), /is a conversation of ChatGPT's data export/);
  const api = [
    { role: "user", content: "Rain?" },
    { role: "assistant", content: [text("I look."), { type: "tool_use", id: "t1", name: "weather", input: {} }] },
  ];
  await assert.rejects(
    importOpenAIItems(agent.session("api"), api),
    /Item 2 .*it is a message of Anthropic's API with blocks that no function here takes/,
  );
  assert.equal(await agent.getSession({ sessionId: "api" }), null);
});

test("other_fields_of_mem0_and_langchain_are_kept_or_reported", async () => {
  const agent = open("besides");
  const { skipped } = await importMem0(agent, [
    {
      id: "m",
      memory: "Likes tea.",
      user_id: "ann",
      metadata: { where: "chat" },
      categories: ["food", "x".repeat(101)],
      created_at: "2026-01-01T00:00:00Z",
      updated_at: "2026-01-02T00:00:00Z",
      expiration_date: "2099-01-01",
      immutable: true,
      hash: "h",
    },
    { id: "n", memory: "Likes rain.", metadata: { long: "x".repeat(4096) } },
  ]);
  assert.deepEqual(skipped, [
    { id: "m", reason: "It is imported without `immutable`." },
    { id: "m", reason: "It is imported without 1 of its categories: an entry has at most 32 short tags." },
    { id: "n", reason: "It is imported without its metadata, which has more than 4 KiB." },
  ]);
  const entries = Object.fromEntries((await Array.fromAsync(agent.entries({ label: "facts" }))).map((e) => [e.key, e]));
  assert.deepEqual(entries.m.metadata, { user_id: "ann", created_at: "2026-01-01T00:00:00Z", where: "chat" });
  assert.deepEqual([entries.m.validFrom, entries.m.validUntil], [Date.UTC(2026, 0, 2), Date.UTC(2099, 0, 1)]);
  assert.deepEqual(entries.m.tags, ["food"]);
  assert.equal(entries.n.content, "Likes rain.");
  const edges = [{ uuid: "z", fact: "Lives in Oslo.", group_id: "g", fact_embedding: [1] }];
  assert.deepEqual((await importZepFacts(agent, edges)).skipped, [
    { id: "z", reason: "It is imported without `group_id`." },
  ]);

  const stored = [
    {
      type: "human",
      data: {
        content: [
          { type: "text", text: "This?" },
          { type: "image_url", image_url: "x" },
        ],
      },
    },
    { type: "ai", data: { content: "A cat.", id: "a", usage_metadata: { input_tokens: 1 }, additional_kwargs: {} } },
  ];
  const [{ write, ...done }] = (await importLangChainMessages(agent.session("chain"), stored)).sessions;
  assert.equal(write, 2);
  assert.deepEqual(done.skipped, [
    { id: null, reason: "Message 1 is imported without `image_url`." },
    { id: "a", reason: "Message 2 is imported without `usage_metadata`." },
  ]);
});

test("langchain_messages_are_read_as_instances_and_in_both_stored_shapes", async () => {
  const { AIMessage, HumanMessage, mapChatMessagesToStoredMessages, SystemMessage, ToolMessage } = await import(
    "@langchain/core/messages"
  );
  const messages = [
    new SystemMessage("Be kind."),
    new HumanMessage([{ type: "text", text: "Oslo?" }]),
    new AIMessage({
      content: "",
      tool_calls: [{ id: "c1", name: "weather", args: { city: "Oslo" }, type: "tool_call" }],
    }),
    new ToolMessage({ tool_call_id: "c1", content: "Rain" }),
    new AIMessage("It rains."),
  ];
  const expected = ["system_instruction", "user_message", "tool_call_request", "tool_result", "agent_message"];
  const agent = open("langchain");
  const shapes = {
    instances: messages,
    stored: mapChatMessagesToStoredMessages(messages),
    serialised: JSON.parse(JSON.stringify(messages)),
    text: JSON.stringify(messages),
  };
  let first;
  for (const [name, given] of Object.entries(shapes)) {
    const session = agent.session(name);
    await importLangChainMessages(session, given);
    assert.equal((await importLangChainMessages(session, given)).sessions[0].write, 0);
    const events = (await session.loadEvents()).map(({ action, content, toolCalls, toolCallId, toolName }) => ({
      action,
      content,
      toolCalls,
      toolCallId,
      toolName,
    }));
    assert.deepEqual(
      events.map(({ action }) => action),
      expected,
      name,
    );
    assert.deepEqual(events, (first ??= events), name);
  }
  assert.deepEqual(first[2].toolCalls, [{ id: "c1", name: "weather", arguments: { city: "Oslo" } }]);
  assert.deepEqual([first[1].content, first[3].content, first[3].toolName], ["Oslo?", "Rain", "weather"]);
  await assert.rejects(
    importLangChainMessages(agent.session("no"), [{ role: "user", content: "x" }]),
    /Message 1 is not a message of LangChain's/,
  );
  assert.equal(await agent.session("no").getSession(), null);
});

test("mem0_memories_and_zep_facts_become_entries_with_their_times", async () => {
  const agent = open("facts");
  const memories = {
    results: [
      {
        id: "m1",
        memory: "Likes tea.",
        hash: "h",
        metadata: null,
        created_at: "2026-01-02T03:04:05Z",
        updated_at: null,
        user_id: "ann",
      },
      { memory: "Nobody's." },
    ],
  };
  const planned = await importMem0(agent, memories, { dryRun: true });
  assert.deepEqual(planned, {
    dryRun: true,
    block: { label: "facts", kind: "searchable", write: true, entries: 1 },
    skipped: [{ id: null, reason: "It has no id." }],
  });
  assert.deepEqual(await agent.getBlocks(), []);
  await importMem0(agent, memories);
  const edges = [
    {
      uuid: "z1",
      name: "LIVES_IN",
      fact: "Lives in Oslo.",
      valid_at: "2020-01-01T00:00:00Z",
      invalid_at: "2024-01-01T00:00:00Z",
    },
    { uuid: "z2", fact: "Lives in Bergen.", created_at: "2024-01-01T00:00:00Z" },
  ];
  await importZepFacts(agent, { edges });
  await importZepFacts(agent, edges, { label: "zep" });
  const entries = async (label) =>
    Object.fromEntries(
      (await Array.fromAsync(agent.entries({ label }))).map(({ key, content, validFrom, validUntil }) => [
        key,
        [content, validFrom, validUntil],
      ]),
    );
  const zep = {
    z1: ["Lives in Oslo.", Date.UTC(2020, 0), Date.UTC(2024, 0)],
    z2: ["Lives in Bergen.", Date.UTC(2024, 0), undefined],
  };
  assert.deepEqual(await entries("facts"), { m1: ["Likes tea.", Date.UTC(2026, 0, 2, 3, 4, 5), undefined], ...zep });
  assert.deepEqual(await entries("zep"), zep);
  assert.deepEqual(
    (await agent.searchContext({ label: "facts", query: "lives" })).results.map(({ key }) => key),
    ["z2"],
  );
  await assert.rejects(
    importMem0(agent, edges),
    /Number 1 of the list can't be imported: it is a fact of Zep's, which `importZepFacts` takes/,
  );
  await assert.rejects(
    importZepFacts(agent, { none: 1 }),
    /takes a list, or an object with the list under `edges`, but got an object with `none`/,
  );
});

test("a_fact_too_long_for_an_entry_is_reported_and_others_imported", async () => {
  const agent = open("held");
  const long = "ü".repeat(32_769);
  const { block, skipped } = await importMem0(agent, [
    { id: "long", memory: long },
    { id: "k".repeat(201), memory: "Likes tea." },
    { id: "whole", memory: long.slice(1) },
    { id: "vague", memory: "Likes rain.", created_at: "yesterday", expiration_date: "2099-01-01" },
  ]);
  assert.equal(block.entries, 2);
  assert.deepEqual(skipped, [
    { id: "long", reason: "Its text has 65538 bytes; an entry has at most 65536." },
    { id: "k".repeat(201), reason: "Its id has more than 200 characters." },
    { id: "vague", reason: "It is imported without a time that can't be read." },
  ]);
  const edges = [{ uuid: "z", fact: "Lives in Oslo.", valid_at: "2020-01-01T00:00:00Z", invalid_at: "later" }];
  assert.deepEqual((await importZepFacts(agent, edges)).skipped, [
    { id: "z", reason: "It is imported without a time that can't be read." },
  ]);
  const entries = await Array.fromAsync(agent.entries({ label: "facts" }));
  assert.deepEqual(entries.map(({ key, validUntil }) => [key, validUntil]).sort(), [
    ["vague", Date.UTC(2099, 0, 1)],
    ["whole", undefined],
    ["z", undefined],
  ]);
});

test("a_byte_order_mark_is_ignored", async () => {
  const agent = open("marked");
  const memories = JSON.stringify({ results: [{ id: "m", memory: "Likes tea." }] });
  assert.equal((await importMem0(agent, `\uFEFF${memories}`)).block.entries, 1);
});

test("zep_messages_keep_their_ids_times_and_speakers", async () => {
  const session = open("zep").session("s");
  const messages = [
    { uuid: "1", role: "Jane", role_type: "user", content: "Oslo?", created_at: "2026-01-02T03:04:05Z" },
    { uuid: "2", role: "assistant", role_type: "assistant", content: "Rain.", created_at: "2026-01-02T03:04:06Z" },
    { uuid: "3", role: "x", role_type: "norole", content: "?" },
  ];
  const { sessions } = await importZepMessages(session, { messages });
  assert.deepEqual([sessions[0].write, sessions[0].skipped.map(({ id }) => id)], [2, ["3"]]);
  const time = Date.UTC(2026, 0, 2, 3, 4, 5);
  assert.deepEqual((await session.getHistory()).messages, [
    { id: "1", role: "user", parts: [{ type: "text", text: "Oslo?" }], metadata: { name: "Jane" }, createdAt: time },
    { id: "2", role: "assistant", parts: [{ type: "text", text: "Rain." }], createdAt: time + 1000 },
  ]);
  await assert.rejects(importZepMessages(session, "[]x"), /not JSON/);
});

/** The tables of the Agents SDK in SQLite, and their rows as docs/migrating.md exports them. */
function exported(statements) {
  const db = new DatabaseSync(":memory:");
  for (const [sql, ...values] of statements) db.prepare(sql).run(...values);
  const names = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
  const lines = names.flatMap(({ name }) =>
    db
      .prepare(`SELECT * FROM "${name}"`)
      .all()
      .map((row) => ({ table: name, row })),
  );
  return lines
    .map((line) =>
      JSON.stringify(line, (_, value) => (value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value)),
    )
    .join("\n");
}

const NEWER = [
  [
    "CREATE TABLE cf_agents_session_messages (session_id TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, parent_id TEXT, type TEXT NOT NULL DEFAULT 'message', role TEXT NOT NULL, content TEXT NOT NULL, content_chunks INTEGER NOT NULL DEFAULT 0, token_estimate INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL, content_hash TEXT, PRIMARY KEY (session_id, id)) WITHOUT ROWID",
  ],
  [
    "CREATE TABLE cf_agents_session_message_chunks (session_id TEXT NOT NULL, id TEXT NOT NULL, idx INTEGER NOT NULL, content TEXT NOT NULL, PRIMARY KEY (session_id, id, idx)) WITHOUT ROWID",
  ],
  [
    "CREATE TABLE cf_agents_session_compactions (session_id TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, summary TEXT NOT NULL, from_message_id TEXT NOT NULL, to_message_id TEXT NOT NULL, created_at INTEGER NOT NULL, PRIMARY KEY (session_id, id)) WITHOUT ROWID",
  ],
  ["CREATE TABLE cf_agents_session_config (session_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL)"],
  [
    "CREATE TABLE cf_agents_session_attachment_meta (hash TEXT PRIMARY KEY, bytes INTEGER NOT NULL, media_type TEXT NOT NULL, chunks INTEGER NOT NULL) WITHOUT ROWID",
  ],
  [
    "CREATE TABLE cf_agents_session_attachment_chunks (hash TEXT NOT NULL, idx INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (hash, idx)) WITHOUT ROWID",
  ],
  [
    "CREATE TABLE cf_agents_context_blocks (label TEXT PRIMARY KEY, content TEXT NOT NULL, updated_at DATETIME DEFAULT CURRENT_TIMESTAMP)",
  ],
  [
    "CREATE VIRTUAL TABLE cf_agents_search_fts USING fts5(label UNINDEXED, key UNINDEXED, content, tokenize='porter unicode61')",
  ],
];
const insert = (id, seq, parent, role, parts, more = {}) => [
  "INSERT INTO cf_agents_session_messages (session_id, id, seq, parent_id, type, role, content, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  more.session ?? "chat",
  id,
  seq,
  parent,
  more.type ?? "message",
  role,
  more.content ?? JSON.stringify({ id, role, parts }),
  1000 + seq,
];
const text = (words) => [{ type: "text", text: words }];
const image = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 1, 2, 3]);
const long = JSON.stringify({ id: "long", role: "user", parts: text("a long message in two pieces") });

test("agents_sdk_tables_become_sessions_branches_media_and_blocks", async () => {
  const file = exported([
    ...NEWER,
    insert("u1", 1, null, "user", [
      ...text("Look."),
      { type: "file", mediaType: "image/png", url: "attachment:sha256:h1" },
    ]),
    insert("a1", 2, "u1", "assistant", text("First answer.")),
    insert("a2", 3, "u1", "assistant", text("Second answer.")),
    insert("event", 4, "a2", "user", [], { type: "marker" }),
    insert("long", 5, "event", "user", [], { content: long.slice(0, 20) }),
    ["INSERT INTO cf_agents_session_message_chunks VALUES ('chat', 'long', 2, ?)", long.slice(40)],
    ["INSERT INTO cf_agents_session_message_chunks VALUES ('chat', 'long', 1, ?)", long.slice(20, 40)],
    insert("broken", 6, "long", "user", [], { content: "{" }),
    insert("o1", 1, null, "user", text("Another session."), { session: "" }),
    ["INSERT INTO cf_agents_session_compactions VALUES ('chat', 'c', 1, 'They looked.', 'u1', 'a2', 9)"],
    ["INSERT INTO cf_agents_session_config VALUES ('chat', 'k', 'v')"],
    ["INSERT INTO cf_agents_session_attachment_meta VALUES ('h1', 11, 'image/png', 2)"],
    ["INSERT INTO cf_agents_session_attachment_chunks VALUES ('h1', 0, ?)", image.slice(0, 4)],
    ["INSERT INTO cf_agents_session_attachment_chunks VALUES ('h1', 1, ?)", image.slice(4)],
    ["INSERT INTO cf_agents_context_blocks (label, content) VALUES ('memory', 'Likes tea.')"],
    ["INSERT INTO cf_agents_search_fts (label, key, content) VALUES ('facts', 'birds', 'Penguins swim.')"],
  ]);
  const agent = open("tables");
  const planned = await importAgentsTables(agent, file, { dryRun: true });
  assert.deepEqual((await agent.listSessions()).sessions, []);
  assert.deepEqual(await agent.getBlocks(), []);
  const [chat, other] = ["chat", "default"].map((id) => planned.sessions.find((session) => session.id === id));
  assert.deepEqual([chat.write, chat.compactions, other.id, other.write], [4, 1, "default", 1]);
  assert.deepEqual(chat.skipped, [
    { id: "event", reason: "It has the type `marker`." },
    { id: "broken", reason: "Its content is not JSON." },
  ]);
  assert.deepEqual(planned.blocks, [
    { label: "memory", kind: "writable", write: true },
    { label: "facts", kind: "searchable", write: true, entries: 1 },
  ]);
  assert.ok(planned.ignoredTables.includes("cf_agents_session_config"));

  const stream = new Blob([file]).stream();
  assert.deepEqual(await importAgentsTables(agent, stream), { ...planned, dryRun: false });
  const session = agent.session("chat");
  const first = await session.getMessage({ messageId: "u1" });
  assert.deepEqual(
    [first.createdAt, first.parts[1].url],
    [1001, `data:image/png;base64,${Buffer.from(image).toString("base64")}`],
  );
  assert.deepEqual(
    (await session.getBranches({ messageId: "u1" })).messages.map(({ id }) => id),
    ["a1", "a2"],
  );
  const { messages } = await session.getHistory();
  assert.deepEqual(
    messages.map(({ parts }) => parts[0].text),
    ["They looked.", "a long message in two pieces"],
  );
  assert.equal((await agent.getBlock({ label: "memory" })).content, "Likes tea.");
  assert.equal((await agent.searchContext({ label: "facts", query: "penguin" })).results[0].key, "birds");

  const again = await importAgentsTables(agent, file);
  assert.deepEqual(again.sessions.map(({ id, write, known, compactions }) => [id, write, known, compactions]).sort(), [
    ["chat", 0, 4, 0],
    ["default", 0, 1, 0],
  ]);
  assert.equal(again.blocks[0].reason, "The block already has this text.");
});

test("older_tables_are_imported_and_blocks_of_another_kind_unchanged", async () => {
  const file = exported([
    ["CREATE TABLE assistant_sessions (id TEXT PRIMARY KEY, name TEXT)"],
    [
      "CREATE TABLE assistant_messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL DEFAULT '', parent_id TEXT, role TEXT NOT NULL, content TEXT NOT NULL, created_at DATETIME)",
    ],
    [
      "CREATE TABLE assistant_compactions (id TEXT, session_id TEXT, summary TEXT, from_message_id TEXT, to_message_id TEXT, created_at DATETIME)",
    ],
    ["CREATE TABLE cf_ai_chat_agent_messages (id TEXT PRIMARY KEY, message TEXT NOT NULL, created_at DATETIME)"],
    ["INSERT INTO assistant_sessions VALUES ('old', 'A trip')"],
    [
      "INSERT INTO assistant_messages VALUES ('m1', 'old', NULL, 'user', ?, '2026-01-02 03:04:05')",
      JSON.stringify(message("m1", "Oslo?")),
    ],
    [
      "INSERT INTO assistant_messages VALUES ('m2', 'old', 'm1', 'assistant', ?, '2026-01-02 03:04:06')",
      JSON.stringify(message("m2", "Rain.", "assistant")),
    ],
    ["INSERT INTO assistant_compactions VALUES ('c', 'old', 'About Oslo.', 'm1', 'm2', '2026-01-02 03:04:07')"],
    [
      "INSERT INTO cf_ai_chat_agent_messages VALUES ('x2', ?, '2026-01-02 00:00:02')",
      JSON.stringify(message("x2", "second", "assistant")),
    ],
    [
      "INSERT INTO cf_ai_chat_agent_messages VALUES ('x1', ?, '2026-01-02 00:00:01')",
      JSON.stringify(message("x1", "first")),
    ],
    ["CREATE TABLE cf_agents_context_blocks (label TEXT PRIMARY KEY, content TEXT NOT NULL)"],
    ["INSERT INTO cf_agents_context_blocks VALUES ('memory', 'x')"],
  ]);
  const agent = open("older");
  await agent.defineBlock({ label: "memory", kind: "readonly", defaultContent: "mine" });
  const { sessions, blocks } = await importAgentsTables(agent, file);
  assert.deepEqual(
    sessions.map(({ id, write }) => [id, write]),
    [
      ["old", 2],
      ["default", 2],
    ],
  );
  assert.match(blocks[0].reason, /it is readonly/);
  assert.equal((await agent.getSession({ sessionId: "old" })).name, "A trip");
  assert.equal(
    (await agent.getMessage({ sessionId: "old", messageId: "m1" })).createdAt,
    Date.UTC(2026, 0, 2, 3, 4, 5),
  );
  assert.deepEqual(
    (await agent.session("old").getHistory()).messages.map(({ parts }) => parts[0].text),
    ["About Oslo."],
  );
  assert.deepEqual(
    (await agent.session("default").getHistory()).messages.map(({ id }) => id),
    ["x1", "x2"],
  );
  await assert.rejects(importAgentsTables(agent, '{"table": "x"}'), /Line 1 of the export is not/);
  await assert.rejects(importAgentsTables(agent, "no json"), TypeError);
});
