// A real language model behind the real Worker. The model is small (SmolLM2, 135 million
// parameters), so the tests check that it answers, never what it answers.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { allOf, events, submit } from "./chat_stream.mjs";
import { startServer } from "./harness.mjs";
import { startRealModel } from "./real_models.mjs";
import { startRecorder } from "./recorder.mjs";

const model = await startRealModel("language_model");
after(() => model.stop());

/** Sixty messages such as people write. */
const CITIES = "Lyon Turin Genoa Pisa Florence Rome Naples Bari Trieste Graz Vienna Brno Prague Dresden Berlin".split(
  " ",
);
const conversation = CITIES.flatMap((city, day) => [
  ["user_message", `How do we get to ${city}?`],
  ["agent_message", `By train ${day + 7} at nine; it takes ${(day % 4) + 2} hours.`],
  ["user_message", `And where do we sleep in ${city}?`],
  ["agent_message", `In the Hotel ${city}, for ${60 + day} euros a night.`],
]).map(([action, content]) => ({ action, content }));

/** How often each request is timed, directly and through the Worker. */
const TRIES = 10;

/** The most bytes of a summary, by the contract. */
const MAX_SUMMARY_BYTES = 64 << 10;

/** The summary is any text of the model: another processor computes another text. */
function assertIsSummary(summary, answers) {
  assert.ok(
    answers.some((answer) => answer.trim() === summary),
    summary,
  );
  assert.ok(summary.length > 0);
  assert.ok(Buffer.byteLength(summary) <= MAX_SUMMARY_BYTES);
  for (const { content } of conversation) assert.notEqual(summary, content);
}

