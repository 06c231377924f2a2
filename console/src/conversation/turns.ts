// The turns of a conversation: starts them, processes their chunks, and ends them.

import type { ChatInput, UiMessage } from "session-agent";
import { heardLive, withTimesOf } from "../turns/live.ts";
import { type Answer, heard } from "./answer.ts";
import { Draft } from "./draft.ts";
import { userMessage } from "./messages.ts";
import { read } from "./reading.ts";
import {
  askedTurn,
  type CallDecision,
  type Decision,
  type Deed,
  type Errand,
  type Failure,
  type HeardChunk,
  messagesOf,
  type Of,
  phaseOf,
  type Turn,
} from "./state.ts";

export abstract class Turns extends Draft {
  /** Shows the next turn, and sends the next message, if the preceding ones allow it. */
  protected abstract moveOn(): void;

  /** Sends another request to the agent, and returns its number. */
  protected abstract run(errand: Errand): number;

  isFree(): boolean {
    return phaseOf(this.state) === "idle" && this.state.line.length === 0;
  }

  /** Begins a turn. `deed`: its optimistic update. */
  begin(input: ChatInput, more: Partial<Turn>, deed: Partial<Deed>): void {
    const request = this.request();
    this.enter(askedTurn(request, { input, ...more }), deed);
    this.do({ do: "chat", request, input });
  }

  enter(turn: Turn, deed: Partial<Deed>): void {
    // Otherwise the page would receive this turn twice.
    this.giveUp(this.state.listening);
    this.state.listening = null;
    this.state.problem = null;
    this.state.decision = null;
    this.state.heardBefore = null;
    this.state.turn = turn;
    this.state.deeds = [
      ...this.state.deeds,
      { request: turn.request, cutAt: null, message: null, isNewer: false, knownFrom: null, ...deed },
    ];
  }

  /** The turn continues with another request's number. */
  goOn(turn: Turn, request: number, change: Partial<Turn>): void {
    this.state.deeds = this.state.deeds.map((deed) =>
      deed.request === turn.request ? { ...deed, request, knownFrom: null } : deed,
    );
    this.state.turn = { ...turn, ...change, request };
  }

