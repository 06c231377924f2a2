// Computes the result of `useSession` from stored, streaming and requested messages.

import type { CompletedTurn, UiMessage } from "../operations.js";
import { cutAt, type Decided, failuresOf, withAnswer, withDecisions, withFailures } from "./messages.js";
import { isUnreached } from "./store.js";
import type { Turn } from "./turn.js";
import type { ChatFailure, ChatMessage } from "./types.js";

export interface SessionView<Tools = { [name: string]: unknown }> {
  messages: ChatMessage<Tools>[];
  /** `submitted`: an answer was requested. `streaming`: it is arriving. */
  status: "loading" | "ready" | "submitted" | "streaming";
  connection: "connecting" | "online" | "offline";
  /** The error of the last action or read. */
  error: Error | null;
  /** Whether there are older messages, which `loadMore` loads. */
  hasMore: boolean;
  /** The alternative answers to the newest question, including the current one. */
  branches: UiMessage[];
}

/** Options of a message. The token must allow them. */
export interface SendOptions {
  model?: string;
  systemInstructions?: string[];
}

/** A requested answer: to a new message, or to an existing one. */
export interface Outgoing {
  requestId: string;
  message: UiMessage | null;
  /** The message whose answer is replaced. */
  cut: string | null;
  body: object;
  stage: "unsent" | "sent" | "started" | "failed";
  failure?: ChatFailure;
}

export interface SessionKnown {
  loaded: readonly UiMessage[];
  hasMore: boolean;
  isRead: boolean;
  outbox: readonly Outgoing[];
  turn: Turn | null;
  decisions: ReadonlyMap<string, Decided>;
  failedTurns: readonly CompletedTurn[];
  failures: ReadonlyMap<string, ChatFailure>;
  connection: SessionView["connection"];
  error: Error | null;
  readError: Error | null;
  branches: UiMessage[];
}

export const LOADING: SessionView = {
  messages: [],
  status: "loading",
  connection: "connecting",
  error: null,
  hasMore: false,
  branches: [],
};

export function renderSession(known: SessionKnown): SessionView {
  const { loaded, outbox, turn } = known;
  const isRunning = turn !== null && !turn.isOver;
  const pending = outbox.filter(({ stage }) => stage !== "failed");
  const isBusy = isRunning || pending.length > 0;
  const base = cutAt(loaded, turn?.cut ?? pending.find(({ cut }) => cut !== null)?.cut ?? null);
  const own = outbox.filter(({ message }) => message !== null && !base.some(({ id }) => id === message.id));
  const started = own.flatMap(({ stage, message }) => (stage === "started" && message ? [message] : []));
  const answered = withAnswer([...base, ...started], turn?.answer ?? null);
  const failures = failuresOf(answered, known.failedTurns, known.failures);
  if (isBusy) for (const one of [answered.at(-1), base.at(-1)]) failures.delete(one?.id ?? "");
  const unsaid = own
    .filter(({ stage }) => stage !== "started")
    .map((outgoing, n) => shownUnsent(outgoing, isRunning || n > 0));
  const hasOutput = isRunning && turn.answer !== null && turn.answer.parts.length > 0;
  return {
    messages: [
      ...withFailures(withDecisions(answered, known.decisions) as readonly ChatMessage[], failures),
      ...unsaid,
    ],
    status: hasOutput ? "streaming" : isBusy ? "submitted" : known.isRead ? "ready" : "loading",
    connection: known.connection,
    // A failed connection is reported by `connection`.
    error: known.error ?? (isUnreached(known.readError) ? null : known.readError),
    hasMore: known.hasMore,
    branches: known.branches,
  };
}

function shownUnsent({ message, stage, failure }: Outgoing, isQueued: boolean): ChatMessage {
  const shown = message as ChatMessage;
  if (stage === "failed") return failure === undefined ? shown : { ...shown, failure };
  return { ...shown, delivery: stage === "sent" && isQueued ? "waiting" : "sending" };
}
