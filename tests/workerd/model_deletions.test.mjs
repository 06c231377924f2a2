// A model's deletion leaves no byte in the database files, whether the tool is called in a turn, by
// `callTool`, or over the Model Context Protocol.

import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startServer } from "./harness.mjs";
import { callTool, say, startModel } from "./model_server.mjs";

const storage = await mkdtemp(join(tmpdir(), "session-agent-forget-"));
const model = await startModel();
const server = await startServer({
  storage,
  vars: { AUTH: "open", MODEL: "openai:test", OPENAI_BASE_URL: model.url },
  secrets: { OPENAI_API_KEY: "a test's key" },
});
after(async () => {
  await server.stop();
  await model.stop();
  await rm(storage, { recursive: true, force: true });
});

const agent = "forgetful";

async function ok(operation, input) {
  const { status, body } = await server.call(agent, operation, input);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

/** Whether a file of an object contains the text. */
async function filesContain(text) {
  for (const entry of await readdir(storage, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.sqlite(-wal)?$/.test(entry.name)) continue;
    if ((await readFile(join(entry.parentPath, entry.name))).includes(text)) return true;
  }
  return false;
}

const forget = (key) => ({ label: "facts", key });

const ways = {
  async callTool(key) {
    const { isError } = await ok("callTool", { sessionId: "s", name: "forget", arguments: forget(key) });
    assert.equal(isError, false);
  },
  async mcp(key) {
    const response = await server.fetch(`/agents/session-agent/${agent}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({
        ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
        params: { name: "forget", arguments: forget(key) },
      }),
    });
    const { result } = await response.json();
    assert.match(JSON.stringify(result), /Forgotten: facts/);
  },
  async turn(key) {
    model.next(callTool("forget", forget(key)), say("It is gone."));
    const message = { role: "user", parts: [{ type: "text", text: "Forget it." }] };
    await ok("runTurn", { sessionId: "s", message: { id: `m-${key}`, ...message } });
  },
};

test("a_models_deletion_leaves_no_byte_in_the_files", async () => {
  await ok("createSession", { id: "s" });
  await ok("defineBlock", { label: "facts", kind: "searchable" });
  await ok("search", { query: "nothing" });
  for (const [key, run] of Object.entries(ways)) {
    const text = `zanzibarquux${key}`;
    for (let n = 0; n < 20; n += 1) {
      await ok("setEntry", { label: "facts", key: `other-${n}`, content: `something ${n} `.repeat(n + 1) });
      if (n === 10) await ok("setEntry", { label: "facts", key, content: `They said ${text} and more.` });
    }
    assert.ok(await filesContain(text), `${key}: the text was written`);
    await run(key);
    // After a turn, its pages are cleared behind the answer.
    for (let left = 200; left > 0 && (await filesContain(text)); left -= 1) await pause(50);
    assert.equal(await filesContain(text), false, key);
  }
});
