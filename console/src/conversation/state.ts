// The page's state of a conversation, the actions that change it, and the effects that
// they cause. `step.ts` has the rules.

import type { ChatChunk, ChatInput, InputAnswers, UiMessage } from "session-agent";
import type { LiveTurn } from "../turns/live.ts";
import { type Answer, EMPTY_ANSWER } from "./answer.ts";

/** A message that this page sent, and that is answered after the preceding ones. */
export interface QueuedMessage {
  readonly id: string;
  readonly text: string;
}

/**
 * Why a request failed. `isLost`: the connection broke, so the agent may have received the request
 * if it `wasSent`.
 */
export interface Failure {
  readonly error: unknown;
  readonly isLost: boolean;
  readonly wasSent: boolean;
}

/**
 * A change by the user that the agent's messages don't show yet. It is applied on top of them, so a
 * late answer can't undo it, and a failure needs no rollback.
 */
export interface OptimisticUpdate {
  /** The number of its request. */
  readonly request: number;
  /** Removes the messages from this one on. */
  readonly cutAt: string | null;
  /** Is shown at the end or, if `isNewer`, instead of the message with its id. */
  readonly message: UiMessage | null;
  readonly isNewer: boolean;
  /** A read with this number or a higher one includes it. `null`: none yet. */
  readonly includedFrom: number | null;
}

/** The turn whose answer is shown. */
export interface Turn {
  readonly request: number;
  /** Whether this page started it. */
  readonly isOurs: boolean;
  /**
   * - `requested`: no part of the answer has arrived.
   * - `streaming`: the answer is streaming.
   * - `lost`: the connection broke.
   * - `settling`: it appears to be over, and the agent's messages are being read.
   */
  readonly stage: "requested" | "streaming" | "lost" | "settling";
  readonly isAccepted: boolean;
  readonly hasStarted: boolean;
  readonly isStopping: boolean;
  readonly answer: Answer;
  readonly input: ChatInput | null;
  /** The message that started the turn. If the agent has it, the agent has received the request. */
  readonly messageId: string | null;
  readonly ticket: number | null;
  /** Its failure, for the caller. */
  readonly error: unknown;
  /** The number of the first read that shows its result. */
  readonly settledFrom: number;
}

export interface ReceivedChunk {
  readonly chunk: ChatChunk;
  readonly at: number;
}

/** A queued message: its turn is not shown yet. The queue is in the order of sending. */
export interface QueueEntry extends QueuedMessage {
  readonly ticket: number;
  readonly message: UiMessage;
  readonly input: ChatInput;
  /**
   * - `unsent`: preceding messages are sent first.
   * - `requested`: it is in transit, or queued in the agent.
   * - `lost`: the connection broke.
   * - `unconfirmed`: the connection is restored, and a read will show whether the agent has it.
   */
  readonly stage: "unsent" | "requested" | "lost" | "unconfirmed";
  /** The number of the chat request, or of the wait for the connection. */
  readonly request: number;
  readonly isAccepted: boolean;
  /** Whether the agent may already have it. */
  readonly wasSent: boolean;
  /** The agent had it when the user removed it, so it is not sent again. */
  readonly wasRead: boolean;
  /** The user withdrew it: by this request, or as soon as the agent has accepted it. */
  readonly cancel: number | "wanted" | null;
  /** The agent reported that it is no longer queued. */
  readonly isCancelled: boolean;
  /** The chunks of its answer so far. Its turn is shown when the previous one is over. */
  readonly chunks: readonly ReceivedChunk[];
  readonly end: "over" | Failure | null;
}

/** A request to the agent besides messages and answers. */
export type PendingRequest =
  | { readonly kind: "append" }
  | { readonly kind: "stop"; readonly messageId: string | null }
  | { readonly kind: "withdraw"; readonly id: string }
  /** `isLoaded`: the agent had the message when the user removed it. */
  | { readonly kind: "remove"; readonly id: string; readonly isLoaded: boolean }
  | { readonly kind: "switch"; readonly leaf: string };

/** A call is approved or declined, or its tool's questions are answered. */
export type CallDecision =
  | { readonly approvalId: string; readonly approved: boolean; readonly output?: undefined }
  | { readonly toolCallId: string; readonly output: InputAnswers };

/**
 * A turn that the user requested at an existing message: after a decision about a call, or to answer
 * again. It continues at that message, so later messages would disappear from the view. The newest
 * messages are read first; then the turn begins, or the user is asked for confirmation.
 */
export interface Decision {
  readonly messageId: string;
  /** `null`: the message has no answer, and is to be answered. */
  readonly call: CallDecision | null;
  /** The number of the first read that shows whether newer messages exist. */
  readonly from: number;
  /** The number of later messages, for the confirmation. `null`: unknown. */
  readonly newer: number | null;
}

