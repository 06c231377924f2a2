// Checks whether performance has regressed: the ratios to the floor must be above a share of their
// targets, the wasm's size below its limit, and the rows of the usual requests below theirs. It
// takes less than a minute. The last line is `N passed, N failed`.
//
//   npm run bench -- check

import { close, fromCheck } from "../scripts/test_counts.mjs";
import { startServer } from "../tests/workerd/harness.mjs";
import { costsInASessionOf, costsOfTurns } from "./costs.mjs";
import { startFrame } from "./frame/frame.mjs";
import { ratio, whole } from "./frame/report.mjs";
import { spread } from "./frame/stats.mjs";
import { CASES, compareAnswers, fill, measure } from "./side_by_side.mjs";
import { wasmSize } from "./size.mjs";

const ROUNDS = 11;
/** Cases whose ratio to the floor has to reach a share of its aim. */
const LIMITED = ["append 10 events", "newest 50 events", "newest 500 events"];
const SHARE = 0.5;

const KIB = 1 << 10;
/**
 * A little above the current build. Raise them when a feature needs more. The last raises are for
 * the base URL, which reads and writes three APIs of providers (about 180 KiB, 70 KiB gzipped), and
 * for sign-in, questions, progress and completion over MCP (about 110 KiB, 40 KiB gzipped).
 */
const MAX_WASM = { raw: 4_280 * KIB, gzipped: 1_790 * KIB };

/** The most rows read and written in a session of 1,000 events, by the contract. */
const MAX_ROWS = {
  "append an event": [10, 1],
  "append an event with the caller's own id": [10, 2],
  "append ten events": [20, 10],
  "append a message": [10, 1],
  "append a message with an id of the caller's": [10, 2],
  "update it, unchanged": [20, 0],
  "load the newest 50 events": [120, 0],
  "read the newest 50 messages": [120, 0],
};
const MAX_ROWS_OF_A_LATER_TURN = { "a chat turn": [70, 4], "a chat turn with a tool": [110, 8] };

const counts = [];
const holds = (is, text) => {
  console.log(`${is ? "holds" : "FAILS"}: ${text}`);
  counts.push(fromCheck(is ? 0 : 1));
};

const size = await wasmSize();
for (const [kind, most] of Object.entries(MAX_WASM)) {
  holds(size[kind] <= most, `wasm, ${kind}: ${whole(size[kind] / KIB)} KiB of at most ${whole(most / KIB)}`);
}

const server = await startServer();
const costs = await costsInASessionOf(server, 1_000);
await server.stop();
for (const [name, most] of Object.entries(MAX_ROWS)) holdsRows(name, costs.get(name), most);
const turns = await costsOfTurns();
for (const [name, most] of Object.entries(MAX_ROWS_OF_A_LATER_TURN))
  holdsRows(`${name}, later`, turns.get(name)[1], most);

const frame = await startFrame({ targets: ["AGENT", "FLOOR"] });
await fill(frame, { withPeer: false });
await compareAnswers(frame, { withPeer: false });
const lanes = LIMITED.flatMap((name) => [
  { key: `${name}/agent`, target: "AGENT", entryPoint: "service", ask: CASES[name].agent },
  { key: `${name}/floor`, target: "FLOOR", entryPoint: "service", ask: CASES[name].floor },
]);
const rates = await measure(frame, lanes, ROUNDS);
await frame.stop();
for (const name of LIMITED) {
  const theirs = rates.get(`${name}/floor`);
  const { median, low, high } = spread(rates.get(`${name}/agent`).map((rate, at) => rate / theirs[at]));
  const least = CASES[name].aim.floor * SHARE;
  holds(
    median >= least,
    `${name}: ${ratio(median)} (${ratio(low)}–${ratio(high)}) of the floor, at least ${ratio(least)}`,
  );
}

process.exit(close(counts));

function holdsRows(name, cost, [read, written]) {
  const [hasRead, hasWritten] = cost.split(" / ").map(Number);
  holds(hasRead <= read && hasWritten <= written, `${name}: ${cost} rows of at most ${read} / ${written}`);
}
