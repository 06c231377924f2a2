// The client's package: client/dist, from client/src and the API's document.
//
// The modules stay apart, so that whoever bundles them takes only what is used. esbuild
// takes the comments out. Types are written by hand, or made of the document: no
// compiler of TypeScript is needed here.

import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { render } from "../client.mjs";
import { CLIENT, OPENAPI, ROOT } from "../places.mjs";

const SOURCES = join(CLIENT, "src");
const DIST = join(CLIENT, "dist");
const STAMP = join(DIST, ".sources.sha256");

/** The oldest JavaScript that the client speaks: what Node 20 and the browsers of 2023 do. */
const TARGET = "es2022";

export const client = {
  title: () => "Building the client (client/dist)",

  isDone() {
    return existsSync(STAMP) && readFileSync(STAMP, "utf8") === digest();
  },

  async run() {
    // Among the packages, which an earlier step installs.
    const { transform } = await import("esbuild");
    const written = digest();
    rmSync(DIST, { recursive: true, force: true });
    mkdirSync(DIST, { recursive: true });
    for (const file of readdirSync(SOURCES).filter((name) => name.endsWith(".d.ts"))) {
      copyFileSync(join(SOURCES, file), join(DIST, file));
    }
    for (const [file, text] of Object.entries(sources())) {
      const { code } = file.endsWith(".d.ts") ? { code: text } : await transform(text, { format: "esm", target: TARGET, sourcefile: file });
      writeFileSync(join(DIST, file), code);
    }
    writeFileSync(STAMP, written);
  },
};

/** The modules, and what is made of the API's document, by name. */
function sources() {
  const modules = readdirSync(SOURCES).filter((name) => name.endsWith(".js"));
  return {
    ...Object.fromEntries(modules.map((name) => [name, readFileSync(join(SOURCES, name), "utf8")])),
    ...render(JSON.parse(readFileSync(OPENAPI, "utf8"))),
  };
}

function digest() {
  const hash = createHash("sha256");
  const files = ["scripts/client.mjs", "scripts/setup/client.mjs", "generated/openapi.json"];
  const own = readdirSync(SOURCES).sort().map((name) => `client/src/${name}`);
  for (const file of [...files, ...own]) {
    const bytes = readFileSync(join(ROOT, file));
    hash.update(`${file}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}
