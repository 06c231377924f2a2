// `npm run lint`: formatting, and clippy on both targets, on macros and on
// tools/bindgen, and whether the two crates of the build compile, each a counted check.

import { close, fromCheck } from "./counts.mjs";
import { ROOT } from "./places.mjs";
import { outputOf, run } from "./processes.mjs";
import { setUp } from "./setup.mjs";
import { Stop } from "./stop.mjs";

const BINDGEN = ["--manifest-path", "tools/bindgen/Cargo.toml"];
const CHECKS = [
  ["fmt", "--check"],
  ["clippy", "--locked", "--all-targets", "--", "--deny", "warnings"],
  ["clippy", "--locked", "--target", "wasm32-unknown-unknown", "--", "--deny", "warnings"],
  // As it is deployed: what other districts use of src/fast.rs has to be public.
  ["check", "--locked", "--target", "wasm32-unknown-unknown", "--features", "split"],
  ["fmt", "--manifest-path", "macros/Cargo.toml", "--check"],
  ["clippy", "--locked", "-p", "session-agent-macros", "--", "--deny", "warnings"],
  ["fmt", ...BINDGEN, "--check"],
  ["clippy", "--locked", ...BINDGEN, "--", "--deny", "warnings"],
];

export async function main() {
  await setUp();
  await addMissingComponents();
  const counts = [];
  for (const check of CHECKS) {
    console.log(`\n── cargo ${check.join(" ")}\n`);
    counts.push(fromCheck(await run("cargo", check, { cwd: ROOT })));
  }
  return close(counts);
}

/** Only linting needs them, so only linting installs them. */
async function addMissingComponents() {
  const missing = [
    ["fmt", "rustfmt"],
    ["clippy", "clippy"],
  ].filter(([command]) => outputOf("cargo", [command, "--version"]) === null);
  if (missing.length === 0) return;
  const components = missing.map(([, component]) => component);
  if ((await run("rustup", ["component", "add", ...components])) !== 0) {
    throw new Stop(`Linting needs ${components.join(" and ")}: add what your Rust calls them, then run this again.`);
  }
}
