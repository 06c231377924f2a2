// The Worker's static files: build/site/, which wrangler.toml names as its assets. They
// are the console, bundled from console/, and the API document.

import { copyFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { BUILD, CLIENT, OPENAPI, ROOT } from "../paths.mjs";

export const SITE = join(BUILD, "site");

const CONSOLE = join(ROOT, "console");
const COPIED = ["_headers", "icon.svg"];

/** The oldest browsers that the console runs in: those of spring 2024. */
const TARGET = ["es2022", "chrome123", "firefox121", "safari17.5"];

export async function buildSite() {
  const next = join(BUILD, "site.next");
  rmSync(next, { recursive: true, force: true });
  mkdirSync(next, { recursive: true });
  for (const file of COPIED) cpSync(join(CONSOLE, file), join(next, file));
  writePage(next, await bundle(next));
  copyFileSync(OPENAPI, join(next, "openapi.json"));
  // Replaced atomically: a failed build leaves the previous files.
  rmSync(SITE, { recursive: true, force: true });
  renameSync(next, SITE);
}

/**
 * The client's methods that no view calls: those for the AI SDK (`modelInput`, `tools` and
 * `persist`), and those that export and import a whole agent. A bundler can't remove methods by
 * itself.
 */
const WITHOUT_UNUSED = {
  name: "without-unused",
  setup(build) {
    build.onLoad({ filter: /[/\\]dist[/\\](?:ai_sdk|ai_sdk_turn|whole)\.js$/ }, ({ path }) => {
      const names = [...readFileSync(path, "utf8").matchAll(/^export (?:async )?function\*? (\w+)/gm)].map(
        ([, name]) => name,
      );
      const missing = `() => { throw new TypeError("The console has no such method."); }`;
      return {
        contents: `const missing = ${missing};\nexport { ${names.map((name) => `missing as ${name}`).join(", ")} };`,
      };
    });
  },
};

/**
 * console.js and console.css, which the page loads first, and the files that console.js loads: the
 * code it shares with the views of `further.ts`, and each of these views once it is opened. Returns
 * the names of the files that console.js needs at the start.
 */
async function bundle(folder) {
  // Among the packages, which an earlier step installs.
  const { build } = await import("esbuild");
  const { metafile } = await build({
    entryPoints: [
      { in: join(CONSOLE, "src/main.tsx"), out: "console" },
      { in: join(CONSOLE, "style.css"), out: "console" },
    ],
    outdir: folder,
    bundle: true,
    splitting: true,
    // The hash ensures that a page of an older build never gets a file of a newer one.
    chunkNames: "console-[name]-[hash]",
    minify: true,
    format: "esm",
    target: TARGET,
    // The client as the setup has built it.
    alias: { "session-agent": join(CLIENT, "dist/index.js") },
    plugins: [WITHOUT_UNUSED],
    tsconfig: join(CONSOLE, "tsconfig.json"),
    legalComments: "none",
    logLevel: "warning",
    metafile: true,
  });
  const [, entry] = Object.entries(metafile.outputs).find(([path]) => basename(path) === "console.js");
  return entry.imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => basename(path));
}

/** The browser requests `needed` at once, not only after it has read console.js. */
function writePage(folder, needed) {
  const page = readFileSync(join(CONSOLE, "index.html"), "utf8");
  const links = needed.map((name) => `<link rel="modulepreload" href="/${name}">\n`).join("");
  writeFileSync(join(folder, "index.html"), page.replace("</head>", `${links}</head>`));
}
