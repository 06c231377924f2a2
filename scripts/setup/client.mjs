// Builds the client's package, packages/session-agent/dist, from its sources and openapi.json.
//
// The compiler emits the modules and their types. They stay separate, so that bundlers include
// only what is used. The compiler checks each file in isolation here, because the adapters'
// frameworks are not installed. tests/workerd/types.test.mjs has them, and checks all types.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { render } from "../client.mjs";
import { CLIENT, LOCAL, OPENAPI, ROOT, TSC } from "../paths.mjs";
import { run } from "../processes.mjs";
import { UserError } from "../user_error.mjs";

const SOURCES = join(CLIENT, "src");
const DIST = join(CLIENT, "dist");
const STAMP = join(DIST, ".sources.sha256");

/** Generated from the API document, and not stored in the repository. */
const MADE = "operations.ts";

export const client = {
  title: () => "Building the client (packages/session-agent/dist)",
  lock: () => join(LOCAL, "client.lock"),

  isDone() {
    return existsSync(STAMP) && readFileSync(STAMP, "utf8") === digest();
  },

  async run() {
    const written = digest();
    writeFileSync(join(SOURCES, MADE), render(JSON.parse(readFileSync(OPENAPI, "utf8"))));
    const next = join(CLIENT, "dist.next");
    rmSync(next, { recursive: true, force: true });
    // Comments are for readers of the types. The modules have none.
    for (const part of [
      ["--emitDeclarationOnly"],
      ["--declaration", "false", "--isolatedDeclarations", "false", "--removeComments"],
    ]) {
      const code = await run(process.execPath, [TSC, "--project", CLIENT, "--noCheck", ...part, "--outDir", next], {
        cwd: ROOT,
      });
      if (code !== 0) throw new UserError("The client could not be compiled: see the reason above.");
    }
    writeFileSync(join(next, ".sources.sha256"), written);
    // Replaced atomically: other processes import these files.
    rmSync(DIST, { recursive: true, force: true });
    renameSync(next, DIST);
  },
};

function digest() {
  const hash = createHash("sha256");
  const files = [
    "scripts/client.mjs",
    "scripts/setup/client.mjs",
    "generated/openapi.json",
    "packages/session-agent/tsconfig.json",
  ];
  const own = readdirSync(SOURCES, { recursive: true })
    .filter((name) => name.endsWith(".ts") && name !== MADE)
    .sort()
    .map((name) => `packages/session-agent/src/${name}`);
  for (const file of [...files, ...own]) {
    const bytes = readFileSync(join(ROOT, file));
    hash.update(`${file}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}
