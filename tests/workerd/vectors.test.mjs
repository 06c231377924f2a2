// Vector search on the real runtime, which multiplies sixteen numbers at a time: results are
// ordered by cosine for vectors of any length.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { startServer } from "./harness.mjs";

const vectors = new Map();
let isDown = false;
/** While set, the model answers only after it. */
let hold = null;
/** A model that returns the vectors that a test assigned to the texts. */
const model = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  await hold;
  if (isDown) return response.writeHead(400).end("{}");
  const { input } = JSON.parse(body);
  const data = input.map((text, index) => ({ index, embedding: vectors.get(text) }));
  response.end(JSON.stringify({ data }));
});
model.listen(0, "127.0.0.1");
await once(model, "listening");
const url = `http://127.0.0.1:${model.address().port}/v1`;
const server = await startServer({ vars: { AUTH: "open", EMBEDDING_MODEL: "openai:m", OPENAI_BASE_URL: url } });
after(async () => {
  await server.stop();
  model.close();
});

async function ok(agent, operation, input) {
  const { status, body } = await server.call(agent, operation, input);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** Pseudorandom numbers, the same in every run and nearly normally distributed. */
function dice(seed) {
  let x = seed * 2_654_435_761;
  const next = () => {
    x = (Math.imul(x, 1_664_525) + 1_013_904_223) >>> 0;
    return x / 2 ** 32 - 0.5;
  };
  return () => next() + next() + next();
}

const product = (one, other) => one.reduce((sum, number, index) => sum + number * other[index], 0);
const cosine = (one, other) => product(one, other) / Math.sqrt(product(one, one) * product(other, other));

for (const length of [3, 16, 21, 384, 1_027]) {
  test(`the_nearest_of_vectors_with_${length}_numbers_are_found_in_order`, async () => {
    const agent = `of ${length}`;
    const roll = dice(length);
    const random = () => Array.from({ length }, roll);
    const query = random();
    vectors.set("anything", query);
    await ok(agent, "defineBlock", { label: "kb", kind: "searchable" });
    const stored = [];
    for (let n = 0; n < 20; n += 1) {
      // The vectors range from near the query to far from it, in another order than their
      // keys.
      const share = ((n * 7) % 20) / 10 - 1;
      const vector = random().map((number, index) => number * 0.2 + query[index] * share);
      vectors.set(`text ${n}`, vector);
      stored.push({ key: `k${n}`, nearness: cosine(query, vector) });
      await ok(agent, "setEntry", { label: "kb", key: `k${n}`, content: `text ${n}` });
    }
    const { results } = await ok(agent, "searchContext", { label: "kb", query: "anything", limit: 20 });
    const nearness = new Map(stored.map(({ key, nearness }) => [key, nearness]));
    assert.equal(results.length, 20);
    // Results whose cosines differ by less than the rounding may be in either order.
    const found = results.map(({ key }) => nearness.get(key)).filter((cosine) => cosine > 0.1);
    for (const [index, cosine] of found.entries()) {
      if (index > 0) assert.ok(cosine <= found[index - 1] + 0.01, `${index}: ${cosine} after ${found[index - 1]}`);
    }
    assert.ok(found.length >= 5);
  });
}

for (const length of [16, 384, 1_027]) {
  test(`messages_rank_by_direction_using_the_bits_of_${length}_numbers`, async () => {
    const agent = `talk of ${length}`;
    const roll = dice(length);
    const query = Array.from({ length }, roll);
    vectors.set("anything", query);
    await ok(agent, "configureAgent", { vectors: true });
    await ok(agent, "createSession", { id: "s" });
    const nearness = new Map();
    const events = [];
    for (let n = 0; n < 20; n += 1) {
      const share = ((n * 7) % 20) / 10 - 0.95;
      const vector = query.map((number) => roll() * 0.2 + number * share);
      vectors.set(`text ${n}`, vector);
      nearness.set(`e${n}`, share);
      // Events of tools between the messages, so that no message inherits from a neighbor.
      events.push({ id: `e${n}`, action: "user_message", content: `text ${n}` });
      events.push({ action: "tool_result", toolCallId: `c${n}`, toolName: "t", content: "-" });
    }
    await ok(agent, "appendEvents", { sessionId: "s", events });
    await ok(agent, "search", { query: "anything" });
    const { results } = await ok(agent, "search", { query: "anything", limit: 20 });
    const found = results.map(({ id }) => nearness.get(id));
    assert.equal(found.length, 20);
    assert.deepEqual(
      [found.slice(0, 8).every((share) => share > 0), found.slice(12).every((share) => share < 0)],
      [true, true],
      found,
    );
    const rows = await server.sql(agent, "SELECT DISTINCT typeof(vector), length(vector) FROM cf_agents_event_vectors");
    assert.deepEqual(
      rows.map((row) => Object.values(row)),
      [["blob", Math.ceil(length / 8)]],
    );
  });
}

test("an_unavailable_model_disables_only_semantic_search", async () => {
  await ok("down", "defineBlock", { label: "kb", kind: "searchable" });
  isDown = true;
  await ok("down", "setEntry", { label: "kb", key: "umbrella", content: "Take an umbrella." });
  const found = await ok("down", "searchContext", { label: "kb", query: "umbrellas" });
  isDown = false;
  assert.equal(found.results[0].key, "umbrella");
  assert.equal(found.vectors.error.code, "model_failed");
});

test("an_entry_is_acknowledged_before_its_vector_is_written", async () => {
  const vectorCount = async () => {
    const [{ n }] = await server.sql(
      "cost",
      "SELECT count(*) AS n FROM cf_agents_entry_vectors WHERE length(vector) > 0",
    );
    return n;
  };
  const untilMade = async (count) => {
    for (const until = Date.now() + 10_000; (await vectorCount()) < count; await wait(20))
      assert.ok(Date.now() < until, `vector ${count} was not made`);
  };
  await ok("cost", "defineBlock", { label: "kb", kind: "searchable" });
  for (const text of ["0", "a", "b"]) vectors.set(text, [1, 2, 3]);
  // The first entry of a block also writes the row that counts its entries.
  await ok("cost", "setEntry", { label: "kb", key: "zero", content: "0" });
  await untilMade(1);
  const release = Promise.withResolvers();
  hold = release.promise;
  const answered = await server.call("cost", "setEntry", { label: "kb", key: "two", content: "b" });
  assert.equal(await vectorCount(), 1);
  release.resolve();
  hold = null;
  await untilMade(2);
  isDown = true;
  const withoutModel = await server.call("cost", "setEntry", { label: "kb", key: "one", content: "a" });
  isDown = false;
  assert.equal(answered.rowsWritten, withoutModel.rowsWritten);
});
