// Reads the path from a session's leaf to its root, as events of the log.

import { LeafMovedError, MessageNotFoundError, SessionNotFoundError } from "./errors.js";
import type { SessionEvent } from "./operations.js";
import type { SessionClient } from "./session.js";

/** The newest events of a branch, and its leaf. */
export interface Path {
  events: SessionEvent[];
  leafId: string | null;
}

/** The events per request. */
export const PAGE = 200;
/** If events are deleted during a read, the read starts again this many times. */
const READS = 50;

/**
 * The newest events of the default branch that have `count` items together, from the oldest to the
 * newest, and where the branch ends. Events without items are left out.
 */
export async function readPath(
  session: SessionClient,
  count: number,
  itemsOf: (event: SessionEvent) => number,
): Promise<Path> {
  for (let read = 1; read <= READS; read += 1) {
    const path = await readOnce(session, count, itemsOf);
    if (path !== null) return path;
  }
  throw new LeafMovedError("The history changed each time that it was read. Try again.", {
    code: "leaf_moved",
    operation: "loadEvents",
  });
}

/** `null`: an event of the branch was removed after the branch's end was read. */
async function readOnce(
  session: SessionClient,
  count: number,
  itemsOf: (event: SessionEvent) => number,
): Promise<Path | null> {
  const found: SessionEvent[] = [];
  const context = await orNull(() => session.buildWorkingContext({ limit: 1 }));
  const leafId = context?.leafId ?? null;
  let wanted: string | null = leafId;
  let items = 0;
  for (let beforeSeq: number | undefined; wanted !== null && items < count; ) {
    const input = { tail: true, limit: PAGE, ...(beforeSeq !== undefined && { beforeSeq }) };
    const page = await orNull(() => session.loadEvents(input));
    // A parent of the branch is not in the log.
    if (!page?.length) return null;
    for (const event of page.slice().reverse()) {
      // Other events belong to other branches.
      if (event.id !== wanted || items >= count) continue;
      wanted = event.parentId;
      const more = itemsOf(event);
      items += more;
      if (more > 0) found.push(event);
    }
    beforeSeq = page[0]!.seq;
  }
  return { events: found.reverse(), leafId };
}

/** The answer, or `null` if the session or the message doesn't exist. */
export async function orNull<Answer>(read: () => Promise<Answer>): Promise<Answer | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof SessionNotFoundError || error instanceof MessageNotFoundError) return null;
    throw error;
  }
}
