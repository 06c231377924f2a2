// Single messages: how one is made, and what of one is text.

import type { UiMessage } from "session-agent";

export function userMessage(text: string): { id: string; role: "user"; parts: { type: "text"; text: string }[] } {
  return { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] };
}

/** What of a message is text. */
export function textOf(message: UiMessage): string {
  return message.parts.filter(({ type }) => type === "text").map(({ text }) => String(text)).join("\n\n");
}
