// The queue of messages: they are sent in order, and each is shown when its turn begins.

import { EMPTY_ANSWER } from "./answer.ts";
import { userMessage } from "./messages.ts";
import { read } from "./reading.ts";
import { newTurn, type ActionOf, type QueueEntry } from "./state.ts";
import { Turns } from "./turns.ts";

export abstract class Queue extends Turns {
  send({ id, text, more, at, ticket }: ActionOf<"send">): void {
    const message = userMessage(id, text);
    const entry: QueueEntry = {
      id,
      text,
      ticket,
      message: { ...message, createdAt: at },
      input: { ...more, message },
      stage: "unsent",
      request: 0,
      isAccepted: false,
      wasSent: false,
      wasRead: false,
      cancel: null,
      isCancelled: false,
      chunks: [],
      end: null,
    };
    this.state.queue = [...this.state.queue, entry];
    this.advance();
  }

  change(entry: QueueEntry, change: Partial<QueueEntry>): void {
    this.state.queue = this.state.queue.map((other) => (other.id === entry.id ? { ...other, ...change } : other));
  }

  dequeue(entry: QueueEntry): void {
    this.state.queue = this.state.queue.filter(({ id }) => id !== entry.id);
  }

  entryOf(request: number): QueueEntry | undefined {
    return this.state.queue.find(
      (entry) => entry.stage === "requested" && entry.request === request && entry.end === null,
    );
  }

  markEntryLost(entry: QueueEntry): void {
    this.change(entry, { stage: "lost", request: this.awaitConnection() });
  }

  /** Shows the next turn, and sends the next message, if the preceding ones allow it. */
  advance(): void {
    const { state } = this;
    if (!state.isOpen) return;
    this.showNext();
    const [first] = state.queue;
    if (state.turn === null && first?.stage === "unsent" && !first.wasSent) {
      this.dequeue(first);
      return this.begin(first.input, { messageId: first.id, ticket: first.ticket }, { message: first.message });
    }
    if (state.turn !== null && !state.turn.isAccepted) return;
    for (const entry of state.queue) {
      if (entry.stage === "unsent" && entry.cancel === null) {
        const request = this.request();
        this.change(entry, { stage: "requested", wasSent: true, isAccepted: false, request });
        return this.do({ do: "chat", request, input: { ...entry.input, whenBusy: "queue" } });
      }
      if (!entry.isAccepted) return;
    }
  }

  showNext(): void {
    const { state } = this;
    const next = state.queue.find(({ chunks }) => chunks.length > 0);
    if (next === undefined) return;
    // The agent runs one turn at a time, so the previous one is over.
    if (state.turn !== null) {
      if (state.turn.stage !== "settling" || !state.turn.hasStarted) return;
      this.retainAnswer(state.turn);
    }
    this.dequeue(next);
    this.resolve([next.ticket], true);
    this.showTurn(
      newTurn(next.request, { stage: "streaming", isAccepted: true, hasStarted: true, messageId: next.id }),
      {
        message: next.message,
      },
    );
    const turn = state.turn!;
    state.turn = null;
    const answer = next.chunks.reduce((answer, chunk) => this.withReceived(answer, chunk, next.request), EMPTY_ANSWER);
    state.turn = { ...turn, answer };
    if (next.end !== null) this.turnEnds(state.turn, next.end);
  }

  /** The message gets no turn, and its text returns to the composer. */
  refuse(entry: QueueEntry, problem: unknown): void {
    this.dequeue(entry);
    if (problem !== null) this.state.problem = problem;
    this.resolve([entry.ticket], false);
    this.advance();
    this.listen();
  }

  withdraw(id: string): void {
    const entry = this.state.queue.find((entry) => entry.id === id);
    if (entry === undefined || entry.cancel !== null) return;
    if (!entry.wasSent) this.refuse(entry, null);
    // Requests in transit could arrive in another order.
    else if (entry.stage === "requested" && !entry.isAccepted) this.change(entry, { cancel: "wanted" });
    else this.change(entry, { cancel: this.run({ kind: "withdraw", id }) });
  }

  /** The message is no longer queued. The next read shows whether its turn began. */
  markUnconfirmed(entry: QueueEntry): void {
    this.change(entry, { stage: "unconfirmed", isCancelled: true });
    read(this);
  }

  /** After a reconnection, the agent reported which messages it has. */
  resolveUnconfirmed(sought: readonly string[], found: readonly string[]): void {
    for (const entry of this.state.queue.filter(({ id, stage }) => stage === "unconfirmed" && sought.includes(id))) {
      if (entry.wasRead || found.includes(entry.id)) {
        this.dequeue(entry);
        this.resolve([entry.ticket], true);
        this.state.wantsToListen = true;
      } else if (entry.isCancelled) {
        this.refuse(entry, null);
      } else if (entry.cancel === null) {
        // The message has an id, so sending it again is safe.
        this.change(entry, { stage: "unsent" });
      }
    }
  }

  /** Attaches to a running turn. A queued message starts its own turn. */
  listen(): void {
    const { state } = this;
    if (!state.wantsToListen || !this.isFree()) return;
    state.wantsToListen = false;
    this.abort(state.listening);
    state.listening = this.request();
    this.do({ do: "listen", request: state.listening });
  }
}
