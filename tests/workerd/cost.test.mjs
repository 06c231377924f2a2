// The rows read and written by each operation, which must not depend on the length of the log.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

const server = await startServer();
after(() => server.stop());

const user = (more = {}) => ({ action: "user_message", content: "hello there", ...more });

async function cost(agent, operation, input) {
  const { status, body, rowsRead, rowsWritten } = await server.call(agent, operation, { sessionId: "s", ...input });
  assert.equal(status, 200, JSON.stringify(body));
  return { read: rowsRead, written: rowsWritten, body };
}

async function agentOf(length) {
  const agent = `of ${length}`;
  await server.call(agent, "createSession", { id: "s" });
  for (let left = length; left > 0; left -= 1000) {
    await cost(agent, "appendEvents", { events: Array.from({ length: Math.min(left, 1000) }, () => user()) });
  }
  return agent;
}

for (const length of [10, 1_000, 100_000]) {
  test(`in_a_session_of_${length}_events`, async () => {
    const agent = await agentOf(length);

    const minted = await cost(agent, "appendEvents", { events: [user()] });
    assert.equal(minted.written, 1);
    assert.ok(minted.read <= 10, `${minted.read} rows read`);

    const given = await cost(agent, "appendEvents", { events: [user({ id: "mine" })] });
    assert.equal(given.written, 2);
    assert.ok(given.read <= 10, `${given.read} rows read`);

    const again = await cost(agent, "appendEvents", { events: [user({ id: "mine" })] });
    assert.equal(again.written, 0);
    assert.ok(again.read <= 10, `${again.read} rows read`);

    const ten = await cost(agent, "appendEvents", { events: Array.from({ length: 10 }, () => user()) });
    assert.equal(ten.written, 10);

    // The first event of a branch is in the branch index; the events after it are not.
    const branch = await cost(agent, "appendEvents", { parentId: "mine", events: [user()] });
    assert.equal(branch.written, 2);
    assert.ok(branch.read <= 10, `${branch.read} rows read`);
    assert.equal((await cost(agent, "appendEvents", { events: [user()] })).written, 1);

    const newest = await cost(agent, "loadEvents", { limit: 50, tail: true });
    assert.ok(newest.read <= 2 * 50 + 20, `${newest.read} rows read`);
    assert.equal(newest.written, 0);

    await server.evict(agent);
    const first = await cost(agent, "appendEvents", { events: [user()] });
    assert.equal(first.written, 1);
    assert.ok(first.read <= 10, `${first.read} rows read after eviction`);

    const deletion = await cost(agent, "deleteEvents", { eventIds: ["mine"] });
    assert.ok(deletion.read <= 50, `${deletion.read} rows read`);
  });
}

test("a_page_of_history_costs_the_same_at_any_length_and_with_branches", async () => {
  const pages = {};
  for (const length of [1_000, 100_000]) {
    const agent = await agentOf(length);
    const page = await cost(agent, "getHistory", { limit: 50 });
    assert.equal(page.body.messages.length, 50);
    const leaf = await cost(agent, "getLatestLeaf", {});
    // A hundred branches of ten messages each. Every branch starts at the fifth message
    // of the branch before it, the first one at the oldest of the newest thousand
    // messages.
    const newest = await cost(agent, "loadEvents", { limit: 1000, tail: true });
    let parent = newest.body[0].id;
    for (let branch = 0; branch < 100; branch += 1) {
      const { body } = await cost(agent, "appendEvents", {
        parentId: parent,
        events: Array.from({ length: 10 }, () => user()),
      });
      parent = body.events[4].id;
    }
    const branched = await cost(agent, "getHistory", { limit: 50 });
    assert.equal(branched.body.messages.length, 50);
    const branches = await cost(agent, "getBranches", { messageId: parent });
    assert.equal(branches.body.messages.length, 1);
    pages[length] = { page: page.read, branched: branched.read, leaf: leaf.read, branches: branches.read };
  }
  assert.deepEqual(pages[100_000], pages[1_000]);
  assert.ok(pages[1_000].page <= 2 * 50 + 20, JSON.stringify(pages));
  assert.ok(pages[1_000].branched <= 2 * 50 + 20, JSON.stringify(pages));
  assert.ok(pages[1_000].branches <= 20, JSON.stringify(pages));
});

