// Finds a template's placeholder login, which accepts anybody. A comment marks it.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";

const MARK = "// placeholder-login";

/** The folders of a project's sources, and the folders that are skipped. */
const SOURCE = /\.[cm]?[jt]sx?$/;
const OTHERS = /^(?:node_modules|dist|build|\..*)$/;
const MAX_FILES = 2000;
const MAX_FILE_BYTES = 1024 * 1024;

/** The message about a placeholder in a project's sources; `undefined`: there is none. */
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
