// Reads the agent's messages: the newest, all, and older ones.

import type { Draft } from "./draft.ts";
import { renewed } from "./messages.ts";
import { type ActionOf, phaseOf, type State } from "./state.ts";

const PAGE = 100;
/** The most messages per page. Pages grow while the user scrolls up. */
const LONGEST_PAGE = 800;
const NEWEST = 30;

/** Reads the newest messages, or all if any may have moved. It replaces a read in progress. */
export function read(draft: Draft, ...tickets: number[]): void {
  const { state } = draft;
  draft.abort(state.reading?.request);
  const request = draft.request();
  const find = unconfirmedIds(state);
  state.reading = { request, find, tickets: [...(state.reading?.tickets ?? []), ...tickets] };
  draft.do({ do: "read", request, limit: state.needsFullRead ? PAGE : NEWEST, find });
}

/** The messages that the agent may or may not have. */
function unconfirmedIds({ turn, queue }: State): readonly string[] {
  const ids = queue.filter(({ stage }) => stage === "unconfirmed").map(({ id }) => id);
  return turn?.stage === "settling" && !turn.hasStarted && turn.messageId !== null ? [turn.messageId, ...ids] : ids;
}

/** Processes the messages that were read. Returns the read, or `null` if it is out of date. */
export function acceptRead(draft: Draft, { request, updatedAt, messages, cursor }: ActionOf<"read">): State["reading"] {
  const { state } = draft;
  const { reading } = state;
  if (reading?.request !== request) return null;
  const wasFullRead = state.needsFullRead;
  const all = wasFullRead ? null : renewed(state.loaded, messages, cursor === null);
  state.loaded = all ?? messages;
  if (all === null || cursor === null) state.olderCursor = cursor;
  if (wasFullRead) state.problem = null;
  state.isUnknown = updatedAt === null;
  state.updatedAt = updatedAt ?? 0;
  state.reading = null;
  state.needsFullRead = false;
  state.needsReread = false;
  state.optimisticUpdates = state.optimisticUpdates.filter(
    ({ includedFrom }) => includedFrom === null || includedFrom > request,
  );
  draft.do({ do: "read tree", fromStart: wasFullRead, leaf: null });
  return reading;
}

export function readOlder(draft: Draft, limit: number | null, tickets: readonly number[]): void {
  const { state } = draft;
  if (state.readingOlder !== null) {
    state.readingOlder = { ...state.readingOlder, tickets: [...state.readingOlder.tickets, ...tickets] };
  } else if (state.olderCursor === null) {
    draft.resolve(tickets, false);
  } else {
    const reading = { request: draft.request(), before: state.olderCursor, limit: limit ?? state.olderPageSize };
    state.readingOlder = { ...reading, tickets };
    draft.do({ do: "readOlder", ...reading });
  }
}

export function acceptOlderRead(draft: Draft, { request, messages, cursor }: ActionOf<"readOlder">): void {
  const { state } = draft;
  const reading = state.readingOlder;
  if (reading?.request !== request) return;
  state.readingOlder = null;
  // The messages have moved since the request.
  if (request < state.validSince || state.olderCursor !== reading.before)
    return readOlder(draft, reading.limit, reading.tickets);
  const known = new Set(state.loaded.map(({ id }) => id));
  state.loaded = [...messages.filter(({ id }) => !known.has(id)), ...state.loaded];
  state.olderCursor = cursor;
  state.olderPageSize = Math.min(LONGEST_PAGE, state.olderPageSize * 2);
  draft.resolve(reading.tickets, true);
}

/** Checks whether other clients have written. */
export function checkForChanges(draft: Draft): void {
  const { state } = draft;
  if (phaseOf(state) !== "idle" || state.reading !== null) return;
  // A check that has no answer yet may never get one.
  draft.abort(state.checking);
  state.checking = draft.request();
  draft.do({ do: "check", request: state.checking });
}

export function acceptCheck(draft: Draft, { request, updatedAt }: ActionOf<"checked">): void {
  const { state } = draft;
  if (state.checking !== request) return;
  state.checking = null;
  const isSame = (updatedAt ?? 0) === state.updatedAt && !state.needsReread;
  if (isSame || phaseOf(state) !== "idle" || state.reading !== null) return;
  if (updatedAt === null || state.isUnknown) state.needsFullRead = true;
  state.wantsToListen = true;
  read(draft);
}
