// Search by keywords, by meaning and by both: its results, and its duration over a full block.
// Results: bench/vectors.md.
//
//   npm run bench -- vectors
//   EMBEDDINGS_URL=http://127.0.0.1:1234/v1 EMBEDDINGS_MODEL=… npm run bench -- vectors
//   RECORD=1 npm run bench -- vectors    (also rewrites crates/search/src/recorded/)
//
// The vectors come from the real model of the tests, or from any OpenAI-compatible
// endpoint. VERBOSE=1 names the questions whose answers were missed. The times depend on
// the machine; they are measured with a fake model, which answers at once.

import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { startServer } from "../tests/workerd/harness.mjs";
import { startRealModel } from "../tests/workerd/real_models.mjs";
import { makeLetters, makeTalk } from "./talks.mjs";

const real = process.env.EMBEDDINGS_URL ? undefined : await startRealModel("embedding_model");
const modelUrl = process.env.EMBEDDINGS_URL ?? real.url;
const model = process.env.EMBEDDINGS_MODEL ?? "all-minilm-l6-v2";
const ENTRIES = 10_000;
const DIMENSIONS = [384, 1_024];
const ROUNDS = 20;
const RECORDED_MESSAGES = 300;
const RECORDED_QUESTIONS = 80;
/** The number of topics among the entries whose search is timed. */
const TOPICS = 1_000;

const known = new Map();
const { url, stop: stopServing } = await serveEmbeddings();

const read = async (path) => (await readFile(new URL(path, import.meta.url), "utf8")).split("\n");
const meanings = (await read("meanings.txt")).filter((line) => line && !line.startsWith("#"));
const friends = (await read("../tests/native/search/friends.txt")).filter(Boolean);
const questionsOf = (lines, mark) =>
  lines
    .filter((line) => line.startsWith(mark))
    .map((line) => line.match(/^. (\S+) (.+)$/))
    .map(([, gold, question]) => ({ gold: gold.split(","), question }));

const lines = ["# Finding by meaning", "", "By `npm run bench -- vectors`.", ""];
lines.push(...(modelUrl ? await recall() : ["No recall was measured: there was no model.", ""]), ...(await latency()));
stopServing();
await real?.stop();
await writeFile(new URL("vectors.md", import.meta.url), lines.join("\n"));
console.log(lines.join("\n"));

async function recall() {
  const questions = [
    questionsOf(meanings, "?"),
    questionsOf(meanings, "?"),
    questionsOf(meanings, "@"),
    questionsOf(friends, "?"),
  ];
  const rows = [];
  const sets = [
    ["a talk, its turns short", "talk", makeTalk()],
    ["letters, long ones", "letters", makeLetters()],
  ].map(([title, name, set]) => ({ title, name, ...set, found: [] }));
  for (const set of sets) set.nearness = await compare(set);
  for (const [title, vars] of [
    ["words alone", {}],
    ["words and meanings", { EMBEDDING_MODEL: `openai:${model}`, OPENAI_BASE_URL: url }],
  ]) {
    const server = await startServer({ vars: { AUTH: "open", ...vars } });
    const as = (agent) => async (operation, input) => {
      const { status, body } = await server.call(agent, operation, input);
      if (status !== 200 || body.vectors?.error) throw new Error(`${operation}: ${JSON.stringify(body)}`);
      return body;
    };
    const ok = as("bench");
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
    await untilIndexed(ok);
    rows.push([
      title,
      await share(questions[0], inBlock, 1),
      await share(questions[1], inBlock, 5),
      await share(questions[2], inTalk, 10),
      await share(questions[3], inTalk, 10),
    ]);
    for (const set of sets) {
      const ok = as(set.name);
      await ok("configureAgent", { vectors: true });
      await write(ok, set.messages);
      await untilIndexed(ok);
      const found = [];
      for (const { question } of set.questions)
        found.push((await ok("search", { query: question, limit: 100 })).results);
      set.found.push(found);
    }
    await server.stop();
  }
  const lines = [
    `What was asked for is among the first so many, with \`${model}\`:`,
    "",
    "| | entries, first | entries, first 5 | turns in other words, first 10 | turns in their words, first 10 |",
    `|---|${questions.map(() => "---|").join("")}`,
    `| questions | ${questions.map((list) => list.length).join(" | ")} |`,
    ...rows.map((row) => `| ${row.join(" | ")} |`),
    "",
    "The same of the two sets that are made of talks.txt, R@1, R@5 and R@10; of their",
    "questions two of three are asked in the words of what they ask for:",
    "",
  ];
  for (const set of sets) {
    if (process.env.RECORD) await record(set);
    const [words, both] = set.found.map((found) => found.map((results) => results.map(({ id }) => id)));
    const near = set.nearness.map((row) => {
      const order = row
        .map((nearness, index) => [nearness, set.messages[index].id])
        .sort(([one], [other]) => other - one);
      return order.slice(0, 10).map(([, id]) => id);
    });
    const figures = (found) => [1, 5, 10].map((most) => recallOf(set.questions, found, most).toFixed(3)).join(" / ");
    lines.push(
      `| ${set.title}: ${set.messages.length} messages, ${set.questions.length} questions | R@1 / R@5 / R@10 |`,
      "|---|---|",
      `| by words alone | ${figures(words)} |`,
      `| by meanings alone | ${figures(near)} |`,
      `| by both | ${figures(both)} |`,
      "",
    );
  }
  return lines;
}

