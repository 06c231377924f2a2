// Builds the Worker: build/index.js, build/index_bg.wasm, and the static files in build/site/.
//
// wrangler runs this before every start and deployment (`[build]` in
// wrangler.toml), so it sets up a fresh clone, and returns immediately if the existing
// build is up to date.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildDefaults } from "./build/defaults.mjs";
import { writeLlms } from "./build/llms.mjs";
import { PACKAGED, packWorker } from "./build/package.mjs";
import { buildSite, SITE } from "./build/site.mjs";
import { buildWorker } from "./build/worker.mjs";
import { BUILD, DISTRICTS, LOCAL, ROOT } from "./paths.mjs";
import { outputOf } from "./processes.mjs";
import { setUp } from "./setup.mjs";
import { BINDGEN_SOURCES } from "./setup/bindgen.mjs";
import { withLock } from "./lock.mjs";

const SOURCES = [
  [
    "src",
    ...DISTRICTS.map((name) => `crates/${name}`),
    "console",
    "packages/session-agent/src",
    "generated",
    "build.rs",
    "Cargo.toml",
    "Cargo.lock",
    "package-lock.json",
  ],
  ["scripts/build.mjs", "scripts/build", ...BINDGEN_SOURCES],
].flat();
const STAMP = join(BUILD, "sources.sha256");

export async function main() {
  await setUp();
  await build();
  return 0;
}

export async function build() {
  await buildDefaults();
  await buildUnlessCurrent();
  // The texts of the documents, which don't affect the compiled code.
  writeLlms();
}

async function buildUnlessCurrent() {
  if (isCurrent(sourcesDigest())) return;
  await withLock(join(LOCAL, "build.lock"), reportOtherBuild, async () => {
    // Recorded before compiling: an edit in the meantime is built by the next run.
    const digest = sourcesDigest();
    if (isCurrent(digest)) return;
    console.error("Building the Worker …");
    rmSync(STAMP, { force: true });
    await buildWorker();
    await buildSite();
    packWorker(join(BUILD, "packaged.js"), SITE);
    writeFileSync(STAMP, digest);
  });
}

function isCurrent(digest) {
  return (
    existsSync(join(BUILD, "index.js")) &&
    existsSync(SITE) &&
    existsSync(PACKAGED) &&
    existsSync(STAMP) &&
    readFileSync(STAMP, "utf8") === digest
  );
}

/** The commit counts, too: the build reports its commit. */
function sourcesDigest() {
  const hash = createHash("sha256");
  hash.update(outputOf("git", ["-C", ROOT, "rev-parse", "HEAD"]) ?? "no commit");
  for (const file of SOURCES.flatMap(filesUnder)) {
    const bytes = readFileSync(join(ROOT, file));
    hash.update(`\0${file}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}

function filesUnder(name) {
  if (!statSync(join(ROOT, name)).isDirectory()) return [name];
  return readdirSync(join(ROOT, name), { recursive: true })
    .map((inside) => join(name, inside))
    .filter((file) => statSync(join(ROOT, file)).isFile())
    .sort();
}

function reportOtherBuild() {
  console.error("Another build of this clone is running: waiting for it.");
}
