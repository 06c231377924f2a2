// The messages that a page sends, compared with the stored ones.

import type { ModelMessage } from "@tanstack/ai";
import { canonical } from "./openai_items.js";
import { plainContent, textOf } from "./tanstack_messages.js";

/**
 * The given messages, with stored messages in their stored form. On the wire, TanStack AI joins the
 * texts and calls of an answer with several steps, so a page returns an answer in a different order
 * than the model produced it.
 */
export function asStored(stored: ModelMessage[], given: ModelMessage[]): ModelMessage[] {
  const turns = turnsOf(stored);
  const messages: ModelMessage[] = [];
  for (const [n, turn] of turnsOf(given).entries()) {
    const known = turns[n];
    if (known === undefined || !isSameTurn(known, turn)) {
      // After the first difference, the given history replaces the stored one.
      turns.length = 0;
      messages.push(...turn);
      continue;
    }
    const results = resultsOf(known);
    const more = turn.filter(({ role, toolCallId }) => role === "tool" && !results.has(toolCallId));
    messages.push(...known, ...more);
  }
  return messages;
}

/** The user's messages and the results of page tools that are not stored yet. */
export function newMessages(stored: ModelMessage[], given: ModelMessage[]): ModelMessage[] {
  const ids = new Set(stored.map(({ id }) => id));
  const results = resultsOf(stored);
  const calls = new Set(callsOf(stored).map(({ id }) => id));
  return given.filter(({ role, id, toolCallId }) => {
    if (role === "user") return id === undefined || !ids.has(id);
    return role === "tool" && toolCallId !== undefined && calls.has(toolCallId) && !results.has(toolCallId);
  });
}

/** Each turn begins with a message of the user. */
function turnsOf(messages: ModelMessage[]): ModelMessage[][] {
  const turns: ModelMessage[][] = [];
  for (const message of messages) {
    if (message.role === "user" || turns.length === 0) turns.push([]);
    turns.at(-1)!.push(message);
  }
  return turns;
}

/** Whether two turns have the same content, ignoring results that only one of them has. */
function isSameTurn(stored: ModelMessage[], given: ModelMessage[]): boolean {
  const results = resultsOf(given);
  const contentOf = (turn: ModelMessage[]): string =>
    canonical([
      turn.filter(({ role }) => role === "user").map(({ content }) => plainContent(content)),
      turn.map(({ role, content }) => (role === "assistant" ? textOf(content) : "")).join(""),
      callsOf(turn).map(({ id, function: called }) => [id, called.name, called.arguments]),
    ]);
  return (
    contentOf(stored) === contentOf(given) &&
    [...resultsOf(stored)].every(([id, result]) => !results.has(id) || results.get(id) === result)
  );
}

const callsOf = (messages: ModelMessage[]): NonNullable<ModelMessage["toolCalls"]> =>
  messages.flatMap(({ toolCalls = [] }) => toolCalls);

const resultsOf = (messages: ModelMessage[]): Map<string | undefined, string> =>
  new Map(
    messages.flatMap(({ role, content, toolCallId }) =>
      role === "tool" ? [[toolCallId, canonical(plainContent(content))] as const] : [],
    ),
  );
