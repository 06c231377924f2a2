// Tests the Worker on the production runtime, without an account and without a key: the configuration of
// wrangler.toml, without its page, and the class of mock/worker.js, whose model is a mock.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createTestHarness, unstable_readConfig } from "wrangler";

// An inline configuration can't contain cron triggers.
// The page, which `npm run build` builds, is not tested here.
const { triggers, build, assets, ...config } = unstable_readConfig({ config: "wrangler.toml" });
const vars = { ...config.vars, SESSION_AGENT_TOKEN: "the secret of the tests, long enough" };
const server = createTestHarness({ workers: [{ config: { ...config, main: "mock/worker.js", vars } }] });
before(() => server.listen());
after(() => server.close());

async function login() {
  const response = await server.fetch("/api/login", { method: "POST" });
  assert.equal(response.status, 200);
  return await response.json();
}

const ask = ({ agent, token }, operation, input) =>
  server.fetch(`/agents/session-agent/${agent}/rpc/${operation}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify(input),
  });

test("a_visitor_chats_with_an_agent_of_their_own", async () => {
  const visitor = await login();
  const message = { id: "1", role: "user", parts: [{ type: "text", text: "Hello" }] };
  const answer = await ask(visitor, "runTurn", { sessionId: "chat", message });
  assert.equal(answer.status, 200);
  assert.equal((await answer.json()).message.parts.at(-1).text, "You said: Hello");

  const other = await login();
  assert.notEqual(other.agent, visitor.agent);
  assert.equal((await ask({ ...other, agent: visitor.agent }, "getHistory", { sessionId: "chat" })).status, 401);
});

test("a_token_allows_what_the_page_does", async () => {
  const visitor = await login();
  assert.equal((await ask(visitor, "listSessions", {})).status, 200);
  assert.equal((await ask(visitor, "defineTool", { name: "x", description: "x", service: "X" })).status, 403);
  assert.equal((await ask(visitor, "destroy", {})).status, 403);
});
