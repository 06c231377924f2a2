// `npm run lint`: formatting, and clippy on both targets, on macros and on
// tools/bindgen, each a counted check. Whether what is deployed compiles, the build says.

import { close, fromCheck } from "./counts.mjs";
import { withLock } from "./lock.mjs";
import { ROOT } from "./places.mjs";
import { outputOf, run } from "./processes.mjs";
import { setUpOnly } from "./setup.mjs";
import { RUSTUP_LOCK, wasmTarget } from "./setup/wasm_target.mjs";
import { Stop } from "./stop.mjs";

const BINDGEN = ["--manifest-path", "tools/bindgen/Cargo.toml"];
const CHECKS = [
  ["fmt", "--check"],
  // With its tests; without them the library is read as it is deployed.
  ["clippy", "--locked", "--tests", "--", "--deny", "warnings"],
  ["clippy", "--locked", "--target", "wasm32-unknown-unknown", "--", "--deny", "warnings"],
  ["fmt", "--manifest-path", "macros/Cargo.toml", "--check"],
  ["clippy", "--locked", "-p", "session-agent-macros", "--", "--deny", "warnings"],
  ["fmt", ...BINDGEN, "--check"],
  ["clippy", "--locked", ...BINDGEN, "--", "--deny", "warnings"],
];

export async function main() {
  await setUpOnly(wasmTarget);
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
  const code = await withLock(RUSTUP_LOCK, () => {}, () => run("rustup", ["component", "add", ...components]));
  if (code !== 0) {
    throw new Stop(`Linting needs ${components.join(" and ")}: add what your Rust calls them, then run this again.`);
  }
}
