// Async iterators over paginated results.

import type { Change, GetHistoryInput, HistoryPage, LoadEventsInput, SessionEvent, UiMessage } from "./operations.js";
import type { CallOptions } from "./options.js";
import { wait } from "./retry.js";
import type { SessionClient } from "./session.js";

export interface ChangesOptions extends CallOptions {
  /** The cursor of the last processed change. Default: 0. */
  since?: number;
  /** The changes per page. Default: 100. */
  limit?: number;
  /** Whether to wait for new changes. `false`: ends with the newest change. Default: true. */
  follow?: boolean;
  /** The pause between polls without changes. Default: 1000. */
  pauseMs?: number;
}

export type HistoryOptions = CallOptions & Omit<GetHistoryInput, "sessionId">;
export type EventsOptions = CallOptions & Omit<LoadEventsInput, "sessionId" | "tail" | "beforeSeq">;

const CHANGES_PAUSE_MS = 1000;
const EVENTS_PAGE = 500;

/** The items of pages that follow each other by `cursor`. */
export async function* pagesOf<Page extends { cursor?: string | null }, Item>(
  load: (cursor: string | undefined) => Promise<Page>,
  itemsOf: (page: Page) => Item[],
): AsyncGenerator<Item, void, undefined> {
  for (let cursor: string | undefined | null; cursor !== null; ) {
    const page: Page = await load(cursor);
    yield* itemsOf(page);
    cursor = page.cursor ?? null;
  }
}

export async function* historyPagesOf(
  session: SessionClient,
  { signal, retry, trace, before, ...input }: HistoryOptions = {},
): AsyncGenerator<HistoryPage, void, undefined> {
  for (let cursor: string | null | undefined = before; cursor !== null; ) {
    const page: HistoryPage = await session.getHistory({ ...input, before: cursor }, { signal, retry, trace });
    yield page;
    cursor = page.cursor;
  }
}

export async function* historyOf(
  session: SessionClient,
  options?: HistoryOptions,
): AsyncGenerator<UiMessage, void, undefined> {
  for await (const { messages } of historyPagesOf(session, options)) yield* messages.reverse();
}

export async function* eventsOf(
  session: SessionClient,
  { signal, retry, trace, afterSeq, limit = EVENTS_PAGE, ...input }: EventsOptions = {},
): AsyncGenerator<SessionEvent, void, undefined> {
  for (let after = afterSeq ?? 0; ; ) {
    const page = await session.loadEvents({ ...input, afterSeq: after, limit }, { signal, retry, trace });
    yield* page;
    // A page may be shorter than its limit, because answers are bounded in bytes.
    if (page.length === 0) return;
    after = page[page.length - 1]!.seq;
  }
}

export async function* changesOf(
  session: SessionClient,
  { signal, retry, trace, since, limit, follow = true, pauseMs = CHANGES_PAUSE_MS }: ChangesOptions = {},
): AsyncGenerator<Change, void, undefined> {
  for (let cursor = since ?? 0; ; ) {
    const page = await session.getChanges({ since: cursor, limit }, { signal, retry, trace });
    yield* page.changes;
    cursor = page.cursor;
    if (page.changes.length > 0) continue;
    if (!follow) return;
    await wait(pauseMs, signal);
  }
}
