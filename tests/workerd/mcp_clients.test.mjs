// Clients that others wrote for the Model Context Protocol, against the built Worker: the
// protocol's own SDK, in the version that shakes hands and in the one that does not.

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
