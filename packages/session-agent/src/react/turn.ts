// A turn as the socket's frames tell it. Its chunks are numbered: a chunk that is missing makes the
// page ask for all of them, and the answer that is shown stays until they are there.

import type { UiMessage } from "../operations.js";
import { type Answer, NOTHING, withChunk } from "./answer.js";

/** A frame `cf_agent_use_chat_response` that holds a chunk. */
export interface ChunkFrame {
  body: string;
  seq?: number;
  replay?: boolean;
  replayComplete?: boolean;
}

export class Turn {
  /** The request that began it. */
  readonly id: string;
  /** The message at which the answer begins again; `null`: it follows the newest. */
  readonly cut: string | null;
  /** The agent has ended it, and its messages are being read. */
  isOver = false;
  #answer: Answer = NOTHING;
  #next = 0;
  #replay: { answer: Answer; next: number } | null = null;
  #isAsking = false;
  readonly #base: (id: string | undefined) => UiMessage;

  /** `base`: the message of an id or, without one, the message that the turn goes on with. */
  constructor(id: string, cut: string | null, base: (id: string | undefined) => UiMessage) {
    this.id = id;
    this.cut = cut;
    this.#base = base;
  }

  get answer(): UiMessage | null {
    return this.#answer.message;
  }

  /** Takes a chunk. Gives the chunk if it is shown, and `"ask"` if the page must ask for the turn's chunks. */
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
    // The object died, and tells the turn from its beginning.
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
