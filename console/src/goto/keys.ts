// The keyboard shortcuts of the page. They are off while the user types in a field.

import { signal } from "@preact/signals";

/** The open overlay: the command palette, or the list of shortcuts. */
export const above = signal<"goto" | "keys" | "snippet" | null>(null);

export const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["Ctrl K", "Go to a view, session or agent"],
  ["/", "Search messages"],
  ["n", "Create a session"],
  ["c", "Write a message"],
  ["j", "Next session"],
  ["k", "Previous session"],
  ["s", "Show this view as an API call"],
  ["?", "Keyboard shortcuts"],
  ["Esc", "Close a dialog or end a search"],
  ["Home End", "First and last message"],
];

const KEY = "session-agent.keys";

/** Whether single letters are shortcuts. Users of speech input may want to turn them off. */
export const areLettersOn = signal(stored());

export function switchLetters(isOn: boolean): void {
  areLettersOn.value = isOn;
  try {
    localStorage.setItem(KEY, isOn ? "on" : "off");
  } catch {
    // Without local storage, they are on again after a reload.
  }
}

function stored(): boolean {
  try {
    return localStorage.getItem(KEY) !== "off";
  } catch {
    return true;
  }
}

/** Keys that focus a field. */
const FIELDS: Record<string, string> = {
  "/": ".search input",
  c: ".composer textarea",
};

export function listenToKeys(): () => void {
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

function onKey(event: KeyboardEvent): void {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    if (document.querySelector("dialog[open]") !== null && above.peek() !== "goto") return;
    event.preventDefault();
    above.value = above.peek() === "goto" ? null : "goto";
    return;
  }
  const isPlain = areLettersOn.peek() && !(event.ctrlKey || event.metaKey || event.altKey);
  if (!isPlain || event.defaultPrevented || isWriting(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "?") above.value = "keys";
  else if (event.key === "s") above.value = "snippet";
  else if (event.key in FIELDS) focusOn(FIELDS[event.key]!);
  else if (event.key === "n") document.querySelector<HTMLElement>("[aria-keyshortcuts=n]")?.click();
  else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  else return;
  event.preventDefault();
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}

function focusOn(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.focus();
}

/** Opens the next or the previous session of the list. */
function step(by: number): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>(".session-links .session-link")];
  const here = links.findIndex((link) => link.getAttribute("aria-current") === "page");
  links[here < 0 ? 0 : here + by]?.click();
}
