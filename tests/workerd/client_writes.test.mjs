// Client methods that combine several operations: setting a block that does not exist yet, adding
// an entry without a key, appending several messages, and persisting a whole context.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  buildWorkingContext,
  LeafMovedError,
  sessionAgent,
  WorkingContext,
} from "../../packages/session-agent/dist/index.js";
import { startServer } from "./harness.mjs";

const server = await startServer();
after(() => server.stop());

const open = (name) => sessionAgent(server.url, name);
const user = (id, text = id) => ({ id, role: "user", parts: [{ type: "text", text }] });
const idsOf = async (session) => (await session.getHistory()).messages.map(({ id }) => id);

test("setting_a_missing_block_with_a_kind_defines_it", async () => {
  const agent = open("blocks");
  const memory = { label: "memory", content: "Likes tea.", kind: "writable", description: "Facts", maxTokens: 100 };
  const { kind, description, maxTokens, content, version } = await agent.setBlock(memory);
  assert.deepEqual([kind, description, maxTokens, content, version], ["writable", "Facts", 100, "Likes tea.", 1]);
  // An existing block keeps its definition.
  const again = await agent.setBlock({ ...memory, content: "Likes coffee.", description: "Other", maxTokens: 1 });
  assert.deepEqual([again.description, again.maxTokens, again.content], ["Facts", 100, "Likes coffee."]);
  await agent.createSession({ id: "s" });
  assert.equal((await agent.session("s").setBlock({ ...memory, label: "notes" })).scope, "session");
  await assert.rejects(agent.setBlock({ label: "nowhere", content: "x" }), { code: "block_not_found" });
  await assert.rejects(agent.setBlock({ label: "memory", content: "x", maxTokens: 5 }), {
    code: "invalid_request",
    details: { field: "maxTokens" },
  });
});

test("an_entry_without_a_key_gets_a_unique_one", async () => {
  const agent = open("entries");
  await agent.defineBlock({ label: "facts", kind: "searchable" });
  const [one, two] = [
    await agent.setEntry({ label: "facts", content: "Tea." }),
    await agent.setEntry({ label: "facts", content: "Tea." }),
  ];
  assert.notEqual(one.key, two.key);
  assert.equal((await agent.setEntry({ label: "facts", key: one.key, content: "Coffee." })).key, one.key);
  assert.deepEqual((await agent.listEntries({ label: "facts" })).entries.map(({ content }) => content).toSorted(), [
    "Coffee.",
    "Tea.",
  ]);
});

test("several_messages_are_appended_in_order_and_repeats_write_nothing", async () => {
  const session = open("messages").session("s");
  await session.create();
  const messages = [user("a"), { ...user("b"), role: "assistant" }, user("c")];
  const appended = await session.appendMessages({ messages });
  assert.deepEqual([appended.messages.map(({ inserted }) => inserted), appended.leafId], [[true, true, true], "c"]);
  assert.deepEqual(await idsOf(session), ["a", "b", "c"]);
  const again = await session.appendMessages({ messages: [...messages, user("d")] });
  assert.deepEqual([again.messages.map(({ inserted }) => inserted), again.leafId], [[false, false, false, true], "d"]);
  assert.deepEqual(await idsOf(session), ["a", "b", "c", "d"]);
  await session.appendMessages({ messages: [user("e"), user("f")], parentId: "b" });
  assert.deepEqual(await idsOf(session), ["a", "b", "e", "f"]);
  await assert.rejects(session.appendMessages({ messages: [user("g")], expectedLeafId: "c" }), LeafMovedError);
  assert.deepEqual(await session.appendMessages({ messages: [] }), { messages: [], leafId: null });
});

test("a_context_is_persisted_whole_and_repeats_write_nothing", async () => {
  const session = open("contexts").session("s");
  await session.create();
  const context = buildWorkingContext(await session.loadEvents());
  context.addMessage({ role: "user", content: "Rain?" });
  const { events } = await session.persistWorkingContext(context);
  context.addMessage({ role: "assistant", content: "A little." });
  const { leafId } = await session.persistWorkingContext(context);
  assert.deepEqual(
    (await session.loadEvents()).map(({ content }) => content),
    ["Rain?", "A little."],
  );
  assert.deepEqual([events.length, context.leafId, context.getNewMessages()], [1, leafId, []]);

  const stale = buildWorkingContext(await session.loadEvents());
  await session.appendEvents({ events: [{ id: "other", action: "user_message", content: "And tomorrow?" }] });
  stale.addMessage({ role: "user", content: "lost?" });
  await assert.rejects(session.persistWorkingContext(stale), LeafMovedError);
  assert.deepEqual(
    stale.getNewMessages().map(({ content }) => content),
    ["lost?"],
  );

  // A context built by hand names no leaf.
  const plain = new WorkingContext(["Be kind."]);
  plain.addMessage({ role: "assistant", content: "Sun." });
  await session.persistWorkingContext(plain);
  assert.equal((await session.loadEvents()).at(-1).content, "Sun.");
  await session.persistWorkingContext({ messages: [{ role: "user", content: "Thanks." }] });
  assert.equal((await session.loadEvents()).at(-1).content, "Thanks.");
});