  resend({ id, newId, text, at, ticket }: Of<"resend">): void {
    const shown = messagesOf(this.state);
    const index = shown.findIndex((message) => message.id === id);
    // The new text is appended after the preceding message.
    if (!this.isFree() || index < 0 || (index === 0 && this.state.above !== null)) return this.resolve([ticket], false);
    const message = userMessage(newId, text);
    const deed = { cutAt: id, message: { ...message, createdAt: at } };
    const turn = { messageId: newId, ticket };
    const previous = shown[index - 1];
    if (previous !== undefined) {
      const { role, parts } = previous;
      return this.begin({ messages: [{ id: previous.id, role, parts }, message] }, turn, deed);
    }
    // There is no preceding message: the message is appended, and then the turn begins.
    const request = this.request();
    // The turn only names the message, so a message that was deleted in the meantime stays deleted.
    const input: ChatInput = { trigger: "regenerate-message", messageId: newId, messages: [] };
    this.enter(askedTurn(request, { ...turn, input }), deed);
    this.state.errands = new Map(this.state.errands).set(request, { kind: "append" });
    this.do({ do: "append", request, message: deed.message });
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
  decided(request: number): void {
    const { decision } = this.state;
    if (decision === null || decision.newer !== null || request < decision.from) return;
    const shown = messagesOf(this.state);
    const index = shown.findLastIndex(({ id }) => id === decision.messageId);
    const newer = shown.length - 1 - index;
    this.state.decision = null;
    if (!this.isFree()) return;
    if (index < 0) this.state.problem = new Error("The message is no longer on this page.");
    else if (newer === 0) this.goOnAt(decision);
    // The user sees the newer messages instead. A call stays open.
    else if (decision.call !== null) this.state.decision = { ...decision, newer };
  }

  /** The user confirmed the turn on a new branch. */
  branchOff(): void {
    const { decision } = this.state;
    if (decision === null || decision.newer === null || !this.isFree()) return;
    this.state.decision = null;
    this.goOnAt(decision);
  }

  private goOnAt({ messageId, call }: Decision): void {
    const shown = messagesOf(this.state);
    const index = shown.findLastIndex(({ id }) => id === messageId);
    const message = shown[index];
    if (message === undefined) return;
    // The request only names the message, so a message that was deleted in the meantime stays deleted.
    if (call === null) return this.begin({ trigger: "regenerate-message", messageId, messages: [] }, {}, {});
    const { createdAt, ...said } = message;
    const parts = message.parts.map((part) => decidedPart(part, call));
    const deed = { cutAt: shown[index + 1]?.id ?? null, message: { ...said, createdAt, parts }, isNewer: true };
    // When no call is open, the turn continues.
    this.begin({ message: { ...said, parts } }, {}, deed);
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

  isHeard(turn: Turn | null, request: number): turn is Turn {
    return turn?.request === request && (turn.stage === "asked" || turn.stage === "streaming");
  }

  heard(answer: Answer, { chunk, at }: HeardChunk, request: number): Answer {
    const isJoined = this.state.turn?.isOurs === false;
    const live = withTimesOf(this.state.heardBefore, heardLive(answer.live, chunk, at, isJoined));
    const timed = { ...answer, live };
    return heard(timed, chunk, (id = `answer-${request}`) => {
      // An answer may continue an existing message.
      const known = messagesOf({ ...this.state, turn: null }).findLast((message) => message.id === id);
      return known
        ? { ...known, parts: [...known.parts] }
        : ({ id, role: "assistant", parts: [], createdAt: at } satisfies UiMessage);
    });
  }

  turnEnds(turn: Turn, end: "over" | Failure): void {
    if (end !== "over" && end.isLost && (end.wasSent || turn.hasStarted)) return this.lose(turn, end.error);
    if (end !== "over" && !turn.hasStarted) return this.undo(turn, end.error);
    const { error } = turn.answer;
    if (error !== null) this.do({ do: "mark failed", operation: turn.isOurs ? "chat" : "resumeChat", error });
    if (error !== null) this.state.problem = new Error(error);
    else if (end !== "over" && turn.isOurs) this.state.problem = end.error;
    this.settle(turn);
  }

  lose(turn: Turn, error: unknown): void {
    this.goOn(turn, this.awaitConnection(), { stage: "lost", error });
  }

  /** The agent refused the request, so its optimistic update is removed. */
  undo(turn: Turn, problem: unknown): void {
    this.state.deeds = this.state.deeds.filter(({ request }) => request !== turn.request);
    this.state.turn = null;
    this.state.problem = problem;
    this.resolve([turn.ticket], false);
    // Changes of other clients may be the reason.
    read(this);
    this.moveOn();
  }

  /** Reads the stored messages of a turn that is over. */
  settle(turn: Turn): void {
    const from = this.state.next;
    this.state.turn = { ...turn, stage: "settling", settledFrom: from };
    this.state.deeds = this.state.deeds.map((deed) =>
      deed.request === turn.request ? { ...deed, knownFrom: from } : deed,
    );
    read(this);
  }

  /** The stored messages were read. */
  settled(turn: Turn, found: readonly string[]): void {
    const isThere = turn.hasStarted || (turn.messageId !== null && found.includes(turn.messageId));
    this.state.turn = null;
    this.resolve([turn.ticket], isThere);
    if (!isThere && turn.error !== null) this.state.problem = turn.error;
  }

  /** Reading failed: the received chunks stay until a read succeeds. */
  unsettled(turn: Turn): void {
    this.state.turn = null;
    this.resolve([turn.ticket], turn.hasStarted);
    if (!turn.hasStarted) this.state.deeds = this.state.deeds.filter(({ request }) => request !== turn.request);
    this.keepAnswer(turn);
  }

  keepAnswer({ request, answer: { message }, settledFrom }: Turn): void {
    if (message === null) return;
    this.state.deeds = [...this.state.deeds, { request, cutAt: null, message, isNewer: true, knownFrom: settledFrom }];
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
