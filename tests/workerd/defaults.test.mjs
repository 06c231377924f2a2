// Deployed defaults on the real runtime: a file bundled by the build, and a variable. A new agent
// needs no call to set it up.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

const TOOL = `export default { async fetch(request) {
  const { name, agent } = await request.json();
  return new Response(name + " of " + agent);
} };`;

const server = await startServer({
  vars: { AUTH: "open", MODEL: "demo", AGENT_DEFAULTS: JSON.stringify({ maxSteps: 4, sessionSearch: "yes" }) },
  workers: { tool: TOOL },
  defaults: {
    maxSteps: 3,
    vectors: false,
    systemInstructions: ["Be brief."],
    blocks: [
      { label: "soul", kind: "readonly", defaultContent: "You are kind." },
      { label: "memory", kind: "writable", description: "Learned facts" },
      { label: "wrong", kind: "list" },
      { label: "user", kind: "writable", source: { agent: "user:{2}" } },
    ],
    tools: [
      { name: "answer", description: "Answers.", service: "TOOL" },
      { name: "gone", description: "Is not bound.", service: "NOWHERE" },
    ],
    compaction: { compactAfter: 50_000 },
  },
});
after(() => server.stop());

test("a_new_agent_chats_with_the_deployed_defaults", async () => {
  const body = {
    id: "s",
    message: { id: "m1", role: "user", parts: [{ type: "text", text: "Remember that I like tea." }] },
  };
  const response = await server.fetch("/agents/session-agent/coder:42/chat", {
    method: "POST",
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200);
  assert.match(await response.text(), /set_context[^]*\[DONE\]/);
  const { body: frozen } = await server.call("coder:42", "freezePrompt", { sessionId: "s" });
  assert.match(frozen.prompt, /You are kind\./);
  const { body: written } = await server.call("coder:42", "getBlock", { label: "memory" });
  assert.match(written.content, /tea/);
  const { body: settings } = await server.call("coder:42", "configureCompaction", {});
  assert.equal(settings.compactAfter, 50_000);
  const { body: listed } = await server.call("coder:42", "listTools", {});
  assert.deepEqual(
    listed.tools.map(({ name }) => name),
    ["answer"],
  );
});

test("get_config_reports_origins_and_errors_of_values", async () => {
  await server.call("dora", "configureAgent", { vectors: true });
  await server.evict("dora");
  const { body } = await server.call("dora", "getConfig", {});
  assert.deepEqual([body.maxSteps, body.vectors, body.sessionSearch], [4, true, false]);
  const { maxSteps, vectors, sessionSearch, systemInstructions } = body.origins;
  assert.deepEqual(
    [maxSteps, vectors, sessionSearch, systemInstructions],
    ["defaults", "agent", "built-in", "defaults"],
  );
  const named = body.problems.map(({ source, field }) => `${source}: ${field}`).sort();
  assert.deepEqual(named, [
    "AGENT_DEFAULTS: sessionSearch",
    "agent-defaults.json: blocks[2].kind",
    "agent-defaults.json: tools[1]",
  ]);
});

test("deployed_defaults_write_no_row", async () => {
  // The first write to an object creates its tables.
  await server.call("emil", "createSession", {});
  const cost = await server.metered("emil", async () => {
    for (const operation of [
      "getConfig",
      "getBlocks",
      "renderPrompt",
      "getTools",
      "listTools",
      "configureCompaction",
    ]) {
      const { status, rowsWritten } = await server.call("emil", operation, {});
      // `configureCompaction` stores the empty object that it received as a row.
      assert.deepEqual([status, rowsWritten], [200, operation === "configureCompaction" ? 1 : 0], operation);
    }
  });
  assert.equal(cost.written, 1);
});

test("agents_of_a_user_share_a_templated_block", async () => {
  assert.equal((await server.call("coder:9", "setBlock", { label: "user", content: "Likes tea." })).status, 200);
  for (const agent of ["coder:9", "user:9"]) await server.evict(agent);
  for (const [agent, content] of [
    ["coder:9", "Likes tea."],
    ["user:9", "Likes tea."],
    ["writer:9", "Likes tea."],
    ["coder:8", ""],
  ]) {
    assert.equal((await server.call(agent, "getBlock", { label: "user" })).body.content, content, agent);
  }
  for (const name of ["coder", "coder:..", "coder:{2}", "coder:9/../8"]) {
    const { body } = await server.call(name, "getBlock", { label: "user" });
    assert.match(body.unavailable, /this agent's name/, name);
    assert.equal((await server.call(name, "setBlock", { label: "user", content: "x" })).status, 400, name);
  }
});
