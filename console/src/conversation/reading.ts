// Reads the agent's messages: the newest, all, and older ones.

import type { Draft } from "./draft.ts";
import { renewed } from "./messages.ts";
import { type Of, phaseOf, type State } from "./state.ts";

const PAGE = 100;
/** The most messages per page. Pages grow while the user scrolls up. */
const LONGEST_PAGE = 800;
const NEWEST = 30;

/** Reads the newest messages, or all if any may have moved. It replaces a read in progress. */
export function read(draft: Draft, ...tickets: number[]): void {
  const { state } = draft;
  draft.giveUp(state.reading?.request);
  const request = draft.request();
  const find = doubtful(state);
  state.reading = { request, find, tickets: [...(state.reading?.tickets ?? []), ...tickets] };
  draft.do({ do: "read", request, limit: state.isMoved ? PAGE : NEWEST, find });
}

/** The messages that the agent may or may not have. */
function doubtful({ turn, line }: State): readonly string[] {
  const ids = line.filter(({ stage }) => stage === "doubtful").map(({ id }) => id);
  return turn?.stage === "settling" && !turn.hasStarted && turn.messageId !== null ? [turn.messageId, ...ids] : ids;
}

/** Processes the messages that were read. Returns the read, or `null` if it is out of date. */
export function takeReading(draft: Draft, { request, updatedAt, messages, cursor }: Of<"read">): State["reading"] {
  const { state } = draft;
  const { reading } = state;
  if (reading?.request !== request) return null;
  const wasMoved = state.isMoved;
  const all = wasMoved ? null : renewed(state.loaded, messages, cursor === null);
  state.loaded = all ?? messages;
  if (all === null || cursor === null) state.above = cursor;
  if (wasMoved) state.problem = null;
  state.isUnknown = updatedAt === null;
  state.updatedAt = updatedAt ?? 0;
  state.reading = null;
  state.isMoved = false;
  state.isOwed = false;
  state.deeds = state.deeds.filter(({ knownFrom }) => knownFrom === null || knownFrom > request);
  draft.do({ do: "read tree", fromStart: wasMoved, leaf: null });
  return reading;
}

export function readAbove(draft: Draft, limit: number | null, tickets: readonly number[]): void {
  const { state } = draft;
  if (state.readingAbove !== null) {
    state.readingAbove = { ...state.readingAbove, tickets: [...state.readingAbove.tickets, ...tickets] };
  } else if (state.above === null) {
    draft.resolve(tickets, false);
  } else {
    const reading = { request: draft.request(), before: state.above, limit: limit ?? state.pageAbove };
    state.readingAbove = { ...reading, tickets };
    draft.do({ do: "readAbove", ...reading });
  }
}

export function takeReadingAbove(draft: Draft, { request, messages, cursor }: Of<"readAbove">): void {
  const { state } = draft;
  const reading = state.readingAbove;
  if (reading?.request !== request) return;
  state.readingAbove = null;
  // The messages have moved since the request.
  if (request < state.since || state.above !== reading.before) return readAbove(draft, reading.limit, reading.tickets);
  const known = new Set(state.loaded.map(({ id }) => id));
  state.loaded = [...messages.filter(({ id }) => !known.has(id)), ...state.loaded];
  state.above = cursor;
  state.pageAbove = Math.min(LONGEST_PAGE, state.pageAbove * 2);
  draft.resolve(reading.tickets, true);
}

/** Checks whether other clients have written. */
export function checkForChanges(draft: Draft): void {
  const { state } = draft;
  if (phaseOf(state) !== "idle" || state.reading !== null) return;
  // A check that has no answer yet may never get one.
  draft.giveUp(state.checking);
  state.checking = draft.request();
  draft.do({ do: "check", request: state.checking });
}

export function takeCheck(draft: Draft, { request, updatedAt }: Of<"checked">): void {
  const { state } = draft;
  if (state.checking !== request) return;
  state.checking = null;
  const isSame = (updatedAt ?? 0) === state.updatedAt && !state.isOwed;
  if (isSame || phaseOf(state) !== "idle" || state.reading !== null) return;
  if (updatedAt === null || state.isUnknown) state.isMoved = true;
  state.wantsToListen = true;
  read(draft);
}
