// A turn from the client's side: sends the request and reads the chunks of its answer as they
// arrive.

import assert from "node:assert/strict";

/** Sends one user's message. Returns the response, whose head is checked. */
export async function submit(server, agent, sessionId, text, { id = `u-${sessionId}`, ...more } = {}) {
  const message = { id, role: "user", parts: [{ type: "text", text }] };
  const response = await server.fetch(`/agents/session-agent/${agent}/chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ id: sessionId, message, trigger: "submit-message", ...more }),
  });
  if (response.status !== 200) assert.fail(`${response.status}: ${await response.text()}`);
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  assert.equal(response.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  return response;
}

/** The data of a stream's events, one by one: parsed JSON, or `[DONE]`. */
export async function* events(response) {
  let text = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const parts = (text + piece).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const data = part
        .split("\n")
        .find((line) => line.startsWith("data: "))
        ?.slice("data: ".length);
      // An event without data is a comment, which keeps the connection open.
      if (data !== undefined) yield data === "[DONE]" ? data : JSON.parse(data);
    }
  }
}

/** The whole answer: its chunks, and their text. */
export async function allOf(response) {
  const chunks = [];
  for await (const chunk of events(response)) chunks.push(chunk);
  assert.equal(chunks.pop(), "[DONE]");
  const deltas = chunks.filter(({ type }) => type === "text-delta").map(({ delta }) => delta);
  return { chunks, types: chunks.map(({ type }) => type), deltas, text: deltas.join("") };
}
