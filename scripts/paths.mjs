// Paths: the repository, the cache outside it, and the programs in both.

import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { accessSync, constants, readdirSync, readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));
export const NODE_MODULES = join(ROOT, "node_modules");
export const BIN = join(NODE_MODULES, ".bin");
export const TSC = join(NODE_MODULES, "typescript", "bin", "tsc");
export const BUILD = join(ROOT, "build");

/** The crates of the Worker. The client crate is for callers. */
export const DISTRICTS = readdirSync(join(ROOT, "crates")).filter((name) => name !== "client");

/** The npm package that callers import. The setup builds its dist/. */
export const CLIENT = join(ROOT, "packages", "session-agent");

/** The API document, which `UPDATE=1 cargo test openapi` writes. */
export const OPENAPI = join(ROOT, "generated/openapi.json");

/** The files that a local run leaves behind, ignored by git. */
export const LOCAL = join(ROOT, ".local");

/**
 * Compiled programs are cached outside the tree, so that all clones share them and `git clean -fdx`
 * does not delete them.
 */
export const CACHE = cacheFolder(process.env, process.platform, homedir());

export function cacheFolder(env, platform, home) {
  if (env.SESSION_AGENT_CACHE) return env.SESSION_AGENT_CACHE;
  if (env.XDG_CACHE_HOME) return join(env.XDG_CACHE_HOME, "session-agent");
  if (platform === "darwin") return join(home, "Library", "Caches", "session-agent");
  return join(home, ".cache", "session-agent");
}

/** The full path of a program on the PATH, or `null`. */
export function findOnPath(program) {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const candidate = join(folder, program);
    try {
      accessSync(candidate, constants.X_OK);
      if (statSync(candidate).isFile()) return candidate;
    } catch {
      // Not here: the next folder may have it.
    }
  }
  return null;
}

/** The environment with the packages' programs first, Node 22 among them. */
export function withPackages(env = process.env) {
  return { ...env, PATH: `${BIN}${delimiter}${env.PATH ?? ""}` };
}

/** The version of a crate as a folder's Cargo.lock pins it. */
export function lockedCrate(name, folder = ROOT) {
  const lock = join(folder, "Cargo.lock");
  const found = readFileSync(lock, "utf8").match(new RegExp(`^name = "${name}"\\nversion = "([^"]+)"`, "m"));
  if (!found) throw new Error(`${lock} does not mention ${name}`);
  return found[1];
}
