// Renders a model's Markdown as React elements. The text is untrusted: there is no raw HTML, no images,
// and links are limited to http, https and mailto. Every step of the parser consumes characters and never
// backtracks, so the time is proportional to the text's length.

import { createElement, Fragment, type ReactElement, type ReactNode } from "react";

/** A longer text is shown unformatted. */
const MAX_CHARS = 200_000;
/** The maximum depth of lists, quotes and emphasis. Deeper ones are shown as text. */
const MAX_DEPTH = 8;

/** Shows a text as Markdown: paragraphs, headings, lists, quotes, code, emphasis, links. */
export function Markdown({ text }: { text: string }): ReactElement {
  if (text.length > MAX_CHARS) return createElement("p", null, text);
  return createElement(Fragment, null, ...blocksOf(text.split(/\r?\n/), 0));
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;

function blocksOf(lines: readonly string[], depth: number): ReactNode[] {
  const blocks: ReactNode[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!;
    const end = endOfBlock(lines, at);
    blocks.push(blockOf(line, lines.slice(at, end), depth));
    at = end;
  }
  return blocks;
}

/** The end of the block that begins here. */
function endOfBlock(lines: readonly string[], from: number): number {
  const first = lines[from]!;
  const fence = FENCE.exec(first)?.[1];
  let at = from + 1;
  if (fence !== undefined) {
    while (at < lines.length && !lines[at]!.trim().startsWith(fence)) at += 1;
    return Math.min(lines.length, at + 1);
  }
  if (first.trim() === "" || HEADING.test(first) || RULE.test(first)) return at;
  const item = ITEM.exec(first);
  if (item !== null) {
    const isOrdered = /\d/.test(item[2]!);
    const indent = item[1]!.length + 1;
    // Indented lines belong to the item, and so do lines of text that directly follow it.
    for (; at < lines.length; at += 1) {
      const line = lines[at]!;
      const other = ITEM.exec(line);
      const isOther = other !== null && other[1]!.length <= indent && /\d/.test(other[2]!) !== isOrdered;
      if (other !== null ? isOther : line.trim() !== "" && !/^\s/.test(line) && beginsBlock(line)) break;
      if (line.trim() === "" && !/^\s+\S/.test(lines[at + 1] ?? "") && !ITEM.test(lines[at + 1] ?? "")) break;
    }
    return at;
  }
  if (QUOTE.test(first)) {
    while (at < lines.length && QUOTE.test(lines[at]!)) at += 1;
    return at;
  }
  while (at < lines.length && lines[at]!.trim() !== "" && !beginsBlock(lines[at]!)) at += 1;
  return at;
}

const beginsBlock = (line: string): boolean => [FENCE, HEADING, QUOTE, ITEM, RULE].some((form) => form.test(line));

function blockOf(first: string, lines: readonly string[], depth: number): ReactNode {
  if (first.trim() === "") return null;
  const fence = FENCE.exec(first)?.[1];
  if (fence !== undefined) {
    const isClosed = lines.length > 1 && lines.at(-1)!.trim().startsWith(fence);
    return createElement(
      "pre",
      null,
      createElement("code", null, lines.slice(1, isClosed ? -1 : undefined).join("\n")),
    );
  }
  if (depth < MAX_DEPTH) {
    if (RULE.test(first)) return createElement("hr");
    const item = ITEM.exec(first);
    if (item !== null) {
      const isOrdered = /\d/.test(item[2]!);
      const start = isOrdered ? { start: Number.parseInt(item[2]!, 10) } : null;
      return createElement(isOrdered ? "ol" : "ul", start, ...itemsOf(lines, depth + 1));
    }
    if (QUOTE.test(first)) {
      const quoted = lines.map((line) => QUOTE.exec(line)![1]!);
      return createElement("blockquote", null, ...blocksOf(quoted, depth + 1));
    }
  }
  const heading = HEADING.exec(first);
  // The headings of a message are below the page's own.
  if (heading !== null)
    return createElement(`h${Math.min(6, heading[1]!.length + 2)}`, null, ...inlineOf(heading[2]!, 0));
  return createElement("p", null, ...inlineOf(lines.join("\n"), 0));
}

function itemsOf(lines: readonly string[], depth: number): ReactNode[] {
  const items: string[][] = [];
  const indent = ITEM.exec(lines[0]!)![1]!.length + 1;
  for (const line of lines) {
    const item = ITEM.exec(line);
    // A more indented item belongs to a nested list.
    if (item !== null && item[1]!.length <= indent) items.push([item[3]!]);
    else items.at(-1)?.push(line.replace(/^ {1,4}/, ""));
  }
  return items.map((item) => {
    const [text, ...rest] = item;
    const nested = rest.some((line) => line.trim() === "" || beginsBlock(line));
    return createElement("li", null, ...(nested ? blocksOf([text!, ...rest], depth) : inlineOf(item.join("\n"), 0)));
  });
}

/** The characters that can begin inline markup. */
const INLINE =
  /`+|\\[!-/:-@[-`{-~]|\*\*|__|\*|_|~~|\[([^\][\n]{1,500})\]\(\s*<?([^\s()<>]{1,2000})>?(?:\s+"[^"\n]{0,500}")?\s*\)|https?:\/\/[^\s<>"'`)\]]{1,2000}| {2}\n/g;

const TAGS: { readonly [mark: string]: string } = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" };

function inlineOf(text: string, depth: number): ReactNode[] {
  const shown: ReactNode[] = [];
  // An unclosed mark is text, and so are later marks of its kind.
  const unended = new Set<string>();
  const form = new RegExp(INLINE);
  let from = 0;
  for (let found = form.exec(text); found !== null; found = form.exec(text)) {
    const [mark] = found;
    const after = found.index + mark.length;
    const made = unended.has(mark) ? null : inlineAt(text, found, depth);
    if (made === null) continue;
    if (made === "unended") {
      unended.add(mark);
      continue;
    }
    shown.push(text.slice(from, found.index), made.shown);
    from = made.end ?? after;
    form.lastIndex = from;
  }
  shown.push(text.slice(from));
  return shown;
}

/** `null`: it is plain text. */
function inlineAt(
  text: string,
  found: RegExpExecArray,
  depth: number,
): { shown: ReactNode; end?: number } | "unended" | null {
  const [mark, label, address] = found;
  const after = found.index + mark.length;
  if (mark === "  \n") return { shown: createElement("br") };
  if (mark.startsWith("\\")) return { shown: mark.slice(1) };
  if (mark.startsWith("`")) {
    const end = endOfCode(text, mark, after);
    return end < 0 ? "unended" : { shown: createElement("code", null, text.slice(after, end)), end: end + mark.length };
  }
  if (address !== undefined) return { shown: link(address, label!) ?? mark };
  if (mark.startsWith("http")) {
    const bare = mark.replace(/[.,;:!?]+$/, "");
    return { shown: link(bare, bare) ?? bare, end: found.index + bare.length };
  }
  const tag = TAGS[mark];
  // Inside a word, an underscore is a letter.
  if (tag === undefined || depth >= MAX_DEPTH || (mark.startsWith("_") && /\w/.test(text[found.index - 1] ?? "")))
    return null;
  if (/\s/.test(text[after] ?? " ")) return null;
  const end = text.indexOf(mark, after + 1);
  if (end < 0) return "unended";
  return { shown: createElement(tag, null, ...inlineOf(text.slice(after, end), depth + 1)), end: end + mark.length };
}

/** The position of the closing run of backticks. */
function endOfCode(text: string, mark: string, from: number): number {
  for (let at = text.indexOf(mark, from); at >= 0; ) {
    let end = at + mark.length;
    while (text[end] === "`") end += 1;
    if (end - at === mark.length) return at;
    at = text.indexOf(mark, end);
  }
  return -1;
}

/** A link with an allowed protocol. Others are shown as text. */
function link(address: string, shown: string): ReactNode {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return null;
  return createElement("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, shown);
}

const HIDDEN = /(?! )[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0e\u{e0000}-\u{e0fff}]/gu;

/** A call's input as text for a person who approves it, with each invisible character escaped. */
export function visibleInput(input: unknown): string {
  const text = JSON.stringify(input) ?? "";
  return text.replace(HIDDEN, (character) => `\\u{${character.codePointAt(0)!.toString(16).toUpperCase()}}`);
}