describe("a_real_model", { skip: model.skip }, () => {
  const served = (url) => startServer({ vars: { AUTH: "open", MODEL: "openai:smollm2", OPENAI_BASE_URL: url } });
  let recorder;
  let server;
  before(async () => {
    recorder = await startRecorder(model.url);
    server = await served(recorder.url);
  });
  after(async () => {
    await server.stop();
    await recorder.stop();
  });

  async function call(operation, input, to = server) {
    const { status, body } = await to.call("traveller", operation, input);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  }

  test("summarizes_a_conversation_of_sixty_messages", async () => {
    await call("createSession", { id: "asked" });
    const { events } = await call("appendEvents", { sessionId: "asked", events: conversation });
    await call("configureCompaction", { sessionId: "asked", tailTokenBudget: 0 });
    const { reason, compaction, tokensBefore, tokensAfter } = await call("compact", { sessionId: "asked" });
    assert.equal(reason, "compacted");
    assertIsSummary(compaction.summary, recorder.answers);
    assert.deepEqual([compaction.fromId, compaction.toId], [events[3].id, events[57].id]);
    assert.ok(tokensAfter < tokensBefore);
    const { messages } = await call("buildWorkingContext", { sessionId: "asked" });
    assert.equal(messages.length, 3 + 1 + 2);
    assert.ok(messages[3].content.includes(compaction.summary));
  });

  test("summarizes_automatically_without_delaying_an_append", async () => {
    await call("createSession", { id: "grown" });
    await call("configureCompaction", { sessionId: "grown", compactAfter: 150, tailTokenBudget: 0 });
    await call("appendEvents", { sessionId: "grown", events: conversation.slice(0, 20) });
    const answered = await call("getCompactions", { sessionId: "grown" });
    assert.deepEqual(answered.compactions, [], "the append was answered first");
    const [compaction] = await eventually(async () => {
      const { compactions } = await call("getCompactions", { sessionId: "grown" });
      return compactions.length > 0 ? compactions : null;
    });
    assertIsSummary(compaction.summary, recorder.answers);
    const session = await call("getSession", { sessionId: "grown" });
    assert.equal(session.lastCompactionError ?? null, null);
  });

  test("reports_a_conversation_that_does_not_fit_and_nothing_is_lost", async () => {
    // One request of a summary, by the Worker's estimate. The model reads each rune as several
    // tokens, so a quarter of the text, the last attempt, is still too long for it.
    const long = Array.from({ length: 60 }, (_, index) => ({
      action: "user_message",
      content: "ᚠᚢᚦᚨᚱᚲ".repeat(85) + index,
    }));
    await call("createSession", { id: "long" });
    await call("appendEvents", { sessionId: "long", events: long });
    await call("configureCompaction", { sessionId: "long", tailTokenBudget: 0 });
    const { reason, compaction, error } = await call("compact", { sessionId: "long" });
    assert.deepEqual([reason, compaction, error.code], ["summariser_failed", null, "model_failed"]);
    assert.match(error.message, /context/);
    assert.equal((await call("getSession", { sessionId: "long" })).lastCompactionError.code, "model_failed");
    assert.equal((await call("getHistory", { sessionId: "long" })).messages.length, 60);
  });

  test("streams_an_answer_that_the_history_stores", async () => {
    const response = await submit(server, "traveller", "talk", "Say hello to me in one short sentence.");
    const { types, deltas, text } = await allOf(response);
    assert.ok(deltas.length > 1, `${deltas.length} pieces`);
    assert.deepEqual(types.slice(0, 2), ["start", "start-step"]);
    assert.deepEqual(types.slice(-2), ["finish-step", "finish"]);
    const { messages } = await call("getHistory", { sessionId: "talk" });
    assert.deepEqual(
      messages.map(({ role }) => role),
      ["user", "assistant"],
    );
    const texts = messages[1].parts.filter(({ type }) => type === "text");
    assert.equal(texts.map(({ text }) => text).join(""), text);
  });

  // The times are printed and not compared with a limit: they depend on how busy the
  // machine is.
  test("streams_through_the_worker_about_as_fast_as_directly", async (t) => {
    // Calls the model directly: the recorder would add time.
    const server = await served(model.url);
    t.after(() => server.stop());
    const question = "Count from one to one hundred.";
    const message = { id: "u", role: "user", parts: [{ type: "text", text: question }] };
    await call("createSession", { id: "same" }, server);
    await call("appendMessage", { sessionId: "same", message }, server);
    const { modelInput } = await call("buildWorkingContext", { sessionId: "same", format: "openai" }, server);

    const alone = async () => {
      const aborted = new AbortController();
      const body = JSON.stringify({ model: "smollm2", stream: true, ...modelInput });
      const init = { method: "POST", headers: { "content-type": "application/json" }, body, signal: aborted.signal };
      const started = performance.now();
      const response = await fetch(`${model.url}/chat/completions`, init);
      for await (const chunk of events(response)) {
        if (chunk.choices?.[0]?.delta?.content) break;
      }
      const ms = performance.now() - started;
      aborted.abort();
      return ms;
    };
    const throughTheWorker = async (index) => {
      const sessionId = `heard-${index}`;
      await call("createSession", { id: sessionId }, server);
      const started = performance.now();
      const response = await submit(server, "traveller", sessionId, question);
      let ms = null;
      for await (const { type } of events(response)) {
        if (type !== "text-delta" || ms !== null) continue;
        ms = performance.now() - started;
        await call("cancelTurn", { sessionId }, server);
      }
      assert.notEqual(ms, null);
      return ms;
    };

    const times = { alone: [], through: [] };
    for (let index = 0; index <= TRIES; index += 1) {
      await idle();
      const direct = await alone();
      await idle();
      const worker = await throughTheWorker(index);
      // The first try fills caches on both sides.
      if (index === 0) continue;
      times.alone.push(direct);
      times.through.push(worker);
    }
    const [direct, worker] = [median(times.alone), median(times.through)];
    const more = worker - direct;
    t.diagnostic(
      `to the first word, median of ${TRIES}: ${direct.toFixed(1)} ms without the Worker, ` +
        `${worker.toFixed(1)} ms through it: ${more.toFixed(1)} ms or ${((100 * more) / direct).toFixed(1)} % more`,
    );
  });
});

/**
 * Waits until the model has dropped requests of disconnected clients. The model answers one request
 * at a time.
 */
async function idle() {
  await eventually(async () => {
    const slots = await (await fetch(new URL("/slots", model.url))).json();
    return slots.some((slot) => slot.is_processing) ? null : slots;
  });
}

function median(numbers) {
  const sorted = numbers.toSorted((one, other) => one - other);
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.ceil((sorted.length - 1) / 2)]) / 2;
}

/** Repeats the request until the answer isn't `null`. The test's own timeout ends the loop. */
async function eventually(ask) {
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
