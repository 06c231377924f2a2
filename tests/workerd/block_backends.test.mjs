// Backends of blocks on the real runtime with real bindings: another agent, a service (the
// TypeScript example with its own bucket), and a bucket prefix. The object is evicted between
// calls. Some backends are unavailable, slow, or return invalid answers.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { transform } from "esbuild";
import { startServer } from "./harness.mjs";

const source = await readFile(new URL("../../examples/memory-service-ts/src/index.ts", import.meta.url), "utf8");
const { code } = await transform(source, { loader: "ts", format: "esm" });

const broken = (answer) => `export default { async fetch(request) {
  const path = new URL(request.url).pathname;
  ${answer}
} };`;

/** Services that return anything but the requested data. */
const NONSENSE = {
  html: broken(`return new Response("<h1>Hello</h1>", { headers: { "content-type": "text/html" } });`),
  array: broken(`return Response.json([1, 2, 3]);`),
  types: broken(`return Response.json({ content: 7, skills: "many", results: { key: 1 } });`),
  bytes: broken(`return new Response(new Uint8Array([0xff, 0xfe, 0x00]));`),
  long: broken(`return Response.json({ content: "x".repeat(2 * 1024 * 1024) });`),
  failing: broken(`return new Response("secret details", { status: 500 });`),
  moved: broken(`return Response.redirect("https://elsewhere.example/", 302);`),
  throwing: broken(`throw new Error("secret details");`),
  cut: broken(
    `return new Response(new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode('{"content": "a')); c.error(new Error("gone")); } }));`,
  ),
};

const server = await startServer({
  workers: {
    notes: { contents: code, env: { NOTES_BUCKET: { type: "r2", name: "notes" } } },
    // A pending timer: the runtime ends a request that waits for nothing at all.
    silent: broken(`await new Promise((done) => setTimeout(done, 60_000));`),
    ...NONSENSE,
  },
});
after(() => server.stop());

