// Tests the Worker on the production runtime, without an account and without a key: the configuration of
// wrangler.toml, and the class of mock/worker.js, whose model is a mock.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createTestHarness, unstable_readConfig } from "wrangler";

// An inline configuration can't contain cron triggers.
const { triggers, ...config } = unstable_readConfig({ config: "wrangler.toml" });
const server = createTestHarness({ workers: [{ config: { ...config, main: "mock/worker.js" } }] });
before(() => server.listen());
after(() => server.close());

const ask = (operation, input, user) =>
  server.fetch(`/agents/session-agent/ann/rpc/${operation}`, {
    method: "POST",
    headers: user ? { cookie: `user=${user}` } : {},
    body: JSON.stringify(input),
  });

const say = (text) => ({ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] });

test("only_a_logged_in_user_reaches_their_agent", async () => {
  const answer = await ask("runTurn", { sessionId: "chat", message: say("Hello") }, "ann");
  assert.equal(answer.status, 200);
  const { message } = await answer.json();
  assert.equal(message.parts.at(-1).text, "You said: Hello");
  assert.equal((await ask("getHistory", { sessionId: "chat" })).status, 401);
  assert.equal((await ask("getHistory", { sessionId: "chat" }, "bob")).status, 401);
});

test("a_deployed_worker_rejects_everyone_until_a_login_is_added", async () => {
  const headers = { cookie: "user=ann" };
  for (const operation of ["runTurn", "getHistory"]) {
    const address = `https://my-agent.example/agents/session-agent/ann/rpc/${operation}`;
    const answer = await server.fetch(address, { method: "POST", headers, body: '{"sessionId": "chat"}' });
    assert.equal(answer.status, 501);
    assert.match((await answer.json()).error.message, /Write your own login in `userOf`/);
  }
});

test("the_agent_remembers_facts", async () => {
  const answer = await ask("runTurn", { sessionId: "chat", message: say("Remember that I like tea.") }, "ann");
  const { message } = await answer.json();
  const written = message.parts.find(({ type }) => type === "tool-set_context");
  assert.deepEqual([written.state, written.input.label], ["output-available", "memory"]);
});
