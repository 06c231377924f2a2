// A proxy in front of a model: forwards requests and answers unchanged and records the text of each
// answer.

import { once } from "node:events";
import { createServer } from "node:http";

/** `{ url, answers, stop }`; `answers` are the texts that the model at `to` has returned so far. */
export async function startRecorder(to) {
  const answers = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await Array.fromAsync(request));
    const answer = await fetch(to + request.url, {
      method: request.method,
      headers: { "content-type": "application/json" },
      body,
    });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") });
    const pieces = [];
    for await (const piece of answer.body) {
      pieces.push(piece);
      response.write(piece);
    }
    // Recorded before the last byte is sent, so that it is there when the client has the answer.
    if (answer.ok) answers.push(textOf(Buffer.concat(pieces).toString()));
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = async () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, answers, stop };
}

/** The text of an answer in OpenAI's format, complete or as a stream of events. */
function textOf(body) {
  if (body.startsWith("{")) return JSON.parse(body).choices[0].message.content;
  return body
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice("data: ".length)).choices[0]?.delta?.content ?? "")
    .join("");
}
