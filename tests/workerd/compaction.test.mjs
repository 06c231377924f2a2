// Compaction on the real runtime: a long conversation before and after a compaction, and automatic
// compaction, which delays no append.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startServer } from "./harness.mjs";

const MESSAGES = 2_000;
const PATIENCE_MS = 60_000;

// The demo summarizes.
const server = await startServer({ vars: { AUTH: "open", MODEL: "demo" } });
after(() => server.stop());

async function ok(agent, operation, input) {
  const answer = await server.call(agent, operation, input);
  assert.equal(answer.status, 200, `${operation}: ${JSON.stringify(answer.body)}`);
  return answer;
}

function eventOf(n) {
  const words = `This is what was said as number ${n}, and it goes on for a while so that it has some weight. `;
  return { action: n % 2 === 1 ? "user_message" : "agent_message", content: words.repeat(3) };
}

async function converse(agent, sessionId, from, count) {
  for (let n = from; n < from + count; n += 500) {
    const events = Array.from({ length: Math.min(500, from + count - n) }, (_, k) => eventOf(n + k));
    await ok(agent, "appendEvents", { sessionId, events });
  }
}

test("two_thousand_messages_become_head_summary_and_tail", async (t) => {
  await ok("long", "createSession", { id: "s" });
  await converse("long", "s", 1, MESSAGES);
  const before = (await ok("long", "estimateTokens", { sessionId: "s" })).body;
  const planned = (await ok("long", "compact", { sessionId: "s", dryRun: true })).body;
  assert.equal(planned.reason, "would_compact");
  assert.equal(planned.compaction, null);

  const { body: done } = await ok("long", "compact", { sessionId: "s" });
  assert.equal(done.reason, "compacted");
  let last = done;
  while (last.hasMore) last = (await ok("long", "compact", { sessionId: "s" })).body;
  const now = (await ok("long", "estimateTokens", { sessionId: "s" })).body;
  assert.ok(now.total < before.total / 4, `${before.total} → ${now.total}`);
  assert.ok(now.total > 15_000, "the tail keeps its budget");

  const history = await ok("long", "getHistory", { sessionId: "s", limit: 1000 });
  const { messages, truncated } = history.body;
  assert.equal(truncated, false);
  assert.match(messages[3].id, /^compaction_/);
  assert.ok(messages.length < 400, `${messages.length}`);
  assert.ok(history.rowsRead <= 2 * messages.length + 20, `${history.rowsRead} rows`);
  t.diagnostic(
    `${MESSAGES} messages, ${before.total} tokens → ${messages.length} messages, ${now.total} tokens; ` +
      `the history's rows read: ${history.rowsRead}`,
  );
  // Nothing is lost: the log still has every message, and the messages are shown again
  // once the overlay is deleted.
  assert.equal((await ok("long", "getPathLength", { sessionId: "s" })).body.length, MESSAGES);
  await server.evict("long");
  const again = await ok("long", "getHistory", { sessionId: "s", limit: 1000 });
  assert.deepEqual(again.body, history.body);
  const { compactions } = (await ok("long", "getCompactions", { sessionId: "s" })).body;
  for (const { id } of compactions) await ok("long", "deleteCompaction", { sessionId: "s", compactionId: id });
  assert.equal((await ok("long", "getHistory", { sessionId: "s", limit: 1000 })).body.truncated, true);
});

test("automatic_compaction_runs_after_the_append_has_answered", async () => {
  await ok("grown", "createSession", { id: "s" });
  await ok("grown", "configureCompaction", { sessionId: "s", compactAfter: 4000, tailTokenBudget: 1000 });
  const costs = new Set();
  for (let n = 1; n <= 200; n += 1) {
    const { rowsRead, rowsWritten } = await ok("grown", "appendEvents", { sessionId: "s", events: [eventOf(n)] });
    costs.add(`${rowsRead} / ${rowsWritten}`);
  }
  const deadline = Date.now() + PATIENCE_MS;
  let listed;
  do {
    await pause(50);
    listed = (await ok("grown", "getCompactions", { sessionId: "s" })).body;
  } while (listed.compactions.length === 0 && Date.now() < deadline);
  assert.ok(listed.compactions.length >= 1 && listed.compactions.length <= 12, `${listed.compactions.length}`);
  assert.ok(listed.decisions.every(({ isAuto, reason }) => isAuto && reason === "compacted"));
  assert.ok(
    [...costs].every((cost) => cost.endsWith(" / 1")),
    [...costs].join(", "),
  );
  const { body } = await ok("grown", "estimateTokens", { sessionId: "s" });
  assert.ok(body.total < 6000, `${body.total}`);
  const { body: session } = await ok("grown", "getSession", { sessionId: "s" });
  assert.equal(session.lastCompactionError, undefined);
});
