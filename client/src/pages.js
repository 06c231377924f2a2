// Async iterators over what the agent gives page by page.

import { wait } from "./retry.js";

const CHANGES_PAUSE_MS = 1000;
const EVENTS_PAGE = 500;

/** The items of pages that follow each other by `cursor`. */
export async function* pagesOf(load, itemsOf) {
  for (let cursor; cursor !== null; ) {
    const page = await load(cursor);
    yield* itemsOf(page);
    cursor = page.cursor ?? null;
  }
}

export async function* historyPagesOf(session, { signal, retry, before, ...input } = {}) {
  for (let cursor = before; cursor !== null; ) {
    const page = await session.getHistory({ ...input, before: cursor }, { signal, retry });
    yield page;
    cursor = page.cursor;
  }
}

export async function* historyOf(session, options) {
  for await (const { messages } of historyPagesOf(session, options)) yield* messages.reverse();
}

export async function* eventsOf(session, { signal, retry, afterSeq = 0, limit = EVENTS_PAGE, ...input } = {}) {
  for (let after = afterSeq; ; ) {
    const page = await session.loadEvents({ ...input, afterSeq: after, limit }, { signal, retry });
    yield* page;
    // A page may be shorter than its limit, because answers are bounded in bytes.
    if (page.length === 0) return;
    after = page.at(-1).seq;
  }
}

export async function* changesOf(session, { signal, retry, since, limit, follow = true, pauseMs = CHANGES_PAUSE_MS } = {}) {
  for (let cursor = since ?? 0; ; ) {
    const page = await session.getChanges({ since: cursor, limit }, { signal, retry });
    yield* page.changes;
    cursor = page.cursor;
    if (page.changes.length > 0) continue;
    if (!follow) return;
    await wait(pauseMs, signal);
  }
}
