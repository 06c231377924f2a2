// This page's state of a conversation, the happenings that change it, and the effects that it asks
// for. `step.ts` has the rules.

import type { ChatChunk, ChatInput, InputAnswers, UiMessage } from "session-agent";
import type { LiveTurn } from "../turns/live.ts";
import { type Answer, NOTHING_SAID } from "./answer.ts";

/** A message that this page has sent, and that is answered after the answers before it. */
export interface WaitingMessage {
  readonly id: string;
  readonly text: string;
}

/**
 * Why a request came to nothing. `isLost`: the connection broke. Nobody knows then whether the
 * agent has heard of the request, unless it was never `wasSent`.
 */
export interface Failure {
  readonly error: unknown;
  readonly isLost: boolean;
  readonly wasSent: boolean;
}

/**
 * A deed of the reader that the agent's messages do not show yet. It is shown on top of them, so
 * that nothing that comes late undoes it, and that nothing has to be restored if it fails.
 */
export interface Deed {
  /** The request by which it was asked for. */
  readonly request: number;
  /** The messages from this one on are gone. */
  readonly cutAt: string | null;
  /** Stands at the end, or in the place of the message with its id if `isNewer`. */
  readonly message: UiMessage | null;
  readonly isNewer: boolean;
  /** A reading with this number or a later one knows of it. `null`: none yet. */
  readonly knownFrom: number | null;
}

/** The turn whose answer is shown. */
export interface Turn {
  readonly request: number;
  /** This page began it. */
  readonly isOurs: boolean;
  /**
   * - `asked`: nothing of an answer is there.
   * - `begun`: the answer comes.
   * - `lost`: the connection broke.
   * - `settling`: it is over, as far as this page can tell, and the agent's own messages are read.
   */
  readonly stage: "asked" | "begun" | "lost" | "settling";
  readonly isTaken: boolean;
  readonly hasBegun: boolean;
  readonly isStopping: boolean;
  readonly answer: Answer;
  readonly input: ChatInput | null;
  /** The message that it was asked with. The agent has heard of the turn if it has this message. */
  readonly messageId: string | null;
  readonly ticket: number | null;
  /** Its failure, for the caller who asks. */
  readonly error: unknown;
  /** The reading that settles it has this number or a later one. */
  readonly settledFrom: number;
}

export interface HeardChunk {
  readonly chunk: ChatChunk;
  readonly at: number;
}

/** A message whose turn is not shown yet. Its place in the line is the order of sending. */
export interface Waiting extends WaitingMessage {
  readonly ticket: number;
  readonly message: UiMessage;
  readonly input: ChatInput;
  /**
   * - `unsent`: those before it come first.
   * - `asked`: it is on its way, or it waits in the agent.
   * - `lost`: the connection broke.
   * - `doubtful`: the connection is back, and a reading will tell whether the agent has it.
   */
  readonly stage: "unsent" | "asked" | "lost" | "doubtful";
  /** Of the chat, or of what waits for the connection. */
  readonly request: number;
  readonly isTaken: boolean;
  /** The agent may have it already, as far as this page knows. */
  readonly wasAsked: boolean;
  /** The agent had it when the reader wanted it gone: it is not asked for again. */
  readonly wasRead: boolean;
  /** The reader wants it back: by this request, or as soon as the agent has taken it. */
  readonly cancel: number | "wanted" | null;
  /** The agent said that it does not wait there any more. */
  readonly isCancelled: boolean;
  /** The chunks of its answer that were heard. Its turn is shown when the one before it is over. */
  readonly chunks: readonly HeardChunk[];
  readonly end: "over" | Failure | null;
}

/** A request to the agent besides messages and answers. */
export type Errand =
  | { readonly kind: "append" }
  | { readonly kind: "stop"; readonly messageId: string | null }
  | { readonly kind: "take back"; readonly id: string }
  /** `isLoaded`: the agent had the message when the reader wanted it gone. */
  | { readonly kind: "remove"; readonly id: string; readonly isLoaded: boolean }
  | { readonly kind: "switch"; readonly leaf: string };