async function ok(agent, operation, input = {}) {
  const { status, body } = await server.call(agent, operation, input);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

/** Writes, searches and reads each kind of block that a backend can store. */
async function useAll(agent, labels) {
  const evict = () => server.evict(agent);
  if (labels.text) {
    await ok(agent, "setBlock", { label: labels.text, content: "Likes tea." });
    await evict();
    await ok(agent, "appendToBlock", { label: labels.text, content: " Hates rain." });
    await evict();
    assert.equal((await ok(agent, "getBlock", { label: labels.text })).content, "Likes tea. Hates rain.");
  }
  if (labels.entries) {
    await ok(agent, "setEntry", {
      label: labels.entries,
      key: "opera",
      title: "Opera house",
      content: "You can walk on its roof.",
    });
    await evict();
    const { results } = await ok(agent, "searchContext", { label: labels.entries, query: "roof" });
    assert.deepEqual(
      results.map(({ key }) => key),
      ["opera"],
    );
  }
  if (labels.documents) {
    await ok(agent, "putSkill", {
      label: labels.documents,
      key: "deploy",
      content: "# Deploy\nRun the tests.",
      description: "How we deploy",
    });
    await evict();
    const { skills } = await ok(agent, "listSkills", { label: labels.documents });
    assert.deepEqual(
      skills.map(({ key }) => key),
      ["deploy"],
    );
    await evict();
    const document = await ok(agent, "loadSkill", { label: labels.documents, key: "deploy" });
    assert.match(document.content, /Run the tests/);
  }
  const { prompt } = await ok(agent, "renderPrompt");
  assert.doesNotMatch(prompt, /unavailable/);
}

async function define(agent, backend, kinds) {
  for (const [label, kind] of Object.entries(kinds)) {
    await ok(agent, "defineBlock", { label, kind, modelWrites: true, source: backend(label) });
  }
}

test("another_agent_stores_blocks_of_each_kind", async () => {
  await define("coder:1", () => ({ agent: "user:{2}" }), {
    text: "writable",
    entries: "searchable",
    documents: "loadable",
  });
  await useAll("coder:1", { text: "text", entries: "entries", documents: "documents" });
  await server.evict("user:1");
  const there = await ok("user:1", "getBlock", { label: "text" });
  assert.equal(there.content, "Likes tea. Hates rain.");
  const output = await ok("coder:1", "callTool", {
    name: "search_context",
    arguments: { label: "entries", query: "roof" },
  });
  assert.equal(output.isError, false);
  // Versions are stored at the entry's backend and read through this agent.
  await ok("coder:1", "setEntry", { label: "entries", key: "opera", content: "It is closed.", validFrom: 5 });
  await server.evict("coder:1");
  const { versions } = await ok("coder:1", "getBlockVersions", { label: "entries", key: "opera" });
  assert.deepEqual(
    versions.map(({ content }) => content),
    ["It is closed.", "You can walk on its roof."],
  );
  await ok("coder:1", "revertBlock", { label: "entries", key: "opera", version: 1 });
  const { entries } = await ok("user:1", "listEntries", { label: "entries" });
  assert.equal(entries[0].content, "You can walk on its roof.");
});

test("a_service_stores_blocks_of_each_kind", async () => {
  await define("alice", () => ({ service: "NOTES" }), {
    text: "writable",
    entries: "searchable",
    documents: "loadable",
  });
  await useAll("alice", { text: "text", entries: "entries", documents: "documents" });
  // The service stores each agent's texts separately.
  await define("bob", () => ({ service: "NOTES" }), { text: "writable" });
  assert.equal((await ok("bob", "getBlock", { label: "text" })).content, "");
});

test("a_bucket_prefix_stores_documents", async () => {
  await define("emil:7", () => ({ r2Prefix: "guides/{2}/" }), { documents: "loadable" });
  await useAll("emil:7", { documents: "documents" });
  const { SKILLS_BUCKET: bucket } = await server.env();
  assert.match(await (await bucket.get("guides/7/deploy")).text(), /Run the tests/);
  // Data that others put there manually is sometimes invalid.
  await bucket.put("guides/7/bytes", new Uint8Array([0xff, 0xfe]));
  await bucket.put("guides/7/long", "x".repeat(2 * 1024 * 1024));
  await bucket.put("guides/70/other", "of somebody else");
  await server.sql("emil:7", "DELETE FROM cf_agents_skill_listings");
  const { skills } = await ok("emil:7", "listSkills", { label: "documents" });
  assert.ok(!skills.some(({ key }) => key.includes("other")));
  for (const key of ["bytes", "long", "nobody", "../70/other", "../../guides/70/other"]) {
    const { status, body } = await server.call("emil:7", "loadSkill", { label: "documents", key });
    assert.notEqual(status, 200, key);
    assert.doesNotMatch(JSON.stringify(body), /somebody else/);
  }
  assert.match((await ok("emil:7", "loadSkill", { label: "documents", key: "deploy" })).content, /Run the tests/);
});

test("an_invalid_backend_response_affects_only_its_block", async () => {
  await ok("dora", "defineBlock", { label: "own", kind: "readonly", defaultContent: "You are kind." });
  const kinds = { text: "writable", entries: "searchable", documents: "loadable" };
  for (const name of Object.keys(NONSENSE)) {
    const backend = { service: name.toUpperCase() };
    for (const [label, kind] of Object.entries(kinds))
      await ok("dora", "defineBlock", { label, kind, source: backend });
    for (const [operation, input] of [
      ["getBlock", { label: "text" }],
      ["getBlock", { label: "documents" }],
      ["searchContext", { label: "entries", query: "x" }],
      ["loadSkill", { label: "documents", key: "x" }],
    ]) {
      const { status, body } = await server.call("dora", operation, input);
      assert.ok([200, 404, 500].includes(status), `${name}: ${operation}: ${status}`);
      assert.doesNotMatch(JSON.stringify(body), /secret details/, name);
    }
    const { prompt } = await ok("dora", "renderPrompt");
    assert.match(prompt, /You are kind\./, name);
    assert.doesNotMatch(prompt, /secret details|<h1>/, name);
  }
});

// Natively the standard library decodes it, and in Wasm JavaScript does.
test("a_label_in_any_script_is_uppercased_in_the_prompt", async () => {
  const labels = {
    notes: "NOTES",
    "straße 7": "STRASSE 7",
    заметки: "ЗАМЕТКИ",
    ŉame: "ʼNAME",
    ﬁles: "FILES",
    メモ: "メモ",
  };
  for (const label of Object.keys(labels))
    await ok("hana", "defineBlock", { label, kind: "readonly", defaultContent: "x" });
  const { prompt } = await ok("hana", "renderPrompt");
  for (const upper of Object.values(labels)) assert.ok(prompt.includes(`\n${upper} [`), upper);
});

test("an_unavailable_agent_affects_only_its_block", async () => {
  await define("fred", () => ({ agent: "broken" }), { text: "writable" });
  await ok("fred", "setBlock", { label: "text", content: "Kept." });
  await server.sql("broken", "ALTER TABLE cf_agents_blocks RENAME TO cf_agents_blocks_away");
  const block = await ok("fred", "getBlock", { label: "text" });
  assert.match(block.unavailable, /returned an error/);
  const { status } = await server.call("fred", "setBlock", { label: "text", content: "Lost?" });
  assert.equal(status, 500);
  assert.match((await ok("fred", "renderPrompt")).prompt, /unavailable/);
  await server.sql("broken", "ALTER TABLE cf_agents_blocks_away RENAME TO cf_agents_blocks");
  await server.evict("broken");
  assert.equal((await ok("fred", "getBlock", { label: "text" })).content, "Kept.");
});

test("a_stalled_backend_times_out_after_ten_seconds", { timeout: 60_000 }, async () => {
  await ok("gina", "defineBlock", { label: "slow", kind: "writable", source: { service: "SILENT" } });
  await ok("gina", "defineBlock", { label: "own", kind: "readonly", defaultContent: "You are kind." });
  const startedAt = Date.now();
  const { prompt } = await ok("gina", "renderPrompt");
  assert.ok(Date.now() - startedAt < 20_000);
  // A missing response and a slow one have the same limit here: a millisecond decides which one is
  // named.
  assert.match(prompt, /(sent nothing for|answer took longer than) 10 s/);
  assert.match(prompt, /You are kind\./);
});
