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
  type Happening,
  messagesOf,
  type Phase,
  phaseOf,
  type State,
  type WaitingMessage,
} from "./state.ts";
import { step } from "./step.ts";
import { EventTree } from "./tree.ts";

/** The most pages that are read to find the message in the address. */
const PAGES_TO_FIND = 40;
const LONG_PAGE = 1000;

/** How often a lost connection is checked. */
const BACK_MS = 300;

export class Conversation {
  readonly agent: AgentClient;
  readonly session: SessionClient;
  readonly tree: EventTree;
  /** All messages in order, including the one that is streaming. */
  readonly messages = signal<readonly UiMessage[]>([]);
  readonly state = signal<Phase>("loading");
  readonly waiting = signal<readonly WaitingMessage[]>([]);
  readonly problem = signal<unknown>(null);
  /** The running turn, with its times. */
  readonly live = signal<LiveTurn | null>(null);
  /** The user's decision about a call, while the page checks whether to ask for confirmation. */
  readonly decision = signal<Decision | null>(null);
  /** The recorded failed turns, by the message at which each failed. */
  readonly failed = signal<ReadonlyMap<string, TurnRecord>>(new Map());
  readonly isUnknown = signal(false);
  readonly hasMore = computed(() => this.#above.value !== null);
  /** The message that is being edited. */
  readonly edited = signal<string | null>(null);
  #above = signal<string | null>(null);
  #state: State = EMPTY;
  /** The scheduled render of a streaming answer: at most one per frame. */
  #frame = 0;
  #underWay = new Map<number, AbortController>();
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
    this.#happen({ type: "open" });
  }

  close(): void {
    this.#happen({ type: "close" });
  }

  /** Reloads everything, after a change that may have moved any message. */
  async reload(): Promise<void> {
    await this.#happenAndWait((ticket) => ({ type: "reload", ticket }));
  }

  /** Checks whether other clients have written. */
  checkForChanges(): void {
    this.#happen({ type: "check" });
  }

