// The invariants of ARCHITECTURE.md that can be read off the sources.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

function filesUnder(folder, extension) {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .map((file) => join(folder, file))
    .filter((file) => file.endsWith(extension));
}

/** What ships: without tests, comments and doc comments. */
function shipped(file) {
  if (/^src\/(testing|api\/tests)\/|^src\/api\/openapi\.rs$/.test(file)) return "";
  const [code] = readFileSync(join(ROOT, file), "utf8").split(/^#\[cfg\(test\)\]\nmod tests/m);
  return code.replaceAll(/^\s*\/\/.*$/gm, "");
}

const sources = filesUnder("src", ".rs").map((file) => ({ file, code: shipped(file) }));

function holders(pattern, except) {
  return sources.filter(({ file, code }) => !except.test(file) && pattern.test(code)).map(({ file }) => file);
}

test("there_are_sources_to_look_at", () => {
  assert.ok(sources.length > 30);
  assert.ok(holders(/\bworker::/, /^$/).length > 0);
});

test("only_the_edge_names_the_worker_crate", () => {
  assert.deepEqual(holders(/\b(worker|web_sys|wasm_bindgen)::/, /^src\/edge\//), []);
});

test("only_a_host_knows_time_and_randomness", () => {
  assert.deepEqual(holders(/SystemTime|Instant::|Date::now|getrandom|thread_rng/, /^src\/edge\/host\.rs$/), []);
});

test("only_the_schema_creates_and_drops_tables", () => {
  assert.deepEqual(holders(/(CREATE|DROP|ALTER)\s+(VIRTUAL\s+)?TABLE/i, /^src\/schema\//), []);
});

test("nothing_that_ships_panics", () => {
  const panics = sources.flatMap(({ file, code }) =>
    code
      .split("\n")
      .map((line, n, lines) => ({ line, allowed: lines.slice(Math.max(0, n - 12), n).some((above) => above.includes("clippy::expect_used")) }))
      .filter(({ line, allowed }) => !allowed && /\.unwrap\(\)|\.expect\(|\bpanic!|\bunreachable!|\btodo!/.test(line))
      .map(({ line }) => `${file}: ${line.trim()}`),
  );
  assert.deepEqual(panics, []);
});

test("no_source_file_is_long", () => {
  const long = sources
    .filter(({ file }) => statSync(join(ROOT, file)).size > 0)
    .map(({ file, code }) => ({ file, lines: code.split("\n").length }))
    .filter(({ lines }) => lines > 550);
  assert.deepEqual(long, []);
});

test("the_map_names_every_module", () => {
  const map = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8").split("## A request")[0];
  const modules = readdirSync(join(ROOT, "src")).map((name) => (name.includes(".") ? name : `${name}/`));
  const missing = modules.filter((name) => !new RegExp(`^  ${name.replace(".", "\\.")} `, "m").test(map));
  assert.deepEqual(missing, []);
});
