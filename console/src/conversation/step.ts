// The rules of a conversation: the next state, and the next effects, for each action.
//
// `step` is a pure function: it reads no clock, sends nothing and waits for nothing, so tests can
// play answers, clicks and broken connections in any order. conversation.ts runs the effects.
//
// Three rules make late answers harmless:
//
// - Every request has a number. An action with an unknown or outdated number is ignored.
// - The user's actions are shown on top of the agent's messages until a later read includes them. A
//   failed action is removed from the top, so nothing needs a rollback.
// - A message is sent when the agent has accepted the previous one. If the connection breaks, a read
//   shows whether the agent has it.

import { Queue } from "./queue.ts";
import { checkForChanges, read, readOlder, acceptCheck, acceptRead, acceptOlderRead } from "./reading.ts";
import {
  newTurn,
  type Effect,
  type PendingRequest,
  type Failure,
  type Action,
  type ReceivedChunk,
  type ActionOf,
  type State,
} from "./state.ts";

export function step(state: State, action: Action): [State, Effect[]] {
  const step = new Step(state);
  if (!state.isClosed) step.handle(action);
  // A closed conversation ignores answers.
  else if ("ticket" in action) step.resolve([action.ticket], false);
  return [step.state, step.effects];
}

class Step extends Queue {
  handle(action: Action): void {
    switch (action.type) {
      case "open":
        this.state.wantsToListen = true;
        return read(this);
      case "reload":
        this.state.needsFullRead = true;
        return read(this, action.ticket);
      case "check":
        return checkForChanges(this);
      case "loadOlder":
        return readOlder(this, action.limit, [action.ticket]);
      case "send":
        return this.send(action);
      case "withdraw":
        return this.withdraw(action.id);
      case "resend":
        return this.resend(action);
      case "regenerate":
        return this.regenerate(action.id);
      case "retry":
        return this.decide(action.id, null);
      case "answer":
        return this.answer(action.id);
      case "decide":
        return this.decide(action.messageId, action.call);
      case "branch off":
        return this.branchOff();
      case "cancel decision":
        this.state.decision = null;
        return;
      case "stop":
        return this.stop();
      case "switch":
        return void this.run({ kind: "switch", leaf: action.leaf });
      case "remove":
        return this.remove(action.id);
      case "dismiss":
        this.state.problem = null;
        return;
      case "problem":
        this.state.problem = action.error;
        return;
      case "close":
        return this.close();
      case "read":
        return this.onRead(action);
      case "readOlder":
        return acceptOlderRead(this, action);
      case "checked":
        return acceptCheck(this, action);
      case "accepted":
        return this.onAccepted(action.request);
      case "chunk":
        return this.onChunk(action.request, action);
      case "over":
        return this.onEnd(action.request, "over");
      case "reconnected":
        return this.onReconnected(action.request);
      case "done":
        return this.onDone(action.request);
      case "failed":
        return this.onFailed(action.request, action);
    }
  }

  // Reads.

  onRead(action: ActionOf<"read">): void {
    const reading = acceptRead(this, action);
    if (reading === null) return;
    const { turn } = this.state;
    if (turn?.stage === "settling" && action.request >= turn.settledFrom) this.onSettled(turn, action.found);
    this.resolveUnconfirmed(reading.find, action.found);
    this.resolveDecision(action.request);
    this.afterReading(reading.tickets, true);
  }

  onReadFailed(tickets: readonly number[], { error, isLost }: Failure): void {
    const { state } = this;
    state.reading = null;
    state.problem = error;
    state.needsReread = true;
    if (state.decision?.newer === null) state.decision = null;
    if (state.turn?.stage === "settling") {
      // It is still unknown whether the agent has the message.
      if (isLost && !state.turn.hasStarted) this.markTurnLost(state.turn, error);
      else this.onSettleFailed(state.turn);
    }
    for (const entry of state.queue) if (entry.stage === "unconfirmed") this.markEntryLost(entry);
    this.afterReading(tickets, false);
  }

  afterReading(tickets: readonly number[], value: boolean): void {
    this.state.isOpen = true;
    this.resolve(tickets, value);
    this.advance();
    this.listen();
  }

  // Chunks of answers.

  onAccepted(request: number): void {
    const { turn } = this.state;
    if (turn?.request === request) this.state.turn = { ...turn, isAccepted: true };
    const entry = this.entryOf(request);
    if (entry !== undefined) {
      this.change(entry, { isAccepted: true });
      if (entry.cancel === "wanted") this.change(entry, { cancel: this.run({ kind: "withdraw", id: entry.id }) });
    }
    this.advance();
  }

  onChunk(request: number, received: ReceivedChunk): void {
    const { state } = this;
    if (state.listening === request) {
      state.listening = null;
      state.turn = newTurn(request, { isOurs: false, isAccepted: true });
    }
    if (this.isReceiving(state.turn, request)) {
      const { turn } = state;
      if (!turn.hasStarted) this.resolve([turn.ticket], true);
      const answer = this.withReceived(turn.answer, received, request);
      state.turn = { ...turn, stage: "streaming", isAccepted: true, hasStarted: true, ticket: null, answer };
      return this.advance();
    }
    const entry = this.entryOf(request);
    if (entry === undefined) return;
    // It was withdrawn, or its turn was stopped before any output.
    if (entry.chunks.length === 0 && received.chunk.type === "abort") return this.markUnconfirmed(entry);
    this.change(entry, { isAccepted: true, chunks: [...entry.chunks, received] });
    this.advance();
  }

