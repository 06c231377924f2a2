// A streaming answer: builds one message from the chunks of the AI SDK's stream.

import type { ChatChunk, UiMessage } from "session-agent";
import type { LiveTurn } from "../turns/live.ts";

export interface Answer {
  readonly message: UiMessage | null;
  /** The agent's error message for a failed turn. */
  readonly error: string | null;
  /** The indexes of the unfinished text parts, by their ids. */
  readonly open: ReadonlyMap<string, number>;
  /** The inputs of calls so far, as text, by the calls' ids. */
  readonly inputs: ReadonlyMap<string, string>;
  /** The times at which the steps arrived. */
  readonly live: LiveTurn | null;
}

export const EMPTY_ANSWER: Answer = { message: null, error: null, open: new Map(), inputs: new Map(), live: null };

/** The answer with another chunk. `begin` returns the message with an id: a new one, or one that the answer continues. */
export function withChunk(answer: Answer, chunk: ChatChunk, begin: (id: string | undefined) => UiMessage): Answer {
  const parts = () => (answer.message ?? begin(undefined)).parts;
  const withParts = (parts: any[]): Answer => ({
    ...answer,
    message: { ...(answer.message ?? begin(undefined)), parts },
  });
  const changed = (index: number | undefined, change: (part: any) => object): Answer =>
    index === undefined || answer.message === null
      ? answer
      : withParts(answer.message.parts.with(index, change(answer.message.parts[index])));
  const pushed = (part: object): Answer => withParts([...parts(), part]);
  /** Changes the part of a call, or adds it. */
  const called = (change: object): Answer => {
    const index = answer.message?.parts.findIndex((part) => part.toolCallId === chunk.toolCallId) ?? -1;
    if (index >= 0) return changed(index, (part) => ({ ...part, ...change }));
    return pushed({ type: `tool-${chunk.toolName ?? "?"}`, toolCallId: chunk.toolCallId, ...change });
  };

  switch (chunk.type) {
    case "start":
      return { ...answer, message: begin(typeof chunk.messageId === "string" ? chunk.messageId : undefined) };
    case "text-start":
    case "reasoning-start": {
      const open = new Map(answer.open).set(chunk.id, parts().length);
      return { ...pushed({ type: chunk.type.slice(0, -"-start".length), text: "" }), open };
    }
    case "text-delta":
    case "reasoning-delta":
      return changed(answer.open.get(chunk.id), (part) => ({ ...part, text: part.text + chunk.delta }));
    case "start-step":
      return pushed({ type: "step-start" });
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
      const index = parts().findIndex((part) => part.type === type && part.id === id);
      return index < 0 ? pushed({ type, id, data }) : changed(index, (part) => ({ ...part, data }));
    }
    case "file":
      return pushed({ type: "file", url: chunk.url, mediaType: chunk.mediaType });
    case "error":
      return { ...answer, error: String(chunk.errorText) };
    default:
      return answer;
  }
}
