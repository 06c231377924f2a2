// Chat turns: the request, and the chunks of its server-sent events.

import { textReaderOf } from "./bytes.js";
import { type Connection, lost } from "./connection.js";
import { NetworkError } from "./errors.js";
import type { CallOptions } from "./options.js";
import { segmentOf } from "./target.js";

export interface ChatInput {
  /** The newest message. A string is a new message of the user. */
  message?: string | { [field: string]: any };
  /** The whole conversation, instead of `message`. */
  messages?: Array<{ [field: string]: any }>;
  trigger?: "submit-message" | "regenerate-message";
  messageId?: string;
  /** What to do with the message while another turn runs. Default: the agent's `whenBusy`. */
  whenBusy?: "reject" | "queue" | "replace";
  model?: string;
  systemInstructions?: string[];
  tools?: any;
}

/** A chunk of the AI SDK's UI message stream. */
export interface ChatChunk {
  type: string;
  [field: string]: any;
}

/** Starts a turn when it is iterated. `message` may be a string. */
export async function* chat(
  connection: Connection,
  id: string,
  input: string | ChatInput,
  options: CallOptions = {},
): AsyncGenerator<ChatChunk, void, undefined> {
  const { message, ...more }: ChatInput = typeof input === "string" ? { message: input } : input;
  const body = JSON.stringify({ ...more, id, ...(message !== undefined && { message: messageOf(message) }) });
  const init = { method: "POST", headers: { "content-type": "application/json" }, body };
  const response = await connection.request("chat", "/chat", init, options);
  yield* chunksOf(response, options.signal);
}

export async function* resumeChat(
  connection: Connection,
  id: string,
  options: CallOptions = {},
): AsyncGenerator<ChatChunk, void, undefined> {
  const path = `/chat/${segmentOf(id, "A session's id in an address")}/stream`;
  const response = await connection.request("chat", path, {}, { ...options, isRepeatable: true });
  if (response.status !== 204) yield* chunksOf(response, options.signal);
}

function messageOf(message: string | { [field: string]: any }) {
  if (typeof message !== "string") return message;
  return { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text: message }] };
}

/** The data of the events, until `[DONE]`. A stream without it was cut off. */
async function* chunksOf(
  response: Response,
  signal: AbortSignal | undefined,
): AsyncGenerator<ChatChunk, void, undefined> {
  const reader = textReaderOf(response.body!);
  try {
    for (let text = ""; ; ) {
      const { done, value } = await reader.read().catch((error) => {
        if (signal?.aborted) throw signal.reason;
        throw lost("chat", error);
      });
      if (done) break;
      const events = (text + value).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        // An event without data keeps the connection open.
        const data = event
          .split("\n")
          .find((line) => line.startsWith("data: "))
          ?.slice("data: ".length);
        if (data === "[DONE]") return;
        if (data !== undefined) yield JSON.parse(data);
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
  throw new NetworkError(
    "The connection ended before the answer was complete. Call `resumeChat` to get the complete answer.",
    {
      operation: "chat",
    },
  );
}
