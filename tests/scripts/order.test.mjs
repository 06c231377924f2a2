// The order of the module's functions, in which the module takes fewer bytes gzipped.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { placesOf, withoutPlaces, withPlaces } from "../../scripts/build/order.mjs";
import { BIN, withPackages } from "../../scripts/places.mjs";

/** Bytes that are the same for one seed, and like no other seed's. */
function bytesOf(seed, length) {
  let state = seed;
  return Buffer.from(
    Array.from({ length }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return state >>> 16;
    }),
  );
}

test("each_function_has_one_place", () => {
  const places = placesOf([Buffer.alloc(0), bytesOf(1, 4), bytesOf(2, 400), bytesOf(2, 400), bytesOf(3, 40_000)]);
  assert.deepEqual(places.toSorted(), [0, 1, 2, 3, 4]);
  assert.deepEqual(placesOf([]), []);
});

test("functions_that_are_alike_stand_side_by_side", () => {
  const like = (seed, more) => Buffer.concat([bytesOf(seed, 600), bytesOf(more, 100)]);
  const bodies = [like(1, 11), like(2, 12), like(3, 13), like(3, 14), like(2, 15), like(1, 16)];
  const places = placesOf(bodies);
  for (const [one, other] of [
    [0, 5],
    [1, 4],
    [2, 3],
  ]) {
    assert.equal(Math.abs(places[one] - places[other]), 1, `${places}`);
  }
});

test("a_module_in_another_order_does_the_same_under_the_same_names", async () => {
  const folder = mkdtempSync(join(tmpdir(), "order-"));
  const file = (name) => join(folder, name);
  const tool = (name, args) =>
    execFileSync(join(BIN, name), args, { env: withPackages(), encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  try {
    const longSum = (from) =>
      `${Array.from({ length: 40 }, (_, at) => `(i32.xor (i32.const ${from + at * 7_919}) `).join("")}(local.get 0)${")".repeat(40)}`;
    writeFileSync(
      file("module.wat"),
      `(module
        (import "outside" "one" (func $one (result i32)))
        (func $alpha (export "alpha") (param i32) (result i32) ${longSum(1_000_000)})
        (func $beta (export "beta") (param i32) (result i32) ${longSum(9_000_000)})
        (func $gamma (export "gamma") (param i32) (result i32) (i32.add (call $one) (call $alpha ${longSum(1_000_000)}))))`,
    );
    tool("wasm-as", [file("module.wat"), "-o", file("named.wasm"), "--debuginfo"]);
    writeFileSync(file("placed.wasm"), withPlaces(readFileSync(file("named.wasm"))));
    tool("wasm-opt", [file("placed.wasm"), "-o", file("ordered.wasm"), "--reorder-functions-by-name", "--debuginfo"]);
    const names = withoutPlaces(tool("wasm-opt", [file("ordered.wasm"), "--debuginfo", "--symbolmap"]));
    assert.deepEqual(names.trim().split("\n"), ["0:one", "1:alpha", "2:gamma", "3:beta"]);

    const run = async (name) => {
      const { instance } = await WebAssembly.instantiate(readFileSync(file(name)), { outside: { one: () => 1 } });
      return ["alpha", "beta", "gamma"].map((name) => instance.exports[name](5));
    };
    assert.deepEqual(await run("ordered.wasm"), await run("named.wasm"));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