/** A call is approved or declined, or its tool's questions are answered. */
export type CallDecision =
  | { readonly approvalId: string; readonly approved: boolean; readonly output?: undefined }
  | { readonly toolCallId: string; readonly output: InputAnswers };

/**
 * A turn that the reader wants at a message that is there: the turn of a call that was decided
 * about, or a turn anew. It goes on where its message stands, so what was written after the
 * message would leave the view. The newest messages are read first, and then the turn begins, or
 * the reader is asked.
 */
export interface Decision {
  readonly messageId: string;
  /** `null`: the message has no answer, and is to be answered. */
  readonly call: CallDecision | null;
  /** The reading that tells what is newer has this number or a later one. */
  readonly from: number;
  /** So many messages stand after it, and the reader is asked. `null`: not known yet. */
  readonly newer: number | null;
}

export interface State {
  readonly isOpen: boolean;
  readonly isClosed: boolean;
  /** The number of the next request. Later requests have higher ones. */
  readonly next: number;
  /** The agent's messages that were read, without what the reader has done since. */
  readonly loaded: readonly UiMessage[];
  readonly deeds: readonly Deed[];
  /** Messages that were deleted. They come back in no reading that was begun before. */
  readonly gone: ReadonlySet<string>;
  /** The place where the messages above begin. `null`: there are none. */
  readonly above: string | null;
  readonly pageAbove: number;
  readonly readingAbove: {
    readonly request: number;
    readonly limit: number;
    readonly before: string;
    readonly tickets: readonly number[];
  } | null;
  readonly isUnknown: boolean;
  readonly updatedAt: number;
  readonly reading: {
    readonly request: number;
    readonly find: readonly string[];
    readonly tickets: readonly number[];
  } | null;
  /** Any message may have moved since all were read: the next reading reads all. */
  readonly isMoved: boolean;
  /** A reading failed: the next look reads, whatever it sees. */
  readonly isOwed: boolean;
  /** A request with a smaller number is out of date. */
  readonly since: number;
  readonly looking: number | null;
  /** Listens whether a turn runs that this page did not begin. */
  readonly listening: number | null;
  /** To be listened for when the messages were read. */
  readonly wantsToListen: boolean;
  readonly turn: Turn | null;
  /** The chunks and times that were heard of a turn whose connection broke. */
  readonly heardBefore: LiveTurn | null;
  readonly decision: Decision | null;
  readonly line: readonly Waiting[];
  readonly errands: ReadonlyMap<number, Errand>;
  readonly problem: unknown;
}

export const EMPTY: State = {
  isOpen: false,
  isClosed: false,
  next: 1,
  loaded: [],
  deeds: [],
  gone: new Set(),
  above: null,
  pageAbove: 100,
  readingAbove: null,
  isUnknown: false,
  updatedAt: 0,
  reading: null,
  isMoved: true,
  isOwed: false,
  since: 0,
  looking: null,
  listening: null,
  wantsToListen: false,
  turn: null,
  heardBefore: null,
  decision: null,
  line: [],
  errands: new Map(),
  problem: null,
};

/** The reader's deeds, and the answers to requests. `at` is the time. */
export type Happening =
  | { type: "open" | "look" | "stop" | "dismiss" | "close" | "decide anew" | "branch off" }
  /** Of what has no rule here. */
  | { type: "problem"; error: unknown }
  | { type: "reload"; ticket: number }
  | { type: "loadAbove"; limit: number | null; ticket: number }
  | { type: "send"; id: string; text: string; more: Partial<ChatInput>; at: number; ticket: number }
  | { type: "resend"; id: string; newId: string; text: string; at: number; ticket: number }
  | { type: "regenerate" | "retry" | "answer" | "remove" | "takeBack"; id: string }
  | { type: "decide"; messageId: string; call: CallDecision }
  | { type: "switch"; leaf: string }
  /** `found`: which of the messages to find the agent has, on whichever branch. */
  | {
      type: "read";
      request: number;
      found: readonly string[];
      updatedAt: number | null;
      messages: readonly UiMessage[];
      cursor: string | null;
    }
  | { type: "readAbove"; request: number; messages: readonly UiMessage[]; cursor: string | null }
  | { type: "looked"; request: number; updatedAt: number | null }
  | { type: "taken" | "over" | "done" | "back"; request: number }
  | { type: "chunk"; request: number; chunk: ChatChunk; at: number }
  | ({ type: "failed"; request: number } & Failure);

