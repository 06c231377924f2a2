// The Worker as it is deployed, on the runtime of production, without an account.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createTestHarness } from "wrangler";

const server = createTestHarness({ workers: [{ configPath: "wrangler.toml" }] });
before(() => server.listen());
after(() => server.close());

const ask = (operation, input, user) =>
  server.fetch(`/agents/session-agent/alice/rpc/${operation}`, {
    method: "POST",
    headers: user ? { cookie: `user=${user}` } : {},
    body: JSON.stringify(input),
  });

test("who_is_logged_in_talks_to_the_agent_and_nobody_else_does", async () => {
  const message = { id: "1", role: "user", parts: [{ type: "text", text: "Hello" }] };
  const answer = await ask("runTurn", { sessionId: "chat-of-ann", message }, "ann");
  assert.equal(answer.status, 200);
  const { message: said } = await answer.json();
  assert.equal(said.role, "assistant");
  assert.equal((await ask("getHistory", { sessionId: "chat-of-ann" })).status, 401);
  assert.notEqual((await ask("getHistory", { sessionId: "chat-of-ann" }, "bob")).status, 200);
});
