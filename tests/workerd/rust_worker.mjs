// Compiles Rust Workers that use crates/client, as a user would, and starts them in a runtime with
// a small JavaScript entry point.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { ROOT, withPackages } from "../../scripts/paths.mjs";
import { bindgen } from "../../scripts/setup/bindgen.mjs";

const runFile = promisify(execFile);

const TARGET = "wasm32-unknown-unknown";
const CRATE = "session-agent-client-tests";
/** These tests measure no speed, and to optimize the Workers, as a user does, takes 30 seconds longer. */
const UNOPTIMIZED = `profile.release.package.${CRATE}.opt-level = 0`;

const run = async (program, args) =>
  (
    await runFile(program, args, { cwd: ROOT, env: withPackages(), maxBuffer: 64 << 20 }).catch(({ stderr, message }) =>
      assert.fail(stderr || message),
    )
  ).stdout;

/** Compiles both Workers: the functions return the arguments of `startBeside`, `{ contents, modules }`. */
export async function compileWorkers() {
  await run("cargo", [
    "build",
    "--release",
    "--locked",
    "--package",
    CRATE,
    "--lib",
    "--example",
    "rust-worker",
    "--target",
    TARGET,
    "--config",
    UNOPTIMIZED,
  ]);
  const metadata = JSON.parse(await run("cargo", ["metadata", "--no-deps", "--locked", "--format-version", "1"]));
  const compiled = (file) => join(metadata.target_directory, TARGET, "release", file);
  return {
    tests: () => worker(compiled("session_agent_client_tests.wasm")),
    example: () => worker(compiled("examples/rust_worker.wasm")),
  };
}

async function worker(module) {
  const folder = await mkdtemp(join(tmpdir(), "session-agent-rust-worker-"));
  try {
    await run(bindgen.path(), [module, folder]);
    const glue = join(folder, "index.js");
    // In a Worker, each import of WebAssembly is a module.
    await writeFile(
      glue,
      (await readFile(glue, "utf8")).replace("import source wasmModule from ", "import wasmModule from "),
    );
    const main = `import { fetch } from ${JSON.stringify(glue)};\nexport default { fetch };\n`;
    const bundled = await build({
      stdin: { contents: main, resolveDir: folder },
      bundle: true,
      format: "esm",
      write: false,
      external: ["*.wasm", "cloudflare:*"],
    });
    const wasm = { type: "wasm", contents: new Uint8Array(await readFile(join(folder, "index_bg.wasm"))) };
    return { contents: bundled.outputFiles[0].text, modules: { "index_bg.wasm": wasm } };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
