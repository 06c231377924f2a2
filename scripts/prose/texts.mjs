// The texts of the repository that a person or a model reads: Markdown, the strings of
// JavaScript and TypeScript, and the strings of Rust. Code, comments and names are not texts.

import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { transformSync } from "esbuild";

/** A string is prose if it has two words with a space between them. */
const PROSE = /[\p{L}}][\p{L}'’]*[,;:]? +[`“"({]?[\p{L}}]/u;
/** SQL, whole or in parts. */
const CODE =
  /\bSELECT\b[^]*\bFROM\b|\bCASE\s+WHEN\b|\bjson_\w+\(|\biif\(|\b[a-z]\.[a-z_]+ (?:=|IN|IS)|^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|FROM|WHERE|AND|OR|ORDER|PRAGMA|LEFT|JOIN|ON)\b/;

/** The texts of a file: `{ line, text }` of each. */
export function textsOf(path, source = readFileSync(path, "utf8")) {
  const kind = extname(path);
  if (kind === ".md") return textsOfMarkdown(source);
  if (kind === ".rs") return textsOfRust(source).map(withoutNames).filter(isProse);
  if (kind === ".json") return textsOfApi(source);
  if (kind === ".html") return textsOfMarkup(source);
  if (kind === ".py") return textsOfPython(source).filter(isProse);
  return textsOfScript(source, kind.slice(1).replace("mjs", "js").replace("cjs", "js")).filter(isProse);
}

/** A placeholder's name is not a word. */
const withoutNames = ({ line, text }) => ({ line, text: text.replaceAll(/\{[a-z_A-Z]*\}/g, "{}") });

function isProse({ text }) {
  return PROSE.test(text) && !CODE.test(text);
}

/** Paragraphs, headings, items and cells, without blocks of code, spans of code and addresses. */
export function textsOfMarkdown(source) {
  const texts = [];
  let isCode = false;
  let paragraph = null;
  const close = () => {
    if (paragraph !== null) texts.push(paragraph);
    paragraph = null;
  };
  for (const [index, line] of source.split("\n").entries()) {
    if (/^\s*(?:>\s*)?(?:```|~~~)/.test(line)) {
      isCode = !isCode;
      close();
      continue;
    }
    if (isCode) continue;
    if (line.trim() === "" || /^\s*(?:[-*] |\d+\. |#|\||>)/.test(line)) close();
    if (line.trim() === "") continue;
    if (paragraph === null) paragraph = { line: index + 1, text: plain(line) };
    else paragraph.text += ` ${plain(line)}`;
  }
  close();
  return texts.map(({ line, text }) => ({ line, text: spansOut(text) }));
}

const plain = (line) => line.replace(/^\s*(?:>\s*)*/, "").trimEnd();
const spansOut = (text) =>
  text
    .replaceAll(/(`+).+?\1/g, "`x`")
    .replaceAll(/\]\([^)]*\)/g, "]")
    .replaceAll(/<[a-z/][^>]*>/g, " ");

/** The descriptions in the API's document, each of which is a line of the file. */
function textsOfApi(source) {
  return source.split("\n").flatMap((row, index) => {
    const [, text] = row.match(/^ *"(?:description|summary)": (".*"),?$/) ?? [];
    return text === undefined ? [] : [{ line: index + 1, text: spansOut(JSON.parse(text).replaceAll("\n", " ")) }];
  });
}

/** The lines of a page, without its tags. */
function textsOfMarkup(source) {
  return source.split("\n").map((text, index) => ({ line: index + 1, text: text.replaceAll(/<[^>]*>/g, "") }));
}

/** The strings of JavaScript and TypeScript, and the text between the tags of JSX. */
export function textsOfScript(source, loader) {
  const { code } = transformSync(source, { loader, jsx: "automatic", charset: "utf8", legalComments: "none" });
  const strings = stringsOfScript(code);
  // Each string is searched for after the previous one; JSX text over several lines starts at its
  // first words.
  let from = 0;
  return strings.map((text) => {
    const start = text.trim().split("\n")[0];
    for (const length of [40, 20, 10]) {
      const at = source.indexOf(start.slice(0, length), from);
      if (at < 0) continue;
      from = at;
      break;
    }
    return { line: source.slice(0, from).split("\n").length, text };
  });
}

const NAME = /(?:[!=]==|\bcase|\b(?:do|kind|type):) $/;

function stringsOfScript(code) {
  const strings = [];
  const braces = [];
  let at = 0;
  let before = "";
  const template = () => {
    let text = "";
    while (code[at] !== "`") {
      if (code[at] === "\\") {
        text += escaped(code[at + 1]);
        at += 2;
      } else if (code.startsWith("${", at)) {
        at += 2;
        text += "{}";
        braces.push(["template", text]);
        return;
      } else text += code[at++];
    }
    at += 1;
    before = "x";
    strings.push(text);
  };
  const resumed = (text) => {
    const index = strings.length;
    template();
    if (strings.length > index) strings[index] = text + strings[index];
    else braces.at(-1)[1] = text + braces.at(-1)[1];
  };
  while (at < code.length) {
    const c = code[at];
    if (code.startsWith("//", at)) {
      at = code.indexOf("\n", at);
      if (at < 0) break;
    } else if (code.startsWith("/*", at)) at = code.indexOf("*/", at) + 2;
    else if (c === '"' || c === "'") {
      // Strings that are compared, or that name a kind of effect, are only for the program.
      const isName = NAME.test(code.slice(Math.max(0, at - 12), at));
      let text = "";
      at += 1;
      while (code[at] !== c) {
        if (code[at] === "\\") {
          text += escaped(code[at + 1]);
          at += 2;
        } else text += code[at++];
      }
      at += 1;
      before = "x";
      if (!isName) strings.push(text);
    } else if (c === "`") {
      at += 1;
      template();
    } else if (c === "/" && (/[(,=:[!&|?{};+\-*%<>~^]/.test(before) || before === "")) {
      let isClass = false;
      for (at += 1; code[at] !== "/" || isClass; at += 1) {
        if (code[at] === "\\") at += 1;
        else if (code[at] === "[") isClass = true;
        else if (code[at] === "]") isClass = false;
      }
      at += 1;
      before = "x";
    } else {
      if (c === "{") braces.push(["block"]);
      if (c === "}") {
        const [kind, text] = braces.pop() ?? [];
        if (kind === "template") {
          at += 1;
          resumed(text);
          continue;
        }
      }
      const word = /^(?:return|typeof|case|in|of|=>)(?=\s)/.exec(code.slice(at, at + 8));
      if (word !== null && !/\w/.test(code[at - 1] ?? " ")) {
        at += word[0].length;
        before = "";
        continue;
      }
      if (!/\s/.test(c)) before = c;
      at += 1;
    }
  }
  return strings;
}

const escaped = (c) => ({ n: "\n", t: "\t", r: "\r", "\n": "" })[c] ?? c;

/** The strings of Rust outside its tests, those of `description` and the like included. */
export function textsOfRust(source) {
  const texts = [];
  let at = 0;
  let line = 1;
  const skipTo = (to) => {
    line += source.slice(at, to).split("\n").length - 1;
    at = to;
  };
  const next = /reason = "[^"]*"|\/\/[^\n]*|\/\*[^]*?\*\/|b?r(#*)"|b?"|'(?:\\.[^']*|[^\\'])'|#\[cfg\(test\)\]/g;
  for (;;) {
    next.lastIndex = at;
    const found = next.exec(source);
    if (found === null) return texts;
    skipTo(found.index);
    const [token, hashes] = found;
    if (token.startsWith("reason")) {
      // Why a lint is off is for those who work on the code.
      skipTo(at + token.length);
    } else if (token === "#[cfg(test)]") {
      // Tests are the last item of a file, or a file of their own.
      if (/^#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?mod \w+ \{/.test(source.slice(at))) return texts;
      skipTo(at + token.length);
    } else if (hashes !== undefined) {
      const start = at + token.length;
      const end = source.indexOf(`"${hashes}`, start);
      texts.push({ line, text: source.slice(start, end) });
      skipTo(end + 1 + hashes.length);
    } else if (token.endsWith('"') && !token.startsWith("/")) {
      let end = at + token.length;
      while (source[end] !== '"') end += source[end] === "\\" ? 2 : 1;
      const raw = source.slice(at + token.length, end);
      texts.push({
        line,
        text: raw
          .replaceAll(/\\\n\s*/g, "")
          .replaceAll(/\\n/g, "\n")
          .replaceAll(/\\(["\\])/g, "$1"),
      });
      skipTo(end + 1);
    } else skipTo(at + token.length);
  }
}

/** The strings of Python, with what documents a function. */
export function textsOfPython(source) {
  const texts = [];
  const next = /#[^\n]*|[rbf]{0,2}("""|''')([^]*?)\1|[rbf]{0,2}(["'])((?:\\.|(?!\3)[^\\\n])*)\3/g;
  for (const { 0: token, index, 2: long, 4: short } of source.matchAll(next)) {
    if (token.startsWith("#")) continue;
    texts.push({ line: source.slice(0, index).split("\n").length, text: long ?? short });
  }
  return texts;
}
