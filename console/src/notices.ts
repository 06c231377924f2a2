// Notices of what has happened. They disappear automatically, unless the user must decide something.

import { signal } from "@preact/signals";

const SHOWN_MS = 6000;
const SHOWN = 4;

export interface Notice {
  id: number;
  text: string;
  kind: "done" | "failed";
}

export const notices = signal<readonly Notice[]>([]);

let last = 0;

export function notify(text: string, kind: Notice["kind"] = "done"): void {
  last += 1;
  const notice = { id: last, text, kind };
  notices.value = [...notices.peek(), notice].slice(-SHOWN);
  if (kind === "done") setTimeout(() => dismiss(notice.id), SHOWN_MS);
}

export function notifyError(error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  notify(sentence(error), "failed");
}

export function dismiss(id: number): void {
  notices.value = notices.peek().filter((notice) => notice.id !== id);
}

export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
