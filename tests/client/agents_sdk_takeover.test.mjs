// An Agents SDK object whose class is replaced by ours: the SDK's own code fills the object's
// storage, and the built Worker opens that storage and imports its contents.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { ROOT } from "../../scripts/paths.mjs";
import { startWorkerd } from "../../scripts/workerd.mjs";
import { startServer } from "../workerd/harness.mjs";

const { sessionAgent } = await import("session-agent");
const { importAgentsTables } = await import("session-agent/import");

/** The original class: a conversation with a branch, media, a summary, and two blocks. */
const BEFORE = `
import { DurableObject } from "cloudflare:workers";
import { Lifecycle } from "agents/lifecycle";
import { Sessions } from "agents/sessions";
import { AgentContextProvider, AgentSearchProvider } from "agents/context";

const text = (words) => [{ type: "text", text: words }];
const media = { type: "file", mediaType: "image/png", url: "data:image/png;base64," + btoa("x".repeat(2_000_000)) };

export class SessionAgent extends DurableObject {
  sessions = new Sessions();
  lifecycle = Lifecycle.install(this).use(this.sessions);

  sql(strings, ...values) {
    return [...this.ctx.storage.sql.exec(strings.join("?"), ...values)];
  }

  async fetch() {
    const session = this.sessions.session();
    await session.appendMessage({ id: "q1", role: "user", parts: [...text("How is Oslo?"), media] });
    await session.appendMessage({ id: "a1", role: "assistant", parts: text("Snow.") });
    await session.appendMessage({ id: "a2", role: "assistant", parts: text("Rain.") }, { parentId: "q1" });
    await session.appendMessage({ id: "q2", role: "user", parts: text("long ".repeat(500_000)) });
    await session.appendMessage({ id: "a3", role: "assistant", parts: text("I see.") });
    await session.addCompaction("They spoke of Oslo.", "q1", "a2");
    const other = this.sessions.session("other");
    for (let n = 0; n < 150; n++) await other.appendMessage({ id: "o" + n, role: n % 2 ? "assistant" : "user", parts: text("Message " + n) });
    const memory = new AgentContextProvider(this, "memory");
    memory.init("memory");
    await memory.set("Likes tea.");
    const facts = new AgentSearchProvider(this);
    facts.init("facts");
    await facts.set("birds", "Penguins swim.");
    await this.ctx.storage.put("theirs", 1);
    return new Response("done");
  }
}

export default { fetch: (request, env) => env.OBJECT.getByName("taken").fetch(request) };
`;

async function fill(storage) {
  const resolveDir = join(ROOT, "tests");
  const { outputFiles } = await build({
    stdin: { contents: BEFORE, resolveDir },
    bundle: true,
    format: "esm",
    target: "es2022",
    write: false,
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    logLevel: "silent",
  });
  const worker = {
    config: {
      name: "session-agent",
      compatibilityDate: "2026-11-17",
      compatibilityFlags: ["nodejs_compat"],
      manifest: {
        mainModule: "before.js",
        modulesRoot: ROOT,
        modules: { "before.js": { type: "esm", contents: outputFiles[0].text } },
      },
      env: { OBJECT: { type: "durable-object", worker: "session-agent", exportName: "SessionAgent" } },
      exports: { SessionAgent: { type: "durable-object", storage: "sqlite" } },
    },
    dev: { unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }] },
  };
  const { miniflare } = await startWorkerd([worker], storage);
  try {
    const response = await fetch(await miniflare.unsafeGetDirectURL("session-agent"));
    assert.equal(await response.text(), "done");
  } finally {
    await miniflare.dispose();
  }
}

test("an_agents_sdk_object_becomes_an_agent_with_all_its_data", async (t) => {
  const storage = await mkdtemp(join(tmpdir(), "session-agent-takeover-"));
  t.after(() => rm(storage, { recursive: true, force: true }));
  await fill(storage);
  const server = await startServer({ storage });
  t.after(() => server.stop());
  const agent = sessionAgent(server.url, "taken");

  /** The number of rows and bytes in the SDK's own tables. */
  const theirs = async () => {
    const totals = [];
    for (const [table, column] of [
      ["cf_agents_session_messages", "content"],
      ["cf_agents_session_message_chunks", "content"],
      ["cf_agents_session_attachment_chunks", "data"],
      ["cf_agents_session_compactions", "summary"],
      ["cf_agents_context_blocks", "content"],
      ["cf_agents_search_fts", "content"],
    ]) {
      const [row] = await server.sql(
        "taken",
        `SELECT count(*) AS rows, sum(octet_length(${column})) AS bytes FROM ${table}`,
      );
      assert.ok(row.rows > 0, table);
      totals.push({ table, ...row });
    }
    return totals;
  };
  const before = await theirs();

  // The dry run predicts what will be written, and writes nothing.
  const planned = await importAgentsTables(agent, agent.foreignRows(), { dryRun: true });
  const [first, other] = ["default", "other"].map((id) => planned.sessions.find((session) => session.id === id));
  assert.deepEqual([first.write, first.compactions, first.skipped], [5, 1, []]);
  assert.deepEqual([other.write, other.exists], [150, false]);
  assert.deepEqual(planned.blocks, [
    { label: "memory", kind: "writable", write: true },
    { label: "facts", kind: "searchable", write: true, entries: 1 },
  ]);
  assert.deepEqual((await agent.listSessions()).sessions, []);

  // An import that fails half-way is completed by the next one, and the third writes nothing.
  let left = 40;
  const breaking = sessionAgent(server.url, "taken", {
    fetch: (url, init) =>
      (left -= url.endsWith("/appendMessage") ? 1 : 0) < 0 ? Promise.reject(new Error("gone")) : fetch(url, init),
    retry: false,
  });
  await assert.rejects(importAgentsTables(breaking, breaking.foreignRows()), { code: "network_failed" });
  await server.kill9();
  const again = sessionAgent(server.url, "taken");
  const done = await importAgentsTables(again, again.foreignRows());
  assert.equal(
    done.sessions.reduce((sum, { write, known }) => sum + write + known, 0),
    155,
  );
  assert.ok(done.sessions.some(({ known }) => known > 0));
  const third = await importAgentsTables(again, again.foreignRows());
  assert.deepEqual(
    third.sessions.map(({ write, compactions }) => [write, compactions]),
    [
      [0, 0],
      [0, 0],
    ],
  );

  const session = again.session("default");
  assert.deepEqual(
    (await session.getBranches({ messageId: "q1" })).messages.map(({ id }) => id),
    ["a1", "a2"],
  );
  const {
    parts: [, image],
  } = await session.getMessage({ messageId: "q1" });
  assert.equal(image.url, `data:image/png;base64,${btoa("x".repeat(2_000_000))}`);
  assert.equal((await session.getMessage({ messageId: "q2" })).parts[0].text.length, 2_500_000);
  assert.deepEqual(
    (await session.getHistory()).messages.map(({ parts }) => parts[0].text.slice(0, 19)),
    ["They spoke of Oslo.", "long long long long", "I see."],
  );
  assert.equal((await again.session("other").getPathLength()).length, 150);
  assert.equal((await again.getBlock({ label: "memory" })).content, "Likes tea.");
  assert.equal((await again.searchContext({ label: "facts", query: "penguin" })).results[0].key, "birds");
  assert.deepEqual(await theirs(), before, "the SDK's own tables are unchanged");
});
