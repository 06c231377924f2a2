// What a conversation waits for.

import type { Signal } from "@preact/signals";
import type { ChatChunk } from "session-agent";
import { isLost } from "../connection.ts";

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