test("an_edit_below_an_answer_costs_the_same_for_any_number_of_siblings", async () => {
  const agent = await agentOf(10);
  const agents = () => ({ action: "agent_message", content: "yes" });
  const { body } = await cost(agent, "appendEvents", { events: [user(), agents()] });
  const parentId = body.events[1].id;
  await cost(agent, "appendEvents", { parentId, events: [agents()] });
  const reads = [];
  for (let round = 0; round < 200; round += 1) {
    const { read, written } = await cost(agent, "appendEvents", { parentId, events: [user()] });
    // The first one splits the run as well, which corrects the number of messages up to there.
    assert.equal(written, round === 0 ? 4 : 2);
    reads.push(read);
  }
  assert.ok(Math.max(...reads) <= 16, `${Math.max(...reads)} rows read`);
  assert.ok(reads[199] <= reads[1], `${reads}`);
});

test("messages_cost_the_same_as_events", async () => {
  const agent = await agentOf(1_000);
  const message = (id, text) => ({ ...(id && { id }), role: "user", parts: [{ type: "text", text }] });
  assert.equal((await cost(agent, "appendMessage", { message: message(undefined, "a") })).written, 1);
  const given = await cost(agent, "appendMessage", { message: message("given", "a") });
  assert.deepEqual([given.written, given.read <= 10], [2, true]);
  assert.equal((await cost(agent, "updateMessage", { message: given.body.message })).written, 0);
  assert.equal((await cost(agent, "updateMessage", { message: message("given", "b") })).written, 2);
});

test("media_costs_one_row_per_use_and_one_for_its_data", async () => {
  const agent = await agentOf(1_000);
  const url = (letter, bytes) => `data:image/png;base64,${letter.repeat(bytes)}`;
  const picture = (...urls) => ({
    message: { role: "user", parts: urls.map((url) => ({ type: "file", mediaType: "image/png", url })) },
  });
  const first = await cost(agent, "appendMessage", picture(url("a", 900_000)));
  assert.equal(first.written, 3);
  const known = await cost(agent, "appendMessage", picture(url("a", 900_000), url("a", 900_000)));
  assert.deepEqual([known.written, known.read <= 10], [2, true], JSON.stringify(known.read));
  assert.equal((await cost(agent, "appendMessage", picture(url("b", 4_095)))).written, 1);
  assert.equal((await cost(agent, "appendMessage", picture(url("c", 3_000_000)))).written, 5);
  const read = await cost(agent, "getMessage", { messageId: known.body.message.id });
  assert.ok(read.body.parts[1].url === url("a", 900_000));
  assert.ok(read.read <= 8, `${read.read} rows read`);
  assert.equal((await cost(agent, "deleteMessages", { messageIds: [first.body.message.id] })).body.deleted, 1);
  assert.ok(
    (await cost(agent, "getMessage", { messageId: known.body.message.id })).body.parts[0].url === url("a", 900_000),
  );
});

test("search_costs_a_row_per_event_only_once_used", async () => {
  const agent = await agentOf(1_000);
  const before = await cost(agent, "appendEvents", { events: [user({ content: "a rare marmalade" })] });
  assert.equal(before.written, 1);
  const { body } = await server.call(agent, "search", { query: "marmalades" });
  assert.deepEqual(
    body.results.map(({ snippet }) => snippet),
    ["a rare marmalade"],
  );
  const after = await cost(agent, "appendEvents", { events: [user({ content: "more marmalade" })] });
  assert.deepEqual([after.written, after.read <= 10], [2, true], JSON.stringify(after));
  const ten = await cost(agent, "appendEvents", { events: Array.from({ length: 10 }, () => user()) });
  assert.equal(ten.written, 20);
  await server.evict(agent);
  const found = await server.call(agent, "search", { query: "marmalade" });
  assert.deepEqual([found.body.results.length, found.rowsWritten], [2, 0]);
  const { body: deleted } = await cost(agent, "deleteEvents", { eventIds: [after.body.events[0].id] });
  assert.equal(deleted.deleted, 1);
  assert.equal((await server.call(agent, "search", { query: "marmalade" })).body.results.length, 1);
});

