// A conversation of 5,000 turns with a model of an 8,000-token window, which counts with
// a real tokenizer and refuses what is too long. Written to results/long.md.
//
//   npm run bench -- long

import { createRequire } from "node:module";
import { WINDOW, runConversation } from "../tests/workerd/long_conversation.mjs";
import { report, table, whole } from "./frame/report.mjs";
import { quantile } from "./frame/stats.mjs";

const TURNS = Number(process.env.TURNS ?? 5_000);
const FACTS = 50;

// The tokenizer that LangChain brings to the client's tests.
const load = createRequire(new URL("../tests/client/package.json", import.meta.url));
const { Tiktoken } = load("js-tiktoken/lite");
const ranks = load("js-tiktoken/ranks/o200k_base");
const encoder = new Tiktoken(ranks.default ?? ranks);
const known = new Map();

/** Most texts of a request were in the request before it. */
function count(text) {
  const before = known.get(text);
  if (before !== undefined) return before;
  const tokens = encoder.encode(text).length;
  if (known.size > 20_000) known.clear();
  known.set(text, tokens);
  return tokens;
}

const start = performance.now();
const done = await runConversation({
  turns: TURNS,
  facts: FACTS,
  readEvery: 50,
  count,
  onTurn: (turn) =>
    turn % 500 === 0 && console.log(`${turn} turns, ${Math.round((performance.now() - start) / 1_000)} s`),
});
const all = done.sent.reduce((sum, tokens) => sum + tokens, 0);
await report(
  "long",
  [
    "# A long conversation",
    "",
    `By \`npm run bench -- long\`: ${whole(TURNS)} turns with a model of a ${whole(WINDOW)}-token window. The model counts with the tokenizer o200k_base and refuses what is too long, as OpenAI does. Every fiftieth turn calls a tool that answers 200 KB. ${FACTS} facts are planted on the way.`,
    "",
    ...table(
      ["what", "figure"],
      [
        ["turns", whole(TURNS)],
        ["turns that were answered", whole(done.answered)],
        ["tokens sent by a turn, median", whole(quantile(done.sent, 0.5))],
        ["tokens sent by a turn, most", whole(Math.max(...done.sent))],
        ["tokens sent in all", whole(all)],
        ["summaries made", whole(done.summaries)],
        ["tokens sent for summaries", whole(done.summaryTokens)],
        ["refusals for length", whole(done.refusals)],
        ["requests that said that messages are not shown", whole(done.notices)],
        ["outputs of 200 KB", whole(done.outputs)],
        ["facts in the context of the last turn", whole(done.found.inContext)],
        ["facts found by search alone", whole(done.found.bySearch)],
        ["answers of searches that said `pending`, and were asked for again", whole(done.found.pending)],
        ["messages in the log, of those said", `${whole(done.messages)} of ${whole(2 * TURNS)}`],
      ],
    ),
    "",
    "![Tokens sent per turn](long.svg)",
  ],
  { "": plot(done.sent) },
);

/** Tokens per turn: the least and the most of each column of pixels. */
function plot(sent) {
  const [width, height, left, top] = [760, 260, 60, 40];
  const x = (turn) => left + ((width - left - 20) * turn) / sent.length;
  const y = (tokens) => top + (height - top - 30) * (1 - tokens / WINDOW);
  const columns = Array.from({ length: Math.min(600, sent.length) }, (_, at, n = Math.min(600, sent.length)) => {
    const part = sent.slice(Math.floor((at * sent.length) / n), Math.floor(((at + 1) * sent.length) / n));
    const column = x((at * sent.length) / n).toFixed(1);
    return `M${column} ${y(Math.min(...part)).toFixed(1)}V${(y(Math.max(...part)) - 0.5).toFixed(1)}`;
  });
  const lines = [0, 2_000, 4_000, 6_000, WINDOW].map(
    (tokens) =>
      `<path d="M${left} ${y(tokens).toFixed(1)}H${width - 20}" stroke="#ccc"/><text x="${left - 6}" y="${(y(tokens) + 4).toFixed(1)}" text-anchor="end">${whole(tokens)}</text>`,
  );
  const turns = [0, 0.25, 0.5, 0.75, 1].map(
    (share) =>
      `<text x="${x(share * sent.length).toFixed(1)}" y="${height - 10}" text-anchor="middle">${whole(share * sent.length)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="11" fill="#333"><rect width="100%" height="100%" fill="#fff"/><text x="${left}" y="20" font-size="14">Tokens sent per turn; the window has ${whole(WINDOW)}</text>${lines.join("")}${turns.join("")}<path d="${columns.join("")}" stroke="#2a6f97" stroke-width="1.2" fill="none"/></svg>\n`;
}
