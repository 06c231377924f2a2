// One conversation as this page has it: the messages that were loaded, the answer that is
// being said, and what the reader does. The agent has the last word: after each turn the
// newest messages are read again.

import { computed, signal } from "@preact/signals";
import { type AgentClient, type ChatChunk, type ChatInput, NetworkError, type SessionClient, type UiMessage } from "session-agent";
import { openAgent, openAgentTelling } from "../connection.ts";
import { may } from "../rights.ts";
import { markFailed } from "../requests.ts";
import { Answer } from "./answer.ts";
import { renewed, userMessage } from "./messages.ts";
import { EventTree } from "./tree.ts";
import { begun, joined, Line, nextValue, untilBack, type WaitingMessage } from "./waits.ts";

const PAGE = 100;
/** Who goes up and up is read ever longer pages. */
const LONGEST_PAGE = 800;
const NEWEST = 30;
/** So many pages are read to find a message that the address names. */
const PAGES_TO_FIND = 40;

export type State = "loading" | "idle" | "answering" | "stopping";

export class Conversation {
  readonly agent: AgentClient;
  readonly session: SessionClient;
  readonly tree: EventTree;
  readonly loaded = signal<readonly UiMessage[]>([]);
  readonly live = signal<UiMessage | null>(null);
  readonly state = signal<State>("loading");
  readonly waiting = signal<readonly WaitingMessage[]>([]);
  readonly problem = signal<unknown>(null);
  readonly isUnknown = signal(false);
  /** The message that is being edited. */
  readonly edited = signal<string | null>(null);
  #above = signal<string | null>(null);
  #loadingAbove: Promise<boolean> | null = null;
  #pageAbove = PAGE;
  #closing = new AbortController();
  #updatedAt = 0;
  /** Whether any message may have moved since all were read. */
  #isMoved = false;
  #opening: Promise<unknown> = Promise.resolve();
  /** Counts what the reader did with the messages. What was asked for before is out of date. */
  #deeds = 0;
  /** The agent gets the messages in the order in which they were sent. */
  #line = new Line();
  /** Waiting messages that the agent was not sent yet, and what takes each one back. */
  #unsent = new Map<string, () => void>();
  /** Listens whether a turn runs that this page did not begin. */
  #listening: AbortController | null = null;

  constructor(
    readonly agentName: string,
    readonly id: string,
  ) {
    this.agent = openAgent(agentName);
    this.session = this.agent.session(id);
    this.tree = new EventTree(this.session, may("buildWorkingContext"));
  }

  /** All messages in order, the one that is being said included. */
  readonly messages = computed<readonly UiMessage[]>(() => {
    const live = this.live.value;
    if (live === null) return this.loaded.value;
    const index = this.loaded.value.findLastIndex(({ id }) => id === live.id);
    return index < 0 ? [...this.loaded.value, live] : this.loaded.value.with(index, live);
  });

  readonly hasMore = computed(() => this.#above.value !== null);

  close(): void {
    this.#closing.abort();
  }

  get #signal(): AbortSignal {
    return this.#closing.signal;
  }

  async open(): Promise<void> {
    this.#opening = this.#guarded(() => this.#readAgain());
    await this.#opening;
    this.state.value = "idle";
    void this.resume();
  }

