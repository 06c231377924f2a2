// The rows that each operation costs, as the platform bills them, written to
// bench/rows.md. docs/costs.md quotes the file, and tests/workerd/tables.test.mjs
// measures the columns of short sessions again. results/rows.md has the peers' rows
// beside ours.
//
//   npm run bench -- rows

import { readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { startServer } from "../tests/workerd/harness.mjs";
import {
  costsInAnAgentOf,
  costsInASessionOf,
  costsOfEntries,
  costsOfLearning,
  costsOfListing,
  costsOfLongSession,
  costsOfTurns,
} from "./costs.mjs";
import { bars, report, table } from "./frame/report.mjs";
import { costsOfPeer, costsOfPeersTurns } from "./peer_costs.mjs";

const EVENTS = [10, 1_000, 100_000];
const SESSIONS = [1, 1_000];

const server = await startServer();
const ours = await columnsOf(EVENTS, (length) => costsInASessionOf(server, length));
const sessions = tableOf(EVENTS, ours);
const agents = tableOf(SESSIONS, await columnsOf(SESSIONS, (length) => costsInAnAgentOf(server, length)));
const LONG = [1_000, 10_000, 100_000];
const MANY = [1_000, 10_000];
const long = tableOf(LONG, await columnsOf(LONG, (length) => costsOfLongSession(server, length)));
const entries = tableOf(MANY, await columnsOf(MANY, (length) => costsOfEntries(server, length)));
const listing = tableOf(MANY, await columnsOf(MANY, (length) => costsOfListing(server, length)));
await server.stop();
const ourTurns = await costsOfTurns();
const turnRows = (costs) => [...costs].map(([name, pair]) => `| ${name} | ${pair.join(" | ")} |`);
const turns = turnRows(ourTurns);
const learning = turnRows(await costsOfLearning());

const wasm = await readFile(new URL("../build/index_bg.wasm", import.meta.url));
const kib = (bytes) => `${Math.round(bytes / 1024)} KiB`;
const lines = [
  "# Rows read / rows written",
  "",
  "By `npm run bench -- rows`, from the `x-rows-*` headers: the same on every machine.",
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
  "The same of an agent with a block of facts, and what it learns of the turn. The look after a session's first turn learns nothing:",
  "",
  "| `learn` | first of its session | later |",
  "|---|---|---|",
  ...learning,
  "",
  "What grows and what does not, with the time that a caller waits on the machine that wrote this. A session of so many events:",
  "",
  ...long,
  "",
  "What still grows, and why:",
  "",
  "- `forkSession` writes a row per event. Every reader finds an event, its slices, its media and its words by session and number. A fork by reference needs a table that says which numbers of a session are rows of another. Each of these readers would translate its numbers by it. A change, a deletion, a purge or retention of a shared row would first copy the range around it, and the original's deletion would hand the shared rows on. A purge would have to reach every fork, or its receipt would be false.",
  "- `storage.snapshot()` copies a whole object in constant time. workerd 1.20261117.1 has it with the flag `durable_object_snapshots`, but its local storage refuses the call: \"This Durable Object's storage back-end does not implement snapshots.\" So it can't be tested here, and is not used.",
  "- `compact` reads what it summarizes, at most 128,000 tokens, and a search for a common word reads a limited number of rows that have it. Both are the same at any greater length.",
  "- `loadEvents` with `actions` that finds none reads each event. A page that ended earlier would be shorter than `limit` without being the last, and callers take a short page for the last one.",
  "",
  "A block of so many entries:",
  "",
  ...entries,
  "",
  "An agent of so many sessions, an event in each:",
  "",
  ...listing,
  "",
  `The Worker: ${kib(wasm.length)} of wasm, ${kib(gzipSync(wasm, { level: 9 }).length)} gzipped.`,
  "",
];
await writeFile(new URL("rows.md", import.meta.url), lines.join("\n"));
console.log(lines.join("\n"));

const peers = await columnsOf(EVENTS, costsOfPeer);
const peersTurns = await costsOfPeersTurns();
const beside = [...peers[0].keys()].map((name) => [
  name,
  ...ours.flatMap((column, at) => [column.get(name), peers[at].get(name)]),
]);
const turnsBeside = [...peersTurns].map(([name, costs]) => [
  name,
  ...costs.flatMap((cost, at) => [ourTurns.get(name)[at], cost]),
]);
const rowsWritten = (cost) => Number(cost.split(" / ")[1]);
await report(
  "rows",
  [
    "# Rows read / rows written, beside the peers",
    "",
    "By `npm run bench -- rows`: the same on every machine. [rows.md](../rows.md) has all operations of this Worker.",
    "",
    "In a session of so many events, of the peer so many messages:",
    "",
    ...table(["operation", ...EVENTS.flatMap((length) => [`${length.toLocaleString("en")}`, "peer"])], beside),
    "",
    "All that a turn costs, from the request to the end of its answer, beside the chat peer:",
    "",
    ...table(["turn", "first of its session", "chat peer", "later", "chat peer"], turnsBeside),
  ],
  {
    "": bars({
      title: "Rows written",
      unit: "in a session of 1,000; a later turn; less is better",
      series: ["this Worker", "the peer"],
      groups: [
        ...beside.map(([name, , , cost, peers]) => ({ name, bars: [cost, peers].map(rowsWritten) })),
        ...turnsBeside.map(([name, , , cost, peers]) => ({ name, bars: [cost, peers].map(rowsWritten) })),
      ].filter(({ name }) => !name.startsWith("search")),
    }),
  },
);

async function columnsOf(lengths, measure) {
  const columns = [];
  for (const length of lengths) columns.push(await measure(length));
  return columns;
}

/** A table with one column per length. */
function tableOf(lengths, columns) {
  const heads = lengths.map((length) => length.toLocaleString("en"));
  return [
    `| operation | ${heads.join(" | ")} |`,
    `|---|${heads.map(() => "---|").join("")}`,
    ...[...columns[0].keys()].map((name) => `| ${name} | ${columns.map((column) => column.get(name)).join(" | ")} |`),
  ];
}
