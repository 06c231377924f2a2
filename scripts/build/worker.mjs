// From sources to build/index.js and build/index_bg.wasm, in five steps:
//
//   cargo      compiles the crates to WebAssembly, from base to messages for speed and the others
//              for size
//   bindgen    writes the JavaScript that it imports and exports
//   wasm-opt   makes the module smaller and faster, and moves the names of the functions
//              to build/functions.txt: a crash's stack trace has numbers, and
//              `wasm-function[123]` is the line that begins with `123:`
//   names      the operations of generated/openapi.json, which the object has as methods
//   esbuild    puts shim.mjs in front and makes one file of all the JavaScript but
//              agent-defaults.js, which defaults.mjs writes; and the same once more for the
//              npm package, with a class to extend (package.mjs)

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bindgen } from "../setup/bindgen.mjs";
import { BIN, BUILD, OPENAPI, ROOT, withPackages } from "../paths.mjs";
import { outputOf, run } from "../processes.mjs";
import { UserError } from "../user_error.mjs";
import { bundlePackaged } from "./package.mjs";

const TARGET = "wasm32-unknown-unknown";
const SHIM = join(ROOT, "scripts", "build", "shim.mjs");

/** The files that bindgen writes, where shim.mjs expects them. Deleted when the build ends. */
const STAGE = join(BUILD, "stage");

// The features that rustc uses for this target, and the exceptions with which bindgen catches. Not
// "all features": binaryen can write features that workerd can't read yet.
const FEATURES = [
  "mutable-globals",
  "sign-ext",
  "nontrapping-float-to-int",
  "bulk-memory",
  "multivalue",
  "reference-types",
  "exception-handling",
];

export async function buildWorker() {
  rmSync(STAGE, { recursive: true, force: true });
  mkdirSync(STAGE, { recursive: true });
  await compile();
  await step(bindgen.path(), [compiled(), STAGE]);
  importAsWorkersDo(join(STAGE, "index.js"));
  writeFileSync(join(STAGE, "operations.js"), namesOfOperations(JSON.parse(readFileSync(OPENAPI, "utf8"))));
  const [wasm, js, packaged] = [await optimize(), await bundle(), join(STAGE, "packaged.js")];
  await bundlePackaged(SHIM, packaged);
  // Moved together at the end, so a failed build leaves the previous one complete.
  renameSync(wasm, join(BUILD, "index_bg.wasm"));
  renameSync(js, join(BUILD, "index.js"));
  renameSync(packaged, join(BUILD, "packaged.js"));
  rmSync(STAGE, { recursive: true });
}

async function compile() {
  await step("cargo", ["build", "--release", "--lib", "--package", "session-agent", "--locked", "--target", TARGET], {
    // Exported async functions then use js-sys, which contains what wasm-bindgen-futures had: one
    // copy in the module instead of two.
    WASM_BINDGEN_USE_JS_SYS: "1",
  });
}

/** Cargo reports the target folder, which may be anywhere. */
function compiled() {
  const metadata = outputOf("cargo", [
    "metadata",
    "--no-deps",
    "--locked",
    "--format-version",
    "1",
    "--manifest-path",
    join(ROOT, "Cargo.toml"),
  ]);
  if (metadata === null) throw new UserError("`cargo metadata` failed: run it here to see why.");
  return join(JSON.parse(metadata).target_directory, TARGET, "release", "session_agent.wasm");
}

/** A module with the operations' names, and the fields that each of them needs. */
export function namesOfOperations({ paths, components }) {
  const named = Object.entries(paths).flatMap(([path, { post }]) => {
    const name = /\/rpc\/(\w+)$/.exec(path)?.[1];
    if (name === undefined) return [];
    const { schema } = post.requestBody.content["application/json"];
    const { required = [] } = schema.$ref ? components.schemas[schema.$ref.split("/").at(-1)] : schema;
    return [[name, required]];
  });
  return `export const OPERATIONS = ${JSON.stringify(Object.fromEntries(named.sort()))};\n`;
}

/**
 * Only the proposed `import source` imports WebAssembly as a module; in a Worker every import of
 * WebAssembly does.
 */
function importAsWorkersDo(file) {
  const [proposed, supported] = ["import source wasmModule from ", "import wasmModule from "];
  const code = readFileSync(file, "utf8");
  if (!code.includes(proposed))
    throw new UserError(
      `bindgen wrote no \`${proposed.trim()}\`: scripts/build/worker.mjs has to learn what it writes now.`,
    );
  writeFileSync(file, code.replace(proposed, supported));
}

async function optimize() {
  const optimized = join(STAGE, "optimized.wasm");
  await step(join(BIN, "wasm-opt"), [
    join(STAGE, "index_bg.wasm"),
    "-o",
    optimized,
    "-O",
    // Rust stores nothing in the first KiB of the memory, which contains the end of the stack.
    "--low-memory-unused",
    ...FEATURES.map((name) => `--enable-${name}`),
    `--symbolmap=${join(BUILD, "functions.txt")}`,
    "--strip-debug",
    "--strip-producers",
  ]);
  return optimized;
}

async function bundle() {
  const bundled = join(STAGE, "bundled.js");
  const outside = ["--external:*.wasm", "--external:*/agent-defaults.js", "--external:cloudflare:*"];
  const options = ["--bundle", "--minify", "--format=esm", ...outside, "--log-level=warning"];
  await step(join(BIN, "esbuild"), [SHIM, ...options, `--outfile=${bundled}`]);
  return bundled;
}

async function step(program, args, more = {}) {
  const code = await run(program, args, { cwd: ROOT, env: { ...withPackages(), ...more } });
  if (code !== 0) throw new UserError("The build failed: see the reason above.");
}
