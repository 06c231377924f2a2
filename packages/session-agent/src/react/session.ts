// A live session. The socket receives answers and changes of other clients; operations use HTTP, whose
// errors have codes. Messages are queued while offline. After a lost connection, the log shows which
// messages the agent has: they have ids, so missing ones are sent again, and a turn's chunks are replayed.

import type { InputAnswers } from "../input_request.js";
import type { SessionClient } from "../session.js";
import type { CompletedTurn, UiMessage } from "../operations.js";
import { segmentOf } from "../target.js";
import type { AgentHandle } from "./handle.js";
import { beforeContinuation, cutAt, type Decided, openCalls, withNewest, withOlder } from "./messages.js";
import { LOADING, type Outgoing, renderSession, type SendOptions, type SessionView } from "./session_view.js";
import { errorOf, isUnreached, oneAtATime, Store } from "./store.js";
import { SessionSocket } from "./socket.js";
import { Turn } from "./turn.js";
import type { ChatFailure } from "./types.js";

const PAGE = 50;
/** The number of failed turns that are loaded. */
const FAILED_TURNS = 20;
/** The most pages of events that are read to find the end of a branch. */
const BRANCH_PAGES = 20;
const EVENTS_PAGE = 500;
/** The delay before a failed read is retried while the socket is open. */
const RETRY_MS = 2000;
/** Chunks are rendered at most once per frame. */
const FRAME_MS = 16;

export class SessionStore extends Store<SessionView> {
  readonly #handle: AgentHandle<any>;
  readonly #id: string;
  readonly #socket: SessionSocket;
  #loaded: readonly UiMessage[] = [];
  #above: string | null = null;
  #isRead = false;
  #outbox: readonly Outgoing[] = [];
  #turn: Turn | null = null;
  #decisions: Map<string, Decided> = new Map();
  #failedTurns: readonly CompletedTurn[] = [];
  /** Failures whose records were not read yet. */
  #failures: Map<string, ChatFailure> = new Map();
  #mayReadTurns = true;
  #branches: UiMessage[] = [];
  #branchesOf = "";
  #connection: SessionView["connection"] = "connecting";
  #error: Error | null = null;
  /** Since the socket opened: whether the agent has reported the running turn, and whether the log was read. */
  #isAnswered = false;
  #isInStep = false;
  /** The number of times that the socket opened, and for which of them the log was read. */
  #opened = 0;
  #readFor = -1;
  #readError: Error | null = null;
  #wantsFailures = true;
  #drawing: ReturnType<typeof setTimeout> | undefined;

