// Checks the programs that must be installed manually: Rust, a linker, npm. Reports each missing one
// in a sentence.

import { findOnPath } from "../paths.mjs";
import { outputOf } from "../processes.mjs";
import { UserError } from "../user_error.mjs";

const RUST = [1, 91];

export function checkRequirements() {
  const problem = problemWith({
    platform: process.platform,
    rustc: outputOf("rustc", ["--version"]),
    has: (program) => findOnPath(program) !== null,
  });
  if (problem) throw new UserError(problem);
}

export function problemWith({ platform, rustc, has }) {
  if (platform === "win32") {
    return "Session Agent is built and tested on Linux and macOS: on Windows, run this inside WSL.";
  }
  if (!has("npm")) {
    return "`npm` is not on the PATH: install it (it comes with Node from https://nodejs.org), then run this again.";
  }
  if (!has("cargo") || rustc === null) {
    return `Session Agent needs Rust ${RUST.join(".")} or newer and no working \`cargo\` is on the PATH: install it from https://rustup.rs (or open a new terminal, if you just did), then run this again.`;
  }
  const [, major, minor] = rustc.match(/^rustc (\d+)\.(\d+)/) ?? [];
  if (Number(major) !== RUST[0] || Number(minor) < RUST[1]) {
    return `Session Agent needs Rust ${RUST.join(".")} or newer and this is \`${rustc}\`: run \`rustup update stable\`, then run this again.`;
  }
  if (!has("cc") && !has("gcc") && !has("clang")) {
    return "Rust needs a C compiler to link with and none is on the PATH: install one (Debian: `apt install build-essential`, macOS: `xcode-select --install`), then run this again.";
  }
  return null;
}
