// Installs the standard library for wasm32-unknown-unknown.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { CACHE, findOnPath } from "../paths.mjs";
import { outputOf, run } from "../processes.mjs";
import { UserError } from "../user_error.mjs";

/** Two processes must not change a toolchain with rustup at the same time. */
export const RUSTUP_LOCK = join(CACHE, "rustup.lock");

const TARGET = "wasm32-unknown-unknown";

export const wasmTarget = {
  title: () => `Adding Rust's ${TARGET} target`,
  lock: () => RUSTUP_LOCK,
  compiles: true,

  // rustc reports it, not rustup: a distribution's Rust has no rustup.
  isDone() {
    const libraries = outputOf("rustc", ["--print", "target-libdir", "--target", TARGET]);
    return libraries !== null && existsSync(libraries);
  },

  async run() {
    if (findOnPath("rustup") === null) {
      throw new UserError(
        `This Rust has no ${TARGET} target and there is no \`rustup\` to add it: install your distribution's package for it (Debian: \`libstd-rust-dev-wasm32\`) or Rust from https://rustup.rs.`,
      );
    }
    const code = await run("rustup", ["target", "add", TARGET]);
    if (code !== 0) {
      throw new UserError(
        `\`rustup target add ${TARGET}\` failed (see the reason above). This step needs network access the first time.`,
      );
    }
  },
};
