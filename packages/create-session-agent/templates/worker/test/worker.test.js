// Tests the Worker on the production runtime, without an account. The model is the built-in demo, whatever
// MODEL is deployed.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createTestHarness, unstable_readConfig } from "wrangler";

const SECRET = "the secret of the tests, long enough";

// An inline configuration can't contain cron triggers.
const { triggers, ...config } = unstable_readConfig({ config: "wrangler.toml" });
const vars = { ...config.vars, MODEL: "demo", SESSION_AGENT_TOKEN: SECRET };
const server = createTestHarness({ workers: [{ config: { ...config, vars } }] });
before(() => server.listen());
after(() => server.close());

const ask = (operation, input, token = SECRET) =>
  server.fetch(`/agents/session-agent/ann/rpc/${operation}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify(input),
  });

test("only_the_secret_gives_access_to_an_agent", async () => {
  const message = { id: "1", role: "user", parts: [{ type: "text", text: "Hello" }] };
  const answer = await ask("runTurn", { sessionId: "chat", message });
  assert.equal(answer.status, 200);
  assert.equal((await answer.json()).message.role, "assistant");
  assert.equal((await ask("getHistory", { sessionId: "chat" }, "a wrong secret, also long enough")).status, 401);
});

test("every_agent_has_the_default_blocks", async () => {
  const blocks = await (await ask("getBlocks", {})).json();
  assert.deepEqual(
    blocks.map(({ label }) => label),
    JSON.parse(config.vars.AGENT_DEFAULTS).blocks.map(({ label }) => label),
  );
});