/** Writes messages, each to its session. */
async function write(ok, messages) {
  const sessions = new Set();
  for (const { id, sessionId, name, role, text, createdAt } of messages) {
    if (!sessions.has(sessionId)) await ok("createSession", { id: sessionId });
    sessions.add(sessionId);
    const message = { id, role, createdAt, metadata: { name }, parts: [{ type: "text", text }] };
    await ok("appendMessage", { sessionId, message });
  }
}

/** Waits until every message is in the index and has its vector. */
async function untilIndexed(ok) {
  for (let left = 1_000; left > 0; left -= 1) {
    const { pending, vectors } = await ok("search", { query: "anything" });
    if (!pending && !vectors?.pending) return;
  }
}

/** The nearness of each message to each question, by the model alone. */
async function compare({ messages, questions }) {
  const texts = await embed(messages.map(({ name, text }) => `${name}: ${text}`.slice(0, 2_000)));
  const vectors = await embed(questions.map(({ question }) => question));
  return vectors.map((one) => texts.map((other) => one.reduce((sum, number, index) => sum + number * other[index], 0)));
}

/**
 * The vectors of the texts. The model is asked for each text once, since no figure here is
 * about the model's speed.
 */
async function embed(texts) {
  const missing = [...new Set(texts)].filter((text) => !known.has(text));
  for (let at = 0; at < missing.length; at += 32) {
    const input = missing.slice(at, at + 32);
    const init = { method: "POST", headers: { "content-type": "application/json" } };
    const response = await fetch(`${modelUrl}/embeddings`, { ...init, body: JSON.stringify({ model, input }) });
    const { data } = await response.json();
    for (const { index, embedding } of data) known.set(input[index], embedding);
  }
  return texts.map((text) => known.get(text));
}

/** An endpoint with the same vectors, for the Worker. */
async function serveEmbeddings() {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const embeddings = await embed(JSON.parse(body).input);
    response.end(JSON.stringify({ data: embeddings.map((embedding, index) => ({ index, embedding })) }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${server.address().port}/v1`, stop: () => server.close() };
}

function recallOf(questions, found, most) {
  return questions.filter(({ gold }, index) => found[index].slice(0, most).includes(gold)).length / questions.length;
}

/**
 * Writes both rankings of the first questions over the first messages, for a test of how
 * they are fused. A line per question: the place of the message that answers it, the score
 * of each message by words (in hundredths, empty if words don't find it), and the nearness
 * of each message (in ten-thousandths).
 */
async function record({ name, messages, questions, nearness, found: [byWords] }) {
  const recorded = messages.slice(0, RECORDED_MESSAGES);
  const lines = [];
  for (const [index, { gold }] of questions.entries()) {
    const position = recorded.findIndex(({ id }) => id === gold);
    if (position < 0 || lines.length === RECORDED_QUESTIONS) continue;
    const scores = new Map(byWords[index].map(({ id, score }) => [id, score]));
    const words = recorded.map(({ id }) => (scores.has(id) ? Math.round(scores.get(id) * 100) : ""));
    const near = nearness[index].slice(0, recorded.length).map((one) => Math.round(one * 10_000));
    lines.push([position, words.join(","), near.join(",")].join(" "));
  }
  const folder = new URL("../crates/search/src/recorded/", import.meta.url);
  await mkdir(folder, { recursive: true });
  await writeFile(new URL(`${name}.txt`, folder), `${lines.join("\n")}\n`);
}

/** Writes the sessions of the two friends, as in the tests. */
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
    const vars = {
      EMBEDDING_MODEL: "openai:stand-in",
      OPENAI_BASE_URL: `http://127.0.0.1:${standIn.address().port}/v1`,
    };
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

/** Writes directly to the tables, since only the search is timed. */
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
    const start = performance.now();
    const answer = await server.call("bench", "searchContext", { label: "kb", query: `topic${round} of interest` });
    times.push(performance.now() - start);
    if (answer.status !== 200 || answer.body.vectors?.error) throw new Error(JSON.stringify(answer.body));
    rowsRead = answer.rowsRead;
  }
  times.sort((a, b) => a - b);
  return { ms: Math.round(times[ROUNDS / 2]), rowsRead };
}
