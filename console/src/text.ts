// Formats values for display. Stored text is untrusted: invisible and reordering characters are made
// visible here.

const LONGEST_NAME = 120;

/** Characters that are invisible, or that change the reading direction. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The same, except line breaks, tabs, and the characters that right-to-left scripts need. */
const UNSEEN_IN_TEXT = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** A name on one line, with every invisible character escaped. */
export function shownName(name: string): string {
  const short = name.length > LONGEST_NAME ? `${cut(name, LONGEST_NAME)}…` : name;
  return short.replace(UNSEEN, shownCharacter);
}

export function shownText(text: string): string {
  return text.replace(UNSEEN_IN_TEXT, shownCharacter);
}

function shownCharacter(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** The first `length` UTF-16 units, without a lone surrogate at the end. */
export function cut(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length);
}

export function sessionName(session: { id: string; name?: string | null }): string {
  const name = session.name?.trim();
  return shownName(name ? name : `Untitled ${session.id}`);
}

const plain = new Intl.NumberFormat("en");
const dateTime = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
const utcDay = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", timeZone: "UTC" });
const day = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });
const hour = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const weekday = new Intl.DateTimeFormat("en", { weekday: "short" });
const whole = new Intl.DateTimeFormat("en", { dateStyle: "full", timeStyle: "long" });

export const count = (n: number): string => plain.format(n);

export function counted(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** "2 events, 1 entry". */
export function erasedText(erased: object): string {
  const parts = Object.entries(erased).filter(([, n]) => typeof n === "number" && n > 0);
  if (parts.length === 0) return "nothing";
  return parts.map(([what, n]) => counted(n, singular(words(what)), words(what))).join(", ");
}

/** The singular: "entry" for "entries". The names of counts are plurals; "media" is its own singular. */
const singular = (name: string): string => name.replace(/ies$/, "y").replace(/s$/, "");

const words = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 ** 2) return `${(n / 1024).toFixed(1)} KB`;
  if (n < 1024 ** 3) return `${(n / 1024 ** 2).toFixed(1)} MB`;
  return `${(n / 1024 ** 3).toFixed(1)} GB`;
}

/** `createdAt` is untrusted, so a value that is not a time results in an empty text. */
export function shownTime(at: unknown): string {
  return isTime(at) ? dateTime.format(at) : "";
}

/** To the second, with the time zone. */
export function fullTime(at: unknown): string {
  return isTime(at) ? whole.format(at) : "";
}

/** The hour of today, the day and hour of this week, or the day. */
export function shortTime(at: unknown, now = Date.now()): string {
  if (!isTime(at)) return "";
  const [date, today] = [new Date(at), new Date(now)];
  if (date.toDateString() === today.toDateString()) return hour.format(at);
  if (at < now && now - at < 6 * 86_400_000) return `${weekday.format(at)} ${hour.format(at)}`;
  return date.getFullYear() === today.getFullYear() ? day.format(at) : dayOfYear.format(at);
}

export function milliseconds(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** A day that began at midnight UTC, wherever the reader is. */
export function shownUtcDay(at: number): string {
  return isTime(at) ? utcDay.format(at) : "";
}

/** A time for a form field: to the minute, in the user's time zone. */
export function fieldOf(at: number | null | undefined): string {
  if (!isTime(at)) return "";
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** The time in a form field. `null`: none. */
export function timeOf(field: string): number | null {
  const at = new Date(field).getTime();
  return Number.isNaN(at) ? null : at;
}

function isTime(at: unknown): at is number {
  return typeof at === "number" && Math.abs(at) <= 8.64e15;
}

/** Characters that are invisible, look like a space, or change the order, including tags and variants. */
const HIDDEN =
  /(?![ \n])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0e\u{e0000}-\u{e0fff}]/gu;

/**
 * A call's input for a person who decides about it: each invisible character is escaped as
 * `\u{200B}`, which JSON itself never contains.
 */
export function shownInput(input: unknown): string {
  return shownJson(input).replace(
    HIDDEN,
    (character) => `\\u{${character.codePointAt(0)!.toString(16).toUpperCase()}}`,
  );
}

/** Any value as readable JSON. */
export function shownJson(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}
