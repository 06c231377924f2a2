// Prints the failures of a run, so that they are at the end of a long log.
//
//   node scripts/test/failures.mjs FILE     FILE: the output of `npm test` or another check

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** The number of lines shown of one file's failures, and of a check without a runner. */
const MAX_LINES = 80;
const LAST_LINES = 30;
const MAX_LINE = 400;

/**
 * The line that starts a runner's failures, and the one after the last failure: Node's, Rust's,
 * those of the linters.
 */
const SECTIONS = [
  { begins: /^✖ failing tests:$/, ends: /^(── |════ |The longest tests:|SKIPPED: )/ },
  { begins: /^failures:$/, ends: /^test result: / },
  { begins: /^(error(\[\w+\])?: |Diff in )/, ends: /^$|^Diff in / },
  { begins: / ━━━━/, ends: /^(── | .* ━━━━)/ },
];

/** The failures as the runners report them; if there are none, the last lines. */
export function failuresIn(output) {
  const lines = output.trimEnd().split("\n");
  const failures = [];
  for (let at = 0; at < lines.length; at += 1) {
    const section = SECTIONS.find(({ begins }) => begins.test(lines[at]));
    if (section === undefined) continue;
    let end = at + 1;
    while (end < lines.length && !section.ends.test(lines[end])) end += 1;
    failures.push(...lines.slice(at, Math.min(end, at + MAX_LINES)));
    at = end - 1;
  }
  return (failures.length > 0 ? failures : lines.slice(-LAST_LINES)).map((line) => line.slice(0, MAX_LINE)).join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  console.log(failuresIn(readFileSync(process.argv[2], "utf8")));
}
