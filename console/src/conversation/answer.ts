// An answer as it comes: the chunks of the AI SDK's stream, put together to one message.

import type { ChatChunk, UiMessage } from "session-agent";

export class Answer {
  message: UiMessage | null = null;
  /** What the turn failed with, in the agent's own sentence. */
  error: string | null = null;
  /** Where the open pieces of text stand among the parts, by their ids. */
  #open = new Map<string, number>();
  #inputs = new Map<string, string>();
  #known: (id: string) => UiMessage | undefined;

  /** `known` finds a message that the answer goes on. */
  constructor(known: (id: string) => UiMessage | undefined) {
    this.#known = known;
  }

  take(chunk: ChatChunk): void {
    switch (chunk.type) {
      case "start":
        this.message = this.#begin(chunk.messageId);
        break;
      case "text-start":
      case "reasoning-start":
        this.#open.set(chunk.id, this.#push({ type: chunk.type.slice(0, -"-start".length), text: "" }));
        break;
      case "text-delta":
      case "reasoning-delta":
        this.#change(this.#open.get(chunk.id), (part) => ({ ...part, text: part.text + chunk.delta }));
        break;
      case "start-step":
        this.#push({ type: "step-start" });
        break;
      case "tool-input-start":
        this.#call(chunk, { state: "input-streaming", input: undefined });
        break;
      case "tool-input-delta":
        this.#inputs.set(chunk.toolCallId, (this.#inputs.get(chunk.toolCallId) ?? "") + chunk.inputTextDelta);
        this.#call(chunk, { input: this.#inputs.get(chunk.toolCallId) });
        break;
      case "tool-input-available":
        this.#call(chunk, { state: "input-available", input: chunk.input });
        break;
      case "tool-input-error":
        this.#call(chunk, { state: "output-error", input: chunk.input, errorText: chunk.errorText });
        break;
      case "tool-approval-request":
        this.#call(chunk, { state: "approval-requested", approval: { id: chunk.approvalId } });
        break;
      case "tool-output-available":
        this.#call(chunk, { state: "output-available", output: chunk.output });
        break;
      case "tool-output-error":
        this.#call(chunk, { state: "output-error", errorText: chunk.errorText });
        break;
      case "tool-output-denied":
        this.#call(chunk, { state: "output-denied" });
        break;
      case "file":
        this.#push({ type: "file", url: chunk.url, mediaType: chunk.mediaType });
        break;
      case "error":
        this.error = String(chunk.errorText);
        break;
    }
  }

  #begin(id: unknown): UiMessage {
    const name = typeof id === "string" ? id : crypto.randomUUID();
    const known = this.#known(name);
    return known ? { ...known, parts: [...known.parts] } : { id: name, role: "assistant", parts: [], createdAt: Date.now() };
  }

  #push(part: object): number {
    this.message ??= this.#begin(undefined);
    this.message = { ...this.message, parts: [...this.message.parts, part] };
    return this.message.parts.length - 1;
  }

  #change(index: number | undefined, change: (part: any) => object): void {
    if (index === undefined || this.message === null) return;
    this.message = { ...this.message, parts: this.message.parts.with(index, change(this.message.parts[index])) };
  }

  /** Changes the part of a call, or adds it. */
  #call({ toolCallId, toolName }: ChatChunk, change: object): void {
    const index = this.message?.parts.findIndex((part) => part.toolCallId === toolCallId) ?? -1;
    if (index >= 0) this.#change(index, (part) => ({ ...part, ...change }));
    else this.#push({ type: `tool-${toolName ?? "?"}`, toolCallId, ...change });
  }
}
