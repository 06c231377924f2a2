// A real embedding model, asked as OpenAI is.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startRealModel } from "./real_models.mjs";

const model = await startRealModel("embedding_model");
after(() => model.stop());

async function embed(...input) {
  const init = { method: "POST", headers: { "content-type": "application/json" } };
  const response = await fetch(`${model.url}/embeddings`, { ...init, body: JSON.stringify({ model: "any", input }) });
  return (await response.json()).data.map(({ embedding }) => embedding);
}

const product = (one, other) => one.reduce((sum, number, index) => sum + number * other[index], 0);

test("what_means_the_same_is_nearer_than_what_shares_its_words", { skip: model.skip }, async () => {
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
