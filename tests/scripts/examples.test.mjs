// The example of a service that stores blocks, run with a Map as its bucket.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { transform } from "esbuild";
import { FIRST_PORT } from "../../scripts/example.mjs";
import { ROOT } from "../../scripts/paths.mjs";

const source = await readFile(new URL("../../examples/memory-service-ts/src/index.ts", import.meta.url), "utf8");
const { code } = await transform(source, { loader: "ts" });
const { default: service } = await import(`data:text/javascript,${encodeURIComponent(code)}`);

test("each_example_names_its_port", async () => {
  const read = (name) => readFile(join(ROOT, "examples", name), "utf8");
  const files = (await readdir(join(ROOT, "examples"), { recursive: true })).filter(
    (name) => /\.(ts|tsx|rs|md|toml)$/.test(name) && !/node_modules|target/.test(name),
  );
  let named = 0;
  for (const name of files) {
    for (const [address, port] of (await read(name)).matchAll(/(?:localhost|127\.0\.0\.1):(\d+)/g)) {
      named += 1;
      assert.equal(port, FIRST_PORT, `${name}: ${address}`);
      // `npx wrangler dev` in the folder serves there, too.
      assert.match(await read(`${name.split("/")[0]}/wrangler.toml`), new RegExp(`^\\[dev\\]\nport = ${port}$`, "m"));
    }
  }
  assert.ok(named >= 4, `${named}`);
});

/** The part of a bucket that the example uses. */
function bucketOf() {
  const objects = new Map();
  let puts = 0;
  const preconditionHolds = ({ etagMatches, etagDoesNotMatch } = {}, etag) =>
    (etagMatches === undefined || etagMatches === etag) && (etagDoesNotMatch !== "*" || etag === undefined);
  return {
    get: async (key) => {
      const object = objects.get(key);
      return object === undefined ? null : { ...object, text: async () => object.content };
    },
    put: async (key, content, { customMetadata, onlyIf }) => {
      if (!preconditionHolds(onlyIf, objects.get(key)?.etag)) return null;
      puts += 1;
      objects.set(key, { key, content, customMetadata, etag: `etag ${puts}` });
      return objects.get(key);
    },
    head: async (key) => objects.get(key) ?? null,
    delete: async (key) => void objects.delete(key),
    list: async ({ prefix }) => ({
      objects: [...objects.values()]
        .filter(({ key }) => key.startsWith(prefix))
        .sort((a, b) => (a.key < b.key ? -1 : 1)),
    }),
  };
}

function createService() {
  const env = { NOTES_BUCKET: bucketOf() };
  return async (path, label, kind, more = {}) => {
    const body = JSON.stringify({ agent: "alice", sessionId: null, label, kind, ...more });
    const response = await service.fetch(new Request(`https://NOTES/${path}`, { method: "POST", body }), env);
    return response.ok && response.status !== 204 ? response.json() : response.status;
  };
}

test("the_example_stores_a_text", async () => {
  const ask = createService();
  assert.equal((await ask("get", "memory", "writable")).content, null);
  await ask("set", "memory", "writable", { content: "Likes tea." });
  assert.equal((await ask("get", "memory", "writable")).content, "Likes tea.");
  assert.equal((await ask("get", "memory", "writable", { agent: "bob" })).content, null);
});

test("the_later_of_two_conflicting_writes_gets_an_error", async () => {
  const ask = createService();
  for (const content of ["first", "second"]) {
    const { version } = await ask("get", "memory", "writable");
    assert.deepEqual(await ask("set", "memory", "writable", { content, expectedVersion: version }), {});
    assert.equal(await ask("set", "memory", "writable", { content: "late", expectedVersion: version }), 409);
    assert.equal((await ask("get", "memory", "writable")).content, content);
  }
});

test("the_example_stores_and_finds_entries", async () => {
  const ask = createService();
  await ask("set", "kb", "searchable", { key: "a", title: "Penguins", content: "They swim." });
  await ask("set", "kb", "searchable", { key: "b", title: "Owls", content: "They fly." });
  assert.deepEqual(await ask("get", "kb", "searchable"), { content: "2 notes." });
  const { results } = await ask("search", "kb", "searchable", { query: "penguins swim", limit: 1 });
  assert.deepEqual(results, [{ key: "a", title: "Penguins", content: "They swim.", score: 2 }]);
});

test("the_example_stores_and_loads_documents", async () => {
  const ask = createService();
  await ask("set", "skills", "loadable", { key: "a/b", content: "Steps.", description: "How" });
  assert.deepEqual(await ask("get", "skills", "loadable"), { skills: [{ key: "a/b", description: "How" }] });
  assert.deepEqual(await ask("load", "skills", "loadable", { key: "a/b" }), { content: "Steps.", description: "How" });
  assert.equal(await ask("load", "skills", "loadable", { key: "none" }), 404);
});

test("the_example_deletes_purged_items_and_reports_missing_ones", async () => {
  const ask = createService();
  for (const key of ["a", "b"]) await ask("set", "kb", "searchable", { key, content: "They swim." });
  assert.equal(await ask("delete", "kb", "searchable", { key: "a" }), 204);
  assert.equal(await ask("delete", "kb", "searchable", { key: "a" }), 404);
  assert.equal(await ask("load", "kb", "searchable", { key: "a" }), 404);
  assert.deepEqual(await ask("get", "kb", "searchable"), { content: "1 notes." });
  assert.equal(await ask("another", "kb", "searchable", { key: "b" }), 501);
});