export interface State {
  readonly isOpen: boolean;
  readonly isClosed: boolean;
  /** The number of the next request. Later requests have higher ones. */
  readonly next: number;
  /** The agent's messages as they were read, without the user's later actions. */
  readonly loaded: readonly UiMessage[];
  readonly optimisticUpdates: readonly OptimisticUpdate[];
  /** Deleted messages. A read that started before the deletion doesn't restore them. */
  readonly removedIds: ReadonlySet<string>;
  /** The cursor of the older messages. `null`: there are none. */
  readonly olderCursor: string | null;
  readonly olderPageSize: number;
  readonly readingOlder: {
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
  /** Any message may have moved since all were read, so the next read reads all. */
  readonly needsFullRead: boolean;
  /** A read failed: the next check reads the list again, even if nothing changed. */
  readonly needsReread: boolean;
  /** A request with a smaller number is out of date. */
  readonly validSince: number;
  readonly checking: number | null;
  /** Checks for a running turn that this page did not start. */
  readonly listening: number | null;
  /** Whether to check for a running turn after the messages are read. */
  readonly wantsToListen: boolean;
  readonly turn: Turn | null;
  /** The received chunks and times of a turn whose connection broke. */
  readonly liveBefore: LiveTurn | null;
  readonly decision: Decision | null;
  readonly queue: readonly QueueEntry[];
  readonly pendingRequests: ReadonlyMap<number, PendingRequest>;
  readonly problem: unknown;
}

export const EMPTY: State = {
  isOpen: false,
  isClosed: false,
  next: 1,
  loaded: [],
  optimisticUpdates: [],
  removedIds: new Set(),
  olderCursor: null,
  olderPageSize: 100,
  readingOlder: null,
  isUnknown: false,
  updatedAt: 0,
  reading: null,
  needsFullRead: true,
  needsReread: false,
  validSince: 0,
  checking: null,
  listening: null,
  wantsToListen: false,
  turn: null,
  liveBefore: null,
  decision: null,
  queue: [],
  pendingRequests: new Map(),
  problem: null,
};

/** The user's actions, and the answers to requests. `at` is the time. */
export type Action =
  | { type: "open" | "check" | "stop" | "dismiss" | "close" | "cancel decision" | "branch off" }
  /** A failure outside these rules. */
  | { type: "problem"; error: unknown }
  | { type: "reload"; ticket: number }
  | { type: "loadOlder"; limit: number | null; ticket: number }
  | { type: "send"; id: string; text: string; more: Partial<ChatInput>; at: number; ticket: number }
  | { type: "resend"; id: string; newId: string; text: string; at: number; ticket: number }
  | { type: "regenerate" | "retry" | "answer" | "remove" | "withdraw"; id: string }
  | { type: "decide"; messageId: string; call: CallDecision }
  | { type: "switch"; leaf: string }
  /** `found`: the requested messages that the agent has, on any branch. */
  | {
      type: "read";
      request: number;
      found: readonly string[];
      updatedAt: number | null;
      messages: readonly UiMessage[];
      cursor: string | null;
    }
  | { type: "readOlder"; request: number; messages: readonly UiMessage[]; cursor: string | null }
  | { type: "checked"; request: number; updatedAt: number | null }
  | { type: "accepted" | "over" | "done" | "reconnected"; request: number }
  | { type: "chunk"; request: number; chunk: ChatChunk; at: number }
  | ({ type: "failed"; request: number } & Failure);

/** The actions of a type. */
export type ActionOf<Type extends Action["type"]> = Extract<Action, { type: Type }>;

/** The work to do. Each effect with a request results in an action with its number. */
export type Effect =
  /** `read` or `failed`. */
  | { do: "read"; request: number; limit: number; find: readonly string[] }
  /** `readOlder` or `failed`. */
  | { do: "readOlder"; request: number; before: string; limit: number }
  /** `checked` or `failed`. */
  | { do: "check"; request: number }
  /** `accepted`, any number of `chunk`, and `over` or `failed`. */
  | { do: "chat"; request: number; input: ChatInput }
  | { do: "listen"; request: number }
  /** `done` or `failed`. */
  | { do: "append"; request: number; message: UiMessage }
  | { do: "cancel"; request: number; messageId: string | null }
  | { do: "switch"; request: number; leaf: string }
  | { do: "remove"; request: number; id: string }
  /** `reconnected`, when the connection is restored. */
  | { do: "await connection"; request: number }
  /** Ignores all later actions with this number. */
  | { do: "abort"; request: number }
  | { do: "abort all" }
  /** Updates the tree of events. `fromStart`: reads it from the start, because events may have been deleted. */
  | { do: "read tree"; fromStart: boolean; leaf: string | null }
  /** Resolves the caller's promise. */
  | { do: "resolve"; ticket: number; value: boolean }
  /** An answer that began with a success status reported a failure later. */
  | { do: "mark failed"; operation: "chat" | "resumeChat"; error: string };

export type Phase = "loading" | "idle" | "answering" | "stopping";

export function phaseOf({ isOpen, turn }: State): Phase {
  if (turn !== null) return turn.isStopping ? "stopping" : "answering";
  return isOpen ? "idle" : "loading";
}

/** All messages in order: the agent's, the user's pending actions, and the streaming answer. */
export function messagesOf({ loaded, optimisticUpdates, removedIds, turn }: State): readonly UiMessage[] {
  const done = optimisticUpdates.reduce(withUpdate, loaded);
  const shown = turn?.answer.message ? withMessage(done, turn.answer.message) : done;
  return removedIds.size === 0 ? shown : shown.filter(({ id }) => !removedIds.has(id));
}

function withUpdate(
  messages: readonly UiMessage[],
  { cutAt, message, isNewer }: OptimisticUpdate,
): readonly UiMessage[] {
  const cut = cutAt === null ? -1 : messages.findIndex(({ id }) => id === cutAt);
  const rest = cut < 0 ? messages : messages.slice(0, cut);
  if (message === null) return rest;
  return isNewer || !rest.some(({ id }) => id === message.id) ? withMessage(rest, message) : rest;
}

/** Replaces the message with the same id, or appends it. */
function withMessage(messages: readonly UiMessage[], message: UiMessage): readonly UiMessage[] {
  const index = messages.findLastIndex(({ id }) => id === message.id);
  return index < 0 ? [...messages, message] : messages.with(index, message);
}

export function newTurn(request: number, more: Partial<Turn>): Turn {
  return {
    request,
    isOurs: true,
    stage: "requested",
    isAccepted: false,
    hasStarted: false,
    isStopping: false,
    answer: EMPTY_ANSWER,
    input: null,
    messageId: null,
    ticket: null,
    error: null,
    settledFrom: 0,
    ...more,
  };
}
