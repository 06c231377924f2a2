// The Worker's static files: build/site/, which wrangler.toml names as its assets. They
// are those of console/ and the API document.

import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BUILD, OPENAPI, ROOT } from "../places.mjs";

export const SITE = join(BUILD, "site");

export function buildSite() {
  const next = join(BUILD, "site.next");
  rmSync(next, { recursive: true, force: true });
  cpSync(join(ROOT, "console"), next, { recursive: true });
  cpSync(OPENAPI, join(next, "openapi.json"));
  // Whole or not at all: a build that fails leaves the files of the one before.
  rmSync(SITE, { recursive: true, force: true });
  renameSync(next, SITE);
}
