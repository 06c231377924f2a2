// Workers AI, called through the platform's own `Ai` class, as in a deployed Worker.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { allOf, events, submit } from "./chat_stream.mjs";
import { startServer } from "./harness.mjs";
import { hasNoCapacity, refuses, answerInChunks, answerUnstreamed, startWorkersAi } from "./servers/workers_ai.mjs";

const MODEL = "workers-ai:@cf/meta/llama-3.1-8b-instruct";
const SUMMARY = "## Topic\nParcels that were sent to Oslo.";

/** A conversation with a middle part that can be summarized. */
async function conversation(server, agent) {
  const turns = Array.from({ length: 10 }, (_, turn) => [
    { action: "user_message", content: `Where is parcel ${turn}?` },
    { action: "agent_message", content: `Parcel ${turn} is in Oslo.` },
  ]);
  await server.call(agent, "createSession", { id: "s" });
  await server.call(agent, "appendEvents", { sessionId: "s", events: turns.flat() });
  await server.call(agent, "configureCompaction", { sessionId: "s", tailTokenBudget: 0 });
}

async function compact(server, agent) {
  await conversation(server, agent);
  return (await server.call(agent, "compact", { sessionId: "s" })).body;
}

describe("with_workers_ai_available", () => {
  let ai;
  let server;
  before(async () => {
    ai = await startWorkersAi();
    server = await startServer({ ai: ai.url, vars: { AUTH: "open", MODEL } });
  });
  beforeEach(() => (ai.requests.length = 0));
  after(async () => {
    await server.stop();
    await ai.stop();
  });

  test("the_named_model_writes_the_summary_in_parts", async () => {
    ai.answer = (_, response) =>
      answerInChunks(response, [
        { response: SUMMARY.slice(0, 10) },
        { response: SUMMARY.slice(10) },
        { response: "", usage: { prompt_tokens: 300, completion_tokens: 12 } },
      ]);
    const { reason, compaction } = await compact(server, "pieces");
    assert.equal(reason, "compacted");
    assert.equal(compaction.summary, SUMMARY);
    assert.equal(ai.requests.length, 1);
    const [{ model, input }] = ai.requests;
    assert.equal(model, "@cf/meta/llama-3.1-8b-instruct");
    assert.equal(input.stream, true);
    assert.match(input.messages[0].content, /Parcel 4 is in Oslo\./);
  });

  test("an_unstreamed_answer_is_read", async () => {
    ai.answer = (_, response) => answerUnstreamed(response, { response: SUMMARY });
    assert.equal((await compact(server, "whole")).compaction.summary, SUMMARY);
  });

  test("an_answer_in_openais_shape_is_read", async () => {
    const chunk = (delta, finish_reason = null) => ({ choices: [{ index: 0, delta, finish_reason }] });
    ai.answer = (_, response) => answerInChunks(response, [chunk({ content: SUMMARY }), chunk({}, "stop")]);
    assert.equal((await compact(server, "openai")).compaction.summary, SUMMARY);
  });

  test("a_capacity_error_is_retried", async () => {
    ai.answer = (_, response) =>
      ai.requests.length === 1 ? hasNoCapacity(response) : answerUnstreamed(response, { response: SUMMARY });
    assert.equal((await compact(server, "busy")).compaction.summary, SUMMARY);
    assert.equal(ai.requests.length, 2);
    assert.deepEqual(ai.requests[0], ai.requests[1]);
  });

  test("a_persistent_capacity_error_is_reported", async () => {
    ai.answer = (_, response) => hasNoCapacity(response);
    const { reason, compaction, error } = await compact(server, "crowded");
    assert.deepEqual([reason, compaction, error.code], ["summariser_failed", null, "model_overloaded"]);
    assert.equal(ai.requests.length, 3);
  });

  test("other_failures_are_reported_at_once_without_their_message", async () => {
    ai.answer = (_, response) =>
      refuses(response, 400, 5006, "Error: required properties at '/prompt' for tenant 4711");
    const { reason, error } = await compact(server, "refused");
    assert.deepEqual([reason, error.code], ["summariser_failed", "model_failed"]);
    assert.match(error.message, /5006/);
    assert.doesNotMatch(error.message, /4711/);
    assert.equal(ai.requests.length, 1);
  });

  test("an_unstreamed_answer_that_is_too_large_is_refused", async () => {
    ai.answer = (_, response) => answerUnstreamed(response, { response: "x".repeat(17 << 20) });
    const { reason, error } = await compact(server, "large");
    assert.deepEqual([reason, error.code], ["summariser_failed", "model_failed"]);
    assert.match(error.message, /16777216 bytes/);
  });

  test("a_truncated_answer_writes_nothing", async () => {
    ai.answer = async (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"response":"## Topic"}\n\n', () => response.destroy());
    };
    const { reason, compaction } = await compact(server, "broken");
    assert.deepEqual([reason, compaction], ["summariser_failed", null]);
    const { body } = await server.call("broken", "getHistory", { sessionId: "s" });
    assert.equal(body.messages.length, 20);
  });
});

