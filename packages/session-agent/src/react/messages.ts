// Pure functions that compute the shown messages from stored, streaming and queued ones.

import type { InputAnswers } from "../input_request.js";
import type { CompletedTurn, UiMessage } from "../operations.js";
import type { ChatFailure, ChatMessage } from "./types.js";

/** Replaces the end of the list with newer messages. `null`: there is a gap between them. */
export function withNewest(loaded: readonly UiMessage[], newest: readonly UiMessage[]): readonly UiMessage[] | null {
  if (loaded.length === 0 || newest.length === 0) return newest;
  const from = loaded.findIndex(({ id }) => id === newest[0]!.id);
  if (from >= 0) return sameWhereEqual(loaded, [...loaded.slice(0, from), ...newest]);
  return newest.some(({ id }) => id === loaded[0]!.id) ? sameWhereEqual(loaded, newest) : null;
}

/** Unchanged messages stay the same objects, so they don't render again. */
function sameWhereEqual(before: readonly UiMessage[], after: readonly UiMessage[]): readonly UiMessage[] {
  const known = new Map(before.map((message) => [message.id, message]));
  return after.map((message) => {
    const old = known.get(message.id);
    return old !== undefined && JSON.stringify(old) === JSON.stringify(message) ? old : message;
  });
}

/** Prepends older messages. */
export function withOlder(loaded: readonly UiMessage[], older: readonly UiMessage[]): readonly UiMessage[] {
  const known = new Set(loaded.map(({ id }) => id));
  return [...older.filter(({ id }) => !known.has(id)), ...loaded];
}

/** The messages up to a turn's beginning: an answer that is replaced disappears. */
export function cutAt(messages: readonly UiMessage[], id: string | null): readonly UiMessage[] {
  const index = id === null ? -1 : messages.findIndex((message) => message.id === id);
  if (index < 0) return messages;
  return messages.slice(0, messages[index]!.role === "user" ? index + 1 : index);
}

/**
 * A message as it was before the turn that continues it. The log may have the first steps of that turn
 * already, and the turn's chunks repeat them. The turn began when the newest decision was made, the
 * newest question was answered, or the newest call had its result, so the texts after that call are the turn's own.
 */
export function beforeContinuation(message: UiMessage): UiMessage {
  const { parts } = message;
  const decided = parts.findLastIndex((part: any) => part.approval !== undefined || part.type === "data-input-request");
  const from = decided >= 0 ? decided : parts.findLastIndex(({ toolCallId }: any) => toolCallId !== undefined);
  const end = parts.findIndex(({ toolCallId }: any, n) => n > from && toolCallId === undefined);
  return end < 0 ? message : { ...message, parts: parts.slice(0, end) };
}

/** Replaces the answer's message, or appends it. */
export function withAnswer(messages: readonly UiMessage[], answer: UiMessage | null): readonly UiMessage[] {
  if (answer === null) return messages;
  const index = messages.findIndex(({ id }) => id === answer.id);
  return index < 0 ? [...messages, answer] : messages.with(index, answer);
}

/** A user's decision that the agent may not have received yet: about a call, or answers to a tool's questions. */
export type Decided = { approved: boolean; reason?: string | undefined; output?: undefined } | { output: InputAnswers };

/** Shows decisions in their calls. */
export function withDecisions(
  messages: readonly UiMessage[],
  decisions: ReadonlyMap<string, Decided>,
): readonly UiMessage[] {
  if (decisions.size === 0) return messages;
  return messages.map((message) => {
    if (!message.parts.some((part) => decisions.has(waitingCall(part) ?? ""))) return message;
    const parts = message.parts.map((part) => {
      const decided = decisions.get(waitingCall(part) ?? "");
      if (decided === undefined) return part;
      if (decided.output !== undefined) return { ...part, data: { ...part.data, isClosed: true } };
      return { ...part, state: "approval-responded", approval: { ...part.approval, ...decided } };
    });
    return { ...message, parts };
  });
}

/** The call of this part that is waiting for the user. */
function waitingCall(part: any): string | undefined {
  if (part.state === "approval-requested") return part.toolCallId;
  return part.type === "data-input-request" && !part.data?.isClosed ? part.data?.toolCallId : undefined;
}

/** The calls that are waiting for the user: by approval id, or by their own id for tools' questions. */
export function openCalls(messages: readonly UiMessage[]): Map<string, string> {
  const parts = messages.flatMap((message) => message.parts);
  return new Map(
    parts.flatMap((part) => {
      const call = waitingCall(part);
      return call === undefined ? [] : [[String(part.approval?.id ?? call), String(call)] as const];
    }),
  );
}

/**
 * The failures of turns by message: by the turn's answer, or by the message that has no answer. `turns`
 * are failed ones, the newest first. `failuresByMessage`: failures of turns that may not have a record yet.
 */
export function failuresOf(
  messages: readonly UiMessage[],
  turns: readonly CompletedTurn[],
  failuresByMessage: ReadonlyMap<string, ChatFailure>,
): Map<string, ChatFailure> {
  const failures = new Map<string, ChatFailure>();
  for (const { failure, messageId, startedAt, endedAt } of turns) {
    if (failure === null) continue;
    const at = messageId ?? unansweredBefore(messages, startedAt ?? endedAt);
    if (at !== undefined && !failures.has(at)) failures.set(at, { code: failure.code, message: failure.message });
  }
  for (const [id, failure] of failuresByMessage) {
    const index = messages.findIndex((message) => message.id === id);
    const isAnswered = messages[index]?.role === "user" && messages[index + 1]?.role === "assistant";
    if (index >= 0 && !isAnswered && !failures.has(id)) failures.set(id, failure);
  }
  return failures;
}

/** The newest user message up to a time, if it has no answer. */
function unansweredBefore(messages: readonly UiMessage[], time: number): string | undefined {
  const index = messages.findLastIndex(({ role, createdAt }) => role === "user" && Number(createdAt) <= time);
  return index < 0 || messages[index + 1]?.role === "assistant" ? undefined : messages[index]!.id;
}

/** Marks failures. A message without one stays the same object. */
export function withFailures(
  messages: readonly ChatMessage<any>[],
  failures: ReadonlyMap<string, ChatFailure>,
): ChatMessage<any>[] {
  return messages.map((message) => {
    const failure = failures.get(message.id);
    return failure === undefined ? message : { ...message, failure };
  });
}
