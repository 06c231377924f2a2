// The rules of a conversation: the next state, and the next effects, for each happening.
//
// `step` is a pure function: it reads no clock, sends nothing and waits for nothing, so tests can
// play answers, clicks and broken connections in any order. conversation.ts runs the effects.
//
// Three rules make late answers harmless:
//
// - Every request has a number. A happening with a number that nothing waits for is ignored.
// - The user's actions are shown on top of the agent's messages until a later read includes them. A
//   failed action is removed from the top, so nothing needs a rollback.
// - A message is sent when the agent has accepted the previous one. If the connection breaks, a read
//   shows whether the agent has it.

import { Line } from "./line.ts";
import { checkForChanges, read, readAbove, takeCheck, takeReading, takeReadingAbove } from "./reading.ts";
import {
  askedTurn,
  type Effect,
  type Errand,
  type Failure,
  type Happening,
  type HeardChunk,
  type Of,
  type State,
} from "./state.ts";

export function step(state: State, happening: Happening): [State, Effect[]] {
  const step = new Step(state);
  if (!state.isClosed) step.take(happening);
  // A closed conversation ignores answers.
  else if ("ticket" in happening) step.resolve([happening.ticket], false);
  return [step.state, step.effects];
}

class Step extends Line {
  take(happening: Happening): void {
    switch (happening.type) {
      case "open":
        this.state.wantsToListen = true;
        return read(this);
      case "reload":
        this.state.isMoved = true;
        return read(this, happening.ticket);
      case "check":
        return checkForChanges(this);
      case "loadAbove":
        return readAbove(this, happening.limit, [happening.ticket]);
      case "send":
        return this.send(happening);
      case "takeBack":
        return this.takeBack(happening.id);
      case "resend":
        return this.resend(happening);
      case "regenerate":
        return this.regenerate(happening.id);
      case "retry":
        return this.decide(happening.id, null);
      case "answer":
        return this.answer(happening.id);
      case "decide":
        return this.decide(happening.messageId, happening.call);
      case "branch off":
        return this.branchOff();
      case "decide again":
        this.state.decision = null;
        return;
      case "stop":
        return this.stop();
      case "switch":
        return void this.run({ kind: "switch", leaf: happening.leaf });
      case "remove":
        return this.remove(happening.id);
      case "dismiss":
        this.state.problem = null;
        return;
      case "problem":
        this.state.problem = happening.error;
        return;
      case "close":
        return this.close();
      case "read":
        return this.onRead(happening);
      case "readAbove":
        return takeReadingAbove(this, happening);
      case "checked":
        return takeCheck(this, happening);
      case "accepted":
        return this.onAccepted(happening.request);
      case "chunk":
        return this.onChunk(happening.request, happening);
      case "over":
        return this.onEnd(happening.request, "over");
      case "back":
        return this.onBack(happening.request);
      case "done":
        return this.onDone(happening.request);
      case "failed":
        return this.onFailed(happening.request, happening);
    }
  }

  // Reads.

  onRead(happening: Of<"read">): void {
    const reading = takeReading(this, happening);
    if (reading === null) return;
    const { turn } = this.state;
    if (turn?.stage === "settling" && happening.request >= turn.settledFrom) this.settled(turn, happening.found);
    this.decideDoubts(reading.find, happening.found);
    this.decided(happening.request);
    this.afterReading(reading.tickets, true);
  }

  onReadFailed(tickets: readonly number[], { error, isLost }: Failure): void {
    const { state } = this;
    state.reading = null;
    state.problem = error;
    state.isOwed = true;
    if (state.decision?.newer === null) state.decision = null;
    if (state.turn?.stage === "settling") {
      // It is still unknown whether the agent has the message.
      if (isLost && !state.turn.hasStarted) this.lose(state.turn, error);
      else this.unsettled(state.turn);
    }
    for (const waiting of state.line) if (waiting.stage === "doubtful") this.loseWaiting(waiting);
    this.afterReading(tickets, false);
  }

  afterReading(tickets: readonly number[], value: boolean): void {
    this.state.isOpen = true;
    this.resolve(tickets, value);
    this.moveOn();
    this.listen();
  }

  // Chunks of answers.

  onAccepted(request: number): void {
    const { turn } = this.state;
    if (turn?.request === request) this.state.turn = { ...turn, isAccepted: true };
    const waiting = this.waitingBy(request);
    if (waiting !== undefined) {
      this.change(waiting, { isAccepted: true });
      if (waiting.cancel === "wanted")
        this.change(waiting, { cancel: this.run({ kind: "take back", id: waiting.id }) });
    }
    this.moveOn();
  }

  onChunk(request: number, heardChunk: HeardChunk): void {
    const { state } = this;
    if (state.listening === request) {
      state.listening = null;
      state.turn = askedTurn(request, { isOurs: false, isAccepted: true });
    }
    if (this.isHeard(state.turn, request)) {
      const { turn } = state;
      if (!turn.hasStarted) this.resolve([turn.ticket], true);
      const answer = this.heard(turn.answer, heardChunk, request);
      state.turn = { ...turn, stage: "streaming", isAccepted: true, hasStarted: true, ticket: null, answer };
      return this.moveOn();
    }
    const waiting = this.waitingBy(request);
    if (waiting === undefined) return;
    // It was withdrawn, or its turn was stopped before any output.
    if (waiting.chunks.length === 0 && heardChunk.chunk.type === "abort") return this.doubt(waiting);
    this.change(waiting, { isAccepted: true, chunks: [...waiting.chunks, heardChunk] });
    this.moveOn();
  }

