// The Worker's static files: build/site/, which wrangler.toml names as its assets. They
// are the console, bundled from console/, and the API document.

import { copyFileSync, cpSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BUILD, CLIENT, OPENAPI, ROOT } from "../places.mjs";

export const SITE = join(BUILD, "site");

const CONSOLE = join(ROOT, "console");
const COPIED = ["_headers", "index.html", "icon.svg"];

/** The oldest browsers that the console runs in: those of spring 2024. */
const TARGET = ["es2022", "chrome123", "firefox121", "safari17.5"];

export async function buildSite() {
  const next = join(BUILD, "site.next");
  rmSync(next, { recursive: true, force: true });
  mkdirSync(next, { recursive: true });
  for (const file of COPIED) cpSync(join(CONSOLE, file), join(next, file));
  await bundle(next);
  copyFileSync(OPENAPI, join(next, "openapi.json"));
  // Whole or not at all: a build that fails leaves the files of the one before.
  rmSync(SITE, { recursive: true, force: true });
  renameSync(next, SITE);
}

/** console.js and console.css. Nothing is loaded later, so the two are all of the console. */
async function bundle(folder) {
  // Among the packages, which an earlier step installs.
  const { build } = await import("esbuild");
  await build({
    entryPoints: [
      { in: join(CONSOLE, "src/main.tsx"), out: "console" },
      { in: join(CONSOLE, "style.css"), out: "console" },
    ],
    outdir: folder,
    bundle: true,
    minify: true,
    format: "esm",
    target: TARGET,
    // The client as the set-up has built it.
    alias: { "session-agent": join(CLIENT, "dist/index.js") },
    tsconfig: join(CONSOLE, "tsconfig.json"),
    legalComments: "none",
    logLevel: "warning",
  });
}