  constructor(handle: AgentHandle<any>, id: string) {
    super(LOADING);
    this.#handle = handle;
    this.#id = id;
    this.#socket = new SessionSocket({
      address: () => this.#address(),
      frame: (frame) => this.#onFrame(frame),
      down: (wasOpen) => this.#onDown(wasOpen),
    });
  }

  protected open(): void {
    this.#socket.open();
    void this.#read();
  }

  protected close(): void {
    this.#socket.close();
    clearTimeout(this.#drawing);
    this.#drawing = undefined;
    this.#connection = "connecting";
  }

  // Actions of the page.

  /** Sends a message and returns its id. It is shown immediately, and queued while offline or during another turn. */
  readonly send = (message: string | { id?: string; parts: any[]; metadata?: any }, more: SendOptions = {}): string => {
    const given = typeof message === "string" ? { parts: [{ type: "text", text: message }] } : message;
    const sent = { id: crypto.randomUUID() as string, role: "user" as const, ...given };
    this.#ask({
      requestId: crypto.randomUUID(),
      message: { ...sent, createdAt: Date.now() },
      cut: null,
      body: { ...more, message: sent, whenBusy: "queue" },
      stage: "unsent",
    });
    return sent.id;
  };

  /** Requests an answer to a message again, or replaces an answer with another. Default: the newest message. */
  readonly retry = (messageId?: string): void => {
    const id = messageId ?? this.get().messages.at(-1)?.id;
    if (id === undefined || (this.#turn !== null && !this.#turn.isOver)) return;
    const failed = this.#outbox.find(({ message, stage }) => message?.id === id && stage === "failed");
    if (failed !== undefined) {
      this.#outbox = this.#outbox.filter((other) => other !== failed);
      return this.#ask({ ...failed, requestId: crypto.randomUUID(), stage: "unsent" });
    }
    const body = { trigger: "regenerate-message", messageId: id, messages: [] };
    this.#ask({ requestId: crypto.randomUUID(), message: null, cut: id, body, stage: "unsent" });
  };

  /** Stops the turn; its output stays. With a message's id, withdraws a message that is queued or could not be sent. */
  readonly stop = async (messageId?: string): Promise<void> => {
    const waiting = this.#outbox.find(({ message }) => message?.id === messageId);
    if (waiting?.stage === "unsent" || waiting?.stage === "failed") return this.#drop(waiting);
    await this.#act((session) => session.cancelTurn(messageId === undefined ? {} : { messageId }));
    if (waiting?.stage === "sent") this.#drop(waiting);
  };

  /** Approves or declines a call, by the `approval.id` of its part. */
  readonly approve = (approvalId: string, approved: boolean, reason?: string): void => {
    const call = openCalls(this.get().messages as UiMessage[]).get(approvalId);
    if (call === undefined) return;
    this.#decisions.set(call, { approved, reason });
    if (this.#isInStep) this.#sendDecision(call);
    this.#show();
  };

  /** Answers the questions of a call's tool, by the `data.toolCallId` of a part `data-input-request`. */
  readonly answer = (toolCallId: string, answers: InputAnswers): void => {
    if (!openCalls(this.get().messages as UiMessage[]).has(toolCallId)) return;
    this.#decisions.set(toolCallId, { output: answers });
    if (this.#isInStep) this.#sendDecision(toolCallId);
    this.#show();
  };

  /** Switches to the newest leaf of the branch that begins with a message. */
  readonly switchTo = async (messageId: string): Promise<void> => {
    await this.#act(async (session) => {
      await session.setLeaf({ id: await endOf(session, messageId) });
      this.#loaded = [];
      await this.#read();
    });
  };

  readonly loadMore = async (): Promise<void> => {
    await this.#act(async (session) => {
      if (this.#above === null) return;
      const { messages, cursor } = await session.getHistory({ before: this.#above, limit: PAGE });
      this.#loaded = withOlder(this.#loaded, messages);
      this.#above = cursor;
    });
  };

  readonly clearError = (): void => {
    this.#error = null;
    this.#show();
  };

  async #act(work: (session: SessionClient) => Promise<unknown>): Promise<void> {
    this.#error = null;
    try {
      await work((await this.#handle.client()).session(this.#id));
    } catch (error) {
      this.#error = errorOf(error);
    }
    this.#show();
  }

  #ask(outgoing: Outgoing): void {
    this.#error = null;
    this.#failures.delete(outgoing.cut ?? "");
    this.#outbox = [...this.#outbox, outgoing];
    this.#flush();
    this.#show();
  }

  #drop(outgoing: Outgoing): void {
    this.#outbox = this.#outbox.filter(({ requestId }) => requestId !== outgoing.requestId);
    this.#show();
  }

  #change(outgoing: Outgoing, change: Partial<Outgoing>): void {
    this.#outbox = this.#outbox.map((one) => (one.requestId === outgoing.requestId ? { ...one, ...change } : one));
  }

  /** Sends queued messages in order. */
  #flush(): void {
    if (!this.#isInStep) return;
    for (const outgoing of this.#outbox.filter(({ stage }) => stage === "unsent")) {
      const init = { method: "POST", body: JSON.stringify(outgoing.body) };
      if (!this.#socket.send({ type: "cf_agent_use_chat_request", id: outgoing.requestId, init })) return;
      this.#change(outgoing, { stage: "sent" });
    }
  }

  #sendDecision(toolCallId: string): void {
    const decided = this.#decisions.get(toolCallId);
    const type = decided?.output === undefined ? "cf_agent_tool_approval" : "cf_agent_tool_result";
    this.#socket.send({ type, toolCallId, ...decided, autoContinue: true });
  }

  // Frames of the agent.

  async #address(): Promise<string> {
    const { name, token } = await this.#handle.login.get();
    const query = new URLSearchParams({ sessionId: this.#id, ...(token && { token }) });
    const root = this.#handle.url.replace(/^http/, "ws");
    return `${root}/agents/session-agent/${segmentOf(name, "An agent's name")}?${query}`;
  }

  #onDown(wasOpen: boolean): void {
    this.#connection = "offline";
    this.#isAnswered = false;
    this.#isInStep = false;
    // A browser hides why a socket was refused, so a request determines the reason.
    if (!wasOpen) void this.#read();
    this.#show();
  }

  #onFrame(frame: any): void {
    switch (frame.type) {
      case "cf_agent_identity":
        this.#socket.accepted();
        this.#connection = "online";
        this.#opened += 1;
        this.#socket.send({ type: "cf_agent_stream_resume_request" });
        return void this.#read();
      case "cf_agent_stream_resuming":
        if (this.#turn?.id !== frame.id || this.#turn?.isOver) this.#begin(frame.id);
        this.#socket.send({ type: "cf_agent_stream_resume_ack", id: frame.id });
        return this.#socketAnswered();
      case "cf_agent_stream_resume_none":
        this.#socketAnswered();
        if (this.#turn !== null && !this.#turn.isOver) void this.#settle(this.#turn);
        return;
      case "cf_agent_chat_messages":
        return this.#takeList(frame.messages);
      case "cf_agent_message_updated":
        this.#loaded = this.#loaded.map((message) => (message.id === frame.message.id ? frame.message : message));
        return this.#show();
      case "cf_agent_chat_clear":
        [this.#loaded, this.#above, this.#turn] = [[], null, null];
        return this.#show();
      case "cf_agent_use_chat_response":
        return this.#onTurnFrame(frame);
    }
  }

  #begin(id: string): Turn {
    const outgoing = this.#outbox.find(({ requestId }) => requestId === id);
    if (outgoing !== undefined) this.#change(outgoing, { stage: "started" });
    const cut = outgoing?.cut ?? null;
    const turn = new Turn(id, cut, (messageId) => {
      const shown = cutAt(this.#loaded, cut);
      if (messageId === undefined) {
        const continued = shown.findLast(({ role }) => role === "assistant");
        if (continued !== undefined) return beforeContinuation(continued);
      }
      // The log may have the first steps of this turn already. Its chunks repeat them.
      const known = shown.find((message) => message.id === messageId);
      const named = { id: messageId ?? `answer-${id}`, role: "assistant" as const, createdAt: Date.now() };
      return { ...(known ?? named), parts: [] };
    });
    this.#turn = turn;
    this.#handle.notify(["sessions"]);
    return turn;
  }

  #onTurnFrame(frame: any): void {
    const { id, done, error, body } = frame;
    const known = this.#turn?.id === id ? this.#turn : null;
    if (done) return void this.#settle(known, id, error ? String(body) : null);
    const turn = known === null || known.isOver ? this.#begin(id) : known;
    const chunk = turn.take(frame);
    if (chunk === "ask") this.#socket.send({ type: "cf_agent_stream_resume_request" });
    else if (chunk?.type === "tool-output-available") this.#handle.notify(["memory"]);
    this.#drawing ??= setTimeout(() => this.#show(), FRAME_MS);
  }

  /** A turn is over, or could not begin: reads its result from the log. `failed`: the agent's error message. */
  async #settle(turn: Turn | null, id: string | undefined = turn?.id, failed: string | null = null): Promise<void> {
    if (turn !== null) turn.isOver = true;
    const outgoing = this.#outbox.find(({ requestId }) => requestId === id);
    this.#wantsFailures ||= failed !== null;
    this.#show();
    await this.#read();
    const messageId = outgoing?.message?.id ?? outgoing?.cut;
    if (failed !== null && outgoing?.message && !this.#has(messageId)) {
      this.#change(outgoing, { stage: "failed", failure: { code: null, message: failed } });
    } else {
      const at = [turn?.answer?.id, messageId, this.#loaded.at(-1)?.id].find((one) => this.#has(one)) ?? null;
      if (failed !== null && at !== null) this.#failures.set(at, { code: null, message: failed });
      if (outgoing !== undefined && (outgoing.message === null || this.#readError === null)) this.#drop(outgoing);
    }
    this.#show();
    this.#handle.notify(["sessions", "memory", "proposals", "turns"]);
  }

  #socketAnswered(): void {
    this.#isAnswered = true;
    this.#getInStep();
    this.#show();
  }

  /** When the agent has answered after the socket opened, sends the missing messages. */
  #getInStep(): void {
    if (this.#isInStep || !this.#isAnswered || this.#readFor !== this.#opened) return;
    this.#isInStep = true;
    for (const outgoing of this.#outbox) {
      if (outgoing.stage !== "sent" || this.#turn?.id === outgoing.requestId) continue;
      if (outgoing.message !== null) this.#change(outgoing, { stage: "unsent" });
      else {
        this.#drop(outgoing);
        this.#error = new Error("The connection was lost before the agent received the request. Try again.");
      }
    }
    for (const call of this.#decisions.keys()) this.#sendDecision(call);
    this.#flush();
  }

  // Reads.

  readonly #read: () => Promise<void> = oneAtATime(async () => {
    const opened = this.#opened;
    const over = this.#turn?.isOver ? this.#turn : null;
    try {
      const session = (await this.#handle.client()).session(this.#id);
      const page = await session.getHistory({ limit: PAGE }).catch(unlessUnknown);
      this.#takePage(page.messages, page.cursor);
      if (this.#turn === over) this.#turn = null;
      this.#isRead = true;
      this.#readError = null;
      this.#readFor = opened;
      await this.#readFailures(session);
      await this.#readBranches(session);
    } catch (error) {
      this.#readError = errorOf(error);
      if (isUnreached(error) && this.#connection === "online") setTimeout(() => this.isOpen && this.#read(), RETRY_MS);
    }
    this.#getInStep();
    this.#show();
  });

  #takePage(newest: UiMessage[], cursor: string | null): void {
    const merged = cursor === null ? null : withNewest(this.#loaded, newest);
    if (merged === null || merged.length <= newest.length) this.#above = cursor;
    this.#take(merged ?? newest);
  }

  #takeList(list: UiMessage[]): void {
    // The page keeps its first message: older ones are loaded page by page.
    const from = list.findIndex(({ id }) => id === this.#loaded[0]?.id);
    const merged = withNewest(this.#loaded, from > 0 ? list.slice(from) : list);
    if (!this.#isRead || merged === null || (this.#loaded.length === 0 && list.length > PAGE)) return void this.#read();
    this.#take(merged);
    // If the answers don't fit the questions, the agent sends the list instead of a turn.
    const isRequested = this.#isInStep && (this.#turn === null || this.#turn.isOver);
    for (const [call, { output }] of this.#decisions) if (isRequested && output) this.#decisions.delete(call);
    this.#show();
  }

  #take(messages: readonly UiMessage[]): void {
    this.#loaded = messages;
    this.#outbox = this.#outbox.filter(({ message, stage }) => stage === "started" || !this.#has(message?.id));
    const open = new Set(openCalls(messages).values());
    for (const call of this.#decisions.keys()) if (!open.has(call)) this.#decisions.delete(call);
  }

  #has(id: string | undefined | null): boolean {
    return this.#loaded.some((message) => message.id === id);
  }

  /** Loads the records of failed turns, if the token allows it. */
  async #readFailures(session: SessionClient): Promise<void> {
    if (!this.#mayReadTurns || this.#loaded.length === 0) return;
    if (!this.#wantsFailures && this.#loaded.at(-1)?.role !== "user") return;
    this.#wantsFailures = false;
    try {
      this.#failedTurns = (await session.getTurns({ failed: true, limit: FAILED_TURNS })).turns;
    } catch (error) {
      // Without the permission, the page shows only failures that it has received.
      if ((error as { code?: string }).code !== "forbidden") throw error;
      this.#mayReadTurns = false;
    }
  }

  async #readBranches(session: SessionClient): Promise<void> {
    const question = this.#loaded.findLastIndex(({ role }) => role === "user");
    const answer = this.#loaded[question + 1];
    const key = answer === undefined ? "" : `${this.#loaded[question]?.id} ${answer.id}`;
    if (key === this.#branchesOf) return;
    const messageId = this.#loaded[question]?.id;
    const found =
      key === "" || messageId === undefined ? null : await session.getBranches({ messageId }).catch(() => null);
    this.#branches = found?.messages ?? [];
    this.#branchesOf = key;
  }

  #show(): void {
    clearTimeout(this.#drawing);
    this.#drawing = undefined;
    this.show(
      renderSession({
        loaded: this.#loaded,
        hasMore: this.#above !== null,
        isRead: this.#isRead,
        outbox: this.#outbox,
        turn: this.#turn,
        decisions: this.#decisions,
        failedTurns: this.#failedTurns,
        failures: this.#failures,
        connection: this.#connection,
        error: this.#error,
        readError: this.#readError,
        branches: this.#branches,
      }),
    );
  }
}

function unlessUnknown(error: { code?: string }): { messages: UiMessage[]; cursor: null } {
  if (error.code !== "session_not_found") throw error;
  return { messages: [], cursor: null };
}

/** The newest event of the branch that begins with this one: an answer may be many events. */
async function endOf(session: SessionClient, first: string): Promise<string> {
  const branch = new Set([first]);
  let end = first;
  let count = 0;
  for await (const { id, parentId } of session.events({ limit: EVENTS_PAGE })) {
    if ((count += 1) > BRANCH_PAGES * EVENTS_PAGE) break;
    if (parentId === null || !branch.has(parentId)) continue;
    branch.add(id);
    end = id;
  }
  return end;
}
