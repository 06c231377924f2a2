// The example of a service that keeps blocks, run over a Map for its namespace.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { transform } from "esbuild";

const source = await readFile(new URL("../../examples/memory-service-ts/src/index.ts", import.meta.url), "utf8");
const { code } = await transform(source, { loader: "ts" });
const { default: service } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

/** What of a KV namespace the example uses. */
function namespace() {
  const kept = new Map();
  return {
    get: async (key) => kept.get(key)?.value ?? null,
    getWithMetadata: async (key) => kept.get(key) ?? { value: null, metadata: null },
    put: async (key, value, { metadata }) => void kept.set(key, { value, metadata }),
    list: async ({ prefix }) => ({
      keys: [...kept]
        .filter(([name]) => name.startsWith(prefix))
        .map(([name, { metadata }]) => ({ name, metadata }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    }),
  };
}

function home() {
  const env = { NOTES_KV: namespace() };
  return async (path, label, kind, more = {}) => {
    const body = JSON.stringify({ agent: "alice", sessionId: null, label, kind, ...more });
    const response = await service.fetch(new Request(`https://NOTES/${path}`, { method: "POST", body }), env);
    return response.ok ? response.json() : response.status;
  };
}

test("it_keeps_a_text", async () => {
  const ask = home();
  assert.deepEqual(await ask("get", "memory", "writable"), { content: null });
  await ask("set", "memory", "writable", { content: "Likes tea." });
  assert.deepEqual(await ask("get", "memory", "writable"), { content: "Likes tea." });
  assert.deepEqual(await ask("get", "memory", "writable", { agent: "bob" }), { content: null });
});

test("it_keeps_entries_and_finds_them", async () => {
  const ask = home();
  await ask("set", "kb", "searchable", { key: "a", title: "Penguins", content: "They swim." });
  await ask("set", "kb", "searchable", { key: "b", title: "Owls", content: "They fly." });
  assert.deepEqual(await ask("get", "kb", "searchable"), { content: "2 notes." });
  const { results } = await ask("search", "kb", "searchable", { query: "penguins swim", limit: 1 });
  assert.deepEqual(results, [{ key: "a", title: "Penguins", content: "They swim.", score: 2 }]);
});

test("it_keeps_documents_and_loads_them", async () => {
  const ask = home();
  await ask("set", "skills", "loadable", { key: "a/b", content: "Steps.", description: "How" });
  assert.deepEqual(await ask("get", "skills", "loadable"), { skills: [{ key: "a/b", description: "How" }] });
  assert.deepEqual(await ask("load", "skills", "loadable", { key: "a/b" }), { content: "Steps.", description: "How" });
  assert.equal(await ask("load", "skills", "loadable", { key: "none" }), 404);
});
