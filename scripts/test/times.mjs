// The times of a run: the longest tests and the longest files.
//
// `npm test` prints this by itself. Several runs that name one file in SESSION_AGENT_TIMES add
// their times to it, and `node scripts/test/times.mjs FILE` prints the longest of all.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const SHOWN = 10;

/** `files`: the result of `runFiles`. */
export function printTimes(files) {
  if (process.env.SESSION_AGENT_TIMES) {
    appendFileSync(process.env.SESSION_AGENT_TIMES, files.map((file) => `${JSON.stringify(file)}\n`).join(""));
  }
  if (files.length > 1) console.log(timesOf(files));
}

export function timesOf(files) {
  const tests = files.flatMap(({ file, tests }) => tests.map(({ name, ms }) => ({ name: `${file}: ${name}`, ms })));
  const whole = files.map(({ file, ms }) => ({ name: file, ms }));
  return `\nThe longest tests:\n${longest(tests)}\n\nThe longest files:\n${longest(whole)}\n`;
}

function longest(timed) {
  const shown = [...timed].sort((a, b) => b.ms - a.ms).slice(0, SHOWN);
  return shown.map(({ name, ms }) => `${(ms / 1000).toFixed(1).padStart(8)} s  ${name}`).join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [, , file] = process.argv;
  if (existsSync(file))
    console.log(
      timesOf(
        readFileSync(file, "utf8")
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line)),
      ),
    );
}
