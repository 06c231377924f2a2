// Parses the inline content of a paragraph: emphasis, code, links. It reads any text once, from left to
// right, with small stacks for emphasis and brackets.

import type { Inline } from "./tree.ts";

/** The maximum depth of nested emphasis. Deeper ones are text. */
const DEEPEST = 12;
const LONGEST_URL = 2000;

type Delimiter = { type: "delimiter"; mark: string; count: number; opens: boolean; closes: boolean };
type Piece = Inline | Delimiter;

const ESCAPABLE = /[!-/:-@[-`{-~]/;
/** A link's target after its text: `(url "title")`. */
const TARGET = new RegExp(
  `\\(\\s{0,9}(?:<([^<>\\n]{0,${LONGEST_URL}})>|([^\\s()<>]{0,${LONGEST_URL}}(?:\\([^\\s()<>]{0,200}\\)[^\\s()<>]{0,200})?))(?:\\s{1,9}(?:"[^"\\n]{0,500}"|'[^'\\n]{0,500}'))?\\s{0,9}\\)`,
  "y",
);
const ADDRESS = new RegExp(`https?://[^\\s<>"'\`|]{1,${LONGEST_URL}}`, "iy");
const BETWEEN_ANGLES = new RegExp(`<(https?://[^\\s<>]{1,${LONGEST_URL}})>`, "iy");

export function parseInline(text: string): readonly Inline[] {
  return new Reader(text).read();
}

class Reader {
  readonly #pieces: Piece[] = [];
  /** The indexes of open brackets among the pieces. */
  #brackets: { at: number; isImage: boolean }[] = [];
  /** The lengths of runs of backticks that nothing closes. */
  readonly #unclosed = new Set<number>();
  #plain = "";
  #at = 0;

  constructor(readonly text: string) {}

  read(): readonly Inline[] {
    while (this.#at < this.text.length) this.#next();
    this.#flush();
    return emphasised(this.#pieces);
  }

  #next(): void {
    const { text } = this;
    const character = text[this.#at]!;
    switch (character) {
      case "\\":
        return this.#escape();
      case "`":
        return this.#code();
      case "*":
      case "_":
      case "~":
        return this.#delimiter(character);
      case "!":
        if (text[this.#at + 1] === "[") return this.#open("![", true);
        break;
      case "[":
        return this.#open("[", false);
      case "]":
        return this.#close();
      case "<":
        if (this.#take(BETWEEN_ANGLES, (found) => this.#link(found[1]!))) return;
        break;
      case "\n":
        this.#plain = this.#plain.trimEnd();
        this.#push({ type: "break" });
        this.#at += 1;
        return;
      case "h":
      case "H":
        // Within a word, it is not emphasis.
        if (!/\w/.test(text[this.#at - 1] ?? "") && this.#address()) return;
    }
    this.#plain += character;
    this.#at += 1;
  }

  #flush(): void {
    if (this.#plain !== "") this.#pieces.push({ type: "text", text: this.#plain });
    this.#plain = "";
  }

  #push(piece: Piece): void {
    this.#flush();
    this.#pieces.push(piece);
  }

  #link(url: string): void {
    this.#push({ type: "link", url, isImage: false, children: [{ type: "text", text: url }] });
  }

  /** Consumes the text at this position, if the pattern matches. */
  #take(pattern: RegExp, use: (found: RegExpExecArray) => void): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text);
    if (found === null) return false;
    use(found);
    this.#at += found[0].length;
    return true;
  }

  #escape(): void {
    const next = this.text[this.#at + 1] ?? "";
    if (ESCAPABLE.test(next)) {
      this.#plain += next;
      this.#at += 2;
    } else {
      this.#plain += "\\";
      this.#at += 1;
    }
  }

  #code(): void {
    const length = runAt(this.text, this.#at, "`");
    const from = this.#at + length;
    const to = this.#unclosed.has(length) ? -1 : closingRun(this.text, from, length);
    if (to < 0) {
      this.#unclosed.add(length);
      this.#plain += this.text.slice(this.#at, from);
      this.#at = from;
      return;
    }
    const inner = this.text.slice(from, to).replaceAll("\n", " ");
    const isPadded = inner.length > 2 && inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "";
    this.#push({ type: "code", text: isPadded ? inner.slice(1, -1) : inner });
    this.#at = to + length;
  }

  #delimiter(mark: string): void {
    const count = runAt(this.text, this.#at, mark);
    const before = this.text[this.#at - 1] ?? " ";
    const after = this.text[this.#at + count] ?? " ";
    const isLeft = !/\s/.test(after) && (!isPunctuation(after) || /\s/.test(before) || isPunctuation(before));
    const isRight = !/\s/.test(before) && (!isPunctuation(before) || /\s/.test(after) || isPunctuation(after));
    // `snake_case` is a word.
    const isWord = mark === "_" && isLeft && isRight;
    const opens = isLeft && (!isWord || isPunctuation(before));
    const closes = isRight && (!isWord || isPunctuation(after));
    const marks = this.text.slice(this.#at, this.#at + count);
    this.#at += count;
    if ((mark === "~" && count !== 2) || count > 3 || !(opens || closes)) this.#plain += marks;
    else this.#push({ type: "delimiter", mark, count, opens, closes });
  }

  #open(mark: string, isImage: boolean): void {
    this.#push({ type: "text", text: mark });
    this.#brackets.push({ at: this.#pieces.length - 1, isImage });
    if (this.#brackets.length > DEEPEST) this.#brackets.shift();
    this.#at += mark.length;
  }

  #close(): void {
    const opened = this.#brackets.pop();
    this.#at += 1;
    const isLink =
      opened !== undefined &&
      this.#take(TARGET, ([, angled, bare]) => {
        this.#flush();
        const [, ...inside] = this.#pieces.splice(opened.at);
        const children = emphasised(inside);
        this.#pieces.push({ type: "link", url: angled ?? bare ?? "", isImage: opened.isImage, children });
        // A link contains no links.
        if (!opened.isImage) this.#brackets = this.#brackets.filter(({ isImage }) => isImage);
      });
    if (!isLink) this.#plain += "]";
  }

  /** A bare URL in the text, without the punctuation after it. */
  #address(): boolean {
    ADDRESS.lastIndex = this.#at;
    const [found] = ADDRESS.exec(this.text) ?? [];
    if (found === undefined) return false;
    let url = found.replace(/[.,:;!?*_~\])]{1,9}$/, "");
    // Within brackets the closing one ends it, unless it opened one itself.
    if (url.includes("(") && found[url.length] === ")") url += ")";
    const bracket = url.indexOf("](");
    if (bracket >= 0) url = url.slice(0, bracket);
    if (this.#brackets.length > 0) url = url.split("]", 1)[0]!;
    if (url.length <= "https://".length) return false;
    if (this.#brackets.some(({ isImage }) => !isImage)) this.#plain += url;
    else this.#link(url);
    this.#at += url.length;
    return true;
  }
}

function runAt(text: string, at: number, mark: string): number {
  let end = at;
  while (text[end] === mark) end += 1;
  return end - at;
}

function closingRun(text: string, from: number, length: number): number {
  for (let at = text.indexOf("`", from); at >= 0; ) {
    const run = runAt(text, at, "`");
    if (run === length) return at;
    at = text.indexOf("`", at + run);
  }
  return -1;
}

function isPunctuation(character: string): boolean {
  return /[\p{P}\p{S}]/u.test(character);
}

interface Frame {
  delimiter: Delimiter | null;
  children: Inline[];
}

/** Pairs delimiters into emphasis. Unpaired ones are text. */
function emphasised(pieces: readonly Piece[]): readonly Inline[] {
  const frames: Frame[] = [{ delimiter: null, children: [] }];
  for (const piece of pieces) {
    if (piece.type !== "delimiter") frames.at(-1)!.children.push(piece);
    else takeDelimiter(frames, { ...piece });
  }
  return flattened(frames, 0);
}

function takeDelimiter(frames: Frame[], delimiter: Delimiter): void {
  while (delimiter.closes && delimiter.count > 0) {
    const at = frames.findLastIndex((frame) => frame.delimiter?.mark === delimiter.mark);
    if (at < 0) break;
    const opener = frames[at]!.delimiter!;
    const count = Math.min(2, opener.count, delimiter.count);
    const children = [...frames[at]!.children, ...flattened(frames.splice(at + 1), -1)];
    const type = delimiter.mark === "~" ? "del" : count === 2 ? "strong" : "em";
    opener.count -= count;
    delimiter.count -= count;
    frames[at]!.children = [{ type, children }];
    if (opener.count === 0) frames.at(at - 1)!.children.push(...frames.pop()!.children);
  }
  if (delimiter.count === 0) return;
  if (delimiter.opens && frames.length <= DEEPEST) frames.push({ delimiter, children: [] });
  else frames.at(-1)!.children.push(marks(delimiter));
}

/** The children of all frames, their delimiters as text. */
function flattened(frames: readonly Frame[], first: number): Inline[] {
  return frames.flatMap(({ delimiter, children }, at) =>
    delimiter === null || at < first ? children : [marks(delimiter), ...children],
  );
}

function marks({ mark, count }: Delimiter): Inline {
  return { type: "text", text: mark.repeat(count) };
}
