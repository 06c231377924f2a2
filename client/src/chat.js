// Chat turns: the request, and the chunks of its server-sent events.

import { lost } from "./connection.js";
import { NetworkError } from "./errors.js";
import { segmentOf } from "./target.js";

/** Begins a turn when it is iterated. `message` may be a text. */
export async function* chat(connection, id, input, { signal, retry } = {}) {
  const { message, ...more } = typeof input === "string" ? { message: input } : input;
  const body = JSON.stringify({ ...more, id, ...(message !== undefined && { message: messageOf(message) }) });
  const init = { method: "POST", headers: { "content-type": "application/json" }, body };
  const response = await connection.request("chat", "/chat", init, { signal, retry });
  yield* chunksOf(response, signal);
}

export async function* resumeChat(connection, id, { signal, retry } = {}) {
  const path = `/chat/${segmentOf(id, "A session's id in an address")}/stream`;
  const response = await connection.request("chat", path, {}, { signal, retry, isRepeatable: true });
  if (response.status !== 204) yield* chunksOf(response, signal);
}

function messageOf(message) {
  if (typeof message !== "string") return message;
  return { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text: message }] };
}

/** The data of the events, until `[DONE]`. A stream without it was cut off. */
async function* chunksOf(response, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let text = ""; ; ) {
      const { done, value } = await reader.read().catch((error) => {
        if (signal?.aborted) throw signal.reason;
        throw lost("chat", error);
      });
      if (done) break;
      const events = (text + value).split("\n\n");
      text = events.pop();
      for (const event of events) {
        // An event without data keeps the connection open.
        const data = event.split("\n").find((line) => line.startsWith("data: "))?.slice("data: ".length);
        if (data === "[DONE]") return;
        if (data !== undefined) yield JSON.parse(data);
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
  throw new NetworkError("The connection ended before the answer did. `resumeChat` gives the whole answer.", { operation: "chat" });
}
