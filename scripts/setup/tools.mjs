// worker-build and wasm-bindgen, which turn the crate into a Worker.
//
// Always compiled, never downloaded ready-made: one way that works wherever
// crates can be had, also where the hosts of prebuilt programs can't be
// reached. Speed of compiling beats speed of running here: the tools run for
// a second or two per build.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CACHE, findOnPath, lockedCrate } from "../places.mjs";
import { outputOf, run } from "../processes.mjs";
import { Stop } from "../stop.mjs";

// wasm-bindgen's program and library must be the very same version.
export const workerBuild = tool("worker-build", "worker-build", () => "0.8.7");
export const wasmBindgen = tool("wasm-bindgen-cli", "wasm-bindgen", () => lockedCrate("wasm-bindgen"));
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
    get title() {
      return `Compiling ${crate} ${wantedVersion()} (once on this machine; takes minutes)`;
    },

    path() {
      return existsSync(inCache()) ? inCache() : sameOnPath(program, wantedVersion());
    },

    isDone() {
      return this.path() !== null;
    },

    // cargo moves the program into place last, so a file that is there is whole.
    async run() {
      const args = ["install", crate, "--version", wantedVersion(), "--bin", program, "--locked", "--root", folder()];
      const code = await run("cargo", args, { cwd: CACHE, env: compilingQuickly(process.env) });
      if (code !== 0) {
        throw new Stop(`Compiling ${crate} failed (its reason is above): this step needs crates.io, once.`);
      }
    },
  };
}

function sameOnPath(program, version) {
  const found = findOnPath(program);
  const words = found ? (outputOf(found, ["--version"]) ?? "").split(" ") : [];
  return words.includes(version) ? found : null;
}

function compilingQuickly(env) {
  const { CARGO_BUILD_TARGET, ...rest } = env;
  return {
    ...rest,
    CARGO_TARGET_DIR: TARGET,
    CARGO_PROFILE_RELEASE_OPT_LEVEL: "1",
    CARGO_PROFILE_RELEASE_LTO: "off",
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS: "16",
    CARGO_PROFILE_RELEASE_DEBUG: "0",
  };
}
