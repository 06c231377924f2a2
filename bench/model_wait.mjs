// How long an object is awake while a turn's model answers: the time from each call of the runtime
// until everything that it started has ended. Measured once with the object waiting for the model,
// and once with the front Worker waiting.
//
//   npm run bench -- model_wait
//   SECONDS=10 TURNS=3 npm run …

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { startServer } from "../tests/workerd/harness.mjs";

const SECONDS = Number(process.env.SECONDS ?? 10);
const TURNS = Number(process.env.TURNS ?? 3);
const SECRET = "a secret for measurements, long enough";

/** The part of the time before the first word, and the words a second after it. */
const SILENT_PART = 0.2;
const WORDS_A_SECOND = 20;

/**
 * Counts an object's calls and the time in which at least one is in progress: a request with its
 * answer, a message, an alarm, or what `waitUntil` was given.
 */
const METERED = `
import worker, { SessionAgent as Agent } from "session-agent/worker";
export default worker;
export class SessionAgent extends Agent {
  #calls = {};
  #busy = 0;
  #since = 0;
  #awakeMs = 0;
  constructor(ctx, env) {
    const waitUntil = ctx.waitUntil.bind(ctx);
    let note = () => {};
    ctx.waitUntil = (work) => {
      note(work);
      waitUntil(work);
    };
    super(ctx, env);
    note = (work) => this.#during("waitUntil", work);
  }
  #during(name, work) {
    this.#calls[name] = (this.#calls[name] ?? 0) + 1;
    if (this.#busy++ === 0) this.#since = performance.now();
    const end = () => {
      if (--this.#busy === 0) this.#awakeMs += performance.now() - this.#since;
    };
    Promise.resolve(work).then(end, end);
    return work;
  }
  async fetch(request) {
    if (request.headers.has("x-meter")) {
      const told = { calls: this.#calls, awakeMs: this.#awakeMs };
      this.#calls = {};
      this.#awakeMs = 0;
      return Response.json(told);
    }
    return await this.#during("fetch", super.fetch(request));
  }
  async alarm() {
    return await this.#during("alarm", super.alarm());
  }
  async webSocketMessage(socket, message) {
    return await this.#during("message", super.webSocketMessage(socket, message));
  }
  async webSocketClose(socket) {
    return await this.#during("close", super.webSocketClose(socket));
  }
}`;

/** A model that is silent for a while and then sends some words per second. */
const model = createServer(async (request, response) => {
  for await (const _ of request);
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  await wait(SECONDS * SILENT_PART * 1_000);
  const words = SECONDS * (1 - SILENT_PART) * WORDS_A_SECOND;
  for (let n = 0; n < words; n += 1) {
    response.write(`data: ${JSON.stringify({ choices: [{ delta: { content: `word${n} ` } }] })}\n\n`);
    await wait(1_000 / WORDS_A_SECOND);
  }
  const end = { choices: [{ delta: {}, finish_reason: "stop" }] };
  response.end(`data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`);
});
model.listen(0, "127.0.0.1");
await once(model, "listening");

const median = (numbers) => numbers.toSorted((one, other) => one - other)[numbers.length >> 1];

console.log(
  "| who waits | a turn | the object is awake | requests | messages | alarms | a piece of the text comes every | CPU of both |",
);
console.log("|---|---|---|---|---|---|---|---|");
for (const who of ["object", "worker"]) {
  const server = await startServer({
    own: METERED,
    vars: {
      MODEL: "openai:test",
      MODEL_WAIT: who,
      OPENAI_BASE_URL: `http://127.0.0.1:${model.address().port}/v1`,
    },
    secrets: { OPENAI_API_KEY: "a key", SESSION_AGENT_TOKEN: SECRET },
  });
  const agent = "metered";
  const meter = async () =>
    await (await server.fetch("/meter", { headers: { "x-meter": "1" } }, { via: "object", agent })).json();
  const turn = async (number) => {
    const began = performance.now();
    const response = await server.fetch(`/agents/session-agent/${agent}/chat`, {
      method: "POST",
      headers: { authorization: `Bearer ${SECRET}` },
      body: JSON.stringify({
        id: "s",
        message: { id: `u${number}`, role: "user", parts: [{ type: "text", text: "Go." }] },
      }),
    });
    assert.equal(response.status, 200, await (response.ok ? "" : response.text()));
    let pieces = 0;
    for await (const _ of response.body) pieces += 1;
    return { ms: performance.now() - began, pieces };
  };
  await turn(0);
  await meter();
  const seen = [];
  for (let number = 1; number <= TURNS; number += 1) {
    const cpu = await server.processorMs();
    const { ms, pieces } = await turn(number);
    const cpuMs = (await server.processorMs()) - cpu;
    // The work after the turn ends, too.
    await wait(500);
    seen.push({ ms, pieces, cpuMs, ...(await meter()) });
  }
  const of = (read) => median(seen.map(read));
  const calls = (name) => of((one) => one.calls[name] ?? 0);
  const silentMs = SECONDS * SILENT_PART * 1_000;
  console.log(
    `| ${who} | ${Math.round(of((one) => one.ms))} ms | ${of((one) => one.awakeMs).toFixed(1)} ms | ${calls("fetch")} | ${calls("message")} | ${calls("alarm")} | ${Math.round(of((one) => (one.ms - silentMs) / one.pieces))} ms | ${of((one) => one.cpuMs)} ms |`,
  );
  await server.stop();
}
model.close();
