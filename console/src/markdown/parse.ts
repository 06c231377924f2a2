// Parses the Markdown of chats: headings, lists, tables, quotes, fenced code. HTML is text. A
// streaming text is parsed as if it were complete.

import { parseInline } from "./inline.ts";
import type { Align, Block, Inline, Item } from "./tree.ts";

/** The maximum depth of nested lists and quotes. Deeper ones are paragraphs. */
const DEEPEST = 8;
const MOST_COLUMNS = 40;
/** A longer line is not the head of a table. */
const LONGEST_ROW = 4000;

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const MARKER = /^( {0,3})(?:([-*+])|(\d{1,9})[.)])(?:([ \t]+)|$)/;
const TASK = /^\[([ xX])\][ \t]/;
const DELIMITERS = /^ {0,3}\|?(?:[ \t]*:?-+:?[ \t]*\|)*[ \t]*:?-+:?[ \t]*\|?[ \t]*$/;

export function parseMarkdown(text: string): readonly Block[] {
  return blocksOf(text.replaceAll("\r\n", "\n").split("\n"), 0);
}

function blocksOf(lines: readonly string[], depth: number): Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; ) {
    if (lines[at]!.trim() === "") {
      at += 1;
      continue;
    }
    const [block, end] = blockAt(lines, at, depth);
    blocks.push(block);
    at = end;
  }
  return blocks;
}

/** The block that begins at this line, and the line after it. */
function blockAt(lines: readonly string[], at: number, depth: number): [Block, number] {
  const line = lines[at]!;
  const fence = FENCE.exec(line);
  if (fence !== null) return codeAt(lines, at, fence[1]!, fence[2]!.trim());
  const heading = HEADING.exec(line);
  if (heading !== null) {
    const text = line.slice(heading[0].length).trim();
    return [{ type: "heading", level: heading[1]!.length, children: parseInline(withoutClosing(text)) }, at + 1];
  }
  if (RULE.test(line)) return [{ type: "rule" }, at + 1];
  if (depth < DEEPEST && QUOTE.test(line)) return quoteAt(lines, at, depth);
  if (depth < DEEPEST && MARKER.test(line)) return listAt(lines, at, depth);
  if (isTableAt(lines, at)) return tableAt(lines, at);
  return paragraphAt(lines, at, depth);
}

/** In `## Title ##`, only `Title` is the title. */
function withoutClosing(text: string): string {
  const last = text.lastIndexOf(" ");
  return /^#+$/.test(text.slice(last + 1)) ? text.slice(0, Math.max(0, last)).trimEnd() : text;
}

function codeAt(lines: readonly string[], at: number, fence: string, info: string): [Block, number] {
  let end = at + 1;
  while (end < lines.length && !closes(lines[end]!, fence)) end += 1;
  const language = info.split(/\s/, 1)[0] ?? "";
  return [{ type: "code", language, text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function closes(line: string, fence: string): boolean {
  const text = line.trim();
  return text.length >= fence.length && text === fence[0]!.repeat(text.length);
}

function quoteAt(lines: readonly string[], at: number, depth: number): [Block, number] {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end]!)) end += 1;
  const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [{ type: "quote", blocks: blocksOf(inside, depth + 1) }, end];
}

function listAt(lines: readonly string[], from: number, depth: number): [Block, number] {
  const first = MARKER.exec(lines[from]!)!;
  const isNumbered = first[3] !== undefined;
  const items: Item[] = [];
  let at = from;
  while (at < lines.length) {
    const marker = MARKER.exec(lines[at]!);
    // Another mark begins another list.
    if (marker === null || marker[2] !== first[2] || (marker[3] !== undefined) !== isNumbered) break;
    if (RULE.test(lines[at]!)) break;
    const width = marker[0].trimEnd().length + 1;
    const end = itemEnd(lines, at, marker[1]!.length + 2);
    const inside = [
      lines[at]!.slice(marker[0].length),
      ...lines.slice(at + 1, end).map((line) => outdented(line, width)),
    ];
    const task = TASK.exec(inside[0]!);
    if (task !== null) inside[0] = inside[0]!.slice(task[0].length);
    items.push({ isDone: task === null ? null : task[1] !== " ", blocks: blocksOf(inside, depth + 1) });
    at = end;
    while (at < lines.length && lines[at]!.trim() === "") at += 1;
  }
  return [{ type: "list", start: isNumbered ? Number(first[3]) : null, items }, at];
}