  onEnd(request: number, end: "over" | Failure): void {
    if (this.state.listening === request) this.state.listening = null;
    if (this.isReceiving(this.state.turn, request)) return this.turnEnds(this.state.turn, end);
    const entry = this.entryOf(request);
    if (entry === undefined) return;
    if (entry.chunks.length > 0) this.change(entry, { end });
    else if (end !== "over" && end.isLost) this.markEntryLost(entry);
    else if (end === "over") this.markUnconfirmed(entry);
    else this.refuse(entry, end.error);
  }

  // Connections that broke.

  onReconnected(request: number): void {
    const { turn, queue } = this.state;
    if (turn?.stage === "lost" && turn.request === request) {
      // The turn continues in the agent. The received chunks are shown until the stored message is read.
      this.state.wantsToListen = true;
      this.state.liveBefore = turn.answer.live;
      this.settle(turn);
    }
    const unwanted = queue.find(({ cancel }) => cancel === request);
    if (unwanted !== undefined) this.change(unwanted, { cancel: this.run({ kind: "withdraw", id: unwanted.id }) });
    const entry = queue.find((entry) => entry.stage === "lost" && entry.request === request);
    if (entry === undefined) return;
    this.change(entry, { stage: "unconfirmed" });
    // The request to withdraw it may have arrived before the message.
    if (entry.cancel !== null) this.change(entry, { cancel: this.run({ kind: "withdraw", id: entry.id }) });
    else read(this);
  }

  // Other requests.

  run(pending: PendingRequest): number {
    const request = this.request();
    this.state.pendingRequests = new Map(this.state.pendingRequests).set(request, pending);
    if (pending.kind === "stop") this.do({ do: "cancel", request, messageId: pending.messageId });
    else if (pending.kind === "withdraw") this.do({ do: "cancel", request, messageId: pending.id });
    else if (pending.kind === "switch") this.do({ do: "switch", request, leaf: pending.leaf });
    else if (pending.kind === "remove") this.do({ do: "remove", request, id: pending.id });
    return request;
  }

  remove(id: string): void {
    const isLoaded = this.isLoaded(id);
    const entry = this.state.queue.find((entry) => entry.id === id);
    if (isLoaded && entry !== undefined) this.change(entry, { wasRead: true });
    this.run({ kind: "remove", id, isLoaded });
  }

  takePending(request: number): PendingRequest | undefined {
    const pendingRequests = new Map(this.state.pendingRequests);
    const pending = pendingRequests.get(request);
    pendingRequests.delete(request);
    this.state.pendingRequests = pendingRequests;
    return pending;
  }

  onDone(request: number): void {
    const { state } = this;
    const pending = this.takePending(request);
    if (pending?.kind === "switch") {
      state.validSince = state.next;
      state.needsFullRead = true;
      this.do({ do: "read tree", fromStart: false, leaf: pending.leaf });
      read(this);
    } else if (pending?.kind === "remove") {
      // A message in transit may have arrived later.
      if (pending.isLoaded) state.removedIds = new Set(state.removedIds).add(pending.id);
      else state.needsFullRead = true;
      this.do({ do: "read tree", fromStart: true, leaf: null });
      state.needsReread = true;
      if (state.reading !== null) read(this);
    } else if (pending?.kind === "append" && this.isReceiving(state.turn, request)) {
      // The agent has the message, whether or not its turn succeeds.
      this.resolve([state.turn.ticket], true);
      const turn = { ...state.turn, ticket: null };
      // The user stopped the turn before it was requested.
      if (turn.isStopping) return this.settle(turn);
      const chat = this.request();
      this.continueTurn(turn, chat, {});
      this.do({ do: "chat", request: chat, input: state.turn.input! });
    } else if (pending?.kind === "withdraw") {
      const entry = state.queue.find(({ cancel }) => cancel === request);
      // Its turn may have started before.
      if (entry?.stage === "unconfirmed" || entry?.stage === "unsent") this.markUnconfirmed(entry);
    }
  }

  onFailed(request: number, failure: Failure): void {
    const { state } = this;
    if (state.reading?.request === request) return this.onReadFailed(state.reading.tickets, failure);
    // The next check shows it.
    if (state.checking === request) return void (state.checking = null);
    if (state.readingOlder?.request === request) {
      this.resolve(state.readingOlder.tickets, false);
      state.readingOlder = null;
      state.problem = failure.error;
      return;
    }
    const pending = this.takePending(request);
    if (pending === undefined || pending.kind === "append") return this.onEnd(request, failure);
    if (pending.kind === "withdraw" && failure.isLost) {
      const entry = state.queue.find(({ cancel }) => cancel === request);
      if (entry !== undefined) this.change(entry, { cancel: this.awaitConnection() });
      return;
    }
    state.problem = failure.error;
    if (pending.kind === "stop") {
      // The user can try again.
      if (state.turn !== null) state.turn = { ...state.turn, isStopping: false };
    } else if (pending.kind === "withdraw") {
      const entry = state.queue.find(({ cancel }) => cancel === request);
      if (entry === undefined) return;
      this.change(entry, { cancel: null });
      if (entry.stage === "unconfirmed") this.markEntryLost(entry);
      this.advance();
    } else if (failure.isLost) {
      // The request may have succeeded.
      state.needsFullRead = true;
      state.needsReread = true;
      state.validSince = state.next;
      if (state.reading !== null) read(this);
    }
  }

  close(): void {
    const { turn, queue, reading, readingOlder } = this.state;
    this.resolve(
      [
        turn?.ticket ?? null,
        ...queue.map(({ ticket }) => ticket),
        ...(reading?.tickets ?? []),
        ...(readingOlder?.tickets ?? []),
      ],
      false,
    );
    this.state.isClosed = true;
    this.do({ do: "abort all" });
  }
}
