// The client's pure functions that the documentation of the Agents SDK shows, and the formats of
// OpenAI and Anthropic, over random conversations.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  anthropicAdapter,
  createCompactFunction,
  estimateMessageTokens,
  openAIAdapter,
  truncateOlderMessages,
} from "../../client/dist/index.js";

/** Pseudorandom numbers, the same each time. */
function randomOf(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

/** A conversation as a model gets it: calls with their results, roles in any order. */
function conversation(random) {
  const messages = [];
  for (let n = random(12); n >= 0; n -= 1) {
    const kind = random(5);
    if (kind === 0) messages.push({ role: "system", content: `s${n}` });
    else if (kind === 1) messages.push({ role: "user", content: random(4) === 0 ? "" : `u${n}` });
    else if (kind === 2) messages.push({ role: "assistant", content: `a${n}` });
    else {
      const ids = Array.from({ length: 1 + random(2) }, (_, call) => `functions.t:${n}/${call}`);
      const toolCalls = ids.map((id) => ({ id, name: "t", arguments: { n } }));
      messages.push({ role: "assistant", content: random(2) === 0 ? "" : `c${n}`, toolCalls });
      for (const toolCallId of ids)
        messages.push({ role: "tool", content: `r${n}`, toolCallId, ...(random(3) === 0 && { isError: true }) });
    }
  }
  return messages;
}

const GAMES = 500;

test("openai_gets_every_message_in_order_with_results_after_calls", () => {
  for (let seed = 1; seed <= GAMES; seed += 1) {
    const messages = conversation(randomOf(seed));
    const { messages: converted } = openAIAdapter.toModelMessages(["Be kind."], messages);
    assert.deepEqual(converted[0], { role: "system", content: "Be kind." });
    assert.deepEqual(
      converted.slice(1).map(({ role, content }) => [role, content ?? ""]),
      messages.map(({ role, content }) => [role, content]),
    );
    const called = converted.flatMap(({ tool_calls: calls = [] }) => calls.map(({ id }) => id));
    const answered = converted.flatMap(({ tool_call_id: id }) => (id === undefined ? [] : [id]));
    assert.deepEqual(answered, called, `seed ${seed}`);
  }
  assert.deepEqual(openAIAdapter.toModelMessages([], []), { messages: [] });
});

test("anthropic_roles_alternate_and_ids_are_valid_and_unique", () => {
  for (let seed = 1; seed <= GAMES; seed += 1) {
    const messages = conversation(randomOf(seed));
    const { system = "", messages: converted } = anthropicAdapter.toModelMessages(["Be kind."], messages);
    const ofSystem = messages.filter(({ role }) => role === "system").map(({ content }) => content);
    assert.equal(system, ["Be kind.", ...ofSystem].join("\n\n"));
    for (const [n, { role, content }] of converted.entries()) {
      assert.notEqual(role, converted[n - 1]?.role, `seed ${seed}: roles take turns`);
      assert.ok(content.length > 0, `seed ${seed}: no message is empty`);
    }
    const blocks = converted.flatMap(({ content }) => content);
    const called = blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id);
    const answered = blocks.filter(({ type }) => type === "tool_result").map(({ tool_use_id: id }) => id);
    assert.deepEqual(answered, called, `seed ${seed}`);
    assert.ok(called.every((id) => /^[\w-]+$/.test(id)));
    const texts = messages.filter(({ role, content }) => role !== "system" && role !== "tool" && content !== "");
    assert.deepEqual(
      blocks.filter(({ type }) => type === "text").map(({ text }) => text),
      texts.map(({ content }) => content),
    );
  }
  const ids = ["a.b", "a_b", "a:b", "a/b", "a_2e_b"];
  const calls = ids.map((id) => ({ id, name: "t", arguments: {} }));
  const { messages } = anthropicAdapter.toModelMessages([], [{ role: "assistant", content: "", toolCalls: calls }]);
  assert.equal(new Set(messages[0].content.map(({ id }) => id)).size, ids.length, "no two ids become one");
});