/** The end of an item: at the next item, or after an empty line if the next line is not indented. */
function itemEnd(lines: readonly string[], from: number, indent: number): number {
  let end = from + 1;
  for (let at = end; at < lines.length; at += 1) {
    const line = lines[at]!;
    if (line.trim() === "") continue;
    const isInside = indentOf(line) >= indent;
    if (!isInside && (end < at || beginsBlock(line))) break;
    end = at + 1;
  }
  return end;
}

function indentOf(line: string): number {
  let indent = 0;
  for (const character of line) {
    if (character === " ") indent += 1;
    else if (character === "\t") indent += 4;
    else break;
  }
  return indent;
}

function outdented(line: string, width: number): string {
  return line.replaceAll("\t", "    ").slice(Math.min(width, indentOf(line)));
}

function beginsBlock(line: string): boolean {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || MARKER.test(line);
}

function isTableAt(lines: readonly string[], at: number): boolean {
  const [head, marks] = [lines[at]!, lines[at + 1]];
  if (marks === undefined || !head.includes("|") || head.length > LONGEST_ROW || marks.length > LONGEST_ROW)
    return false;
  return marks.includes("-") && DELIMITERS.test(marks) && cellsOf(head).length === cellsOf(marks).length;
}

function tableAt(lines: readonly string[], at: number): [Block, number] {
  let end = at + 2;
  while (end < lines.length && lines[end]!.trim() !== "" && !beginsBlock(lines[end]!)) end += 1;
  const head = cellsOf(lines[at]!);
  const rows = lines.slice(at + 2, end).map((line) => {
    const cells = cellsOf(line);
    return head.map((_, column) => parseInline(cells[column] ?? ""));
  });
  const aligns = cellsOf(lines[at + 1]!).map(alignOf);
  return [{ type: "table", aligns, head: head.map(parseInline), rows }, end];
}

function alignOf(marks: string): Align {
  if (!marks.endsWith(":")) return "start";
  return marks.startsWith(":") ? "center" : "end";
}

/** The cells of a row. An escaped bar, or a bar in code, is not a separator. */
function cellsOf(line: string): string[] {
  const text = line.trim();
  const cells: string[] = [];
  let [cell, isCode] = ["", false];
  for (let at = text.startsWith("|") ? 1 : 0; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === "\\" && text[at + 1] === "|") {
      cell += "|";
      at += 1;
    } else if (character === "|" && !isCode && cells.length < MOST_COLUMNS) {
      cells.push(cell.trim());
      cell = "";
    } else {
      if (character === "`") isCode = !isCode && text.indexOf("`", at + 1) >= 0;
      cell += character;
    }
  }
  return cell.trim() === "" && text.endsWith("|") ? cells : [...cells, cell.trim()];
}

function paragraphAt(lines: readonly string[], at: number, depth: number): [Block, number] {
  let end = at + 1;
  // A list or quote that is too deep stays in its paragraph.
  const isOver = (line: string) => line.trim() === "" || (depth < DEEPEST && beginsBlock(line));
  while (end < lines.length && !isOver(lines[end]!) && !isTableAt(lines, end)) end += 1;
  const text = lines
    .slice(at, end)
    .map((line) => line.trimStart())
    .join("\n")
    .trimEnd();
  return [{ type: "paragraph", children: parseInline(text) satisfies readonly Inline[] }, end];
}