  /** Loads older messages. `false`: there are none, or loading failed. */
  async loadAbove(limit: number | null = null): Promise<boolean> {
    return await this.#happenAndWait((ticket) => ({ type: "loadAbove", limit, ticket }));
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
      if (!(await this.loadAbove(LONG_PAGE))) return null;
    }
    return null;
  }

  /** Sends a text, or queues it during a turn. `false`: the agent did not accept it. */
  async send(text: string, more: Partial<ChatInput> = {}): Promise<boolean> {
    return await this.#happenAndWait((ticket) => ({
      type: "send",
      id: crypto.randomUUID(),
      text,
      more,
      at: Date.now(),
      ticket,
    }));
  }

  /** Withdraws a queued message, and returns its text to the composer. */
  takeBack(id: string): void {
    this.#happen({ type: "takeBack", id });
  }

  /** Replaces a message with another text. The old one stays on its own branch. `false`: the agent did not accept it. */
  async resend(id: string, text: string): Promise<boolean> {
    // The new text is appended after the preceding message.
    if (this.messages.peek()[0]?.id === id && this.hasMore.peek() && !(await this.loadAbove())) return false;
    return await this.#happenAndWait((ticket) => ({
      type: "resend",
      id,
      newId: crypto.randomUUID(),
      text,
      at: Date.now(),
      ticket,
    }));
  }

  regenerate(id: string): void {
    this.#happen({ type: "regenerate", id });
  }

  decide(messageId: string, call: CallDecision): void {
    this.#happen({ type: "decide", messageId, call });
  }

  /** Answers the call on a new branch, after the user confirmed it. */
  branchOff(): void {
    this.#happen({ type: "branch off" });
  }

  /** Leaves the call open. */
  decideAgain(): void {
    this.#happen({ type: "decide again" });
  }

  /** Requests an answer to a message that has none. */
  retry(id: string): void {
    this.#happen({ type: "retry", id });
  }

  /** Requests an answer to a message that other messages follow. */
  answer(id: string): void {
    this.#happen({ type: "answer", id });
  }

  stop(): void {
    this.#happen({ type: "stop" });
  }

  switchTo(eventId: string): void {
    this.#happen({ type: "switch", leaf: this.tree.newestLeafBelow(eventId) ?? eventId });
  }

  remove(id: string): void {
    this.#happen({ type: "remove", id });
  }

  dismissProblem(): void {
    this.#happen({ type: "dismiss" });
  }

  #happenAndWait(happening: (ticket: number) => Happening): Promise<boolean> {
    this.#lastTicket += 1;
    const ticket = this.#lastTicket;
    return new Promise((resolve) => {
      this.#tickets.set(ticket, resolve);
      this.#happen(happening(ticket));
    });
  }

  #happen(happening: Happening): void {
    const [state, effects] = step(this.#state, happening);
    this.#state = state;
    if (happening.type === "chunk" && phaseOf(state) === this.state.peek())
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
      this.waiting.value = unlessSame(this.waiting.peek(), state.line);
      this.problem.value = state.problem;
      this.decision.value = state.decision;
      this.live.value = state.turn?.answer.live ?? null;
      this.isUnknown.value = state.isUnknown;
      this.#above.value = state.above;
    });
  }

  #fail(error: unknown): void {
    this.#happen({ type: "problem", error });
  }

  #do(effect: Effect): void {
    switch (effect.do) {
      case "resolve":
        this.#tickets.get(effect.ticket)?.(effect.value);
        this.#tickets.delete(effect.ticket);
        return;
      case "give up":
        this.#underWay.get(effect.request)?.abort();
        return;
      case "give all up":
        for (const controller of this.#underWay.values()) controller.abort();
        return;
      case "read tree":
        if (effect.leaf !== null) this.tree.leafId.value = effect.leaf;
        return void this.tree.catchUp(effect.fromStart).catch((error) => this.#fail(error));
      case "mark failed":
        return markFailed(this.agentName, effect.operation, effect.error);
      default:
        return void this.#ask(effect);
    }
  }

  async #ask(effect: Extract<Effect, { request: number }>): Promise<void> {
    const { request } = effect;
    const controller = new AbortController();
    // The browser is offline.
    const wasSent = navigator.onLine;
    this.#underWay.set(request, controller);
    let happening: Happening;
    try {
      happening = await this.#answerOf(effect, controller.signal);
    } catch (error) {
      const isLost = error instanceof NetworkError && (error.status ?? 500) >= 500;
      happening = { type: "failed", request, error, isLost, wasSent };
    }
    this.#underWay.delete(request);
    if (!controller.signal.aborted) this.#happen(happening);
  }

  async #answerOf(effect: Extract<Effect, { request: number }>, signal: AbortSignal): Promise<Happening> {
    const { request } = effect;
    const { session } = this;
    const done: Happening = { type: "done", request };
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
      case "readAbove": {
        const { messages, cursor } = await session.getHistory(
          { before: effect.before, limit: effect.limit },
          { signal },
        );
        return { type: "readAbove", request, messages, cursor };
      }
      case "check": {
        const quiet = openAgent(this.agentName, { isQuiet: true }).session(this.id);
        const found = await quiet.getSession({}, { signal, retry: false });
        return { type: "checked", request, updatedAt: found?.updatedAt ?? null };
      }
      case "chat": {
        const notifying = openAgentNotifying(this.agentName, () => this.#happen({ type: "accepted", request }));
        return await this.#hear(request, notifying.session(this.id).chat(effect.input, { signal }), signal);
      }
      case "listen":
        return await this.#hear(request, session.resumeChat({ signal }), signal);
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
        await untilBack(signal);
        return { type: "back", request };
      case "give up":
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

  async #hear(request: number, chunks: AsyncIterable<ChatChunk>, signal: AbortSignal): Promise<Happening> {
    for await (const chunk of chunks) {
      if (signal.aborted) break;
      this.#happen({ type: "chunk", request, chunk, at: Date.now() });
    }
    return { type: "over", request };
  }
}

/** The previous list if its items are the same, so that nothing renders again. */
function unlessSame<T>(before: readonly T[], after: readonly T[]): readonly T[] {
  return before.length === after.length && before.every((item, at) => item === after[at]) ? before : after;
}

/** Waits a moment, and until the connection is restored. */
function untilBack(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (signal.aborted || !isLost.peek()) resolve();
      else setTimeout(check, BACK_MS);
    };
    setTimeout(check, BACK_MS);
  });
}
