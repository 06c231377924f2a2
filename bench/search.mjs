// Time and rows of a search in 1,000, 100,000 and 1,000,000 short messages and in 1,000 long
// ones, beside the peer's search. Written to results/search.md.
//
//   npm run bench -- search

import { readFile } from "node:fs/promises";
import { pathOf, startFrame } from "./frame/frame.mjs";
import { cpuMs } from "./frame/process.mjs";
import { bars, machine, ms, report, table } from "./frame/report.mjs";
import { quantile } from "./frame/stats.mjs";

const ROUNDS = 25;
/** The sets, with the approximate number of words per message: a long message has some 8 KiB. */
const SETS = [
  { name: "1,000 short", messages: 1_000, words: 12, batch: 500 },
  { name: "100,000 short", messages: 100_000, words: 12, batch: 1_000 },
  { name: "1,000,000 short", messages: 1_000_000, words: 12, batch: 1_000 },
  { name: "1,000 long", messages: 1_000, words: 1_300, batch: 100 },
];
const RARE = "xylophonist";

const vocabulary = await wordsOf(new URL("talks.txt", import.meta.url));
const QUERIES = {
  "three common words": [8, 14, 21].map((rank) => vocabulary[rank]).join(" "),
  "one rare word": RARE,
  "a rare word and two common ones": `${vocabulary[10]} ${RARE} ${vocabulary[17]}`,
};

const rows = [];
const groups = [];
for (const set of SETS) {
  const texts = makeTexts(set);
  const frame = await startFrame({ targets: ["AGENT", "PEER"], meter: true });
  const call = async (target, operation, input) => {
    const response = await fetch(new URL(pathOf("search", operation), frame.urls[target]), {
      method: "POST",
      body: JSON.stringify(input),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${target} ${operation}: ${response.status} ${text.slice(0, 300)}`);
    return {
      body: JSON.parse(text),
      cost: { read: response.headers.get("x-rows-read"), written: response.headers.get("x-rows-written") },
    };
  };
  await call("AGENT", "createSession", { id: "s" });
  await call("PEER", "createSession", {});
  for (let at = 0; at < texts.length; at += set.batch) {
    const batch = texts.slice(at, at + set.batch);
    await call("AGENT", "appendEvents", {
      sessionId: "s",
      events: batch.map((content) => ({ action: "user_message", content })),
    });
    await call("PEER", "appendMessages", {
      messages: batch.map((text) => ({ role: "user", parts: [{ type: "text", text }] })),
    });
  }
  // Searches build the index: ours in several steps.
  const peerMeter = async (path) => (await fetch(new URL(pathOf("search", path), frame.urls.PEER))).json();
  const built = { agent: performance.now() };
  while ((await call("AGENT", "search", { query: RARE })).cost.written !== "0");
  built.agent = performance.now() - built.agent;
  built.peer = performance.now();
  await call("PEER", "search", { query: RARE, limit: 20 });
  built.peer = performance.now() - built.peer;

  for (const [name, query] of Object.entries(QUERIES)) {
    const times = { agent: [], peer: [], cpu: [] };
    let cost;
    const found = {};
    for (let round = -3; round < ROUNDS; round += 1) {
      for (const [who, target] of [
        ["agent", "AGENT"],
        ["peer", "PEER"],
      ]) {
        const cpu = await cpuMs(frame.pid);
        const start = performance.now();
        const answer = await call(target, "search", { query, limit: 20 });
        if (round >= 0) times[who].push(performance.now() - start);
        if (round >= 0 && who === "agent" && cpu !== null) times.cpu.push((await cpuMs(frame.pid)) - cpu);
        found[who] = (answer.body.results ?? answer.body).length;
        if (who === "agent") cost = answer.cost;
      }
    }
    await peerMeter("__meter");
    await call("PEER", "search", { query, limit: 20 });
    const peerCost = await peerMeter("__metered");
    const show = (list) => `${ms(quantile(list, 0.5))} (${ms(quantile(list, 0.95))})`;
    rows.push([
      set.name,
      name,
      show(times.agent),
      times.cpu.length > 0 ? ms(quantile(times.cpu, 0.5)) : "–",
      `${cost.read} / ${cost.written}`,
      String(found.agent),
      show(times.peer),
      `${peerCost.read} / ${peerCost.written}`,
      String(found.peer),
    ]);
    groups.push({
      name: `${set.name}, ${name.replace("a rare word and two common ones", "mixed")}`,
      bars: [quantile(times.agent, 0.5), quantile(times.peer, 0.5)],
    });
  }
  rows.push([set.name, "making the index", ms(built.agent), "–", "–", "–", ms(built.peer), "–", "–"]);
  await frame.stop();
}
await report(
  "search",
  [
    "# Search",
    "",
    `By \`npm run bench -- search\`: milliseconds of a search for 20 results, p50 and in brackets p95 of ${ROUNDS}, over HTTP; CPU of the runtime, p50; and rows read / written.`,
    "The peer takes a query for one phrase, and finds what holds it word for word. This Worker also finds other forms of the words and messages that hold some of them, ranks what it finds, and marks the words. So the two don't do the same work: `found` says how many of the 20 there were.",
    machine(),
    "",
    ...table(
      ["messages", "search for", "this Worker, ms", "its CPU, ms", "rows", "found", "the peer, ms", "rows", "found"],
      rows,
    ),
  ],
  {
    "": bars({
      title: "Time of a search",
      unit: "milliseconds, p50; less is better; logarithmic",
      series: ["this Worker", "the peer"],
      groups,
      scale: "log",
      show: ms,
    }),
  },
);

/** The words of a text, the most frequent first. */
async function wordsOf(file) {
  const counts = new Map();
  for (const [word] of (await readFile(file, "utf8")).toLowerCase().matchAll(/\p{L}{3,}/gu))
    counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].sort(([a, many], [b, other]) => other - many || (a < b ? -1 : 1)).map(([word]) => word);
}

/**
 * Texts whose words are as frequent as in natural language: the word of rank n occurs once for n
 * occurrences of the first.
 */
function makeTexts({ messages, words }) {
  let state = 7;
  const roll = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  const word = () => vocabulary[Math.min(vocabulary.length - 1, Math.floor(vocabulary.length ** roll()) - 1)];
  const texts = Array.from({ length: messages }, () => Array.from({ length: words }, word).join(" "));
  texts[Math.floor(messages / 2)] += ` ${RARE}`;
  return texts;
}
