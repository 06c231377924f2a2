// One conversation of this page. It runs the effects that `step` requests, and passes their results
// back to `step`. All decisions are in `step`.

import { batch, computed, signal } from "@preact/signals";
import {
  type AgentClient,
  type ChatChunk,
  type ChatInput,
  NetworkError,
  type SessionClient,
  type UiMessage,
} from "session-agent";
import { isLost, openAgent, openAgentNotifying } from "../connection.ts";
import { markFailed } from "../requests.ts";
import { may } from "../rights.ts";
import type { LiveTurn } from "../turns/live.ts";
import type { TurnRecord } from "../turns/rows.ts";
import {
  type CallDecision,
  type Decision,
  type Effect,
  EMPTY,
  type Action,
  messagesOf,
  type Phase,
  phaseOf,
  type State,
  type QueuedMessage,
} from "./state.ts";
import { step } from "./step.ts";
import { EventTree } from "./tree.ts";

/** The most pages that are read to find the message in the address. */
const PAGES_TO_FIND = 40;
const LONG_PAGE = 1000;

/** How often a lost connection is checked. */
const RECONNECT_CHECK_MS = 300;

export class Conversation {
  readonly agent: AgentClient;
  readonly session: SessionClient;
  readonly tree: EventTree;
  /** All messages in order, including the one that is streaming. */
  readonly messages = signal<readonly UiMessage[]>([]);
  readonly state = signal<Phase>("loading");
  readonly queued = signal<readonly QueuedMessage[]>([]);
  readonly problem = signal<unknown>(null);
  /** The running turn, with its times. */
  readonly live = signal<LiveTurn | null>(null);
  /** The user's decision about a call, while the page checks whether to ask for confirmation. */
  readonly decision = signal<Decision | null>(null);
  /** The recorded failed turns, by the message at which each failed. */
  readonly failed = signal<ReadonlyMap<string, TurnRecord>>(new Map());
  readonly isUnknown = signal(false);
  readonly hasMore = computed(() => this.#olderCursor.value !== null);
  /** The message that is being edited. */
  readonly edited = signal<string | null>(null);
  #olderCursor = signal<string | null>(null);
  #state: State = EMPTY;
  /** The scheduled render of a streaming answer: at most one per frame. */
  #frame = 0;
  #inFlight = new Map<number, AbortController>();
  #tickets = new Map<number, (value: boolean) => void>();
  #lastTicket = 0;

  constructor(
    readonly agentName: string,
    readonly id: string,
  ) {
    this.agent = openAgent(agentName);
    this.session = this.agent.session(id);
    this.tree = new EventTree(this.session, may("buildWorkingContext"));
  }

  open(): void {
    this.#dispatch({ type: "open" });
  }

  close(): void {
    this.#dispatch({ type: "close" });
  }

  /** Reloads everything, after a change that may have moved any message. */
  async reload(): Promise<void> {
    await this.#dispatchAndWait((ticket) => ({ type: "reload", ticket }));
  }

  /** Checks whether other clients have written. */
  checkForChanges(): void {
    this.#dispatch({ type: "check" });
  }

  /** Loads older messages. `false`: there are none, or loading failed. */
  async loadOlder(limit: number | null = null): Promise<boolean> {
    return await this.#dispatchAndWait((ticket) => ({ type: "loadOlder", limit, ticket }));
  }

  /** Loads the message that contains this event, wherever it is on the branch. */
  async find(eventId: string): Promise<string | null> {
    // A run of events is shown as one message with the id of its first event.
    await this.tree.readIfShort().catch((error) => this.#fail(error));
    for (let pages = 0; pages < PAGES_TO_FIND; pages += 1) {
      const ids = new Set(this.messages.peek().map(({ id }) => id));
      if (ids.has(eventId)) return eventId;
      if (this.tree.pathTo(this.tree.leafId.peek()).has(eventId)) {
        for (const id of this.tree.pathTo(eventId)) if (ids.has(id)) return id;
      }
      if (!(await this.loadOlder(LONG_PAGE))) return null;
    }
    return null;
  }

  /** Sends a text, or queues it during a turn. `false`: the agent did not accept it. */
  async send(text: string, more: Partial<ChatInput> = {}): Promise<boolean> {
    return await this.#dispatchAndWait((ticket) => ({
      type: "send",
      id: crypto.randomUUID(),
      text,
      more,
      at: Date.now(),
      ticket,
    }));
  }

  /** Withdraws a queued message, and returns its text to the composer. */
  withdraw(id: string): void {
    this.#dispatch({ type: "withdraw", id });
  }

  /** Replaces a message with another text. The old one stays on its own branch. `false`: the agent did not accept it. */
  async resend(id: string, text: string): Promise<boolean> {
    // The new text is appended after the preceding message.
    if (this.messages.peek()[0]?.id === id && this.hasMore.peek() && !(await this.loadOlder())) return false;
    return await this.#dispatchAndWait((ticket) => ({
      type: "resend",
      id,
      newId: crypto.randomUUID(),
      text,
      at: Date.now(),
      ticket,
    }));
  }

  regenerate(id: string): void {
    this.#dispatch({ type: "regenerate", id });
  }

  decide(messageId: string, call: CallDecision): void {
    this.#dispatch({ type: "decide", messageId, call });
  }

  /** Answers the call on a new branch, after the user confirmed it. */
  branchOff(): void {
    this.#dispatch({ type: "branch off" });
  }

  /** Leaves the call open. */
  cancelDecision(): void {
    this.#dispatch({ type: "cancel decision" });
  }

  /** Requests an answer to a message that has none. */
  retry(id: string): void {
    this.#dispatch({ type: "retry", id });
  }

  /** Requests an answer to a message that other messages follow. */
  answer(id: string): void {
    this.#dispatch({ type: "answer", id });
  }

  stop(): void {
    this.#dispatch({ type: "stop" });
  }

  switchTo(eventId: string): void {
    this.#dispatch({ type: "switch", leaf: this.tree.newestLeafBelow(eventId) ?? eventId });
  }

  remove(id: string): void {
    this.#dispatch({ type: "remove", id });
  }

  dismissProblem(): void {
    this.#dispatch({ type: "dismiss" });
  }

  #dispatchAndWait(action: (ticket: number) => Action): Promise<boolean> {
    this.#lastTicket += 1;
    const ticket = this.#lastTicket;
    return new Promise((resolve) => {
      this.#tickets.set(ticket, resolve);
      this.#dispatch(action(ticket));
    });
  }

  #dispatch(action: Action): void {
    const [state, effects] = step(this.#state, action);
    this.#state = state;
    if (action.type === "chunk" && phaseOf(state) === this.state.peek())
      this.#frame ||= requestAnimationFrame(() => this.#show());
    else this.#show();
    for (const effect of effects) this.#do(effect);
  }

  #show(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const state = this.#state;
    batch(() => {
      this.messages.value = unlessSame(this.messages.peek(), messagesOf(state));
      this.state.value = phaseOf(state);
      this.queued.value = unlessSame(this.queued.peek(), state.queue);
      this.problem.value = state.problem;
      this.decision.value = state.decision;
      this.live.value = state.turn?.answer.live ?? null;
      this.isUnknown.value = state.isUnknown;
      this.#olderCursor.value = state.olderCursor;
    });
  }

  #fail(error: unknown): void {
    this.#dispatch({ type: "problem", error });
  }

  #do(effect: Effect): void {
    switch (effect.do) {
      case "resolve":
        this.#tickets.get(effect.ticket)?.(effect.value);
        this.#tickets.delete(effect.ticket);
        return;
      case "abort":
        this.#inFlight.get(effect.request)?.abort();
        return;
      case "abort all":
        for (const controller of this.#inFlight.values()) controller.abort();
        return;
      case "read tree":
        if (effect.leaf !== null) this.tree.leafId.value = effect.leaf;
        return void this.tree.catchUp(effect.fromStart).catch((error) => this.#fail(error));
      case "mark failed":
        return markFailed(this.agentName, effect.operation, effect.error);
      default:
        return void this.#request(effect);
    }
  }

  async #request(effect: Extract<Effect, { request: number }>): Promise<void> {
    const { request } = effect;
    const controller = new AbortController();
    // The browser is offline.
    const wasSent = navigator.onLine;
    this.#inFlight.set(request, controller);
    let action: Action;
    try {
      action = await this.#perform(effect, controller.signal);
    } catch (error) {
      const isLost = error instanceof NetworkError && (error.status ?? 500) >= 500;
      action = { type: "failed", request, error, isLost, wasSent };
    }
    this.#inFlight.delete(request);
    if (!controller.signal.aborted) this.#dispatch(action);
  }

  async #perform(effect: Extract<Effect, { request: number }>, signal: AbortSignal): Promise<Action> {
    const { request } = effect;
    const { session } = this;
    const done: Action = { type: "done", request };
    switch (effect.do) {
      case "read": {
        const known = await session.getSession({}, { signal });
        const { messages, cursor } =
          known === null
            ? { messages: [], cursor: null }
            : await session.getHistory({ limit: effect.limit }, { signal });
        return {
          type: "read",
          request,
          found: known === null ? [] : await this.#found(effect.find, messages, signal),
          updatedAt: known?.updatedAt ?? null,
          messages,
          cursor,
        };
      }
      case "readOlder": {
        const { messages, cursor } = await session.getHistory(
          { before: effect.before, limit: effect.limit },
          { signal },
        );
        return { type: "readOlder", request, messages, cursor };
      }
      case "check": {
        const quiet = openAgent(this.agentName, { isQuiet: true }).session(this.id);
        const found = await quiet.getSession({}, { signal, retry: false });
        return { type: "checked", request, updatedAt: found?.updatedAt ?? null };
      }
      case "chat": {
        const notifying = openAgentNotifying(this.agentName, () => this.#dispatch({ type: "accepted", request }));
        return await this.#receive(request, notifying.session(this.id).chat(effect.input, { signal }), signal);
      }
      case "listen":
        return await this.#receive(request, session.resumeChat({ signal }), signal);
      case "append":
        await session.appendMessage({ message: effect.message, parentId: null }, { signal });
        return done;
      case "cancel":
        await session.cancelTurn(effect.messageId === null ? {} : { messageId: effect.messageId }, { signal });
        return done;
      case "switch":
        await session.setLeaf({ id: effect.leaf }, { signal });
        return done;
      case "remove":
        await session.deleteMessages({ messageIds: [effect.id] }, { signal });
        return done;
      case "await connection":
        await untilReconnected(signal);
        return { type: "reconnected", request };
      case "abort":
        return done;
    }
  }

  /** The messages that the agent has, on any branch. */
  async #found(
    ids: readonly string[],
    messages: readonly UiMessage[],
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const found: string[] = [];
    for (const id of ids) {
      if (
        messages.some((message) => message.id === id) ||
        (await this.session.getMessage({ messageId: id }, { signal })) !== null
      )
        found.push(id);
    }
    return found;
  }

  async #receive(request: number, chunks: AsyncIterable<ChatChunk>, signal: AbortSignal): Promise<Action> {
    for await (const chunk of chunks) {
      if (signal.aborted) break;
      this.#dispatch({ type: "chunk", request, chunk, at: Date.now() });
    }
    return { type: "over", request };
  }
}

/** The previous list if its items are the same, so that nothing renders again. */
function unlessSame<T>(before: readonly T[], after: readonly T[]): readonly T[] {
  return before.length === after.length && before.every((item, at) => item === after[at]) ? before : after;
}

/** Waits a moment, and until the connection is restored. */
function untilReconnected(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (signal.aborted || !isLost.peek()) resolve();
      else setTimeout(check, RECONNECT_CHECK_MS);
    };
    setTimeout(check, RECONNECT_CHECK_MS);
  });
}
