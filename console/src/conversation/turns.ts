// The turns of a conversation: starts them, processes their chunks, and ends them.

import type { ChatInput, UiMessage } from "session-agent";
import { withLiveChunk, withTimesOf } from "../turns/live.ts";
import { type Answer, withChunk } from "./answer.ts";
import { Draft } from "./draft.ts";
import { userMessage } from "./messages.ts";
import { read } from "./reading.ts";
import {
  newTurn,
  type CallDecision,
  type Decision,
  type OptimisticUpdate,
  type PendingRequest,
  type Failure,
  type ReceivedChunk,
  messagesOf,
  type ActionOf,
  phaseOf,
  type Turn,
} from "./state.ts";

export abstract class Turns extends Draft {
  /** Shows the next turn, and sends the next message, if the preceding ones allow it. */
  protected abstract advance(): void;

  /** Sends another request to the agent, and returns its number. */
  protected abstract run(pending: PendingRequest): number;

  isFree(): boolean {
    return phaseOf(this.state) === "idle" && this.state.queue.length === 0;
  }

  /** Begins a turn. `update`: its optimistic update. */
  begin(input: ChatInput, more: Partial<Turn>, update: Partial<OptimisticUpdate>): void {
    const request = this.request();
    this.showTurn(newTurn(request, { input, ...more }), update);
    this.do({ do: "chat", request, input });
  }

  showTurn(turn: Turn, update: Partial<OptimisticUpdate>): void {
    // Otherwise the page would receive this turn twice.
    this.abort(this.state.listening);
    this.state.listening = null;
    this.state.problem = null;
    this.state.decision = null;
    this.state.liveBefore = null;
    this.state.turn = turn;
    this.state.optimisticUpdates = [
      ...this.state.optimisticUpdates,
      { request: turn.request, cutAt: null, message: null, isNewer: false, includedFrom: null, ...update },
    ];
  }

  /** The turn continues with another request's number. */
  continueTurn(turn: Turn, request: number, change: Partial<Turn>): void {
    this.state.optimisticUpdates = this.state.optimisticUpdates.map((update) =>
      update.request === turn.request ? { ...update, request, includedFrom: null } : update,
    );
    this.state.turn = { ...turn, ...change, request };
  }

  resend({ id, newId, text, at, ticket }: ActionOf<"resend">): void {
    const shown = messagesOf(this.state);
    const index = shown.findIndex((message) => message.id === id);
    // The new text is appended after the preceding message.
    if (!this.isFree() || index < 0 || (index === 0 && this.state.olderCursor !== null))
      return this.resolve([ticket], false);
    const message = userMessage(newId, text);
    const update = { cutAt: id, message: { ...message, createdAt: at } };
    const turn = { messageId: newId, ticket };
    const previous = shown[index - 1];
    if (previous !== undefined) {
      const { role, parts } = previous;
      return this.begin({ messages: [{ id: previous.id, role, parts }, message] }, turn, update);
    }
    // There is no preceding message: the message is appended, and then the turn begins.
    const request = this.request();
    // The turn only names the message, so a message that was deleted in the meantime stays deleted.
    const input: ChatInput = { trigger: "regenerate-message", messageId: newId, messages: [] };
    this.showTurn(newTurn(request, { ...turn, input }), update);
    this.state.pendingRequests = new Map(this.state.pendingRequests).set(request, { kind: "append" });
    this.do({ do: "append", request, message: update.message });
  }

  regenerate(id: string): void {
    if (this.isFree()) this.begin({ trigger: "regenerate-message", messageId: id, messages: [] }, {}, { cutAt: id });
  }

  /** Requests an answer to an older message. Later messages stay on their branch. */
  answer(id: string): void {
    const shown = messagesOf(this.state);
    const index = shown.findIndex((message) => message.id === id);
    if (index < 0 || !this.isFree()) return;
    const cutAt = shown[index + 1]?.id ?? null;
    this.begin({ trigger: "regenerate-message", messageId: id, messages: [] }, {}, { cutAt });
  }

  /** Requests a turn at an existing message, unless newer messages would disappear from the view. */
  decide(messageId: string, call: Decision["call"]): void {
    if (!this.isFree() || !this.isShown(messageId)) return;
    this.state.decision = { messageId, call, from: this.state.next, newer: null };
    read(this);
  }

  /** The newest messages were read. */
  resolveDecision(request: number): void {
    const { decision } = this.state;
    if (decision === null || decision.newer !== null || request < decision.from) return;
    const shown = messagesOf(this.state);
    const index = shown.findLastIndex(({ id }) => id === decision.messageId);
    const newer = shown.length - 1 - index;
    this.state.decision = null;
    if (!this.isFree()) return;
    if (index < 0) this.state.problem = new Error("The message is no longer on this page.");
    else if (newer === 0) this.continueAt(decision);
    // The user sees the newer messages instead. A call stays open.
    else if (decision.call !== null) this.state.decision = { ...decision, newer };
  }

  /** The user confirmed the turn on a new branch. */
  branchOff(): void {
    const { decision } = this.state;
    if (decision === null || decision.newer === null || !this.isFree()) return;
    this.state.decision = null;
    this.continueAt(decision);
  }

