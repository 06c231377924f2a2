// Outgoing calls of the object: at most five wait for response headers at the same time, and the
// others are queued. A cancelled call ends wherever it is.

import assert from "node:assert/strict";
import { after, afterEach, describe, test } from "node:test";
import { call, startChatServer } from "./chat_server.mjs";
import { allOf, submit } from "./chat_stream.mjs";
import { startServer } from "./harness.mjs";
import { callTool, callTools, gate, say, delayHead } from "./model_server.mjs";
import { answerInChunks, startWorkersAi } from "./servers/workers_ai.mjs";
import { startTools } from "./tool_server.mjs";

/**
 * Time in which a called server must notice that its caller has disconnected. It takes
 * milliseconds; this is a third of the time after which the call would time out anyway.
 */
const SOON_MS = 10_000;
const MOST_AT_ONCE = 5;
/** Calls of one session's tools at once. */
const MOST_TOOLS = 3;

const never = new Promise(() => {});

/** Waits for `work`; fails after `SOON_MS`. */
async function soon(work, what) {
  let timer;
  const late = new Promise(
    (_, reject) => (timer = setTimeout(() => reject(new Error(`not within ${SOON_MS} ms: ${what}`)), SOON_MS)),
  );
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

function cancel(server, agent, sessionId = "s") {
  return call(server, agent, "cancelTurn", { sessionId });
}

/** Sends some requests, so that a queued call that may start has started. */
async function settle(server, agent) {
  for (let n = 0; n < 20; n += 1) await call(server, agent, "listTools", {});
}

async function define(server, agent, tools) {
  await call(server, agent, "defineTool", { name: "work", description: "Does it.", url: `${tools.origin}/tool` });
}

const workCalls = (count) => callTools(...Array.from({ length: count }, (_, n) => ["work", { n }, `c${n}`]));
const results = (chunks) => chunks.filter(({ type }) => type.startsWith("tool-output-"));

describe("a_tool_with_a_url", async () => {
  const tools = await startTools();
  const { server, model, stop } = await startChatServer({ vars: { TOOL_ORIGINS: tools.origin } });
  after(async () => {
    await stop();
    await tools.stop();
  });
  afterEach(() => {
    tools.run = async () => ({ ok: true });
    model.forget();
  });

  test("has_its_call_aborted_when_the_turn_is_cancelled_before_it_responds", async () => {
    await define(server, "silent", tools);
    const before = { calls: tools.calls.length, disconnected: tools.abandoned.length };
    tools.run = () => never;
    model.next(workCalls(1));
    const turn = submit(server, "silent", "s", "Go.").then(allOf);
    await tools.untilCalls(before.calls + 1);
    await cancel(server, "silent");
    await soon(tools.untilDisconnected(before.disconnected + 1), "the tool's connection is closed");
    assert.equal((await turn).types.at(-1), "abort");
  });

  test("has_its_call_aborted_when_the_turn_is_cancelled_during_its_response", async () => {
    await define(server, "half", tools);
    const before = { calls: tools.calls.length, disconnected: tools.abandoned.length };
    tools.run = async () =>
      new Response(new ReadableStream({ start: (to) => to.enqueue(new TextEncoder().encode("Half of ")) }));
    model.next(workCalls(1));
    const turn = submit(server, "half", "s", "Go.").then(allOf);
    await tools.untilCalls(before.calls + 1);
    await cancel(server, "half");
    await soon(tools.untilDisconnected(before.disconnected + 1), "the tool's connection is closed");
    assert.equal((await turn).types.at(-1), "abort");
  });

  test("has_its_call_aborted_when_its_response_is_too_large", async () => {
    await define(server, "large", tools);
    const before = tools.abandoned.length;
    const piece = new Uint8Array(64 << 10).fill(120);
    tools.run = async () => new Response(new ReadableStream({ pull: (to) => to.enqueue(piece) }));
    model.next(workCalls(1), say("Too large."));
    const { chunks } = await allOf(await submit(server, "large", "s", "Go."));
    assert.match(results(chunks)[0].errorText, /larger than 1048576 bytes/);
    await soon(tools.untilDisconnected(before + 1), "the tool's connection is closed");
  });

  test("is_not_called_if_its_call_was_cancelled_while_queued", async () => {
    await define(server, "queue", tools);
    const before = { calls: tools.calls.length, disconnected: tools.abandoned.length };
    tools.run = () => never;
    model.next(workCalls(8));
    const turn = submit(server, "queue", "s", "Go.").then(allOf);
    await tools.untilCalls(before.calls + MOST_TOOLS);
    await cancel(server, "queue");
    await soon(tools.untilDisconnected(before.disconnected + MOST_TOOLS), "the connections are closed");
    assert.equal((await turn).types.at(-1), "abort");
    // Calls that were still queued would start before this one.
    tools.run = async () => ({ ok: true });
    model.next(callTool("work", { n: "last" }, "z"), say("Done."));
    await allOf(await submit(server, "queue", "s", "And now?", { id: "next" }));
    const called = tools.calls.slice(before.calls).map(({ arguments: { n } }) => n);
    assert.deepEqual(called.toSorted(), [0, 1, 2, "last"]);
  });

  test("is_called_three_at_a_time_and_the_rest_in_order", async () => {
    await define(server, "five", tools);
    const before = tools.calls.length;
    const gates = Array.from({ length: 12 }, gate);
    let atOnce = 0;
    let most = 0;
    tools.run = async ({ arguments: { n } }) => {
      most = Math.max(most, (atOnce += 1));
      await gates[n].gate;
      atOnce -= 1;
      return { n };
    };
    model.next(workCalls(12), say("Done."));
    const turn = submit(server, "five", "s", "Go.").then(allOf);
    for (let n = 0; n < 12; n += 1) {
      await tools.untilCalls(before + Math.min(12, MOST_TOOLS + n));
      if (n === 0) await settle(server, "five");
      gates[n].open();
    }
    const { chunks } = await turn;
    assert.equal(most, MOST_TOOLS);
    assert.deepEqual(
      tools.calls.slice(before + MOST_TOOLS).map(({ arguments: { n } }) => n),
      [3, 4, 5, 6, 7, 8, 9, 10, 11],
    );
    assert.deepEqual(
      results(chunks).map(({ output }) => output.n),
      Array.from({ length: 12 }, (_, n) => n),
    );
  });

  test("may_read_remote_memory_of_the_agent_however_many_do", async () => {
    await define(server, "asks", tools);
    const block = { label: "soul", kind: "readonly", source: { r2: "soul.md" }, defaultContent: "Kind." };
    await call(server, "asks", "defineBlock", block);
    // Three calls take every slot for the session's tools, and each of them requests this agent's
    // block from the bucket.
    const all = gate();
    let here = 0;
    tools.run = async () => {
      if ((here += 1) === MOST_TOOLS) all.open();
      await all.gate;
      return { soul: (await call(server, "asks", "getBlock", { label: "soul" })).content };
    };
    model.next(workCalls(8), say("Done."));
    const { chunks } = await allOf(await submit(server, "asks", "s", "Go."));
    assert.deepEqual(
      results(chunks).map(({ output }) => output),
      Array.from({ length: 8 }, () => ({ soul: "Kind." })),
    );
  });

  test("gets_a_unique_idempotency_key_for_each_call", async () => {
    await define(server, "keys", tools);
    const before = tools.calls.length;
    model.next(workCalls(2), callTool("work", { n: 0 }, "c0"), say("Done."));
    await allOf(await submit(server, "keys", "s", "Go."));
    const keys = tools.headers.slice(before).map((headers) => headers["idempotency-key"]);
    assert.equal(new Set(keys).size, 3);
    for (const key of keys) assert.match(key, /^[0-9a-f]{64}$/);
  });

  test("that_stalls_in_one_session_blocks_no_other_session", async () => {
    await define(server, "hogs", tools);
    const before = tools.calls.length;
    tools.run = ({ sessionId }) => (sessionId === "hog" ? never : { ok: true });
    model.next(workCalls(64));
    const hog = submit(server, "hogs", "hog", "Go.").then(allOf);
    await tools.untilCalls(before + MOST_TOOLS);
    await settle(server, "hogs");
    for (const session of ["a", "b"]) {
      model.next(workCalls(2), say("Done."));
      const { text, chunks } = await soon(submit(server, "hogs", session, "Go.").then(allOf), "another session's turn");
      assert.equal(text, "Done.");
      assert.deepEqual(
        results(chunks).map(({ output }) => output),
        [{ ok: true }, { ok: true }],
      );
    }
    const hogCalls = tools.calls.slice(before).filter(({ sessionId }) => sessionId === "hog");
    assert.equal(hogCalls.length, MOST_TOOLS);
    await cancel(server, "hogs", "hog");
    await hog;
  });

  // This test takes half a minute of real time because it tests the limit of 30 s.
  test("that_stalls_for_30_s_times_out_and_the_next_timeout_starts_at_its_call", async () => {
    await define(server, "slow", tools);
    const before = { calls: tools.calls.length, disconnected: tools.abandoned.length };
    tools.run = ({ arguments: { n } }) => (n < MOST_TOOLS ? never : { n });
    model.next(workCalls(4), say("Done."));
    const began = Date.now();
    const turn = submit(server, "slow", "s", "Go.").then(allOf);
    await tools.untilCalls(before.calls + MOST_TOOLS);
    // The fourth call is queued while the first three time out. Its timeout starts when it leaves
    // the queue.
    await tools.untilCalls(before.calls + 4);
    const elapsedMs = Date.now() - began;
    assert.ok(elapsedMs > 29_000 && elapsedMs < 40_000, `${elapsedMs} ms`);
    await soon(tools.untilDisconnected(before.disconnected + MOST_TOOLS), "the connections are closed");
    const { chunks } = await turn;
    const outcomes = new Map(results(chunks).map((chunk) => [chunk.toolCallId, chunk]));
    assert.match(outcomes.get("c0").errorText, /sent nothing for 30 s/);
    assert.deepEqual(outcomes.get("c3").output, { n: 3 });
  });
});

describe("a_tool_with_a_binding", async () => {
  const tools = await startTools();
  const relay = `export default { async fetch(request) {
    return fetch("${tools.origin}/tool", { method: "POST", body: await request.text() });
  } };`;
  const { server, model, stop } = await startChatServer({ workers: { relay } });
  after(async () => {
    await stop();
    await tools.stop();
  });

  test("has_its_call_aborted_when_the_turn_is_cancelled", async () => {
    await call(server, "bound", "defineTool", { name: "work", description: "Does it.", service: "RELAY" });
    tools.run = () => never;
    model.next(workCalls(1));
    const turn = submit(server, "bound", "s", "Go.").then(allOf);
    await tools.untilCalls(1);
    await cancel(server, "bound");
    await soon(tools.untilDisconnected(1), "what the service asked is closed");
    assert.equal((await turn).types.at(-1), "abort");
  });
});

describe("a_model", async () => {
  const { server, model, stop } = await startChatServer();
  after(stop);
  afterEach(() => model.forget());

  /** Waits until this many callers of the model have disconnected. */
  async function untilDisconnected(times) {
    while (model.abandoned < times) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  for (const [moment, answer] of [
    ["before_its_answers_head", (at) => delayHead(at, say("Hello."))],
    ["in_the_middle_of_its_answer", (at) => say("Hel", at, "lo.")],
  ]) {
    test(`has_its_call_aborted_when_the_turn_is_cancelled_${moment}`, async () => {
      const at = gate();
      const before = model.abandoned;
      model.next(answer(at));
      const turn = submit(server, moment, "s", "Go.").then(allOf);
      await at.reached;
      await cancel(server, moment);
      await soon(untilDisconnected(before + 1), "the model's connection is closed");
      assert.equal((await turn).types.at(-1), "abort");
    });
  }

  test("is_one_of_at_most_five_calls_awaiting_headers", async () => {
    const before = model.requests.length;
    const gates = Array.from({ length: 8 }, gate);
    model.next(...gates.map((at) => delayHead(at, say("Hello."))));
    const turns = gates.map((_, n) => submit(server, "heads", `s${n}`, "Go.").then(allOf));
    await model.untilRequests(before + MOST_AT_ONCE);
    await Promise.all(gates.slice(0, MOST_AT_ONCE).map(({ reached }) => reached));
    await settle(server, "heads");
    for (let n = 0; n < gates.length; n += 1) {
      assert.ok(
        model.requests.length - before <= MOST_AT_ONCE + n,
        `${model.requests.length - before} after ${n} heads`,
      );
      await gates[n].reached;
      gates[n].open();
    }
    for (const { text } of await Promise.all(turns)) assert.equal(text, "Hello.");
  });

  test("that_is_streaming_blocks_nobody", async () => {
    const before = model.requests.length;
    const rest = gate();
    model.next(...Array.from({ length: 8 }, () => say("Hel", rest, "lo.")));
    const turns = Array.from({ length: 8 }, (_, n) => submit(server, "speaking", `s${n}`, "Go.").then(allOf));
    await model.untilRequests(before + 8);
    rest.open();
    for (const { text } of await Promise.all(turns)) assert.equal(text, "Hello.");
  });
});

describe("workers_ai", async () => {
  const ai = await startWorkersAi();
  const server = await startServer({
    ai: ai.url,
    vars: { AUTH: "open", MODEL: "workers-ai:@cf/meta/llama-3.1-8b-instruct" },
  });
  after(async () => {
    await server.stop();
    await ai.stop();
  });

  for (const [moment, answer] of [
    ["before_its_answers_head", () => {}],
    [
      "in_the_middle_of_its_answer",
      (response) =>
        answerInChunks(
          response,
          (async function* () {
            yield { response: "Hel" };
            await never;
          })(),
        ),
    ],
  ]) {
    test(`has_its_call_aborted_when_the_turn_is_cancelled_${moment}`, async () => {
      const reached = Promise.withResolvers();
      const closed = Promise.withResolvers();
      ai.answer = (_, response) => {
        response.on("close", closed.resolve);
        reached.resolve();
        return answer(response);
      };
      const turn = submit(server, moment, "s", "Go.").then(allOf);
      await reached.promise;
      await cancel(server, moment);
      await soon(closed.promise, "the connection is closed");
      assert.equal((await turn).types.at(-1), "abort");
    });
  }
});
