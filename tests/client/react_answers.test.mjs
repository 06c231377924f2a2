// How `session-agent/react` puts a turn's chunks together with messages of the log that may have
// some of the turn already.

import assert from "node:assert/strict";
import { test } from "node:test";
import { beforeContinuation } from "../../packages/session-agent/dist/react/messages.js";
import { Turn } from "../../packages/session-agent/dist/react/turn.js";

const text = (text) => ({ type: "text", text });
const call = (toolCallId, more) => ({ type: "tool-book", toolCallId, state: "output-available", ...more });
const answer = (...parts) => ({ id: "a1", role: "assistant", parts });

test("a_message_that_is_continued_is_what_it_was_before_its_turn", () => {
  const waiting = call("c1", { state: "approval-requested", approval: { id: "1" } });
  const decided = call("c1", { state: "output-denied", approval: { id: "1", approved: false } });
  const cases = [
    // The log, and what of it was there before the turn.
    [[text("a"), waiting], 2],
    [[text("a"), decided], 2],
    [[text("a"), decided, text("b")], 2],
    [[text("a"), decided, text("b"), call("c2"), text("c")], 2],
    [[text("a"), decided, call("c2"), text("b")], 3],
    [[text("a"), decided, text("b"), { ...waiting, toolCallId: "c2" }], 4],
    // A call that the page answered.
    [[text("a"), call("c1"), text("b")], 2],
    [[text("a"), call("c1"), call("c2")], 3],
  ];
  for (const [parts, count] of cases)
    assert.deepEqual(beforeContinuation(answer(...parts)).parts, parts.slice(0, count), JSON.stringify(parts));
});

test("a_turn_that_was_read_before_its_chunks_came_is_shown_once", () => {
  const denied = call("c1", { state: "output-denied", approval: { id: "1", approved: false } });
  const stored = answer(text("I book."), denied, text("Then not."));
  const turn = new Turn("t", null, () => beforeContinuation(stored));
  const chunks = [
    { type: "start" },
    { type: "start-step" },
    { type: "text-start", id: "x" },
    { type: "text-delta", id: "x", delta: "Then " },
    { type: "text-delta", id: "x", delta: "not." },
    { type: "text-end", id: "x" },
  ];
  for (const [seq, chunk] of chunks.entries()) turn.take({ body: JSON.stringify(chunk), seq });
  assert.deepEqual(turn.answer, stored);
});
