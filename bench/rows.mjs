// What each operation costs in rows, as the platform bills them, written to
// bench/rows.md. docs/costs.md quotes the file, and tests/workerd/tables.test.mjs
// measures the short columns again.
//
//   npm run bench

import { readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { startServer } from "../tests/workerd/harness.mjs";
import { costsInAnAgentOf, costsInASessionOf, costsOfTurns } from "./costs.mjs";

const EVENTS = [10, 1_000, 100_000];
const SESSIONS = [1, 1_000];

const server = await startServer();
const sessions = await tableOf(EVENTS, (length) => costsInASessionOf(server, length));
const agents = await tableOf(SESSIONS, (length) => costsInAnAgentOf(server, length));
await server.stop();
const turns = [...(await costsOfTurns())].map(([name, costs]) => `| ${name} | ${costs.join(" | ")} |`);

const wasm = await readFile(new URL("../build/index_bg.wasm", import.meta.url));
const kib = (bytes) => `${Math.round(bytes / 1024)} KiB`;
const lines = [
  "# Rows read / rows written",
  "",
  "By `npm run bench`, from the `x-rows-*` headers: the same on every machine.",
  "",
  "In a session of so many events:",
  "",
  ...sessions,
  "",
  "In an agent of so many sessions, two events in each:",
  "",
  ...agents,
  "",
  "All that a turn costs, from the request to the end of its answer:",
  "",
  "| turn | first of its session | later |",
  "|---|---|---|",
  ...turns,
  "",
  `The Worker: ${kib(wasm.length)} of wasm, ${kib(gzipSync(wasm, { level: 9 }).length)} gzipped.`,
  "",
];
await writeFile(new URL("rows.md", import.meta.url), lines.join("\n"));
console.log(lines.join("\n"));

/** One column a length. */
async function tableOf(lengths, measure) {
  const columns = [];
  for (const length of lengths) columns.push(await measure(length));
  const heads = lengths.map((length) => length.toLocaleString("en"));
  return [
    `| operation | ${heads.join(" | ")} |`,
    `|---|${heads.map(() => "---|").join("")}`,
    ...[...columns[0].keys()].map((name) => `| ${name} | ${columns.map((column) => column.get(name)).join(" | ")} |`),
  ];
}
