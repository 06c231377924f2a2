// Retention on the real runtime: the alarm runs it, requests are served between its steps, and a
// run resumes after the object is killed during a step.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startServer } from "./harness.mjs";

const DAY_MS = 86_400_000;
const KILLS = 6;

const storage = await mkdtemp(join(tmpdir(), "session-agent-retention-"));
const server = await startServer({ storage });
after(async () => {
  await server.stop();
  await rm(storage, { recursive: true, force: true });
});

async function ok(agent, operation, input) {
  const { status, body } = await server.call(agent, operation, input);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

/** A file of a session whose events are this many days old. */
function fileOf(count, days, text) {
  const at = Date.now() - days * DAY_MS;
  const session = {
    type: "session",
    format: 1,
    id: "s",
    agentId: "a",
    name: null,
    parentSessionId: null,
    metadata: null,
    createdAt: at,
    updatedAt: at,
    usage: { inputTokens: 0, outputTokens: 0, cost: 0 },
    seqFloor: count,
  };
  const event = (n) => ({
    type: "event",
    seq: n,
    id: `e${n}`,
    parentId: n === 1 ? null : `e${n - 1}`,
    action: "user_message",
    content: `${text} ${n}`,
    createdAt: at,
    writtenAt: at,
  });
  const events = Array.from({ length: count }, (_, n) => event(n + 1));
  const lines = [session, ...events, { type: "end", events: count, leafId: null }];
  return `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
}

async function importOld(agent, sessionId, count, days, text = "old") {
  const response = await server.fetch(`/agents/session-agent/${agent}/sessions/${sessionId}/import`, {
    method: "POST",
    body: fileOf(count, days, text),
  });
  assert.equal(response.status, 200, await response.clone().text());
}

const countOf = async (agent) => (await server.sql(agent, "SELECT count(*) AS n FROM cf_agents_events"))[0].n;

async function until(what, seconds = 60) {
  for (let left = seconds * 20; left > 0; left -= 1) {
    if (await what()) return;
    await pause(50);
  }
  assert.fail("it did not come");
}

const lastRun = async (agent) => (await ok(agent, "applyRetention", { dryRun: true })).lastRun;

test("alarms_expire_a_long_history_while_requests_are_served", async (context) => {
  await importOld("long", "s", 20_000, 40);
  await ok("long", "appendEvents", { sessionId: "s", events: [{ action: "user_message", content: "young" }] });
  const found = await ok("long", "applyRetention", { dryRun: true });
  assert.equal(found.gone.events.count, 0, "no rule, nothing to delete");
  await ok("long", "configureAgent", { retention: { eventsDays: 30 } });
  let [longest, requests] = [0, 0];
  await until(async () => {
    const began = performance.now();
    await ok("long", "getSession", { sessionId: "s" });
    longest = Math.max(longest, performance.now() - began);
    requests += 1;
    return (await countOf("long")) === 1;
  });
  await until(async () => (await lastRun("long")) !== null);
  const run = await lastRun("long");
  assert.equal(run.gone.events.count, 20_000);
  assert.ok(run.steps >= 40, `${run.steps} steps`);
  assert.deepEqual(
    (await ok("long", "loadEvents", { sessionId: "s" })).map(({ content }) => content),
    ["young"],
  );
  context.diagnostic(`${run.steps} steps; ${requests} requests meanwhile, the longest ${longest.toFixed(0)} ms`);
});

test("a_manual_step_reports_its_cost", async (context) => {
  // The agent's rules are a day old, so no alarm is due.
  await importOld("hand", "s", 2_000, 40);
  await ok("hand", "createSession", { id: "rules", retention: { eventsDays: 1000 } });
  await until(async () => (await lastRun("hand")) !== null);
  await server.sql("hand", "UPDATE cf_agents_sessions SET retention = '{\"eventsDays\":30}' WHERE id = 's'");
  const began = performance.now();
  const step = await server.call("hand", "applyRetention", {});
  const elapsedMs = performance.now() - began;
  assert.equal(step.body.gone.events.count, 500);
  assert.equal(step.body.complete, false);
  context.diagnostic(`500 events: ${step.rowsRead} rows read, ${step.rowsWritten} written, ${elapsedMs.toFixed(0)} ms`);
  await until(async () => (await countOf("hand")) === 0);
});

test("a_run_continues_after_a_crash_and_every_step_is_atomic", async () => {
  await importOld("killed", "s", 10_000, 40);
  await ok("killed", "search", { query: "old" });
  await ok("killed", "configureAgent", { retention: { eventsDays: 30 } });
  for (let kill = 0; kill < KILLS; kill += 1) {
    await pause(20 + 37 * kill);
    await server.kill9();
    // Whatever was deleted, the remaining path is complete.
    const events = await ok("killed", "loadEvents", { sessionId: "s", limit: 1000 });
    if (events.length === 0) continue;
    assert.equal(events[0].parentId, null);
    for (const [n, event] of events.entries()) {
      if (n > 0) assert.equal(event.parentId, events[n - 1].id);
    }
    const before = await countOf("killed");
    const { length } = await ok("killed", "getPathLength", { sessionId: "s" });
    const left = await countOf("killed");
    assert.ok(left <= length && length <= before, `${left} <= ${length} <= ${before}`);
    assert.equal(before % 500, 0, "a step is all or nothing");
  }
  await until(async () => (await countOf("killed")) === 0);
  await until(async () => (await lastRun("killed")) !== null);
  const run = await lastRun("killed");
  assert.equal(run.gone.events.count, 10_000, "each event was counted once");
});
