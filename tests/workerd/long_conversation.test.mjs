// A conversation many times as long as its model's window. `npm run bench -- long` runs 5,000 turns
// with a real tokenizer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { WINDOW, runConversation } from "./long_conversation.mjs";

const TURNS = 240;
const FACTS = 10;

// A token has about four letters; the benchmark counts exactly.
const count = (text) => Math.ceil(text.length / 4);

test("a_long_conversation_fits_a_small_window_and_loses_nothing", async (t) => {
  const done = await runConversation({ turns: TURNS, facts: FACTS, readEvery: 40, count });
  assert.equal(done.answered, TURNS);
  assert.ok(
    done.sent.every((tokens) => tokens > 0 && tokens <= WINDOW),
    `${Math.max(...done.sent)}`,
  );
  assert.ok(done.summaries > 0);
  assert.equal(done.found.inContext + done.found.bySearch, FACTS, JSON.stringify(done.found));
  assert.equal(done.messages, 2 * TURNS, "each question and each answer is in the log");
  assert.equal(done.session.lastCompactionError, undefined);
  t.diagnostic(JSON.stringify({ ...done, sent: Math.max(...done.sent), session: undefined }));
});