test("files_are_sent_in_each_providers_format", () => {
  const message = {
    role: "user",
    content: "Look.",
    files: [
      { url: "data:image/png;base64,AAAA", mediaType: "image/png" },
      { url: "https://example.com/a.pdf", mediaType: "application/pdf", filename: "a.pdf" },
    ],
  };
  assert.deepEqual(openAIAdapter.toModelMessages([], [message]).messages[0].content, [
    { type: "text", text: "Look." },
    { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
    { type: "file", file: { file_data: "https://example.com/a.pdf", filename: "a.pdf" } },
  ]);
  assert.deepEqual(anthropicAdapter.toModelMessages([], [message]).messages[0].content, [
    { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
    { type: "document", source: { type: "url", url: "https://example.com/a.pdf" } },
    { type: "text", text: "Look." },
  ]);
});

/** A message of the AI SDK, of a length or with a tool's output. */
function uiMessage(n, random) {
  const text = "x".repeat(random(3) * 6_000);
  const output = random(2) === 0 ? "y".repeat(random(3) * 400) : { y: "y".repeat(random(3) * 400) };
  const tool = { type: random(2) === 0 ? "tool-t" : "dynamic-tool", toolName: "t", state: "output-available" };
  return {
    id: `m${n}`,
    role: n % 2 ? "assistant" : "user",
    parts: [{ type: "text", text }, ...(random(2) === 0 ? [{ ...tool, input: {}, output }] : [])],
  };
}

test("older_messages_are_truncated_in_copies_and_the_newest_kept", () => {
  for (let seed = 1; seed <= GAMES; seed += 1) {
    const random = randomOf(seed);
    const messages = Array.from({ length: random(9) }, (_, n) => uiMessage(n, random));
    const before = structuredClone(messages);
    const options = random(2) === 0 ? {} : { keepRecent: random(4), maxTextChars: 10, maxToolOutputChars: 5 };
    const { keepRecent = 4, maxTextChars = 10_000, maxToolOutputChars = 500 } = options;
    const converted = truncateOlderMessages(messages, options);
    assert.deepEqual(messages, before, "the input is unchanged");
    assert.equal(converted.length, messages.length);
    for (const [n, message] of converted.entries()) {
      const isRecent = n >= messages.length - keepRecent;
      if (isRecent) assert.equal(message, messages[n]);
      for (const [at, { type, text, output }] of message.parts.entries()) {
        if (isRecent) continue;
        const [shown, most] = type === "text" ? [text, maxTextChars] : [output, maxToolOutputChars];
        const length = typeof shown === "string" ? shown.length : JSON.stringify(shown).length;
        assert.ok(length <= most + 40, `seed ${seed}: ${length} of ${most}`);
        const given = messages[n].parts[at];
        if (JSON.stringify(given).length <= most) assert.equal(message.parts[at], given);
      }
    }
  }
});

test("a_summary_replaces_the_middle_but_never_another_summary", async () => {
  let summaries = 0;
  for (let seed = 1; seed <= GAMES; seed += 1) {
    const random = randomOf(seed);
    const messages = Array.from({ length: random(14) }, (_, n) => uiMessage(n, random));
    const hasSummary = messages.length > 3 && random(2) === 0;
    if (hasSummary) messages[3] = { id: "compaction_1", role: "assistant", parts: [{ type: "text", text: "Before." }] };
    const [protectHead, minTailMessages] = [random(4), random(4)];
    const tailTokenBudget = random(3) * 2_000;
    const prompts = [];
    const compact = createCompactFunction({
      summarize: async (prompt) => (prompts.push(prompt), random(9) === 0 ? " " : "In short."),
      protectHead,
      minTailMessages,
      tailTokenBudget,
    });
    const result = await compact(messages);
    summaries += prompts.length;
    if (result === null) continue;
    const [from, to] = [result.fromMessageId, result.toMessageId].map((id) => messages.findIndex((m) => m.id === id));
    assert.ok(from >= protectHead && from <= to && to < messages.length - minTailMessages, `seed ${seed}`);
    assert.ok(!result.fromMessageId.startsWith("compaction_") && !result.toMessageId.startsWith("compaction_"));
    // The messages that stay at the end are within the budget, or are the required minimum.
    const rest = messages.slice(to + 1).filter(({ id }) => !id.startsWith("compaction_"));
    assert.ok(estimateMessageTokens(rest) <= tailTokenBudget || rest.length <= minTailMessages, `seed ${seed}`);
    assert.equal(prompts[0].includes("The summary so far:\n\nBefore."), hasSummary);
  }
  assert.ok(summaries > GAMES / 4, "summaries are requested");
});
