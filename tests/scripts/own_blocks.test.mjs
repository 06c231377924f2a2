// Functions of a class as backends of blocks (packages/session-agent/src/worker/blocks.ts), called
// as the core calls them.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { CLIENT } from "../../scripts/paths.mjs";

const { outputFiles } = await build({
  entryPoints: [join(CLIENT, "src/worker/blocks.ts")],
  bundle: true,
  write: false,
  format: "esm",
});
const { OwnBlocks } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

/** A block with these functions, and a function that calls it. */
function blockOf(provider) {
  const blocks = new OwnBlocks();
  blocks.define([{ label: "Facts", kind: "searchable", provider }], "CLASS");
  return async (path, more = {}) =>
    await blocks.ask(path, { agent: "alice", sessionId: null, label: "facts", kind: "searchable", ...more });
}

test("a_purge_calls_only_the_delete_function", async () => {
  const [stored, loaded] = [new Map([["tea", "Likes tea."]]), []];
  const ask = blockOf({
    load: (key) => (loaded.push(key), stored.get(key) ?? null),
    delete: (key) => stored.delete(key),
  });
  assert.equal((await ask("delete", { key: "tea" })).status, 204);
  assert.deepEqual([stored.size, loaded], [0, []]);
  assert.equal((await ask("delete", { key: "tea" })).status, 404, "there was none");
  assert.equal((await ask("load", { key: "tea" })).status, 404);
});

test("without_a_delete_function_a_purge_reports_nothing_deleted", async () => {
  const loaded = [];
  const ask = blockOf({ load: (key) => (loaded.push(key), "Likes tea.") });
  assert.equal((await ask("delete", { key: "tea" })).status, 405);
  assert.deepEqual(loaded, []);
});

test("a_request_without_a_function_loads_nothing", async () => {
  const ask = blockOf({ load: () => "Likes tea." });
  assert.equal((await ask("another", { key: "tea" })).status, 501);
});

/** Each set of a provider's functions: their results, and the arguments of `set`. */
const NAMES = ["get", "set", "search", "load"];
const SETS = Array.from({ length: 16 }, (_, bits) => NAMES.filter((_, n) => bits & (1 << n)));

test("the_functions_determine_the_kind_and_get_the_key_first", async () => {
  for (const names of SETS) {
    const given = [];
    const provider = Object.fromEntries(names.map((name) => [name, (...args) => void given.push(args)]));
    const blocks = new OwnBlocks();
    const [block] = blocks.define([{ label: "facts", provider }], "CLASS");
    const kind = names.includes("load")
      ? "loadable"
      : names.includes("search")
        ? "searchable"
        : names.includes("set")
          ? "writable"
          : "readonly";
    assert.deepEqual(
      [block.kind, block.source, block.modelWrites],
      [kind, { service: "CLASS" }, names.includes("set")],
      names.join(),
    );
    // A specified kind is used.
    assert.equal(blocks.define([{ label: "facts", kind: "readonly", provider }], "CLASS")[0].kind, "readonly");
    if (!names.includes("set")) continue;
    const request = { agent: "a", sessionId: null, label: "facts", kind, content: "text" };
    for (const [more, args] of [
      [{}, ["text"]],
      [{ key: "k" }, ["k", "text", undefined]],
      [{ key: "k", title: "t" }, ["k", "text", "t"]],
      [{ key: "k", title: "t", description: "d" }, ["k", "text", "d"]],
    ]) {
      given.length = 0;
      const response = await blocks.ask("set", { ...request, ...more });
      assert.equal(response.status, 204);
      assert.deepEqual(given, [[...args, { ...request, ...more }]]);
    }
  }
});
