// Builds `session-agent/worker` of the npm package: packages/session-agent/worker/, the Worker with its
// class to extend, its wasm and its static files. Deploying it doesn't require Rust.

import { copyFileSync, cpSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BUILD, CLIENT, ROOT } from "../paths.mjs";

/** The content of the package's folder, ignored by git. */
export const PACKAGED = join(CLIENT, "worker");

const ENTRY = join(CLIENT, "src", "worker", "index.ts");

/** `shim`: the classes in front of the compiled module, while its stage is there. */
export async function bundlePackaged(shim, file) {
  // Among the packages, which an earlier step installs.
  const { build } = await import("esbuild");
  await build({
    entryPoints: [ENTRY],
    outfile: file,
    bundle: true,
    minify: true,
    // A class is found by its name in a Worker's exports, and an error is known by it.
    keepNames: true,
    format: "esm",
    target: "es2022",
    alias: { "#built": shim },
    external: ["*.wasm", "*/agent-defaults.js", "cloudflare:*"],
    plugins: [
      {
        // The package contains the client's modules already, and a bundler of the Worker omits what
        // is unused.
        name: "client",
        setup: (at) =>
          at.onResolve({ filter: /^\.\.\/\w+\.js$/ }, ({ path }) => ({
            path: path.replace("../", "../dist/"),
            external: true,
          })),
      },
      {
        name: "defaults",
        setup: (at) => at.onResolve({ filter: /^#defaults$/ }, () => ({ path: "./agent-defaults.js", external: true })),
      },
    ],
    logLevel: "warning",
  });
}

/** Assembles this part of the package: `file` is the bundle. */
export function packWorker(file, site) {
  const next = `${PACKAGED}.next`;
  rmSync(next, { recursive: true, force: true });
  mkdirSync(next, { recursive: true });
  copyFileSync(file, join(next, "index.js"));
  copyFileSync(join(BUILD, "index_bg.wasm"), join(next, "index_bg.wasm"));
  // Users of the package deploy their own defaults with `AGENT_DEFAULTS`.
  copyFileSync(join(ROOT, "scripts", "build", "no-defaults.js"), join(next, "agent-defaults.js"));
  cpSync(site, join(next, "site"), { recursive: true });
  // Replaced atomically: a failed build leaves the previous one.
  rmSync(PACKAGED, { recursive: true, force: true });
  renameSync(next, PACKAGED);
}