  private continueAt({ messageId, call }: Decision): void {
    const shown = messagesOf(this.state);
    const index = shown.findLastIndex(({ id }) => id === messageId);
    const message = shown[index];
    if (message === undefined) return;
    // The request only names the message, so a message that was deleted in the meantime stays deleted.
    if (call === null) return this.begin({ trigger: "regenerate-message", messageId, messages: [] }, {}, {});
    const { createdAt, ...content } = message;
    const parts = message.parts.map((part) => decidedPart(part, call));
    const update = { cutAt: shown[index + 1]?.id ?? null, message: { ...content, createdAt, parts }, isNewer: true };
    // When no call is open, the turn continues.
    this.begin({ message: { ...content, parts } }, {}, update);
  }

  isShown(id: string): boolean {
    return messagesOf(this.state).some((message) => message.id === id);
  }

  stop(): void {
    const { turn } = this.state;
    if (turn === null || turn.isStopping) return;
    this.state.turn = { ...turn, isStopping: true };
    // The message identifies the turn, so later turns are not stopped.
    this.run({ kind: "stop", messageId: turn.messageId });
  }

  isReceiving(turn: Turn | null, request: number): turn is Turn {
    return turn?.request === request && (turn.stage === "requested" || turn.stage === "streaming");
  }

  withReceived(answer: Answer, { chunk, at }: ReceivedChunk, request: number): Answer {
    const isJoined = this.state.turn?.isOurs === false;
    const live = withTimesOf(this.state.liveBefore, withLiveChunk(answer.live, chunk, at, isJoined));
    const timed = { ...answer, live };
    return withChunk(timed, chunk, (id = `answer-${request}`) => {
      // An answer may continue an existing message.
      const known = messagesOf({ ...this.state, turn: null }).findLast((message) => message.id === id);
      return known
        ? { ...known, parts: [...known.parts] }
        : ({ id, role: "assistant", parts: [], createdAt: at } satisfies UiMessage);
    });
  }

  turnEnds(turn: Turn, end: "over" | Failure): void {
    if (end !== "over" && end.isLost && (end.wasSent || turn.hasStarted)) return this.markTurnLost(turn, end.error);
    if (end !== "over" && !turn.hasStarted) return this.undo(turn, end.error);
    const { error } = turn.answer;
    if (error !== null) this.do({ do: "mark failed", operation: turn.isOurs ? "chat" : "resumeChat", error });
    if (error !== null) this.state.problem = new Error(error);
    else if (end !== "over" && turn.isOurs) this.state.problem = end.error;
    this.settle(turn);
  }

  markTurnLost(turn: Turn, error: unknown): void {
    this.continueTurn(turn, this.awaitConnection(), { stage: "lost", error });
  }

  /** The agent refused the request, so its optimistic update is removed. */
  undo(turn: Turn, problem: unknown): void {
    this.state.optimisticUpdates = this.state.optimisticUpdates.filter(({ request }) => request !== turn.request);
    this.state.turn = null;
    this.state.problem = problem;
    this.resolve([turn.ticket], false);
    // Changes of other clients may be the reason.
    read(this);
    this.advance();
  }

  /** Reads the stored messages of a turn that is over. */
  settle(turn: Turn): void {
    const from = this.state.next;
    this.state.turn = { ...turn, stage: "settling", settledFrom: from };
    this.state.optimisticUpdates = this.state.optimisticUpdates.map((update) =>
      update.request === turn.request ? { ...update, includedFrom: from } : update,
    );
    read(this);
  }

  /** The stored messages were read. */
  onSettled(turn: Turn, found: readonly string[]): void {
    const isThere = turn.hasStarted || (turn.messageId !== null && found.includes(turn.messageId));
    this.state.turn = null;
    this.resolve([turn.ticket], isThere);
    if (!isThere && turn.error !== null) this.state.problem = turn.error;
  }

  /** Reading failed: the received chunks stay until a read succeeds. */
  onSettleFailed(turn: Turn): void {
    this.state.turn = null;
    this.resolve([turn.ticket], turn.hasStarted);
    if (!turn.hasStarted)
      this.state.optimisticUpdates = this.state.optimisticUpdates.filter(({ request }) => request !== turn.request);
    this.retainAnswer(turn);
  }

  retainAnswer({ request, answer: { message }, settledFrom }: Turn): void {
    if (message === null) return;
    this.state.optimisticUpdates = [
      ...this.state.optimisticUpdates,
      { request, cutAt: null, message, isNewer: true, includedFrom: settledFrom },
    ];
  }

  isLoaded(id: string): boolean {
    return this.state.loaded.some((message) => message.id === id);
  }
}

function decidedPart(part: any, call: CallDecision): any {
  if (call.output !== undefined)
    return part.toolCallId === call.toolCallId ? { ...part, state: "output-available", output: call.output } : part;
  return part.approval?.id === call.approvalId
    ? { ...part, state: "approval-responded", approval: { ...part.approval, approved: call.approved } }
    : part;
}
