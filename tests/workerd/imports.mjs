// Finds which source file of a crate imports which other: `use` declarations, and paths that begin
// with `crate`, `self` or `super`. Tests and comments are ignored.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * Every shipped file of a crate: `{ file, module, root, code }`. `module` is the file's path, as in
 * `memory::block`. `module` and `root` begin with the district, if there is one.
 */
export function readSources(folder, district) {
  const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(".rs"));
  const texts = new Map(files.map((file) => [file, readFileSync(join(folder, file), "utf8")]));
  const tests = files.flatMap((file) => {
    const names = texts.get(file).matchAll(/#\[cfg\((?:test|feature = "testing")\)\]\n(?:pub )?mod (\w+);/g);
    return [...names].map(([, name]) => [...pathOf(file), name].join("::"));
  });
  const here = district === undefined ? [] : [district];
  return files
    .map((file) => ({ file, module: pathOf(file).join("::"), text: texts.get(file) }))
    .filter(({ module }) => !tests.some((name) => module === name || module.startsWith(`${name}::`)))
    .map(({ file, text }) => ({
      file: join(...here, file),
      module: [...here, ...pathOf(file)].join("::"),
      root: here,
      code: withoutTestsAndComments(text),
    }));
}

function pathOf(file) {
  if (file === "lib.rs") return [];
  const names = file.replace(/\.rs$/, "").split("/");
  return names.at(-1) === "mod" ? names.slice(0, -1) : names;
}

function withoutTestsAndComments(text) {
  const [code] = text.split(/^#\[cfg\(test\)\]\nmod tests/m);
  return code
    .replaceAll(/^\s*\/\/.*$/gm, "")
    .replaceAll(/#\[cfg\((?:test|feature = "testing")\)\]\n\s*use [^;]+;/g, "");
}

/** The modules that each module's file imports. */
export function importsOf(sources) {
  const modules = new Set(sources.map(({ module }) => module));
  return new Map(
    sources
      .filter(({ module }) => module !== "")
      .map(({ module, root, code }) => {
        const named = pathsIn(code, module, root).map((path) => longestKnown(path, modules));
        return [module, [...new Set(named)].filter((other) => other && other !== module)];
      }),
  );
}

function pathsIn(code, module, root) {
  const here = module.split("::");
  const paths = [];
  for (const [, indent, tree] of code.matchAll(/^([ \t]*)(?:pub(?:\([a-z ]+\))? )?use ([^;]+);/gm)) {
    // In a module inside the file, `super` is the file.
    const from = indent === "" ? here : [...here, "inner"];
    paths.push(...expand(tree).map((path) => absolute(path, from, root)));
  }
  for (const [path] of code.matchAll(/\b(?:crate|self|super)(?:::\w+)+/g)) paths.push(absolute(path, here, root));
  return paths;
}

/** Expands `a::{b, c::d}` to `a::b` and `a::c::d`. */
function expand(tree) {
  const text = tree.replaceAll(/\s+/g, " ").trim();
  const brace = text.indexOf("{");
  if (brace < 0) return [text.split(" as ")[0]];
  const parts = [];
  let depth = 0;
  let part = "";
  for (const letter of text.slice(brace + 1, text.lastIndexOf("}"))) {
    if (letter === "{") depth++;
    if (letter === "}") depth--;
    if (letter === "," && depth === 0) {
      parts.push(part);
      part = "";
    } else part += letter;
  }
  return [...parts, part].filter((each) => each.trim()).flatMap((each) => expand(text.slice(0, brace) + each.trim()));
}

function absolute(path, from, root) {
  const [first, ...rest] = path.split("::");
  if (first === "crate") return [...root, ...rest];
  if (first === "self") return [...from, ...rest];
  if (first !== "super") return [...from, first, ...rest];
  const up = path.split("::").findIndex((name) => name !== "super");
  return [...from.slice(0, -up), ...path.split("::").slice(up)];
}

function longestKnown(path, modules) {
  for (let length = path.length; length > 0; length--) {
    const name = path.slice(0, length).join("::");
    if (modules.has(name)) return name;
  }
  return undefined;
}

/** One cycle of each group of modules that import each other: `["a", "b", "a"]`. */
export function findLoops(imports) {
  const loops = [];
  const settled = new Set();
  const visit = (module, path) => {
    const at = path.indexOf(module);
    if (at >= 0) return void loops.push(fromItsFirst(path.slice(at)));
    if (settled.has(module)) return;
    for (const other of imports.get(module) ?? []) visit(other, [...path, module]);
    settled.add(module);
  };
  for (const module of imports.keys()) visit(module, []);
  return loops;
}

/** Rotates a cycle so that it begins with the alphabetically first name. */
function fromItsFirst(loop) {
  const at = loop.indexOf(loop.toSorted()[0]);
  return [...loop.slice(at), ...loop.slice(0, at), loop[at]];
}
