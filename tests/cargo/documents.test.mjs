// Compiles the Rust code of the documents and of the examples.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { ROOT } from "../../scripts/paths.mjs";
import { blocksIn, crateReadme, read } from "../workerd/documents.mjs";

const runFile = promisify(execFile);

test("the_rust_code_in_documents_and_examples_compiles", async () => {
  const blocks = blocksIn("rust");
  const examples = (await readdir(join(ROOT, "examples"))).filter((name) =>
    existsSync(join(ROOT, "examples", name, "Cargo.toml")),
  );
  assert.ok(blocks.length > 0 && examples.length >= 2);
  const folder = await mkdtemp(join(tmpdir(), "session-agent-rust-"));
  try {
    // The Worker's own dependencies at the Worker's own versions, so nothing is fetched.
    const renamed = async (file) => (await read(file)).replace('name = "session-agent"', 'name = "documents"');
    // The Worker's own crates are beside the Worker. The crates of its tests are not needed. A
    // program in Rust may also use the client and serde.
    const client = "[dependencies]\nsession-agent-client.workspace = true\nserde.workspace = true\n";
    const manifest = (await renamed("Cargo.toml"))
      .replace(/^\[dependencies\]\n/m, client)
      .replaceAll(/path = "(crates\/\w+)"/g, (_, crate) => `path = ${JSON.stringify(join(ROOT, crate))}`)
      .replaceAll(/^(build|members|default-members) = .*\n/gm, "")
      .replace(/^\[dev-dependencies\]\n(?:\S.*\n)+/m, "");
    await mkdir(join(folder, "src"));
    // An example is a crate of its own among the same dependencies.
    const crates = examples.map(
      (name) =>
        `[[example]]\nname = "${name}"\ncrate-type = ["cdylib"]\npath = ${JSON.stringify(join(ROOT, "examples", name, "src/lib.rs"))}\n`,
    );
    await writeFile(join(folder, "Cargo.toml"), [manifest, ...crates].join("\n"));
    await writeFile(join(folder, "Cargo.lock"), await renamed("Cargo.lock"));
    const rust = crateReadme.blocks.filter(({ language }) => language === "rust");
    assert.ok(rust.length > 4);
    const program = { text: rust.map(({ text }) => text).join("") };
    const functions = [...blocks, program].map(
      ({ text }, n) => `pub async fn block_${n}(env: Env) -> Result<Response> {\n${text}\nOk(response)\n}\n`,
    );
    await writeFile(join(folder, "src/lib.rs"), `use worker::*;\n${functions.join("\n")}`);
    const env = { ...process.env, CARGO_TARGET_DIR: process.env.CARGO_TARGET_DIR ?? join(ROOT, "target") };
    // Not `--locked`: the lock has no development dependencies of a crate outside the workspace.
    const check = ["check", "--offline", "--lib", "--examples", "--target", "wasm32-unknown-unknown"];
    await runFile("cargo", check, { cwd: folder, env }).catch(({ stderr, message }) => assert.fail(stderr || message));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
