// Tool servers that an agent uses over the Model Context Protocol, on the real runtime: one built
// with the official SDK, and another agent.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { call, startChatServer } from "./chat_server.mjs";
import { allOf, submit } from "./chat_stream.mjs";
import { startServer } from "./harness.mjs";
import { startMcpServer } from "./mcp_server.mjs";
import { callTool, say } from "./model_server.mjs";

const mcp = await startMcpServer();
const other = await startServer({ vars: { AUTH: "open", MODEL: "demo" } });
const { server, model, stop } = await startChatServer({
  vars: { TOOL_ORIGINS: `${mcp.origin} ${new URL(other.url).origin}` },
});
after(async () => {
  await stop();
  await other.stop();
  await mcp.stop();
});
afterEach(() => model.forget());

const define = (agent, more = {}) =>
  call(server, agent, "defineTool", { name: "calc", mcp: mcp.url, needsApproval: false, ...more });

/** The requests that the server receives during `work`. */
async function requestsDuring(work) {
  const before = (await mcp.requests()).length;
  await work();
  return (await mcp.requests()).slice(before);
}

let turns = 0;

/** The outcome of one call in a turn: the chunk that reports it. */
async function use(agent, tool, input = {}) {
  model.next(callTool(tool, input, "c1"), say("Done."));
  turns += 1;
  const { chunks } = await allOf(await submit(server, agent, "s", "Go.", { id: `u-${turns}` }));
  return chunks.find(({ type }) => type.startsWith("tool-output-") || type === "tool-approval-request");
}

const outcome = async (...given) => {
  const { output, errorText } = await use(...given);
  return output ?? errorText;
};

test("server_tools_are_used_in_turns_across_evictions", async () => {
  const defined = await define("used");
  assert.deepEqual(
    defined.tools.map(({ name }) => name),
    ["calc_add", "calc_ask_the_client", "calc_count_slowly", "calc_fail", "calc_flood", "calc_forever"],
  );
  assert.equal(defined.revision, "2025-11-25");
  const requests = await requestsDuring(async () => {
    for (const b of [3, 4]) {
      await server.evict("used");
      assert.deepEqual(await outcome("used", "calc_add", { a: 2, b }), { sum: 2 + b });
    }
  });
  // The session and the list are reused: the server only receives the calls.
  assert.deepEqual(
    requests.map(({ method }) => method),
    ["tools/call", "tools/call"],
  );
  assert.equal(new Set(requests.map(({ session }) => session)).size, 1);
  assert.notEqual(requests[0].key, requests[1].key);
});

test("progress_server_requests_errors_floods_and_stalls_are_results", async () => {
  await define("odd");
  assert.equal(await outcome("odd", "calc_count_slowly"), "1, 2, 3");
  assert.equal(await outcome("odd", "calc_ask_the_client"), "The client said: -32601");
  assert.match(await outcome("odd", "calc_fail"), /It can't be done\./);
  assert.match(await outcome("odd", "calc_flood"), /larger than 1048576 bytes/);
  assert.match(await outcome("odd", "calc_add", { a: "two" }), /a|b/);
  // The other servers may be slow.
  await define("odd", { timeoutMs: 2_000 });
  assert.match(await outcome("odd", "calc_forever"), /sent nothing for|took longer than/);
});

test("a_restarted_server_is_initialized_again", async () => {
  await define("again");
  await mcp.control("forget");
  const requests = await requestsDuring(async () =>
    assert.deepEqual(await outcome("again", "calc_add", { a: 1, b: 1 }), { sum: 2 }),
  );
  assert.deepEqual(
    requests.map(({ method }) => method),
    ["tools/call", "initialize", "notifications/initialized", "tools/call"],
  );
  const next = await requestsDuring(() => use("again", "calc_add", { a: 1, b: 1 }));
  assert.deepEqual(
    next.map(({ method }) => method),
    ["tools/call"],
  );
});

test("a_tool_changed_by_its_server_needs_approval_until_redefined", async () => {
  await define("changed");
  await mcp.control("change");
  await server.sql("changed", "UPDATE cf_agents_tools SET asked_at = 0");
  assert.equal((await use("changed", "calc_add", { a: 1, b: 1 })).type, "tool-approval-request");
  const { tools } = await call(server, "changed", "listTools", {});
  assert.deepEqual(
    tools.filter(({ isChanged }) => isChanged).map(({ name }) => name),
    ["calc_add"],
  );
  await define("changed");
  await call(server, "changed", "createSession", { id: "t" });
  assert.deepEqual(
    (await call(server, "changed", "listTools", {})).tools.filter(({ isChanged }) => isChanged),
    [],
  );
});

test("a_server_at_another_origin_is_refused_and_redirects_not_followed", async () => {
  const refused = async (url) => (await server.call("refused", "defineTool", { name: "x", mcp: url })).body.error;
  assert.equal((await refused("https://elsewhere.example/mcp")).code, "forbidden");
  const requests = await requestsDuring(async () =>
    assert.match((await refused(`${mcp.origin}/moved`)).message, /redirects are not followed/),
  );
  assert.deepEqual(requests, []);
  assert.match((await refused(`${mcp.origin}/nowhere`)).message, /status 405/);
  assert.deepEqual(await call(server, "refused", "listTools", {}), { tools: [] });
});

test("an_agent_uses_another_agents_memory", async () => {
  await call(other, "team", "defineBlock", { label: "memory", kind: "writable" });
  const url = new URL("/agents/session-agent/team/mcp", other.url).href;
  await call(server, "member", "defineTool", { name: "team", mcp: url, needsApproval: false });
  await outcome("member", "team_set_context", { label: "memory", content: "We ship on Fridays." });
  assert.equal((await call(other, "team", "getBlock", { label: "memory" })).content, "We ship on Fridays.");
});
