// The queue of messages: they are sent in order, and each is shown when its turn begins.

import { NOTHING_SAID } from "./answer.ts";
import { userMessage } from "./messages.ts";
import { read } from "./reading.ts";
import { askedTurn, type Of, type Waiting } from "./state.ts";
import { Turns } from "./turns.ts";

export abstract class Line extends Turns {
  send({ id, text, more, at, ticket }: Of<"send">): void {
    const message = userMessage(id, text);
    const waiting: Waiting = {
      id,
      text,
      ticket,
      message: { ...message, createdAt: at },
      input: { ...more, message },
      stage: "unsent",
      request: 0,
      isAccepted: false,
      wasAsked: false,
      wasRead: false,
      cancel: null,
      isCancelled: false,
      chunks: [],
      end: null,
    };
    this.state.line = [...this.state.line, waiting];
    this.moveOn();
  }

  change(waiting: Waiting, change: Partial<Waiting>): void {
    this.state.line = this.state.line.map((other) => (other.id === waiting.id ? { ...other, ...change } : other));
  }

  leaveLine(waiting: Waiting): void {
    this.state.line = this.state.line.filter(({ id }) => id !== waiting.id);
  }

  waitingBy(request: number): Waiting | undefined {
    return this.state.line.find(
      (waiting) => waiting.stage === "asked" && waiting.request === request && waiting.end === null,
    );
  }

  loseWaiting(waiting: Waiting): void {
    this.change(waiting, { stage: "lost", request: this.awaitConnection() });
  }

  /** Shows the next turn, and sends the next message, if the preceding ones allow it. */
  moveOn(): void {
    const { state } = this;
    if (!state.isOpen) return;
    this.showNext();
    const [first] = state.line;
    if (state.turn === null && first?.stage === "unsent" && !first.wasAsked) {
      this.leaveLine(first);
      return this.begin(first.input, { messageId: first.id, ticket: first.ticket }, { message: first.message });
    }
    if (state.turn !== null && !state.turn.isAccepted) return;
    for (const waiting of state.line) {
      if (waiting.stage === "unsent" && waiting.cancel === null) {
        const request = this.request();
        this.change(waiting, { stage: "asked", wasAsked: true, isAccepted: false, request });
        return this.do({ do: "chat", request, input: { ...waiting.input, whenBusy: "queue" } });
      }
      if (!waiting.isAccepted) return;
    }
  }

  showNext(): void {
    const { state } = this;
    const next = state.line.find(({ chunks }) => chunks.length > 0);
    if (next === undefined) return;
    // The agent runs one turn at a time, so the previous one is over.
    if (state.turn !== null) {
      if (state.turn.stage !== "settling" || !state.turn.hasStarted) return;
      this.keepAnswer(state.turn);
    }
    this.leaveLine(next);
    this.resolve([next.ticket], true);
    this.enter(
      askedTurn(next.request, { stage: "streaming", isAccepted: true, hasStarted: true, messageId: next.id }),
      {
        message: next.message,
      },
    );
    const turn = state.turn!;
    state.turn = null;
    const answer = next.chunks.reduce((answer, chunk) => this.heard(answer, chunk, next.request), NOTHING_SAID);
    state.turn = { ...turn, answer };
    if (next.end !== null) this.turnEnds(state.turn, next.end);
  }

  /** The message gets no turn, and its text returns to the composer. */
  refuse(waiting: Waiting, problem: unknown): void {
    this.leaveLine(waiting);
    if (problem !== null) this.state.problem = problem;
    this.resolve([waiting.ticket], false);
    this.moveOn();
    this.listen();
  }

  takeBack(id: string): void {
    const waiting = this.state.line.find((waiting) => waiting.id === id);
    if (waiting === undefined || waiting.cancel !== null) return;
    if (!waiting.wasAsked) this.refuse(waiting, null);
    // Requests in transit could arrive in another order.
    else if (waiting.stage === "asked" && !waiting.isAccepted) this.change(waiting, { cancel: "wanted" });
    else this.change(waiting, { cancel: this.run({ kind: "take back", id }) });
  }

  /** The message is no longer queued. The next read shows whether its turn began. */
  doubt(waiting: Waiting): void {
    this.change(waiting, { stage: "doubtful", isCancelled: true });
    read(this);
  }

  /** After a reconnection, the agent reported which messages it has. */
  decideDoubts(sought: readonly string[], found: readonly string[]): void {
    for (const waiting of this.state.line.filter(({ id, stage }) => stage === "doubtful" && sought.includes(id))) {
      if (waiting.wasRead || found.includes(waiting.id)) {
        this.leaveLine(waiting);
        this.resolve([waiting.ticket], true);
        this.state.wantsToListen = true;
      } else if (waiting.isCancelled) {
        this.refuse(waiting, null);
      } else if (waiting.cancel === null) {
        // The message has an id, so sending it again is safe.
        this.change(waiting, { stage: "unsent" });
      }
    }
  }

  /** Attaches to a running turn. A queued message starts its own turn. */
  listen(): void {
    const { state } = this;
    if (!state.wantsToListen || !this.isFree()) return;
    state.wantsToListen = false;
    this.giveUp(state.listening);
    state.listening = this.request();
    this.do({ do: "listen", request: state.listening });
  }
}
