// `npm run lint`: Biome over JavaScript, TypeScript, JSON and CSS; the prose check over what a
// person or a model reads; rustfmt; and clippy on both targets and on tools/bindgen. Each is a
// counted check. The build checks that the deployed code compiles.
//
//   npm run lint              everything
//   npm run lint -- web       what Biome reads
//   npm run lint -- prose     the texts
//   npm run lint -- no-tests  everything but what compiles with Rust's tests: in .ci/run, clippy
//                             compiles those (scripts/test/native.mjs)
//   npm run lint -- write     applies the fixes of Biome and rustfmt

import { basename, join } from "node:path";
import { close, fromCheck } from "./test_counts.mjs";
import { withLock } from "./lock.mjs";
import { ROOT } from "./paths.mjs";
import { outputOf, run } from "./processes.mjs";
import { setUpOnly } from "./setup.mjs";
import { lintPackages, packages } from "./setup/packages.mjs";
import { RUSTUP_LOCK, wasmTarget } from "./setup/wasm_target.mjs";
import { UserError } from "./user_error.mjs";

const BIOME = join(ROOT, "tools/lint/node_modules/.bin/biome");
const WEB = [
  ["format", "."],
  ["lint", "--error-on-warnings", "."],
];
const BINDGEN = ["--manifest-path", "tools/bindgen/Cargo.toml"];

/** A test may panic, print and measure. The shipped code is checked for its own target, without tests. */
export const IN_TESTS = [
  "unwrap_used",
  "expect_used",
  "panic",
  "unreachable",
  "indexing_slicing",
  "string_slice",
  "print_stdout",
  "disallowed_macros",
  "disallowed_methods",
  "disallowed_types",
].flatMap((name) => ["--allow", `clippy::${name}`]);

/** The one package that `cargo test` does not compile. */
export const UNTESTED_PACKAGE = "session-agent-client-tests";
const NATIVE = ["--all-targets", "--", "--deny", "warnings", ...IN_TESTS];
const TESTED = ["clippy", "--locked", "--workspace", ...NATIVE];
const UNTESTED = ["clippy", "--locked", "--package", UNTESTED_PACKAGE, ...NATIVE];
const CHECKS = [
  ["fmt", "--all", "--check"],
  TESTED,
  ["clippy", "--locked", "--workspace", "--target", "wasm32-unknown-unknown", "--", "--deny", "warnings"],
  ["fmt", ...BINDGEN, "--check"],
  ["clippy", "--locked", ...BINDGEN, "--", "--deny", "warnings"],
];

export async function main([what]) {
  if (![undefined, "web", "prose", "no-tests", "write"].includes(what))
    throw new UserError("`npm run lint` takes `web`, `prose`, `no-tests`, `write` or no argument.");
  if (what === "prose") return close([await proseChecked()]);
  await setUpOnly(lintPackages);
  if (what === "web") return close(await checked(BIOME, WEB));
  await setUpOnly(wasmTarget);
  await addMissingComponents();
  if (what === "write") return await write();
  const checks = what === "no-tests" ? CHECKS.map((check) => (check === TESTED ? UNTESTED : check)) : CHECKS;
  return close([...(await checked(BIOME, WEB)), await proseChecked(), ...(await checked("cargo", checks))]);
}

/** esbuild, one of the packages, reads the strings of TypeScript. */
async function proseChecked() {
  await setUpOnly(packages);
  console.log("\n── prose\n");
  const { checkProse } = await import("./prose.mjs");
  return fromCheck(checkProse());
}

async function checked(program, checks) {
  const counts = [];
  for (const check of checks) {
    console.log(`\n── ${basename(program)} ${check.join(" ")}\n`);
    counts.push(fromCheck(await run(program, check, { cwd: ROOT })));
  }
  return counts;
}

async function write() {
  const codes = [await run(BIOME, ["check", "--write", "."], { cwd: ROOT })];
  for (const [command, ...args] of CHECKS.filter(([command]) => command === "fmt")) {
    codes.push(await run("cargo", [command, ...args.filter((arg) => arg !== "--check")], { cwd: ROOT }));
  }
  return Math.max(...codes);
}

/** Only linting needs them, so only linting installs them. */
async function addMissingComponents() {
  const missing = [
    ["fmt", "rustfmt"],
    ["clippy", "clippy"],
  ].filter(([command]) => outputOf("cargo", [command, "--version"]) === null);
  if (missing.length === 0) return;
  const components = missing.map(([, component]) => component);
  const code = await withLock(
    RUSTUP_LOCK,
    () => {},
    () => run("rustup", ["component", "add", ...components]),
  );
  if (code !== 0) {
    throw new UserError(
      `Linting needs ${components.join(" and ")}: add what your Rust calls them, then run this again.`,
    );
  }
}
