// The login of a template believes anybody until it is replaced. A comment in it marks it.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";

const MARK = "// placeholder-login";

/** Where a project's own sources are, and where a walk ends. */
const SOURCE = /\.[cm]?[jt]sx?$/;
const OTHERS = /^(?:node_modules|dist|build|\..*)$/;
const MAX_FILES = 2000;
const MAX_FILE_BYTES = 1024 * 1024;

/** The sentence about a placeholder in the sources of a project's folder; `undefined`: there is none. */
export function findPlaceholder(folder) {
  const waiting = [folder];
  for (let seen = 0; waiting.length > 0; ) {
    const at = waiting.pop();
    for (const entry of readdirSync(at, { withFileTypes: true })) {
      const path = join(at, entry.name);
      if (entry.isDirectory() && !OTHERS.test(entry.name)) waiting.push(path);
      if (!entry.isFile() || !SOURCE.test(entry.name) || statSync(path).size > MAX_FILE_BYTES) continue;
      seen += 1;
      if (seen > MAX_FILES) return undefined;
      const line = readFileSync(path, "utf8")
        .split("\n")
        .findIndex((text) => text.trimStart().startsWith(MARK));
      if (line >= 0)
        return `The login in ${relative(folder, path)}, line ${line + 1}, is a placeholder that accepts any name. Replace it with your own: verify a cookie that you signed, or a JWT.`;
    }
  }
  return undefined;
}
