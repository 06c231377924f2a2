// In the gate, Rust's tests are linted while they are compiled (scripts/test/rustc.sh): any finding
// of `npm run lint` fails their compilation.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { UNTESTED_PACKAGE } from "../../scripts/lint.mjs";
import { ROOT } from "../../scripts/paths.mjs";
import { outputOf } from "../../scripts/processes.mjs";
import { envOfTests } from "../../scripts/test/native.mjs";

const folder = await mkdtemp(join(tmpdir(), "session-agent-lints-"));
after(() => rm(folder, { recursive: true, force: true }));

const env = envOfTests({ ...process.env, SESSION_AGENT_LINT_TESTS: "1" });

/** Only linting installs it. */
const skip = outputOf("clippy-driver", ["--version"]) === null && "clippy is not installed";

/** The compiler's messages about a file that cargo compiles; "" without an error. */
async function refusal(text, ...kind) {
  const file = join(folder, "tried.rs");
  await writeFile(file, text);
  const args = ["rustc", "--edition=2024", "--crate-type=lib", "--emit=metadata", "--out-dir", folder, file, ...kind];
  const { status, stderr } = spawnSync(env.RUSTC_WORKSPACE_WRAPPER, args, { cwd: ROOT, env, encoding: "utf8" });
  return status === 0 ? "" : stderr;
}

test("what_clippy_or_the_compiler_warns_of_ends_the_compilation_of_tests", { skip }, async () => {
  const asTest = (body) => `#[cfg(test)]\nmod tests {\n  #[test]\n  fn it_holds() {\n    ${body}\n  }\n}\n`;
  assert.equal(await refusal(asTest('assert_eq!("1".parse::<u8>().unwrap(), 1);'), "--test"), "");
  assert.match(await refusal(asTest("let unused = 1;"), "--test"), /unused variable/);
  assert.match(await refusal(asTest("let one = 1; assert!(one.clone() == 1);"), "--test"), /clippy::clone.on.copy/);
  assert.match(await refusal("pub fn one() -> u8 {\n    return 1;\n}\n", "--test"), /clippy::needless.return/);
});

test("what_the_compiler_warns_of_ends_the_compilation_of_what_tests_use", async () => {
  assert.equal(await refusal("pub fn one() -> u8 {\n    1\n}\n"), "");
  assert.match(await refusal("fn one() -> u8 {\n    1\n}\n"), /`one` is never used/);
});

test("every_package_is_compiled_with_the_tests_or_linted_by_its_name", async () => {
  const manifest = await readFile(join(ROOT, "Cargo.toml"), "utf8");
  const list = (name) => JSON.parse(new RegExp(`^${name} = (\\[.*\\])$`, "m").exec(manifest)[1]);
  const tested = list("default-members");
  const others = list("members").filter((member) => !tested.includes(member));
  assert.equal(others.length, 1);
  const own = await readFile(join(ROOT, others[0], "Cargo.toml"), "utf8");
  assert.match(own, new RegExp(`^name = "${UNTESTED_PACKAGE}"$`, "m"));
});

test("outside_the_gate_cargo_compiles_as_ever", () => {
  const { SESSION_AGENT_LINT_TESTS, ...plain } = process.env;
  assert.deepEqual(envOfTests(plain), plain);
});