test("entry_and_summary_counts_are_known_without_reading_them", async () => {
  const rows = {};
  // Both counts leave as many entries over that are not counted yet.
  for (const length of [96, 992]) {
    const agent = `remembering ${length}`;
    const call = (operation, input = {}) => server.call(agent, operation, { label: "facts", ...input });
    await call("defineBlock", { kind: "searchable" });
    for (let n = 0; n < length; n += 1) await call("setEntry", { key: `k${n}`, content: "It rains in Oslo." });
    const read = async (operation, input) => {
      const { status, rowsRead, rowsWritten } = await call(operation, input);
      assert.equal(status, 200);
      return [rowsRead, rowsWritten];
    };
    rows[length] = {
      block: await read("getBlock"),
      set: await read("setEntry", { key: "new", content: "It snows." }),
      replace: await read("setEntry", { key: "newer", content: "It hails.", supersedes: ["new"] }),
      giveBack: await read("deleteEntry", { key: "newer" }),
      delete: await read("deleteEntry", { key: "k1" }),
      prompt: (await server.call(agent, "renderPrompt", {})).rowsRead,
    };
    assert.equal(rows[length].set[1], 3);
  }
  assert.deepEqual(rows[992], rows[96]);
  assert.ok(rows[992].block[0] <= 10, JSON.stringify(rows));

  const summarized = {};
  for (const length of [1_000, 10_000]) {
    const agent = await agentOf(length + 1);
    const [first] = (await cost(agent, "loadEvents", { limit: 1 })).body;
    const [last] = (await cost(agent, "loadEvents", { limit: 50, tail: true })).body;
    const added = await cost(agent, "addCompaction", { summary: "It rained.", fromId: first.id, toId: last.id });
    await server.evict(agent);
    const estimate = await cost(agent, "estimateTokens", {});
    const compact = await cost(agent, "compact", { dryRun: true });
    const path = await cost(agent, "getPathLength", {});
    summarized[length] = [added.read, estimate.read, compact.read, path.read];
  }
  assert.deepEqual(summarized[10_000], summarized[1_000]);
});

test("events_are_counted_without_reading_them", async () => {
  const rows = {};
  for (const length of [4_000, 16_000]) {
    const agent = `said ${length}`;
    await server.call(agent, "createSession", { id: "s" });
    const content = "many words ".repeat(20);
    for (let left = length; left > 0; left -= 1000) {
      await cost(agent, "appendEvents", { events: Array.from({ length: 1000 }, () => user({ content })) });
    }
    const read = async () => {
      const path = await cost(agent, "getPathLength", {});
      await server.evict(agent);
      const estimate = await cost(agent, "estimateTokens", {});
      const compact = await cost(agent, "compact", { dryRun: true });
      assert.equal(compact.body.reason, "would_compact");
      // A compaction covers 128,000 tokens, which are 2,300 of these messages.
      assert.ok(compact.read < 2_500, `${compact.read} rows`);
      return { rows: [path.read, estimate.read], length: path.body.length, tokens: estimate.body.messages };
    };
    const before = await read();
    assert.deepEqual([before.length, before.tokens], [length, length * 55]);
    const [old] = (await cost(agent, "loadEvents", { limit: 1, afterSeq: 100 })).body;
    await cost(agent, "deleteEvents", { eventIds: [old.id] });
    const after = await read();
    assert.deepEqual([after.length, after.tokens], [length - 1, (length - 1) * 55]);
    assert.ok(before.rows[0] <= 10 && after.rows[0] <= 10, JSON.stringify([before, after]));
    rows[length] = [before.rows, after.rows];
  }
  assert.deepEqual(rows[16_000], rows[4_000]);
});

test("paging_a_whole_list_reads_each_session_a_few_times", async () => {
  for (let n = 0; n < 300; n += 1) {
    await server.call("listed", "createSession", { id: `s${n}` });
    await server.call("listed", "appendEvents", { sessionId: `s${n}`, events: [user()] });
  }
  let [cursor, read, listed] = [undefined, 0, 0];
  do {
    const { body, rowsRead } = await server.call("listed", "listSessions", { limit: 10, cursor });
    [cursor, read, listed] = [body.cursor, read + rowsRead, listed + body.sessions.length];
  } while (cursor !== null);
  assert.equal(listed, 300);
  assert.ok(read <= 300 * 20, `${read} rows`);
  // Two rows for each session that is shown, and two for each of those that were active last.
  const page = await server.call("listed", "listSessions", { limit: 50 });
  assert.ok(page.rowsRead <= 2 * 50 + 2 * 80 + 5, `${page.rowsRead} rows`);
});