  onEnd(request: number, end: "over" | Failure): void {
    if (this.state.listening === request) this.state.listening = null;
    if (this.isHeard(this.state.turn, request)) return this.turnEnds(this.state.turn, end);
    const waiting = this.waitingBy(request);
    if (waiting === undefined) return;
    if (waiting.chunks.length > 0) this.change(waiting, { end });
    else if (end !== "over" && end.isLost) this.loseWaiting(waiting);
    else if (end === "over") this.doubt(waiting);
    else this.refuse(waiting, end.error);
  }

  // Connections that broke.

  onBack(request: number): void {
    const { turn, line } = this.state;
    if (turn?.stage === "lost" && turn.request === request) {
      // The turn continues in the agent. The received chunks are shown until the stored message is read.
      this.state.wantsToListen = true;
      this.state.heardBefore = turn.answer.live;
      this.settle(turn);
    }
    const unwanted = line.find(({ cancel }) => cancel === request);
    if (unwanted !== undefined) this.change(unwanted, { cancel: this.run({ kind: "take back", id: unwanted.id }) });
    const waiting = line.find((waiting) => waiting.stage === "lost" && waiting.request === request);
    if (waiting === undefined) return;
    this.change(waiting, { stage: "doubtful" });
    // The request to withdraw it may have arrived before the message.
    if (waiting.cancel !== null) this.change(waiting, { cancel: this.run({ kind: "take back", id: waiting.id }) });
    else read(this);
  }

  // Other requests.

  run(errand: Errand): number {
    const request = this.request();
    this.state.errands = new Map(this.state.errands).set(request, errand);
    if (errand.kind === "stop") this.do({ do: "cancel", request, messageId: errand.messageId });
    else if (errand.kind === "take back") this.do({ do: "cancel", request, messageId: errand.id });
    else if (errand.kind === "switch") this.do({ do: "switch", request, leaf: errand.leaf });
    else if (errand.kind === "remove") this.do({ do: "remove", request, id: errand.id });
    return request;
  }

  remove(id: string): void {
    const isLoaded = this.isLoaded(id);
    const waiting = this.state.line.find((waiting) => waiting.id === id);
    if (isLoaded && waiting !== undefined) this.change(waiting, { wasRead: true });
    this.run({ kind: "remove", id, isLoaded });
  }

  takeErrand(request: number): Errand | undefined {
    const errands = new Map(this.state.errands);
    const errand = errands.get(request);
    errands.delete(request);
    this.state.errands = errands;
    return errand;
  }

  onDone(request: number): void {
    const { state } = this;
    const errand = this.takeErrand(request);
    if (errand?.kind === "switch") {
      state.since = state.next;
      state.isMoved = true;
      this.do({ do: "read tree", fromStart: false, leaf: errand.leaf });
      read(this);
    } else if (errand?.kind === "remove") {
      // A message in transit may have arrived later.
      if (errand.isLoaded) state.removedIds = new Set(state.removedIds).add(errand.id);
      else state.isMoved = true;
      this.do({ do: "read tree", fromStart: true, leaf: null });
      state.isOwed = true;
      if (state.reading !== null) read(this);
    } else if (errand?.kind === "append" && this.isHeard(state.turn, request)) {
      // The agent has the message, whether or not its turn succeeds.
      this.resolve([state.turn.ticket], true);
      const turn = { ...state.turn, ticket: null };
      // The user stopped the turn before it was requested.
      if (turn.isStopping) return this.settle(turn);
      const chat = this.request();
      this.goOn(turn, chat, {});
      this.do({ do: "chat", request: chat, input: state.turn.input! });
    } else if (errand?.kind === "take back") {
      const waiting = state.line.find(({ cancel }) => cancel === request);
      // Its turn may have started before.
      if (waiting?.stage === "doubtful" || waiting?.stage === "unsent") this.doubt(waiting);
    }
  }

  onFailed(request: number, failure: Failure): void {
    const { state } = this;
    if (state.reading?.request === request) return this.onReadFailed(state.reading.tickets, failure);
    // The next check shows it.
    if (state.checking === request) return void (state.checking = null);
    if (state.readingAbove?.request === request) {
      this.resolve(state.readingAbove.tickets, false);
      state.readingAbove = null;
      state.problem = failure.error;
      return;
    }
    const errand = this.takeErrand(request);
    if (errand === undefined || errand.kind === "append") return this.onEnd(request, failure);
    if (errand.kind === "take back" && failure.isLost) {
      const waiting = state.line.find(({ cancel }) => cancel === request);
      if (waiting !== undefined) this.change(waiting, { cancel: this.awaitConnection() });
      return;
    }
    state.problem = failure.error;
    if (errand.kind === "stop") {
      // The user can try again.
      if (state.turn !== null) state.turn = { ...state.turn, isStopping: false };
    } else if (errand.kind === "take back") {
      const waiting = state.line.find(({ cancel }) => cancel === request);
      if (waiting === undefined) return;
      this.change(waiting, { cancel: null });
      if (waiting.stage === "doubtful") this.loseWaiting(waiting);
      this.moveOn();
    } else if (failure.isLost) {
      // The request may have succeeded.
      state.isMoved = true;
      state.isOwed = true;
      state.since = state.next;
      if (state.reading !== null) read(this);
    }
  }

  close(): void {
    const { turn, line, reading, readingAbove } = this.state;
    this.resolve(
      [
        turn?.ticket ?? null,
        ...line.map(({ ticket }) => ticket),
        ...(reading?.tickets ?? []),
        ...(readingAbove?.tickets ?? []),
      ],
      false,
    );
    this.state.isClosed = true;
    this.do({ do: "give all up" });
  }
}
