// The options of a tool's definition on the real runtime: headers with the Worker's secrets,
// timeout, and the maximum size of a response.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { call, startChatServer } from "./chat_server.mjs";
import { allOf, submit } from "./chat_stream.mjs";
import { startServer } from "./harness.mjs";
import { callTool, say } from "./model_server.mjs";
import { startTools } from "./tool_server.mjs";

const SECRET = "hunter2-hunter2";
const never = new Promise(() => {});

const tools = await startTools();
const elsewhere = await startTools();
const { server, model, stop } = await startChatServer({
  vars: {
    TOOL_ORIGINS: `${tools.origin} ${elsewhere.origin}`,
    TOOL_SECRETS: `KEY=${tools.origin} EMPTY=${tools.origin}`,
    KEY: SECRET,
    EMPTY: "",
  },
});
after(async () => {
  await stop();
  await tools.stop();
  await elsewhere.stop();
});
afterEach(() => {
  tools.run = async () => ({ ok: true });
  model.forget();
});

const define = (agent, more = {}) =>
  call(server, agent, "defineTool", { name: "work", description: "Does it.", url: `${tools.origin}/tool`, ...more });

/** The model's input for one call of the tool. */
async function result(agent) {
  model.next(callTool("work", {}, "c1"), say("Done."));
  const { chunks } = await allOf(await submit(server, agent, "s", "Go."));
  const { output, errorText } = chunks.find(({ type }) => type.startsWith("tool-output-"));
  return output ?? errorText;
}

test("a_tool_gets_its_secret_and_a_redirect_does_not", async () => {
  await define("keyed", { headers: { authorization: "Bearer secret:KEY", "x-team": "blue" } });
  assert.deepEqual(await result("keyed"), { ok: true });
  assert.equal(tools.headers.at(-1).authorization, `Bearer ${SECRET}`);
  assert.equal(tools.headers.at(-1)["x-team"], "blue");
  tools.run = async () => new Response("", { status: 307, headers: { location: `${elsewhere.origin}/tool` } });
  assert.match(await result("keyed"), /status 307/);
  assert.equal(elsewhere.calls.length, 0);
  tools.run = async () => new Response(SECRET, { status: 401 });
  assert.match(await result("keyed"), /\[secret\]/);
  const { body } = await server.call("keyed", "getHistory", { sessionId: "s" });
  assert.ok(!JSON.stringify([body, await call(server, "keyed", "listTools", {})]).includes(SECRET));
});

test("a_missing_secret_or_the_workers_own_is_refused", async () => {
  const refused = async (headers) =>
    (await server.call("refused", "defineTool", { name: "work", description: "", url: tools.origin, headers })).body
      .error;
  assert.deepEqual((await refused({ "x-key": "secret:EMPTY" })).details, { binding: "EMPTY" });
  assert.equal((await refused({ "x-key": "secret:OPENAI_API_KEY" })).code, "forbidden");
  assert.equal((await refused({ "x-key": "secret:SESSION_AGENT" })).code, "forbidden");
  assert.equal((await refused({ host: "a" })).details.field, "headers");
});

test("a_tools_timeout_ends_its_call", async () => {
  await define("slow", { timeoutMs: 300 });
  tools.run = () => never;
  const before = tools.abandoned.length;
  assert.match(await result("slow"), /sent nothing for|took longer than/);
  await tools.untilDisconnected(before + 1);
});

test("a_tools_response_is_limited_by_its_definition", async () => {
  await define("sized", { maxOutputBytes: 1_000 });
  tools.run = async () => new Response("x".repeat(1_000));
  assert.equal(await result("sized"), "x".repeat(1_000));
  tools.run = async () => new Response("x".repeat(1_001));
  assert.match(await result("sized"), /larger than 1000 bytes/);
});

test("a_service_gets_plain_headers_and_no_secret", async () => {
  const relay = `export default { fetch: (request) => new Response(request.headers.get("x-team")) };`;
  const bound = await startServer({
    vars: { AUTH: "open", MODEL: "demo", TOOL_SECRETS: `KEY=${tools.origin}`, KEY: SECRET },
    workers: { relay },
  });
  after(() => bound.stop());
  const tool = { name: "work", description: "", service: "RELAY" };
  await call(bound, "a", "defineTool", { ...tool, headers: { "x-team": "blue" } });
  const { body } = await bound.call("a", "defineTool", { ...tool, headers: { "x-key": "secret:KEY" } });
  assert.equal(body.error.code, "forbidden");
});
