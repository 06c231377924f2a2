// Finding by meaning: how much more is found than by words alone, and what it
// takes over a full block. Written to bench/vectors.md.
//
//   npm run bench -- vectors
//   EMBEDDINGS_URL=http://127.0.0.1:1234/v1 EMBEDDINGS_MODEL=… npm run bench -- vectors
//
// By the real model of the tests, or by any OpenAI-compatible endpoint's. VERBOSE=1
// names what was missed. Times are a figure of the machine that they were taken on;
// their model is a stand-in that answers at once.

import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { startServer } from "../tests/workerd/harness.mjs";
import { startRealModel } from "../tests/workerd/real_models.mjs";

const real = process.env.EMBEDDINGS_URL ? undefined : await startRealModel("embedding_model");
const url = process.env.EMBEDDINGS_URL ?? real.url;
const model = process.env.EMBEDDINGS_MODEL ?? "all-minilm-l6-v2";
const ENTRIES = 10_000;
const DIMENSIONS = [384, 1_024];
const ROUNDS = 20;
/** Words of its own for each of the entries whose search is timed. */
const TOPICS = 1_000;

const read = async (path) => (await readFile(new URL(path, import.meta.url), "utf8")).split("\n");
const meanings = (await read("meanings.txt")).filter((line) => line && !line.startsWith("#"));
const friends = (await read("../src/api/tests/friends.txt")).filter(Boolean);
const asked = (lines, mark) =>
  lines
    .filter((line) => line.startsWith(mark))
    .map((line) => line.match(/^. (\S+) (.+)$/))
    .map(([, gold, question]) => ({ gold: gold.split(","), question }));

const lines = ["# Finding by meaning", "", "By `npm run bench -- vectors`.", ""];
lines.push(...(url ? await recall() : ["No recall was measured: there was no model.", ""]), ...(await latency()));
await real?.stop();
await writeFile(new URL("vectors.md", import.meta.url), lines.join("\n"));
console.log(lines.join("\n"));

async function recall() {
  const rows = [];
  for (const [title, vars] of [
    ["words alone", {}],
    ["words and meanings", { EMBEDDING_MODEL: `openai:${model}`, OPENAI_BASE_URL: url }],
  ]) {
    const server = await startServer({ vars: { AUTH: "open", ...vars } });
    const ok = async (operation, input) => {
      const { status, body } = await server.call("bench", operation, input);
      if (status !== 200 || body.vectors?.error) throw new Error(`${operation}: ${JSON.stringify(body)}`);
      return body;
    };
    await ok("configureAgent", { vectors: true });
    await ok("defineBlock", { label: "kb", kind: "searchable" });
    await talk(ok);
    for (const line of meanings.filter((line) => !line.startsWith("?") && !line.startsWith("@"))) {
      const [key, content] = line.split(/ (.*)/s);
      await ok("setEntry", { label: "kb", key, content });
    }
    const inBlock = async (query, limit) =>
      (await ok("searchContext", { label: "kb", query, limit })).results.map(({ key }) => key);
    const inTalk = async (query, limit) => (await ok("search", { query, limit })).results.map(({ id }) => id);
    // Until every turn has its vector.
    for (let left = 100; left > 0 && (await ok("search", { query: "anything" })).vectors?.pending; left -= 1);
    rows.push([
      title,
      await share(asked(meanings, "?"), inBlock, 1),
      await share(asked(meanings, "?"), inBlock, 5),
      await share(asked(meanings, "@"), inTalk, 10),
      await share(asked(friends, "?"), inTalk, 10),
    ]);
    await server.stop();
  }
  const questions = [asked(meanings, "?"), asked(meanings, "?"), asked(meanings, "@"), asked(friends, "?")];
  return [
    `What was asked for is among the first so many, with \`${model}\`:`,
    "",
    "| | entries, first | entries, first 5 | turns in other words, first 10 | turns in their words, first 10 |",
    `|---|${questions.map(() => "---|").join("")}`,
    `| questions | ${questions.map((list) => list.length).join(" | ")} |`,
    ...rows.map((row) => `| ${row.join(" | ")} |`),
    "",
  ];
}

