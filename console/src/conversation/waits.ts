// What a conversation waits for.

import type { Signal } from "@preact/signals";
import { type ChatChunk, NetworkError } from "session-agent";
import { isLost } from "../connection.ts";

/** A message that this page has sent, and that is answered after the answers before it. */
export interface WaitingMessage {
  id: string;
  text: string;
}

/** How often a broken answer looks for the connection. */
const BACK_MS = 300;

/** Waits until the value is another one. */
export function nextValue<T>(of: Signal<T>): Promise<void> {
  const before = of.peek();
  return new Promise((resolve) => {
    const stop = of.subscribe((now) => {
      if (now === before) return;
      resolve();
      queueMicrotask(() => stop());
    });
  });
}

/** Requests overtake each other on their way. Here each one leaves when the one before was taken. */
export class Line {
  #last: Promise<void> = Promise.resolve();

  /** `turn` comes when all before have left. Who got through, or gave up, calls `leave`. */
  enter(): { turn: Promise<void>; leave: () => void } {
    const turn = this.#last;
    let leave = () => {};
    const left = new Promise<void>((resolve) => (leave = resolve));
    this.#last = turn.then(() => left);
    return { turn, leave };
  }

  /** What is asked for when its turn comes. */
  async *through<T>(ask: (leave: () => void) => AsyncIterable<T>): AsyncGenerator<T> {
    const { turn, leave } = this.enter();
    try {
      await turn;
      yield* ask(leave);
    } finally {
      leave();
    }
  }
}

/** The first chunk of a turn, however long it takes to come. `undefined`: the message was taken back. */
export async function begun(ask: () => AsyncIterator<ChatChunk>, signal: AbortSignal): Promise<{ first: ChatChunk | undefined; rest: AsyncIterator<ChatChunk> }> {
  for (;;) {
    const rest = ask();
    try {
      const { value, done } = await rest.next();
      return { first: done || value.type === "abort" ? undefined : value, rest };
    } catch (error) {
      if (signal.aborted || !(error instanceof NetworkError)) throw error;
      // Something that is no agent has refused, and refuses again.
      if ((error.status ?? 500) < 500) throw error;
      // The message has its id, so asking again is asking once.
      await untilBack(signal);
    }
  }
}

/** The chunks of an answer whose first one was read already. */
export async function* joined(first: ChatChunk, rest: AsyncIterator<ChatChunk>): AsyncIterable<ChatChunk> {
  try {
    yield first;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

/** Waits a moment, and as long as the connection is gone. */
export function untilBack(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (signal.aborted || !isLost.peek()) resolve();
      else setTimeout(look, BACK_MS);
    };
    setTimeout(look, BACK_MS);
  });
}
