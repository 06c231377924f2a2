// A session as `useSession` shows it: a function of what was read, heard and asked.

import type { ShownTurn, UiMessage } from "../operations.js";
import { cutAt, type Decided, failuresOf, withAnswer, withDecisions, withFailures } from "./messages.js";
import { isUnreached } from "./store.js";
import type { Turn } from "./turn.js";
import type { ChatFailure, ChatMessage } from "./types.js";

export interface SessionView<Tools = { [name: string]: unknown }> {
  messages: ChatMessage<Tools>[];
  /** `submitted`: an answer was asked for. `streaming`: it is being said. */
  status: "loading" | "ready" | "submitted" | "streaming";
  connection: "connecting" | "online" | "offline";
  /** Why the last action failed, or why the session can't be read. */
  error: Error | null;
  /** Whether there are older messages, which `loadMore` reads. */
  hasMore: boolean;
  /** The answers to the newest question, the shown one among them. */
  branches: UiMessage[];
}

/** What is sent beside a message. A token must allow it. */
export interface SendOptions {
  model?: string;
  systemInstructions?: string[];
}

/** What the page asks the agent for: an answer to a new message, or to one that is there. */
export interface Outgoing {
  requestId: string;
  message: UiMessage | null;
  /** The message whose answer is made again. */
  cut: string | null;
  body: object;
  stage: "unsent" | "sent" | "begun" | "failed";
  failure?: ChatFailure;
}

export interface SessionKnown {
  loaded: readonly UiMessage[];
  hasMore: boolean;
  isRead: boolean;
  outbox: readonly Outgoing[];
  turn: Turn | null;
  decisions: ReadonlyMap<string, Decided>;
  failedTurns: readonly ShownTurn[];
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
  const begun = own.flatMap(({ stage, message }) => (stage === "begun" && message ? [message] : []));
  const said = withAnswer([...base, ...begun], turn?.answer ?? null);
  const failures = failuresOf(said, known.failedTurns, known.failures);
  if (isBusy) for (const one of [said.at(-1), base.at(-1)]) failures.delete(one?.id ?? "");
  const unsaid = own
    .filter(({ stage }) => stage !== "begun")
    .map((outgoing, n) => shownUnsaid(outgoing, isRunning || n > 0));
  const hasSpoken = isRunning && turn.answer !== null && turn.answer.parts.length > 0;
  return {
    messages: [...withFailures(withDecisions(said, known.decisions) as readonly ChatMessage[], failures), ...unsaid],
    status: hasSpoken ? "streaming" : isBusy ? "submitted" : known.isRead ? "ready" : "loading",
    connection: known.connection,
    // Of a connection that failed, `connection` tells.
    error: known.error ?? (isUnreached(known.readError) ? null : known.readError),
    hasMore: known.hasMore,
    branches: known.branches,
  };
}

function shownUnsaid({ message, stage, failure }: Outgoing, isBehind: boolean): ChatMessage {
  const shown = message as ChatMessage;
  if (stage === "failed") return failure === undefined ? shown : { ...shown, failure };
  return { ...shown, delivery: stage === "sent" && isBehind ? "waiting" : "sending" };
}