/** The two friends' sessions, as the tests have them. */
async function talk(ok) {
  let sessionId;
  let at = 0;
  for (const line of friends.filter((line) => !line.startsWith("?"))) {
    const [first, second, ...rest] = line.split(" ");
    if (first === "#") {
      sessionId = second;
      at = Number(rest[0]);
      await ok("createSession", { id: sessionId });
      continue;
    }
    const name = second.replace(":", "");
    const role = name === "Nora" ? "user" : "assistant";
    at += 60_000;
    const parts = [{ type: "text", text: rest.join(" ") }];
    await ok("appendMessage", { sessionId, message: { id: first, role, createdAt: at, metadata: { name }, parts } });
  }
}

async function share(questions, find, limit) {
  let gold = 0;
  let hit = 0;
  for (const { gold: wanted, question } of questions) {
    const found = await find(question, limit);
    gold += wanted.length;
    hit += wanted.filter((id) => found.includes(id)).length;
    if (process.env.VERBOSE && !wanted.every((id) => found.includes(id))) console.error(`missed ${wanted} ${question}`);
  }
  return `${Math.round((100 * hit) / gold)} %`;
}

async function latency() {
  const rows = [];
  for (const dimensions of DIMENSIONS) {
    const standIn = createServer((request, response) => {
      request.resume();
      const embedding = Array.from({ length: dimensions }, () => Math.random() - 0.5);
      request.on("end", () => response.end(JSON.stringify({ data: [{ index: 0, embedding }] })));
    });
    standIn.listen(0, "127.0.0.1");
    await once(standIn, "listening");
    const vars = { EMBEDDING_MODEL: "openai:stand-in", OPENAI_BASE_URL: `http://127.0.0.1:${standIn.address().port}/v1` };
    const figures = [];
    for (const more of [{}, vars]) {
      const server = await startServer({ vars: { AUTH: "open", ...more } });
      await fill(server, dimensions);
      figures.push(await timed(server));
      await server.stop();
    }
    standIn.close();
    rows.push(`| ${dimensions} | ${figures.map(({ ms, rowsRead }) => `${ms} ms | ${rowsRead}`).join(" | ")} |`);
  }
  return [
    `A search of a block of ${ENTRIES.toLocaleString("en")} entries, the median of ${ROUNDS}:`,
    "",
    "| numbers a vector | by words alone | rows read | by meaning, too | rows read |",
    "|---|---|---|---|---|",
    ...rows,
    "",
  ];
}

/** Straight into the tables: what is timed is the search. */
async function fill(server, dimensions) {
  await server.call("bench", "defineBlock", { label: "kb", kind: "searchable" });
  const entry = { label: "kb", key: "first", content: "the topic17 of everything" };
  await server.call("bench", "setEntry", entry);
  await server.sql(
    "bench",
    `WITH RECURSIVE n (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < ${ENTRIES})
     INSERT INTO cf_agents_entries (number, scope, block, key, content, created_at, updated_at)
     SELECT n, '', 'kb', 'key' || n, 'an entry about topic' || (n % ${TOPICS}) || ' and what it is like', n, n FROM n`,
  );
  await server.sql(
    "bench",
    `INSERT INTO cf_agents_entries_search (rowid, stems, words, about)
     SELECT number, content, content, key FROM cf_agents_entries WHERE number > 1`,
  );
  await server.sql("bench", "DELETE FROM cf_agents_entry_vectors");
  await server.sql(
    "bench",
    `INSERT INTO cf_agents_entry_vectors (number, model, vector)
     SELECT number, 'openai:stand-in', hex(randomblob(${dimensions / 2})) FROM cf_agents_entries`,
  );
}

async function timed(server) {
  const times = [];
  let rowsRead;
  for (let round = 0; round < ROUNDS; round += 1) {
    const begun = performance.now();
    const answer = await server.call("bench", "searchContext", { label: "kb", query: `topic${round} of interest` });
    times.push(performance.now() - begun);
    if (answer.status !== 200 || answer.body.vectors?.error) throw new Error(JSON.stringify(answer.body));
    rowsRead = answer.rowsRead;
  }
  times.sort((a, b) => a - b);
  return { ms: Math.round(times[ROUNDS / 2]), rowsRead };
}
