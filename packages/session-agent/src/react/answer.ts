// A streaming answer: builds one message from the chunks of the AI SDK's stream.

import type { ChatChunk } from "../chat.js";
import type { UiMessage } from "../operations.js";

export interface Answer {
  readonly message: UiMessage | null;
  /** The indexes of the unfinished text parts, by their ids. */
  readonly texts: ReadonlyMap<string, number>;
  /** The inputs of calls so far, as text, by the calls' ids. */
  readonly inputs: ReadonlyMap<string, string>;
}

export const NOTHING: Answer = { message: null, texts: new Map(), inputs: new Map() };

/**
 * The answer with another chunk. `begin` returns the message with an id or, without one, the message that is
 * continued. The log doesn't store where a step starts, so those chunks add nothing: each part keeps its index
 * when the stored message replaces the answer.
 */
export function withChunk(answer: Answer, chunk: ChatChunk, begin: (id: string | undefined) => UiMessage): Answer {
  const message = answer.message ?? begin(undefined);
  const withParts = (parts: any[]): Answer => ({ ...answer, message: { ...message, parts } });
  const pushed = (part: object): Answer => withParts([...message.parts, part]);
  const changed = (index: number | undefined, change: (part: any) => object): Answer =>
    index === undefined || message.parts[index] === undefined
      ? answer
      : withParts(message.parts.with(index, change(message.parts[index])));
  /** Changes the part of a call, or adds it. */
  const called = (change: object): Answer => {
    const index = message.parts.findIndex(({ toolCallId }) => toolCallId === chunk.toolCallId);
    if (index >= 0) return changed(index, (part) => ({ ...part, ...change }));
    return pushed({ type: `tool-${chunk.toolName ?? "?"}`, toolCallId: chunk.toolCallId, ...change });
  };

  switch (chunk.type) {
    case "start":
      return { ...answer, message: begin(typeof chunk.messageId === "string" ? chunk.messageId : undefined) };
    case "text-start":
    case "reasoning-start": {
      const texts = new Map(answer.texts).set(chunk.id, message.parts.length);
      return { ...pushed({ type: chunk.type === "text-start" ? "text" : "reasoning", text: "" }), texts };
    }
    case "text-delta":
    case "reasoning-delta":
      return changed(answer.texts.get(chunk.id), (part) => ({ ...part, text: part.text + chunk.delta }));
    case "tool-input-start":
      return called({ state: "input-streaming", input: undefined });
    case "tool-input-delta": {
      const input = (answer.inputs.get(chunk.toolCallId) ?? "") + chunk.inputTextDelta;
      return { ...called({ input }), inputs: new Map(answer.inputs).set(chunk.toolCallId, input) };
    }
    case "tool-input-available":
      return called({ state: "input-available", input: chunk.input });
    case "tool-input-error":
      return called({ state: "output-error", input: chunk.input, errorText: chunk.errorText });
    case "tool-approval-request":
      return called({ state: "approval-requested", approval: { id: chunk.approvalId } });
    case "tool-output-available":
      return called({ state: "output-available", output: chunk.output });
    case "tool-output-error":
      return called({ state: "output-error", errorText: chunk.errorText });
    case "tool-output-denied":
      return called({ state: "output-denied" });
    case "data-input-request": {
      const { type, id, data } = chunk;
      const index = message.parts.findIndex((part) => part.type === type && part.id === id);
      return index < 0 ? pushed({ type, id, data }) : changed(index, (part) => ({ ...part, data }));
    }
    case "file":
      return pushed({ type: "file", url: chunk.url, mediaType: chunk.mediaType });
    default:
      return answer;
  }
}
