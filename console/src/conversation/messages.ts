// Messages: how one is made, what of one is text, and what of many is new.

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
 * Messages whose newest ones were read again: an unchanged one is the same object. `isAll`: there
 * are none above the newest. `null`: there is a gap between.
 */
export function renewed(
  before: readonly UiMessage[],
  newest: readonly UiMessage[],
  isAll: boolean,
): readonly UiMessage[] | null {
  const from = isAll ? 0 : before.findLastIndex(({ id }) => id === newest[0]?.id);
  if (from < 0) return null;
  const known = new Map(before.slice(from).map((message) => [message.id, message]));
  const kept = newest.map((message) => {
    const old = known.get(message.id);
    return old !== undefined && JSON.stringify(old) === JSON.stringify(message) ? old : message;
  });
  return [...before.slice(0, from), ...kept];
}
