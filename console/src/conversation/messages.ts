// Helpers for messages: creates one, extracts its text, and merges newly read ones.

import type { UiMessage } from "session-agent";

export function userMessage(
  id: string,
  text: string,
): { id: string; role: "user"; parts: { type: "text"; text: string }[] } {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

/** The text of a message. */
export function textOf(message: UiMessage): string {
  return message.parts
    .filter(({ type }) => type === "text")
    .map(({ text }) => String(text))
    .join("\n\n");
}

/**
 * Merges newly read messages into known ones. Unchanged messages stay the same objects. `isAll`: the
 * read messages are all. `null`: there is a gap between the known and the read ones.
 */
export function renewed(
  before: readonly UiMessage[],
  newest: readonly UiMessage[],
  isAll: boolean,
): readonly UiMessage[] | null {
  const from = isAll ? 0 : before.findLastIndex(({ id }) => id === newest[0]?.id);
  if (from < 0) return null;
  const known = new Map(before.slice(from).map((message) => [message.id, message]));
  const merged = newest.map((message) => {
    const old = known.get(message.id);
    return old !== undefined && JSON.stringify(old) === JSON.stringify(message) ? old : message;
  });
  return [...before.slice(0, from), ...merged];
}