describe("a_turn_with_workers_ai", () => {
  let ai;
  let server;
  before(async () => {
    ai = await startWorkersAi();
    server = await startServer({ ai: ai.url, vars: { AUTH: "open", MODEL } });
  });
  beforeEach(() => (ai.requests.length = 0));
  after(async () => {
    await server.stop();
    await ai.stop();
  });

  test("streams_each_chunk_as_it_arrives", async () => {
    const received = [0, 1, 2].map(() => Promise.withResolvers());
    ai.answer = (_, response) =>
      answerInChunks(
        response,
        (async function* () {
          for (const [index, word] of ["One ", "two ", "three."].entries()) {
            yield { response: word };
            await received[index].promise;
          }
        })(),
      );
    const deltas = [];
    for await (const chunk of events(await submit(server, "pieces", "s", "Count."))) {
      if (chunk.type !== "text-delta") continue;
      received[deltas.length].resolve();
      deltas.push(chunk.delta);
    }
    assert.deepEqual(deltas, ["One ", "two ", "three."]);
  });

  test("shows_an_unstreamed_answer", async () => {
    ai.answer = (_, response) =>
      answerUnstreamed(response, { response: "Six.", usage: { prompt_tokens: 9, completion_tokens: 2 } });
    const { text, types } = await allOf(await submit(server, "whole", "s", "Three and three?"));
    assert.equal(text, "Six.");
    assert.equal(types.at(-1), "finish");
    const { body } = await server.call("whole", "getHistory", { sessionId: "s" });
    assert.deepEqual(
      body.messages.map(({ role }) => role),
      ["user", "assistant"],
    );
  });

  test("makes_the_calls_that_the_model_requests", async () => {
    await server.call("calls", "defineBlock", { label: "notes", kind: "writable", description: "What to keep" });
    ai.answer = ({ input }, response) =>
      ai.requests.length === 1
        ? answerUnstreamed(response, {
            response: null,
            tool_calls: [{ name: "set_context", arguments: { label: "notes", content: "Likes tea." } }],
          })
        : answerUnstreamed(response, {
            response: `I keep ${input.messages.filter(({ role }) => role === "tool").length} note.`,
          });
    const { text, types } = await allOf(await submit(server, "calls", "s", "Remember that I like tea."));
    assert.equal(text, "I keep 1 note.");
    assert.ok(types.includes("tool-output-available"));
    assert.ok(ai.requests[0].input.tools.some((tool) => JSON.stringify(tool).includes("set_context")));
    const { body } = await server.call("calls", "getBlock", { label: "notes" });
    assert.equal(body.content, "Likes tea.");
  });

  test("retries_a_capacity_error", async () => {
    ai.answer = (_, response) =>
      ai.requests.length === 1
        ? hasNoCapacity(response)
        : answerInChunks(response, [{ response: "Here " }, { response: "I am." }]);
    const { text, types } = await allOf(await submit(server, "busy", "s", "Are you there?"));
    assert.deepEqual([text, ai.requests.length], ["Here I am.", 2]);
    assert.ok(!types.includes("error"));
  });

  test("ends_with_an_error_if_it_persists_and_keeps_the_question", async () => {
    ai.answer = (_, response) => hasNoCapacity(response);
    const { types } = await allOf(await submit(server, "crowded", "s", "Are you there?"));
    assert.ok(types.includes("error"), types.join());
    assert.equal(ai.requests.length, 3);
    const { body } = await server.call("crowded", "getHistory", { sessionId: "s" });
    assert.equal(body.messages[0].parts[0].text, "Are you there?");
  });
});

describe("without_workers_ai", () => {
  for (const [place, ai] of [
    ["a_local_run", "local"],
    ["a_worker_without_the_binding", undefined],
  ]) {
    test(`in_${place}_the_demo_answers_if_no_model_is_named`, async () => {
      const server = await startServer({ ai, vars: { AUTH: "open" } });
      after(() => server.stop());
      const { reason, compaction } = await compact(server, "demo");
      assert.equal(reason, "compacted");
      assert.match(compaction.summary, /Parcel 4 is in Oslo\./);
      const { text } = await allOf(await submit(server, "demo", "talk", "Who are you?"));
      assert.match(text, /built-in demo/);
    });

    test(`in_${place}_a_named_model_is_not_configured`, async () => {
      const server = await startServer({ ai, vars: { AUTH: "open", MODEL } });
      after(() => server.stop());
      const { reason, error } = await compact(server, "named");
      assert.deepEqual([reason, error.code], ["summariser_failed", "not_configured"]);
      assert.match(error.message, /MODEL|`AI`/);
      const { types, text } = await allOf(await submit(server, "named", "talk", "Who are you?"));
      assert.ok(types.includes("error"), types.join());
      assert.equal(text, "");
    });
  }
});