/** A kind of happening. */
export type Of<Type extends Happening["type"]> = Extract<Happening, { type: Type }>;

/** The work to do. An effect with a request is answered by a happening with its number. */
export type Effect =
  /** `read` or `failed`. */
  | { do: "read"; request: number; limit: number; find: readonly string[] }
  /** `readAbove` or `failed`. */
  | { do: "readAbove"; request: number; before: string; limit: number }
  /** `looked` or `failed`. */
  | { do: "look"; request: number }
  /** `taken`, any number of `chunk`, and `over` or `failed`. */
  | { do: "chat"; request: number; input: ChatInput }
  | { do: "listen"; request: number }
  /** `done` or `failed`. */
  | { do: "append"; request: number; message: UiMessage }
  | { do: "cancel"; request: number; messageId: string | null }
  | { do: "switch"; request: number; leaf: string }
  | { do: "remove"; request: number; id: string }
  /** `back`, when the connection stands. */
  | { do: "await connection"; request: number }
  /** Nothing that happens with this number is heard any more. */
  | { do: "give up"; request: number }
  | { do: "give all up" }
  /** The tree of events is to be read on. `isAnew`: events may be gone. */
  | { do: "read tree"; isAnew: boolean; leaf: string | null }
  /** The holder of the ticket is told. */
  | { do: "tell"; ticket: number; value: boolean }
  /** The answer to a request began well, and told of a failure later. */
  | { do: "mark failed"; operation: "chat" | "resumeChat"; error: string };

export type Phase = "loading" | "idle" | "answering" | "stopping";

export function phaseOf({ isOpen, turn }: State): Phase {
  if (turn !== null) return turn.isStopping ? "stopping" : "answering";
  return isOpen ? "idle" : "loading";
}

/** All messages in order: the agent's, what the reader did, and the one that is being said. */
export function messagesOf({ loaded, deeds, gone, turn }: State): readonly UiMessage[] {
  const done = deeds.reduce(withDeed, loaded);
  const shown = turn?.answer.message ? placed(done, turn.answer.message) : done;
  return gone.size === 0 ? shown : shown.filter(({ id }) => !gone.has(id));
}

function withDeed(messages: readonly UiMessage[], { cutAt, message, isNewer }: Deed): readonly UiMessage[] {
  const cut = cutAt === null ? -1 : messages.findIndex(({ id }) => id === cutAt);
  const rest = cut < 0 ? messages : messages.slice(0, cut);
  if (message === null) return rest;
  return isNewer || !rest.some(({ id }) => id === message.id) ? placed(rest, message) : rest;
}

/** The message in its own place, or at the end. */
function placed(messages: readonly UiMessage[], message: UiMessage): readonly UiMessage[] {
  const index = messages.findLastIndex(({ id }) => id === message.id);
  return index < 0 ? [...messages, message] : messages.with(index, message);
}

export function askedTurn(request: number, more: Partial<Turn>): Turn {
  return {
    request,
    isOurs: true,
    stage: "asked",
    isTaken: false,
    hasBegun: false,
    isStopping: false,
    answer: NOTHING_SAID,
    input: null,
    messageId: null,
    ticket: null,
    error: null,
    settledFrom: 0,
    ...more,
  };
}
