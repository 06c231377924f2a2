// Runs a command-line program as often as it is asked to, in one process, because loading wrangler takes a second:
//
//   node commands.mjs PROGRAM     each line of the input is a list of arguments, and each line of
//                                 the output what the program printed and its exit code
//
// The program's own file is evaluated each time, as a new module.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { format } from "node:util";

const program = pathToFileURL(process.argv[2]);
let lines = [];
for (const stream of ["log", "error"]) console[stream] = (...values) => lines.push(format(...values));

let runs = 0;
for await (const line of createInterface({ input: process.stdin })) {
  lines = [];
  process.argv = [...process.argv.slice(0, 2), ...JSON.parse(line)];
  process.exitCode = 0;
  runs += 1;
  program.search = `?${runs}`;
  await import(program.href);
  process.stdout.write(`${JSON.stringify({ code: process.exitCode, output: lines.join("\n").trim() })}\n`);
  process.exitCode = 0;
}
