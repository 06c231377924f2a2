// ARCHITECTURE.md, held to the sources: its map, the direction of its calls,
// and those of its invariants that can be read off the code.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const architecture = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");

/** Who may call against the direction, and whom: the document says why. */
const AGAINST = { search: ["log", "sessions", "tree"], memory: ["sessions", "tree"] };

const files = readdirSync(join(ROOT, "src"), { recursive: true }).filter((file) => file.endsWith(".rs"));
const text = new Map(files.map((file) => [file, readFileSync(join(ROOT, "src", file), "utf8")]));

/** Files and folders that only tests are made of: `#[cfg(test)] mod name;` says so. */
const forTests = files.flatMap((file) => {
  const folder = file.replace(/(^|\/)(?:mod|lib)\.rs$|\.rs$/, "$1");
  const names = text.get(file).matchAll(/#\[cfg\(test\)\]\n(?:pub )?mod (\w+);/g);
  return [...names].map(([, name]) => join(folder, name));
});

/** What ships: without tests and comments. */
const sources = files
  .filter((file) => !forTests.some((name) => file === `${name}.rs` || file.startsWith(`${name}/`)))
  .map((file) => {
    const [code] = text.get(file).split(/^#\[cfg\(test\)\]\nmod tests/m);
    return { file, module: file.split(/[/.]/)[0], code: code.replaceAll(/^\s*\/\/.*$/gm, "") };
  });

function holders(pattern, except = /^$/) {
  return sources.filter(({ file, code }) => !except.test(file) && pattern.test(code)).map(({ file }) => file);
}

test("there_are_sources_to_look_at", () => {
  assert.ok(sources.length > 30);
  assert.ok(forTests.length >= 2 && forTests.includes("testing"), String(forTests));
  assert.ok(holders(/\bworker::/).length > 0);
});

test("only_the_edge_names_the_worker_crate", () => {
  const named = /\b(worker|worker_sys|web_sys|wasm_bindgen)(::|\s*;)/;
  assert.ok(holders(named).length > 0);
  assert.deepEqual(holders(named, /^edge\//), []);
  // The seam's text is a string of JavaScript's, so that it is not copied.
  assert.deepEqual(holders(/\bjs_sys\b/, /^edge\//), ["database.rs"]);
});

test("only_a_host_knows_time_and_randomness", () => {
  const known = /SystemTime|Instant::|\bDate::|Math::random|getrandom|thread_rng|rand::/;
  assert.deepEqual(holders(known), ["edge/host.rs"]);
});

test("only_the_schema_creates_and_drops_tables", () => {
  const pattern = /\b(CREATE|DROP|ALTER)\s+((UNIQUE|VIRTUAL|TEMP)\s+)?(TABLE|INDEX|TRIGGER|VIEW)\b/;
  assert.deepEqual(holders(pattern), ["schema/mod.rs"]);
});

test("nothing_that_ships_panics", () => {
  const panics = sources.flatMap(({ file, code }) =>
    code
      .split("\n")
      .map((line, n, lines) => ({ line, above: lines.slice(Math.max(0, n - 12), n) }))
      .filter(({ line }) => /\.unwrap\(\)|\.expect\(|\b(panic|unreachable|todo|unimplemented)!/.test(line))
      .filter(({ above }) => !above.some((line) => line.includes("#[allow(clippy::expect_used)]")))
      .map(({ line }) => `${file}: ${line.trim()}`),
  );
  assert.deepEqual(panics, []);
});

test("no_source_file_is_long", () => {
  const long = sources.filter(({ code }) => code.split("\n").length > 550).map(({ file }) => file);
  assert.deepEqual(long, []);
});

test("the_map_is_of_what_is_there", () => {
  const [map] = architecture.split("\n## The map\n")[1].split("\n## ");
  const [, tree] = map.match(/^src\/\n((?: {2}.*\n)+)/m);
  const named = [...tree.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name);
  const there = readdirSync(join(ROOT, "src")).map((name) => (name.includes(".") ? name : `${name}/`));
  assert.deepEqual(named.sort(), there.sort());
  const others = [...map.matchAll(/^(\w\S*\/) /gm)].map(([, folder]) => folder);
  assert.ok(others.length >= 4);
  for (const folder of others) assert.ok(existsSync(join(ROOT, folder)), folder);
});

test("calls_go_the_one_way", () => {
  const chain = architecture.match(/Calls go one way:\s+`([^`]+)`/)[1];
  const layers = chain.split("→").map((layer) => layer.match(/\w+/g));
  const place = (module) => layers.findIndex((layer) => layer.includes(module));
  const modules = [...new Set(sources.map(({ module }) => module))].filter((module) => module !== "lib");
  assert.deepEqual(modules.filter((module) => place(module) < 0), [], "each module has its place in the chain");
  const back = sources.flatMap(({ file, module, code }) =>
    [...code.matchAll(/\bcrate::(\w+)/g)]
      .map(([, called]) => called)
      .filter((called) => called !== module && called !== "testing")
      .filter((called) => place(called) <= place(module) && !AGAINST[called]?.includes(module))
      .map((called) => `${file} → ${called}`),
  );
  assert.deepEqual(back, []);
});

test("each_test_that_an_invariant_names_is_there", () => {
  const [invariants] = architecture.split("\n## Invariants\n")[1].split("\n## ");
  const named = [...invariants.matchAll(/[\w./-]+\.(?:rs|mjs)/g)].map(([name]) => name);
  assert.ok(named.length >= 10);
  const places = ["src", "src/api/tests", "tests/workerd"];
  assert.deepEqual(named.filter((name) => !places.some((place) => existsSync(join(ROOT, place, name)))), []);
});
