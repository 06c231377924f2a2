// worker-build and wasm-bindgen, which turn the crate into a Worker.
//
// Always compiled, never downloaded ready-made: one way that works wherever
// crates can be had, also where the hosts of prebuilt programs can't be
// reached. Speed of compiling beats speed of running here: the tools run for
// a second or two per build.

import { existsSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { CACHE, findOnPath, lockedCrate } from "../places.mjs";
import { outputOf, run } from "../processes.mjs";
import { Stop } from "../stop.mjs";

// wasm-bindgen's program and library must be the very same version.
export const wasmBindgen = tool("wasm-bindgen-cli", "wasm-bindgen", () => lockedCrate("wasm-bindgen"));
export const workerBuild = {
  ...tool("worker-build", "worker-build", () => "0.8.7"),

  // Its download code, which we never use, links with the system's TLS.
  problem() {
    const { OPENSSL_DIR, OPENSSL_LIB_DIR } = process.env;
    const found = OPENSSL_DIR || OPENSSL_LIB_DIR || outputOf("pkg-config", ["--exists", "openssl"]) !== null;
    return process.platform !== "linux" || found
      ? null
      : "Compiling worker-build needs OpenSSL's headers and `pkg-config` finds none: install both (Debian: `apt install pkg-config libssl-dev`, Fedora: `dnf install pkgconf openssl-devel`), then run this again.";
  },
};
export const tools = [workerBuild, wasmBindgen];

const TARGET = join(CACHE, "target");

/** What compiling left behind is kept until all tools are there, so that an interruption costs little. */
export function tidyTools() {
  rmSync(TARGET, { recursive: true, force: true });
}

function tool(crate, program, wantedVersion) {
  const folder = () => join(CACHE, "tools", `${crate}-${wantedVersion()}`);
  const inCache = () => join(folder(), "bin", program);
  return {
    title: () => `Compiling ${crate} ${wantedVersion()} (once on this machine; takes a minute or two)`,

    path() {
      return existsSync(inCache()) ? inCache() : sameOnPath(program, wantedVersion());
    },

    isDone() {
      return this.path() !== null;
    },

    // cargo moves the program into place last, so a file that is there is whole.
    async run() {
      const args = ["install", crate, "--version", wantedVersion(), "--bin", program, "--locked", "--root", folder()];
      const code = await run("cargo", args, { cwd: CACHE, env: compilingQuickly(folder()) });
      if (code !== 0) {
        throw new Stop(`Compiling ${crate} failed (its reason is above): this step needs the network, once.`);
      }
    },
  };
}

function sameOnPath(program, version) {
  const found = findOnPath(program);
  const words = found ? (outputOf(found, ["--version"]) ?? "").split(" ") : [];
  return words.includes(version) ? found : null;
}

function compilingQuickly(folder) {
  const { CARGO_BUILD_TARGET, ...env } = process.env;
  return {
    ...env,
    // Else cargo advises to add the folder to the PATH, which nobody needs to.
    PATH: `${env.PATH}${delimiter}${join(folder, "bin")}`,
    CARGO_TARGET_DIR: TARGET,
    CARGO_PROFILE_RELEASE_OPT_LEVEL: "1",
    CARGO_PROFILE_RELEASE_LTO: "off",
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS: "16",
    CARGO_PROFILE_RELEASE_DEBUG: "0",
  };
}
