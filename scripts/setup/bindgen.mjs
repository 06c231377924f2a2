// Compiles tools/bindgen, which generates the Worker's JavaScript.
//
// It is compiled here instead of downloaded, so it works wherever crates are available, even if
// hosts of prebuilt programs can't be reached. tools/bindgen/Cargo.toml makes the build fast.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { CACHE, lockedCrate, ROOT } from "../paths.mjs";
import { run } from "../processes.mjs";
import { UserError } from "../user_error.mjs";

const CRATE = join(ROOT, "tools", "bindgen");
const TARGET = join(CACHE, "target");

/** The inputs of the compilation, as paths in the tree. */
export const BINDGEN_SOURCES = ["Cargo.toml", "Cargo.lock", "src/main.rs"].map((file) => `tools/bindgen/${file}`);

export const bindgen = {
  title: () => "Compiling tools/bindgen, which writes the Worker's JavaScript (once on this machine)",
  lock: () => join(CACHE, "bindgen.lock"),
  compiles: true,

  path() {
    return join(folder(), "bin", "bindgen");
  },

  isDone() {
    return existsSync(this.path());
  },

  async run() {
    const args = ["install", "--path", CRATE, "--locked", "--force", "--no-track", "--root", folder()];
    const code = await run("cargo", args, { cwd: CRATE, env: environment() });
    if (code !== 0)
      throw new UserError(
        "Compiling tools/bindgen failed (see the reason above). This step needs network access the first time.",
      );
    // Kept until here, so that a resumed setup compiles little.
    rmSync(TARGET, { recursive: true, force: true });
  },
};

export function checkBindgenVersion() {
  const library = lockedCrate("wasm-bindgen");
  const problem = problemWithVersions(library, lockedCrate("wasm-bindgen-cli-support", CRATE));
  if (problem) throw new UserError(problem);
}

/** The library and the program use a private format that changes with each version. */
export function problemWithVersions(library, program) {
  if (library === program) return null;
  return `The Worker is compiled with wasm-bindgen ${library} (Cargo.lock), and tools/bindgen with wasm-bindgen-cli-support ${program}: both must have the same version. Write \`=${library}\` into tools/bindgen/Cargo.toml, run \`cargo update --manifest-path tools/bindgen/Cargo.toml wasm-bindgen-cli-support\`, then run this again.`;
}

/** A folder for each version of the sources: clones of different versions share a cache. */
function folder() {
  const hash = createHash("sha256");
  for (const file of BINDGEN_SOURCES) hash.update(readFileSync(join(ROOT, file))).update("\0");
  const version = lockedCrate("wasm-bindgen-cli-support", CRATE);
  return join(CACHE, "tools", `bindgen-${version}-${hash.digest("hex").slice(0, 8)}`);
}

function environment() {
  // The program runs on this machine, whatever the target of other compilations.
  const { CARGO_BUILD_TARGET, ...env } = process.env;
  return {
    ...env,
    // Otherwise cargo advises adding the folder to the PATH, which is not needed.
    PATH: `${env.PATH}${delimiter}${join(folder(), "bin")}`,
    CARGO_TARGET_DIR: TARGET,
  };
}
