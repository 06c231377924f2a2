// The server that the platform's own `Ai` class calls, instead of Workers AI. It answers and
// refuses in the formats that the class expects.
//
//   const ai = await startWorkersAi();
//   ai.answer = ({ model, input }, response) => answerUnstreamed(response, { response: "Hello" });
//   ai.requests   // [{ model, input }], in order

import { createServer } from "node:http";
import { once } from "node:events";

const STREAM = { "content-type": "text/event-stream" };
const JSON_TYPE = { "content-type": "application/json" };

export async function startWorkersAi() {
  const requests = [];
  const ai = { requests, answer: null };
  const server = createServer(async (request, response) => {
    const question = { model: request.headers["mf-header-cf-consn-model-id"], input: (await read(request)).inputs };
    requests.push(question);
    await ai.answer(question, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ai.url = `http://127.0.0.1:${server.address().port}`;
  ai.stop = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  return ai;
}

/** Answers without streaming. */
export function answerUnstreamed(response, answer) {
  response.writeHead(200, JSON_TYPE).end(JSON.stringify(answer));
}

/** Streams an answer in pieces. Each is sent before the next is awaited. */
export async function answerInChunks(response, pieces) {
  response.writeHead(200, STREAM);
  for await (const piece of pieces) response.write(`data: ${JSON.stringify(piece)}\n\n`);
  response.end("data: [DONE]\n\n");
}

/**
 * Refuses as the service does: the `Ai` class throws an error of this name, with the
 * message `code: description`.
 */
export function refuses(response, status, internalCode, description) {
  const name = "InferenceUpstreamError";
  response.writeHead(status, JSON_TYPE).end(JSON.stringify({ name, internalCode, description }));
}

/** Refuses because all machines are busy. */
export function hasNoCapacity(response) {
  refuses(response, 429, 3040, "Capacity temporarily exceeded, please try again.");
}

async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}
