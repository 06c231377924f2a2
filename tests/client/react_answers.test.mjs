// How `session-agent/react` merges a turn's chunks with messages of the log that may already
// contain part of the turn.

import assert from "node:assert/strict";
import { test } from "node:test";
import { acceptInput, inputFieldsOf, refuseInput } from "../../packages/session-agent/dist/index.js";
import { NOTHING, withChunk } from "../../packages/session-agent/dist/react/answer.js";
import { beforeContinuation, openCalls, withDecisions } from "../../packages/session-agent/dist/react/messages.js";
import { Turn } from "../../packages/session-agent/dist/react/turn.js";

const text = (text) => ({ type: "text", text });
const call = (toolCallId, more) => ({ type: "tool-book", toolCallId, state: "output-available", ...more });
const inputRequest = (id, more) => ({
  type: "data-input-request",
  id,
  data: { toolCallId: id, tool: "book", requests: {}, ...more },
});
const answer = (...parts) => ({ id: "a1", role: "assistant", parts });

test("a_continued_message_is_reset_to_its_state_before_the_turn", () => {
  const waiting = call("c1", { state: "approval-requested", approval: { id: "1" } });
  const decided = call("c1", { state: "output-denied", approval: { id: "1", approved: false } });
  const cases = [
    // The log, and how much of it existed before the turn.
    [[text("a"), waiting], 2],
    [[text("a"), decided], 2],
    [[text("a"), decided, text("b")], 2],
    [[text("a"), decided, text("b"), call("c2"), text("c")], 2],
    [[text("a"), decided, call("c2"), text("b")], 3],
    [[text("a"), decided, text("b"), { ...waiting, toolCallId: "c2" }], 4],
    // A question that was answered.
    [[text("a"), call("c1"), inputRequest("c1"), text("b")], 3],
    [[text("a"), decided, text("b"), call("c2"), inputRequest("c2"), text("c")], 5],
    // A call that the page answered.
    [[text("a"), call("c1"), text("b")], 2],
    [[text("a"), call("c1"), call("c2")], 3],
  ];
  for (const [parts, count] of cases)
    assert.deepEqual(beforeContinuation(answer(...parts)).parts, parts.slice(0, count), JSON.stringify(parts));
});

test("a_turn_loaded_before_its_chunks_arrive_is_shown_once", () => {
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

test("a_new_question_replaces_the_old_and_closes_while_submitting", () => {
  const begin = () => answer(text("I book."));
  const chunks = [
    { type: "start", messageId: "a1" },
    { type: "tool-input-available", toolCallId: "c1", toolName: "book", input: {} },
    inputRequest("c1", { requests: { a: { message: "1" } } }),
    inputRequest("c1", { requests: { a: { message: "2" } } }),
  ];
  const { message } = chunks.reduce((state, chunk) => withChunk(state, chunk, begin), NOTHING);
  const second = inputRequest("c1", { requests: { a: { message: "2" } } });
  const waiting = call("c1", { state: "input-available", input: {} });
  assert.deepEqual(message.parts, [text("I book."), waiting, second]);
  assert.deepEqual([...openCalls([message])], [["c1", "c1"]]);
  const [shown] = withDecisions([message], new Map([["c1", { output: { responses: {} } }]]));
  assert.equal(shown.parts[2].data.isClosed, true);
  assert.equal(openCalls([shown]).size, 0);
});

test("a_form_submits_its_values_and_omits_empty_fields", () => {
  const properties = {
    name: { type: "string" },
    note: { type: "string" },
    nights: { type: "integer" },
    age: { type: "number" },
    late: { type: "boolean" },
    bed: { type: "string", oneOf: [{ const: "x", title: "X" }] },
    extras: { type: "array", items: { anyOf: [{ const: "a", title: "A" }] } },
    at: { type: "string", format: "date-time" },
  };
  const request = {
    toolCallId: "c1",
    tool: "book",
    requests: {
      guest: { message: "?", requestedSchema: { type: "object", properties, required: ["name"] } },
      pay: { mode: "url", message: "Pay.", url: "https://pay.example/" },
    },
  };
  const form = new FormData();
  const names = new Map(inputFieldsOf(request.requests.guest, "guest").map(({ name, control }) => [name, control]));
  for (const [name, value] of [
    ["name", ""],
    ["note", ""],
    ["nights", "2"],
    ["age", ""],
    ["bed", ""],
    ["extras", "a"],
    ["at", "2026-01-31T12:00Z"],
  ])
    form.append(names.get(name), value);
  const content = { name: "", nights: 2, late: false, extras: ["a"], at: "2026-01-31T12:00:00.000Z" };
  assert.deepEqual(acceptInput(request, form), {
    responses: { guest: { action: "accept", content }, pay: { action: "accept" } },
  });
  assert.deepEqual(refuseInput(request), {
    responses: { guest: { action: "decline" }, pay: { action: "decline" } },
  });
});
