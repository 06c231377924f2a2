// Summaries written by another Worker (`summarize`), called over a real binding.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

const SUMMARISER = `export default { async fetch(request) {
  const { pathname } = new URL(request.url);
  const { agent, prompt, maxTokens } = await request.json();
  if (pathname !== "/summarize") return new Response("what?", { status: 404 });
  return Response.json({ summary: agent + " was told of " + (prompt.match(/number \\d+/g) ?? []).length + " numbers in " + maxTokens });
} };`;

const server = await startServer({
  workers: {
    summariser: SUMMARISER,
    failing: `export default { fetch() { return new Response("secret details", { status: 500 }); } };`,
  },
});
after(() => server.stop());

async function ok(agent, operation, input = {}) {
  const { status, body } = await server.call(agent, operation, input);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

async function talk(agent, service) {
  await ok(agent, "configureAgent", { summarize: { service } });
  await ok(agent, "configureCompaction", { protectHead: 1, tailTokenBudget: 0 });
  await ok(agent, "createSession", { id: "s" });
  const events = Array.from({ length: 10 }, (_, n) => ({
    action: "user_message",
    content: `number ${n} ${"word ".repeat(50)}`,
  }));
  await ok(agent, "appendEvents", { sessionId: "s", events });
  return await ok(agent, "compact", { sessionId: "s" });
}

test("another_worker_writes_the_summary", async () => {
  const { reason, compaction } = await talk("alice", "SUMMARISER");
  assert.equal(reason, "compacted");
  assert.match(compaction.summary, /^alice was told of [1-9] numbers in \d+$/);
  await server.evict("alice");
  const { messages } = await ok("alice", "getHistory", { sessionId: "s" });
  assert.ok(JSON.stringify(messages).includes(compaction.summary));
});

test("a_failing_worker_affects_only_the_summary", async () => {
  const { reason, error } = await talk("bob", "FAILING");
  assert.equal(reason, "summariser_failed");
  assert.equal(error.code, "model_failed");
  assert.ok(!JSON.stringify(error).includes("secret"));
  assert.equal((await ok("bob", "loadEvents", { sessionId: "s" })).length, 10);
});

test("a_service_that_is_not_bound_is_refused", async () => {
  const { status, body } = await server.call("carol", "configureAgent", { summarize: { service: "NOBODY" } });
  assert.equal(status, 501);
  assert.equal(body.error.code, "not_configured");
});
