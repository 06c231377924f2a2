// Finds the tests for a path or a name in `npm test -- NAME` without a part.

import { readdirSync, readFileSync } from "node:fs";
import { basename, join, relative, resolve, sep } from "node:path";
import { ROOT } from "../paths.mjs";
import { PARTS_IN_NODE, testsOf } from "./files.mjs";

/** The folders with Rust's tests. */
const RUST = ["tests/native", "crates", "src"];

/**
 * The parts to run and what to pass to them, in the form of `partsOf`. `null`: one of the names means
 * no test, or some are Rust's and some are Node's, which run apart.
 */
export function findNamed(names) {
  const ofNode = names.map(filesOfNode);
  if (ofNode.every((found) => found.length > 0)) {
    const found = ofNode.flat();
    return {
      parts: [...new Set(found.map(({ part }) => part))],
      rest: [...new Set(found.map(({ file }) => file))],
    };
  }
  const filters = names.map(findFilter);
  // After `--`, the test binaries take several filters.
  return filters.includes(null) ? null : { parts: ["native"], rest: ["--", ...filters] };
}

/** A path means one file; `sessions` means each file `sessions.test.mjs`. */
function filesOfNode(name) {
  const all = PARTS_IN_NODE.flatMap((part) => testsOf([part]).map((file) => ({ part, file })));
  const path = inTree(name);
  const byPath = all.filter(({ file }) => file === path);
  if (byPath.length > 0 || name.includes("/")) return byPath;
  return all.filter(({ file }) => basename(file, ".test.mjs") === basename(name, ".test.mjs"));
}

/**
 * The filter with which Rust's runner finds the tests of a file in tests/native, or the test with
 * this name.
 */
function findFilter(name) {
  const path = inTree(name);
  const isFile = rustFilesIn("tests/native").includes(path);
  if (isFile) {
    const module = path.slice("tests/native/".length).replace(/(\/mod)?\.rs$/, "");
    return `${module.replaceAll("/", "::")}::`;
  }
  if (!/^\w+(::\w+)*$/.test(name)) return null;
  const test = new RegExp(`#\\[test\\]\\s+(#\\[.*\\]\\s+)*fn ${name.split("::").at(-1)}\\(`);
  const files = RUST.flatMap(rustFilesIn);
  return files.some((file) => test.test(readFileSync(join(ROOT, file), "utf8"))) ? name : null;
}

function rustFilesIn(folder) {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .filter((name) => name.endsWith(".rs"))
    .map((name) => `${folder}/${name.replaceAll(sep, "/")}`);
}

/** The path from the repository's root, with slashes. */
function inTree(name) {
  return relative(ROOT, resolve(name)).replaceAll(sep, "/");
}
