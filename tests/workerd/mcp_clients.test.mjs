// The Model Context Protocol's own SDK against the built Worker: a version that uses the handshake
// and one that does not.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { call } from "./chat_server.mjs";
import { startServer } from "./harness.mjs";

const TOKEN = "the secret of this test, long enough";
const owner = { authorization: `Bearer ${TOKEN}` };

const ECHO = `export default {
  fetch: async (request) => Response.json({ said: (await request.json()).arguments.text }),
};`;

const server = await startServer({ secrets: { SESSION_AGENT_TOKEN: TOKEN }, workers: { echo: ECHO } });
after(() => server.stop());

async function load(folder, name) {
  const require = createRequire(new URL(`../${folder}/package.json`, import.meta.url));
  return await import(pathToFileURL(require.resolve(name)).href);
}

const old = async () => ({
  ...(await load("conformance", "@modelcontextprotocol/sdk/client/index.js")),
  ...(await load("conformance", "@modelcontextprotocol/sdk/client/streamableHttp.js")),
});

for (const [version, open, options] of [
  ["1", old, {}],
  ["2", () => load("client", "@modelcontextprotocol/client"), { versionNegotiation: { mode: "auto" } }],
]) {
  test(`the_sdk_${version}_lists_and_uses_everything`, async () => {
    const agent = `sdk-${version}`;
    await call(server, agent, "defineBlock", { label: "memory", kind: "writable", description: "What to know" }, owner);
    await call(server, agent, "defineBlock", { label: "skills", kind: "loadable" }, owner);
    await call(server, agent, "putSkill", { label: "skills", key: "tea", content: "# Tea" }, owner);
    const echo = {
      name: "echo",
      description: "Says it again.",
      service: "ECHO",
      parameters: { type: "object", properties: { text: { type: "string" } } },
    };
    await call(server, agent, "defineTool", echo, owner);
    const { Client, StreamableHTTPClientTransport } = await open();
    const client = new Client({ name: "a test", version: "1.0.0" }, options);
    const url = new URL(`/agents/session-agent/${agent}/mcp`, server.url);
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: owner } }));
    try {
      const { tools } = await client.listTools();
      assert.deepEqual(tools.map(({ name }) => name).toSorted(), [
        "echo",
        "forget",
        "load_context",
        "search",
        "set_context",
        "unload_context",
      ]);
      const use = (name, input) => client.callTool({ name, arguments: input });
      assert.match((await use("echo", { text: "Hi." })).content[0].text, /"said":"Hi\."/);
      await use("set_context", { label: "memory", content: "Likes tea." });
      assert.equal((await use("set_context", { label: "nobody", content: "x" })).isError, true);
      const { resources } = await client.listResources();
      assert.ok(resources.some(({ uri }) => uri === "memory://block/memory"));
      const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
      assert.equal(await read("memory://block/memory"), "Likes tea.");
      assert.equal(await read("memory://skill/skills/tea"), "# Tea");
      const { prompts } = await client.listPrompts();
      assert.deepEqual(
        prompts.map(({ name }) => name),
        ["system"],
      );
      const { messages } = await client.getPrompt({ name: "system" });
      assert.match(messages[0].content.text, /Likes tea\./);
      await assert.rejects(client.callTool({ name: "nothing", arguments: {} }));
    } finally {
      await client.close();
    }
  });
}

test("the_sdk_asks_its_user_before_a_tool_that_needs_approval", async () => {
  const agent = "sdk-approval";
  const parameters = { type: "object", properties: { text: { type: "string" } } };
  const pay = { name: "pay", description: "Pays.", service: "ECHO", parameters, needsApproval: true };
  await call(server, agent, "defineTool", pay, owner);
  const { Client, StreamableHTTPClientTransport } = await old();
  const { ElicitRequestSchema } = await load("conformance", "@modelcontextprotocol/sdk/types.js");
  const url = new URL(`/agents/session-agent/${agent}/mcp`, server.url);
  const client = new Client({ name: "a test", version: "1.0.0" }, { capabilities: { elicitation: {} } });
  const answers = [
    { action: "accept", content: { approve: true } },
    { action: "accept", content: { approve: false } },
    { action: "decline" },
  ];
  const messages = [];
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    messages.push(params.message);
    return answers[messages.length - 1];
  });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: owner } }));
  try {
    assert.ok((await client.listTools()).tools.some(({ name }) => name === "pay"));
    const results = [];
    for (let n = 0; n < 3; n += 1) {
      const { isError, content } = await client.callTool({ name: "pay", arguments: { text: "5" } });
      results.push([isError, content[0].text]);
    }
    const refused = [true, "The user did not approve the call of `pay`."];
    assert.deepEqual(results, [[false, '{"said":"5"}'], refused, refused]);
    assert.match(messages[0], /`pay` with these arguments\? \{"text":"5"\}/);
    const { completion } = await client.complete({
      ref: { type: "ref/prompt", name: "system" },
      argument: { name: "format", value: "x" },
    });
    assert.deepEqual(completion.values, ["xml"]);
  } finally {
    await client.close();
  }
});

test("questions_of_disconnected_clients_are_limited", async () => {
  const agent = "sdk-gone";
  await call(
    server,
    agent,
    "defineTool",
    { name: "pay", description: "Pays.", service: "ECHO", needsApproval: true },
    owner,
  );
  const path = `/agents/session-agent/${agent}/mcp`;
  const headers = { ...owner, "content-type": "application/json", accept: "application/json, text/event-stream" };
  const post = (message, more = {}) =>
    fetch(new URL(path, server.url), {
      method: "POST",
      headers: { ...headers, ...more },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
  const params = {
    protocolVersion: "2025-11-25",
    capabilities: { elicitation: {} },
    clientInfo: { name: "c", version: "1" },
  };
  const hello = await post({ id: 1, method: "initialize", params });
  await hello.text();
  const session = { "mcp-session-id": hello.headers.get("mcp-session-id") };
  const ask = async () => {
    const answer = await post({ id: 2, method: "tools/call", params: { name: "pay" } }, session);
    assert.equal(answer.headers.get("content-type"), "text/event-stream");
    const reader = answer.body.getReader();
    const { value } = await reader.read();
    const question = JSON.parse(new TextDecoder().decode(value).match(/^data: (.*)$/m)[1]);
    assert.equal(question.method, "elicitation/create");
    return { question, reader };
  };
  const { question, reader } = await ask();
  const yes = { action: "accept", content: { approve: true } };
  assert.equal((await post({ id: question.id, result: yes }, session)).status, 202);
  const { value: last } = await reader.read();
  assert.match(new TextDecoder().decode(last), /"isError":false/);
  assert.equal((await reader.read()).done, true);

  for (let n = 0; n < 32; n += 1) await (await ask()).reader.cancel();
  const refused = await post({ id: 3, method: "tools/call", params: { name: "pay" } }, session);
  const { result } = await refused.json();
  assert.deepEqual([result.isError, result.content[0].text], [true, "The client did not answer in time."]);
  // Calls without a question are not affected.
  assert.equal((await post({ id: 4, method: "tools/list", params: {} }, session)).status, 200);
});
