// A scripted model: an OpenAI-compatible endpoint on this machine. It streams as real ones do,
// returns the answers that a test sets, and records the requests.
//
//   const model = await startModel();
//   after(() => model.stop());
//   const server = await startServer({
//     vars: { AUTH: "open", MODEL: "openai:test", OPENAI_BASE_URL: model.url },
//     secrets: { OPENAI_API_KEY: "a key" },
//   });
//   model.next(say("Hello ", "there."), callTool("place", { near: "Rome" }));
//   …
//   model.requests[0].messages
//
// Each request takes the next answer. A request without an answer is a mistake of the
// test, and its status is 500. Nothing here waits for a clock: an answer with a `gate()`
// in it stops there until the test opens the gate.

import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";

const MODEL = "test";

export async function startModel() {
  const model = new ModelServer();
  await model.start();
  return model;
}

class ModelServer {
  #server = createServer((request, response) =>
    this.#answer(request, response).catch((error) => response.destroy(error)),
  );
  #answers = [];
  #changes = new EventEmitter();
  /** The bodies of the requests so far, in order. */
  requests = [];
  /** Their headers. */
  headers = [];
  /** The number of clients that disconnected before their answer's end. */
  abandoned = 0;
  /** The address for `OPENAI_BASE_URL`. */
  url;

  async start() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${this.#server.address().port}/v1`;
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Adds answers for the next requests, built with `say`, `callTool` and the like. */
  next(...answers) {
    this.#answers.push(...answers);
  }

  /** Waits until the model has received this many requests in total. */
  async untilRequests(times) {
    while (this.requests.length < times) await once(this.#changes, "request");
  }

  /** Drops the unused answers. */
  forget() {
    this.#answers.length = 0;
  }

  /** The number of unused answers: 0 after a passing test. */
  get unusedAnswers() {
    return this.#answers.length;
  }

  async #answer(request, response) {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (request.method !== "POST" || !request.url.endsWith("/chat/completions")) {
      return fail(response, 404, "There is only /chat/completions here.");
    }
    const input = JSON.parse(body);
    this.requests.push(input);
    this.headers.push(request.headers);
    this.#changes.emit("request");
    const answer = this.#answers.shift();
    if (answer === undefined) return fail(response, 500, "The test has no answer to this request.");
    if (answer.status !== undefined) return fail(response, answer.status, answer.message, answer.headers);
    response.on("close", () => {
      if (!response.writableEnded) this.abandoned += 1;
    });
    if (answer.head) {
      answer.head.reach();
      await Promise.race([answer.head.gate, once(response, "close")]);
      if (response.closed) return;
    }
    if (input.stream !== true) return respondUnstreamed(response, answer);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    const closed = once(response, "close");
    for (const piece of answer.pieces) {
      if (piece.gate) {
        piece.reach();
        await Promise.race([piece.gate, closed]);
        if (response.closed) return;
      } else if (piece.cut) {
        response.destroy();
        return;
      } else if (!write(response, chunkOf(piece))) {
        await Promise.race([new Promise((resolve) => response.once("drain", resolve)), closed]);
        if (response.closed) return;
      }
    }
    write(response, { ...chunkOf({ delta: {} }, answer.finishReason) });
    if (input.stream_options?.include_usage) {
      write(response, { ...chunkOf({}), choices: [], usage: USAGE });
    }
    response.end("data: [DONE]\n\n");
  }
}

/** The usage that every answer reports. */
export const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };

/** A text answer in as many chunks as there are arguments. A `gate()` may be among them. */
export function say(...pieces) {
  return {
    finishReason: "stop",
    pieces: pieces.map((piece) => (typeof piece === "string" ? { delta: { content: piece } } : piece)),
  };
}

/**
 * An answer with a tool call whose arguments arrive in chunks. A string as `input` is sent
 * unchanged, JSON or not.
 */
export function callTool(name, input, id, pieces) {
  return callTools([name, input, id, pieces]);
}

/** An answer with several calls, each given as the arguments of `callTool`. */
export function callTools(...calls) {
  return {
    finishReason: "tool_calls",
    pieces: calls.flatMap(([name, input, id = freshId(), pieces = 2], index) => [
      { delta: { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] } },
      ...split(typeof input === "string" ? input : JSON.stringify(input), pieces).map((text) => ({
        delta: { tool_calls: [{ index, function: { arguments: text } }] },
      })),
    ]),
  };
}

/** An answer with a text that never ends. */
export function sayWithoutEnd(text) {
  function* pieces() {
    for (;;) yield { delta: { content: text } };
  }
  return { finishReason: "stop", pieces: pieces() };
}

/** A place where the answer stops until `open()`. `reached` is fulfilled when the answer stops there. */
export function gate() {
  const [opened, open] = promise();
  const [reached, reach] = promise();
  return { gate: opened, open, reached, reach };
}

function promise() {
  let fulfil;
  return [new Promise((resolve) => (fulfil = resolve)), fulfil];
}

/** An answer whose head is sent when the gate is opened. */
export function delayHead(at, answer) {
  return { ...answer, head: at };
}

/** A place where the connection breaks. */
export const cut = { cut: true };

/** An answer with this status and no content: 429, 500, 503. */
export function refuse(status, message = "The model says no.", headers = {}) {
  return { status, message, headers };
}

let calls = 0;
function freshId() {
  calls += 1;
  return `call_${calls}`;
}

function split(text, pieces) {
  const length = Math.max(1, Math.ceil(text.length / pieces));
  return text.match(new RegExp(`[^]{1,${length}}`, "gu")) ?? [];
}

function chunkOf({ delta = {} }, finishReason = null) {
  return {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: MODEL,
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  };
}

/** Returns `false` if the reader is slow. */
function write(response, chunk) {
  return response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}

function respondUnstreamed(response, { pieces, finishReason }) {
  const content = pieces.map((piece) => piece.delta?.content ?? "").join("");
  response.writeHead(200, { "content-type": "application/json" });
  response.end(
    JSON.stringify({
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1,
      model: MODEL,
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: finishReason }],
      usage: USAGE,
    }),
  );
}

function fail(response, status, message, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ error: { message, type: "test", code: null, param: null } }));
}
