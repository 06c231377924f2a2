// The archive of session-agent-client as cargo packs it: its contents, and that it compiles in an
// empty folder, for a Worker and without a runtime.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { OPENAPI, ROOT } from "../../scripts/paths.mjs";

const runFile = promisify(execFile);

const CRATE = "session-agent-client";
const WASM = ["--target", "wasm32-unknown-unknown"];

const folder = await mkdtemp(join(tmpdir(), "session-agent-crate-"));
after(() => rm(folder, { recursive: true, force: true }));

const env = { ...process.env, CARGO_TARGET_DIR: process.env.CARGO_TARGET_DIR ?? join(ROOT, "target") };

async function cargo(args, cwd) {
  const options = { cwd, env, maxBuffer: 16 << 20 };
  return await runFile("cargo", args, options).catch(({ stderr, message }) => assert.fail(stderr || message));
}

/** Packs the crate and unpacks it. Returns the folder of its files and cargo's output. */
async function unpack() {
  const packed = join(folder, "packed");
  const { stderr } = await cargo(
    ["package", "--package", CRATE, "--offline", "--no-verify", "--allow-dirty", "--target-dir", packed],
    ROOT,
  );
  const archive = (await readdir(join(packed, "package"))).find((name) => name.endsWith(".crate"));
  await runFile("tar", ["-xzf", join(packed, "package", archive), "-C", folder]);
  return { files: join(folder, archive.replace(/\.crate$/, "")), output: stderr };
}

const { files, output } = await unpack();

test("the_archive_contains_exactly_what_a_crate_needs", async () => {
  const sources = (of) =>
    readdir(of, { recursive: true }).then((names) => names.filter((name) => /\.\w+$/.test(name)).sort());
  const folders = ["build", "src"];
  for (const name of folders)
    assert.deepEqual(await sources(join(files, name)), await sources(join(ROOT, "crates/client", name)), name);
  const others = (await readdir(files)).filter((name) => !folders.includes(name) && !name.startsWith("."));
  const copies = { LICENSE: join(ROOT, "LICENSE"), "openapi.json": OPENAPI };
  const own = ["Cargo.lock", "Cargo.toml", "Cargo.toml.orig", "README.md"];
  assert.deepEqual(others.sort(), [...own, ...Object.keys(copies)].sort());
  for (const [name, of] of Object.entries(copies))
    assert.equal(await readFile(join(files, name), "utf8"), await readFile(of, "utf8"), name);
});

test("the_manifest_has_the_registrys_required_fields", async () => {
  const manifest = await readFile(join(files, "Cargo.toml"), "utf8");
  for (const key of ["name", "version", "description", "license", "readme", "rust-version", "keywords", "categories"]) {
    assert.match(manifest, new RegExp(`^${key} = `, "m"), key);
  }
  assert.doesNotMatch(manifest, /^publish = |workspace = true|path = "\.\./m);
  const dependencies = [...manifest.matchAll(/^\[dependencies\.([\w-]+)\]$/gm)].map(([, name]) => name);
  assert.deepEqual(dependencies.sort(), ["serde", "serde_json", "worker"]);
  const ofTheBuild = [...manifest.matchAll(/^\[build-dependencies\.([\w-]+)\]$/gm)].map(([, name]) => name);
  assert.deepEqual(ofTheBuild.sort(), ["serde", "serde_json"]);
  const { version } = JSON.parse(await readFile(join(ROOT, "packages/session-agent/package.json"), "utf8"));
  assert.match(manifest, new RegExp(`^version = "${version}"$`, "m"));
  // The repository has no public address yet, and the archive has no tests. Cargo warns about
  // nothing else.
  const expected = /no documentation, homepage or repository|ignoring test `(examples|generator)`/;
  const warnings = output.match(/^warning: .*/gm) ?? [];
  assert.deepEqual(
    warnings.filter((line) => !expected.test(line)),
    [],
  );
});

test("the_unpacked_crate_compiles_on_its_own", async () => {
  await cargo(["check", "--offline", "--locked", ...WASM], files);
  await cargo(["check", "--offline", "--locked", "--no-default-features"], files);
});

test("a_worker_with_http_types_uses_the_unpacked_crate", async () => {
  const own = join(folder, "own");
  await mkdir(join(own, "src"), { recursive: true });
  const worker = 'worker = { version = "0.8.7", features = ["http"] }';
  const manifest = `[package]\nname = "own"\nversion = "0.1.0"\nedition = "2024"\n\n[workspace]\n\n[dependencies]\n${CRATE} = { path = ${JSON.stringify(files)} }\n${worker}\n`;
  const program = `use session_agent_client::{Agent, GetHistory, HistoryPage};

pub async fn read(env: &worker::Env) -> worker::Result<HistoryPage> {
    let agent = Agent::service(env.service("MEMORY")?, "alice")?;
    Ok(agent.call(&GetHistory::new("trip")).await?)
}
`;
  await writeFile(join(own, "Cargo.toml"), manifest);
  await writeFile(join(own, "src/lib.rs"), program);
  // The versions in the cargo cache.
  await copyFile(join(files, "Cargo.lock"), join(own, "Cargo.lock"));
  await cargo(["check", "--offline", ...WASM], own);
});
