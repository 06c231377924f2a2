// A real embedding model behind OpenAI's API, called directly and by the Worker.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { makeLetters, makeTalk } from "../../bench/talks.mjs";
import { startServer } from "./harness.mjs";
import { startRealModel } from "./real_models.mjs";

const model = await startRealModel("embedding_model");
const vars = { AUTH: "open", EMBEDDING_MODEL: "openai:all-minilm-l6-v2", OPENAI_BASE_URL: model.url };
const server = model.skip ? undefined : await startServer({ vars });
after(async () => {
  await server?.stop();
  await model.stop();
});

async function ok(agent, operation, input) {
  const { status, body } = await server.call(agent, operation, input);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** The model pads all texts of a request to the longest, so a few at a time. */
const EMBEDDED_AT_ONCE = 32;

async function embed(...input) {
  const vectors = [];
  for (let at = 0; at < input.length; at += EMBEDDED_AT_ONCE) {
    const body = JSON.stringify({ model: "any", input: input.slice(at, at + EMBEDDED_AT_ONCE) });
    const init = { method: "POST", headers: { "content-type": "application/json" }, body };
    const response = await fetch(`${model.url}/embeddings`, init);
    vectors.push(...(await response.json()).data.map(({ embedding }) => embedding));
  }
  return vectors;
}

const product = (one, other) => one.reduce((sum, number, index) => sum + number * other[index], 0);

test("the_same_meaning_is_nearer_than_the_same_words", { skip: model.skip }, async () => {
  const [question, answer, words] = await embed(
    "Where do I put my car for the night?",
    "Overnight parking is in the garage below the hotel.",
    "I put the book about the night of the long cars away.",
  );
  assert.equal(question.length, 384);
  assert.ok(Math.abs(product(question, question) - 1) < 1e-4);
  const [near, far] = [product(question, answer), product(question, words)];
  assert.ok(near > far, `${near} and ${far}`);
});

test("an_entry_is_found_without_a_common_word", { skip: model.skip }, async () => {
  await ok("library", "defineBlock", { label: "kb", kind: "searchable" });
  for (const [key, content] of [
    ["refunds", "Customers get their money back within 30 days if the goods are unused."],
    ["parking", "The garage closes at 10 pm; cars left inside are towed the next morning."],
    ["sick-leave", "From the third day of illness on, hand in a doctor's certificate."],
  ]) {
    await ok("library", "setEntry", { label: "kb", key, content });
  }
  for (const [query, key] of [
    ["May I return a pair of shoes?", "refunds"],
    ["What happens to my vehicle overnight?", "parking"],
    ["I have the flu", "sick-leave"],
  ]) {
    const found = await ok("library", "searchContext", { label: "kb", query });
    assert.equal(found.results[0].key, key, query);
    assert.deepEqual(found.vectors, { pending: false });
  }
});

test("messages_are_found_in_other_words", { skip: model.skip }, async () => {
  await ok("talk", "configureAgent", { vectors: true });
  await ok("talk", "createSession", { id: "s" });
  const events = ["I handed in my notice at the bank.", "The puppy ate my shoe.", "It snows and the pipes froze."];
  for (const content of events) {
    await ok("talk", "appendEvents", { sessionId: "s", events: [{ action: "user_message", content }] });
  }
  const { results } = await ok("talk", "search", { query: "What did our dog chew up?" });
  assert.match(results[0].snippet, /shoe/);
});

// Stored vectors have a bit per number, and a bit is noise for a single question. So the sets
// are large enough that a few questions decide nothing.
for (const [kind, { messages, questions }] of [
  ["short turns", makeTalk({ pairs: 2 })],
  ["long letters", makeLetters()],
]) {
  test(`both_rankings_together_find_at_least_as_much_in_${kind.replace(" ", "_")}`, {
    skip: model.skip,
  }, async () => {
    const sessions = new Set();
    for (const { id, sessionId, name, role, text, createdAt } of messages) {
      if (!sessions.has(sessionId)) await ok(kind, "createSession", { id: sessionId });
      sessions.add(sessionId);
      const message = { id, role, createdAt, metadata: { name }, parts: [{ type: "text", text }] };
      await ok(kind, "appendMessage", { sessionId, message });
    }
    const texts = await embed(...messages.map(({ name, text }) => `${name}: ${text}`));
    const vectors = await embed(...questions.map(({ question }) => question));
    const byMeaning = vectors.map((one) => {
      const near = texts.map((text, index) => [product(one, text), messages[index].id]);
      return near.sort(([one], [other]) => other - one).map(([, id]) => id);
    });
    const search = async () => {
      const found = [];
      for (const { question: query } of questions) {
        // On a busy machine the model may be too slow for a question, and only words are searched.
        let answer;
        for (let left = 20; left > 0 && (answer === undefined || answer.vectors?.error); left -= 1)
          answer = await ok(kind, "search", { query, limit: 10 });
        found.push(answer.results.map(({ id }) => id));
      }
      return found;
    };
    const byWords = await search();
    await ok(kind, "configureAgent", { vectors: true });
    // On a busy machine the model may be too slow for one search. The next search creates the
    // missing vectors.
    for (let left = 100; left > 0; left -= 1) {
      const { vectors } = await ok(kind, "search", { query: "anything" });
      if (!vectors.pending && !vectors.error) break;
    }
    const byBoth = await search();
    for (const most of [1, 10]) {
      const recall = (found) =>
        questions.filter(({ gold }, index) => found[index].slice(0, most).includes(gold)).length / questions.length;
      const [words, meanings, both] = [byWords, byMeaning, byBoth].map(recall);
      assert.ok(both >= Math.max(words, meanings), `first ${most}: ${words} ${meanings} ${both}`);
    }
  });
}
