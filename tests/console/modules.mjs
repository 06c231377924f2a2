// Loads the console's modules for tests that need no browser.

import { build } from "esbuild";
import { join } from "node:path";
import { CLIENT, ROOT } from "../../scripts/paths.mjs";

/** Bundles modules of console/src and returns their exports. */
export async function load(...modules) {
  const contents = modules.map((name) => `export * from "./${name}";`).join("\n");
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: join(ROOT, "console/src"), loader: "ts" },
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    alias: { "session-agent": join(CLIENT, "dist/index.js") },
    tsconfig: join(ROOT, "console/tsconfig.json"),
  });
  return await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}
