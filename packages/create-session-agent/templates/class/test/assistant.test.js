// The Worker as it is deployed, on the runtime of production, without an account.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createTestHarness } from "wrangler";

const server = createTestHarness({ workers: [{ configPath: "wrangler.toml" }] });
before(() => server.listen());
after(() => server.close());

const ask = (operation, input, user) =>
  server.fetch(`/agents/session-agent/ann/rpc/${operation}`, {
    method: "POST",
    headers: user ? { cookie: `user=${user}` } : {},
    body: JSON.stringify(input),
  });

const say = (text) => ({ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] });

test("who_is_logged_in_talks_to_their_agent_and_nobody_else_does", async () => {
  const answer = await ask("runTurn", { sessionId: "chat", message: say("Hello") }, "ann");
  assert.equal(answer.status, 200);
  const { message } = await answer.json();
  assert.equal(message.role, "assistant");
  assert.equal((await ask("getHistory", { sessionId: "chat" })).status, 401);
  assert.equal((await ask("getHistory", { sessionId: "chat" }, "bob")).status, 401);
});

test("the_agent_remembers", async () => {
  const answer = await ask("runTurn", { sessionId: "chat", message: say("Remember that I like tea.") }, "ann");
  const { message } = await answer.json();
  const written = message.parts.find(({ type }) => type === "tool-set_context");
  assert.deepEqual([written.state, written.input.label], ["output-available", "memory"]);
});