  async #readAgain(): Promise<void> {
    const deeds = (this.#deeds += 1);
    this.#isMoved = true;
    const session = await this.session.getSession({}, { signal: this.#signal });
    if (deeds !== this.#deeds) return;
    this.isUnknown.value = session === null;
    this.#updatedAt = session?.updatedAt ?? 0;
    if (session === null) return void (this.#isMoved = false);
    const page = await this.session.getHistory({ limit: PAGE }, { signal: this.#signal });
    if (deeds !== this.#deeds) return;
    this.#isMoved = false;
    this.loaded.value = page.messages;
    this.#above.value = page.cursor;
    this.problem.value = null;
  }

  /** What the reader does is seen at once, and undone by nothing that was asked for before. */
  #show(messages: readonly UiMessage[]): void {
    this.#deeds += 1;
    this.loaded.value = messages;
  }

  /** Everything anew: after a change that may have moved any message. */
  async reload(): Promise<void> {
    await this.#guarded(async () => {
      await this.#readAgain();
      await this.tree.catchUp(true);
    });
  }

  /** Loads older messages. `false`: there are none, or they could not be loaded. */
  async loadAbove(limit = this.#pageAbove): Promise<boolean> {
    this.#loadingAbove ??= this.#readAbove(limit).finally(() => (this.#loadingAbove = null));
    return await this.#loadingAbove;
  }

  async #readAbove(limit: number): Promise<boolean> {
    const before = this.#above.peek();
    if (before === null) return false;
    try {
      const page = await this.session.getHistory({ before, limit }, { signal: this.#signal });
      if (this.#above.peek() !== before) return false;
      this.loaded.value = [...page.messages, ...this.loaded.peek()];
      this.#above.value = page.cursor;
      this.#pageAbove = Math.min(LONGEST_PAGE, this.#pageAbove * 2);
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  /** The message that is, or that holds, this event. It is loaded, wherever it stands on the branch. */
  async find(eventId: string): Promise<string | null> {
    // A run of events is shown as one message under its first event's id.
    await this.#guarded(() => this.tree.readIfShort());
    for (let pages = 0; pages < PAGES_TO_FIND; pages += 1) {
      const ids = new Set(this.loaded.peek().map(({ id }) => id));
      if (ids.has(eventId)) return eventId;
      if (this.tree.pathTo(this.tree.leafId.peek()).has(eventId)) {
        for (const id of this.tree.pathTo(eventId)) if (ids.has(id)) return id;
      }
      if (!(await this.loadAbove(1000))) return null;
    }
    return null;
  }

  /** Looks whether others have written. */
  async look(): Promise<void> {
    if (this.state.peek() !== "idle") return;
    try {
      const quiet = openAgent(this.agentName, { isQuiet: true }).session(this.id);
      const session = await quiet.getSession({}, { signal: this.#signal, retry: false });
      const isSame = (session?.updatedAt ?? 0) === this.#updatedAt;
      if (isSame || this.state.peek() !== "idle") return;
      if (session === null || this.isUnknown.peek()) return void (await this.reload());
      await this.#refresh();
      void this.resume();
    } catch {
      // The next look tells.
    }
  }

  /** Reads the newest messages again, and leaves what is unchanged as it is. */
  async #refresh(): Promise<void> {
    const [deeds, isMoved] = [this.#deeds, this.#isMoved];
    const session = await this.session.getSession({}, { signal: this.#signal });
    const { messages, cursor } = await this.session.getHistory({ limit: isMoved ? PAGE : NEWEST }, { signal: this.#signal });
    if (deeds !== this.#deeds) return;
    this.isUnknown.value = session === null;
    this.#updatedAt = session?.updatedAt ?? 0;
    const all = isMoved ? null : renewed(this.loaded.peek(), messages);
    this.loaded.value = all ?? messages;
    if (all === null) this.#above.value = cursor;
    this.#isMoved = false;
    await this.tree.catchUp(isMoved);
  }

  /** Sends a text. While an answer is said, the text waits. `false`: the agent did not take it. */
  async send(text: string, more: Partial<ChatInput> = {}): Promise<boolean> {
    // A reader may be faster than the first answer.
    await this.#opening;
    const message = userMessage(text);
    if (this.state.peek() !== "idle" || this.waiting.peek().length > 0) return await this.#wait({ ...more, message }, { id: message.id, text });
    this.#show([...this.loaded.peek(), { ...message, createdAt: Date.now() }]);
    const isTaken = await this.#turn({ ...more, message });
    if (!isTaken) this.loaded.value = this.loaded.peek().filter(({ id }) => id !== message.id);
    return isTaken;
  }

  /** Waits until the turn of a message begins, and follows the turn. `false`: it did not begin. */
  async #wait(input: ChatInput, message: WaitingMessage): Promise<boolean> {
    this.waiting.value = [...this.waiting.peek(), message];
    const { turn, leave } = this.#line.enter();
    const takenBack = new Promise<boolean>((resolve) => this.#unsent.set(message.id, () => resolve(false)));
    const isWanted = await Promise.race([turn.then(() => true), takenBack]);
    this.#unsent.delete(message.id);
    try {
      if (!isWanted) return false;
      // Until the agent has taken it, the message keeps its place in the line.
      const { first, rest } = await begun(() => this.#ask({ ...input, whenBusy: "queue" }, leave), this.#signal);
      // The agent's turns follow each other at once. This page reads the end of the one before first.
      while (first !== undefined && this.state.peek() !== "idle") await nextValue(this.state);
      if (first === undefined) return false;
      this.#drop(message.id);
      if (!this.loaded.peek().some(({ id }) => id === message.id)) {
        this.#show([...this.loaded.peek(), { ...userMessage(message.text), id: message.id, createdAt: Date.now() }]);
      }
      return await this.#follow(joined(first, rest), true);
    } catch (error) {
      this.#fail(error);
      return false;
    } finally {
      this.#drop(message.id);
      leave();
    }
  }

  /** `onTaken` is called when the agent has the message. */
  #ask(input: ChatInput, onTaken: () => void): AsyncGenerator<ChatChunk> {
    return openAgentTelling(this.agentName, onTaken).session(this.id).chat(input, { signal: this.#signal });
  }

  #drop(waiting: string): void {
    this.waiting.value = this.waiting.peek().filter(({ id }) => id !== waiting);
  }

  /** Takes a waiting message back. The composer gets its text again. */
  async takeBack(id: string): Promise<void> {
    const giveUp = this.#unsent.get(id);
    if (giveUp !== undefined) giveUp();
    else await this.#guarded(() => this.session.cancelTurn({ messageId: id }, { signal: this.#signal }));
  }

  /** Says another text in a message's place. The old text stays, on its own branch. */
  async resend(id: string, text: string): Promise<boolean> {
    // The message before it says where the new text belongs.
    if (this.loaded.peek()[0]?.id === id && this.hasMore.peek() && !(await this.loadAbove())) return false;
    const index = this.loaded.peek().findIndex((message) => message.id === id);
    const previous = this.loaded.peek()[index - 1];
    const message = userMessage(text);
    const before = this.loaded.peek();
    this.#show([...before.slice(0, Math.max(0, index)), { ...message, createdAt: Date.now() }]);
    const isTaken = await this.#guarded(async () => {
      if (previous !== undefined) return await this.#turn({ messages: [{ id: previous.id, role: previous.role, parts: previous.parts }, message] });
      await this.session.appendMessage({ message, parentId: null }, { signal: this.#signal });
      return await this.#turn({ messages: [message] });
    });
    if (!isTaken) this.loaded.value = before;
    return isTaken === true;
  }

  async regenerate(id: string): Promise<void> {
    const before = this.loaded.peek();
    const index = before.findIndex((message) => message.id === id);
    if (index >= 0) this.#show(before.slice(0, index));
    const isTaken = await this.#turn({ trigger: "regenerate-message", messageId: id, messages: [] });
    if (!isTaken) this.loaded.value = before;
  }

  /** Answers one request for approval. When nothing is open any more, the turn goes on. */
  async approve(messageId: string, approvalId: string, approved: boolean): Promise<void> {
    const message = this.loaded.peek().find(({ id }) => id === messageId);
    if (message === undefined) return;
    const parts = message.parts.map((part) =>
      part.approval?.id === approvalId ? { ...part, state: "approval-responded", approval: { ...part.approval, approved } } : part,
    );
    const answered = { ...message, parts };
    this.#show(this.loaded.peek().map((other) => (other === message ? answered : other)));
    const { createdAt: _, ...sent } = answered;
    const isTaken = await this.#turn({ message: sent });
    if (!isTaken) await this.#guarded(() => this.#refresh());
  }

  async stop(): Promise<void> {
    if (this.state.peek() !== "answering") return;
    this.state.value = "stopping";
    await this.#guarded(() => this.session.cancelTurn({}, { signal: this.#signal }));
  }

  /** Listens to a turn that runs already. */
  async resume(): Promise<void> {
    // A message that waits brings its own turn.
    if (this.state.peek() !== "idle" || this.waiting.peek().length > 0) return;
    this.#listening?.abort();
    const listening = new AbortController();
    this.#listening = listening;
    await this.#follow(this.session.resumeChat({ signal: AbortSignal.any([this.#signal, listening.signal]) }), false, listening.signal);
  }

  async switchTo(eventId: string): Promise<void> {
    await this.#guarded(async () => {
      const leaf = this.tree.newestLeafBelow(eventId) ?? eventId;
      await this.session.setLeaf({ id: leaf }, { signal: this.#signal });
      this.tree.leafId.value = leaf;
      await this.#readAgain();
      await this.tree.catchUp();
    });
  }

  async remove(id: string): Promise<void> {
    await this.#guarded(async () => {
      await this.session.deleteMessages({ messageIds: [id] }, { signal: this.#signal });
      this.loaded.value = this.loaded.peek().filter((message) => message.id !== id);
      await this.tree.catchUp(true);
    });
  }

  async #turn(input: ChatInput): Promise<boolean> {
    if (this.state.peek() !== "idle") return false;
    this.problem.value = null;
    return await this.#follow(this.#line.through((leave) => this.#ask(input, leave)), true);
  }

  /** Takes an answer as it comes. `false`: the turn did not begin. `signal` ends the listening. */
  async #follow(chunks: AsyncIterable<ChatChunk>, isOurs: boolean, signal = this.#signal): Promise<boolean> {
    const answer = new Answer((id) => this.loaded.peek().findLast((message) => message.id === id));
    if (isOurs) {
      // It would hear this turn, too.
      this.#listening?.abort();
      this.state.value = "answering";
    }
    let hasBegun = false;
    let frame = 0;
    const show = () => {
      frame = 0;
      this.live.value = answer.message;
    };
    try {
      for await (const chunk of chunks) {
        if (!hasBegun) {
          hasBegun = true;
          this.state.value = "answering";
        }
        answer.take(chunk);
        // A screen shows no more than a frame's worth.
        frame ||= requestAnimationFrame(show);
      }
      if (answer.error !== null) {
        this.problem.value = new Error(answer.error);
        markFailed(this.agentName, isOurs ? "chat" : "resumeChat", answer.error);
      }
    } catch (error) {
      if (this.#signal.aborted || signal.aborted) return hasBegun;
      if (hasBegun && error instanceof NetworkError) {
        show();
        return await this.#followAgain();
      }
      if (isOurs) this.problem.value = error;
      return this.#settled(hasBegun, isOurs);
    } finally {
      cancelAnimationFrame(frame);
    }
    return await this.#settled(hasBegun, isOurs);
  }

  async #settled(hasBegun: boolean, isOurs: boolean): Promise<boolean> {
    if (hasBegun) await this.#guarded(() => this.#refresh());
    if (hasBegun || isOurs) {
      this.live.value = null;
      this.state.value = "idle";
    }
    return hasBegun;
  }

  /** The connection broke in the middle of an answer. The turn goes on, so listen again. */
  async #followAgain(): Promise<boolean> {
    await untilBack(this.#signal);
    if (this.#signal.aborted) return true;
    // What was heard stays on the screen until the agent's own words are there.
    await this.#settled(true, true);
    await this.resume();
    return true;
  }

  async #guarded<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  #fail(error: unknown): void {
    if (!this.#signal.aborted) this.problem.value = error;
  }
}
