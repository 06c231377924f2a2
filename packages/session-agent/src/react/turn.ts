// A turn, from the socket's frames. Its chunks are numbered: if one is missing, the page requests all of
// them, and the current answer stays until they arrive.

import type { UiMessage } from "../operations.js";
import { type Answer, NOTHING, withChunk } from "./answer.js";

/** A frame `cf_agent_use_chat_response` with a chunk. */
export interface ChunkFrame {
  body: string;
  seq?: number;
  replay?: boolean;
  replayComplete?: boolean;
}

export class Turn {
  /** The request that began it. */
  readonly id: string;
  /** The message whose answer is replaced; `null`: the answer follows the newest message. */
  readonly cut: string | null;
  /** The agent has ended it, and its messages are being read. */
  isOver = false;
  #answer: Answer = NOTHING;
  #next = 0;
  #replay: { answer: Answer; next: number } | null = null;
  #isAsking = false;
  readonly #base: (id: string | undefined) => UiMessage;

  /** `base`: the message with an id or, without one, the message that the turn continues. */
  constructor(id: string, cut: string | null, base: (id: string | undefined) => UiMessage) {
    this.id = id;
    this.cut = cut;
    this.#base = base;
  }

  get answer(): UiMessage | null {
    return this.#answer.message;
  }

  /** Processes a chunk. Returns the chunk if it is shown, or `"ask"` if the page must request the turn's chunks. */
  take(frame: ChunkFrame): { type: string } | "ask" | null {
    if (frame.replayComplete) {
      this.#isAsking = false;
      if (this.#replay !== null) ({ answer: this.#answer, next: this.#next } = this.#replay);
      this.#replay = null;
      return null;
    }
    const chunk = JSON.parse(frame.body);
    const seq = frame.seq ?? this.#next;
    if (frame.replay) {
      const before = seq === 0 || this.#replay === null ? { answer: NOTHING, next: 0 } : this.#replay;
      this.#replay = { answer: withChunk(before.answer, chunk, this.#base), next: seq + 1 };
      return null;
    }
    // After an eviction, the object replays the turn from its beginning.
    if (seq === 0) [this.#answer, this.#next] = [NOTHING, 0];
    if (seq < this.#next) return null;
    if (seq > this.#next) {
      if (this.#isAsking) return null;
      this.#isAsking = true;
      return "ask";
    }
    this.#answer = withChunk(this.#answer, chunk, this.#base);
    this.#next += 1;
    return chunk;
  }
}
