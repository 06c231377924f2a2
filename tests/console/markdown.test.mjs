// The console's Markdown parser (console/src/markdown), without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./modules.mjs";

const { parseMarkdown } = await load("markdown/parse.ts");

/** A tree as a short text: `p(em(a) b)`. */
function shown(node) {
  if (Array.isArray(node)) return node.map(shown).join("");
  switch (node.type) {
    case "text":
      return node.text;
    case "break":
      return "⏎";
    case "code":
      return "language" in node ? `pre[${node.language}](${node.text})` : `code(${node.text})`;
    case "link":
      return `${node.isImage ? "img" : "a"}[${node.url}](${shown(node.children)})`;
    case "heading":
      return `h${node.level}(${shown(node.children)})`;
    case "paragraph":
      return `p(${shown(node.children)})`;
    case "quote":
      return `quote(${shown(node.blocks)})`;
    case "list": {
      const items = node.items.map(
        ({ isDone, blocks }) => `${isDone === null ? "" : isDone ? "☑" : "☐"}${shown(blocks)}`,
      );
      return `${node.start === null ? "ul" : `ol${node.start}`}(${items.join("; ")})`;
    }
    case "table":
      return `table[${node.aligns}](${[node.head, ...node.rows].map((row) => row.map(shown).join(" | ")).join(" // ")})`;
    case "rule":
      return "hr";
    default:
      return `${node.type}(${shown(node.children)})`;
  }
}

const CASES = {
  "One line\nand another": "p(One line⏎and another)",
  "*em*, **strong**, ***both***, ~~gone~~": "p(em(em), strong(strong), em(strong(both)), del(gone))",
  "**bold *and em* inside**": "p(strong(bold em(and em) inside))",
  "snake_case_name and 2*3*4 and a * b": "p(snake_case_name and 2em(3)4 and a * b)",
  "_under_ and __strong__": "p(em(under) and strong(strong))",
  "unclosed **bold and `code": "p(unclosed **bold and `code)",
  "`a * b` and ``a ` b``": "p(code(a * b) and code(a ` b))",
  "\\*no em\\* and \\q": "p(*no em* and \\q)",
  "# Title #\n## Other\n#none": "h1(Title)h2(Other)p(#none)",
  "```js\nlet a = 1;\n\n# b\n```\nafter": "pre[js](let a = 1;\n\n# b)p(after)",
  "~~~\n```\n~~~": "pre[](```)",
  "```\nstill being said": "pre[](still being said)",
  "- a\n- b\n  - c\n- d": "ul(p(a); p(b)ul(p(c)); p(d))",
  "1. a\n2. b\n\n   more\n3. c": "ol1(p(a); p(b)p(more); p(c))",
  "7) x": "ol7(p(x))",
  "- [ ] to do\n- [x] done": "ul(☐p(to do); ☑p(done))",
  "* a\n* b\n- c": "ul(p(a); p(b))ul(p(c))",
  "- a\n  ```\n  code\n  ```": "ul(p(a)pre[](code))",
  "> said\n> twice\n\nnot": "quote(p(said⏎twice))p(not)",
  "---\n***": "hrhr",
  "| a | b |\n|:-:|--:|\n| 1 | `x|y` |\n| 2 |": "table[center,end](a | b // 1 | code(x|y) // 2 | )",
  "a | b\n--|--\n1 \\| 2 | 3": "table[start,start](a | b // 1 | 2 | 3)",
  "a | b\nno table": "p(a | b⏎no table)",
  "[text](https://example.com/a_(b))": "p(a[https://example.com/a_(b)](text))",
  '[**bold**](https://example.com "title") after': "p(a[https://example.com](strong(bold)) after)",
  "![picture](https://example.com/p.png)": "p(img[https://example.com/p.png](picture))",
  "[![a](https://a.example/i)](https://b.example)": "p(a[https://b.example](img[https://a.example/i](a)))",
  "See https://example.com/a?b=c. Or (https://example.com/x).":
    "p(See a[https://example.com/a?b=c](https://example.com/a?b=c). Or (a[https://example.com/x](https://example.com/x)).)",
  "<https://example.com> and <b>": "p(a[https://example.com](https://example.com) and <b>)",
  "[no link] and [x](": "p([no link] and [x]()",
  "[x](javascript:alert(1))": "p(a[javascript:alert(1)](x))",
  "<script>alert(1)</script>": "p(<script>alert(1)</script>)",
  "a\r\nb": "p(a⏎b)",
  "": "",
};

for (const [text, expected] of Object.entries(CASES)) {
  test(`markdown_${JSON.stringify(text)}`, () => assert.equal(shown(parseMarkdown(text)), expected));
}

/** All text in a tree. */
function textOf(node) {
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (typeof node === "string") return node;
  return [node.text, node.children, node.blocks, node.items, node.head, node.rows]
    .filter((inside) => inside !== undefined)
    .map(textOf)
    .join("");
}

test("any_text_renders_quickly_to_a_shallow_tree", () => {
  const depthOf = (node) =>
    node !== null && typeof node === "object" ? 1 + Math.max(0, ...Object.values(node).map(depthOf)) : 0;
  const pieces = [
    "*",
    "**",
    "_",
    "`",
    "[",
    "]",
    "](",
    "![",
    "<",
    "> ",
    "- ",
    "1. ",
    "|",
    "\n",
    "  ",
    "a",
    "https://",
    "~~",
    "\\",
  ];
  for (const piece of pieces) {
    for (const other of ["", "a", " ", "\n", ...pieces]) {
      const text = (piece + other).repeat(Math.floor(20_000 / (piece + other).length));
      const began = process.cpuUsage();
      const tree = parseMarkdown(text);
      const { user, system } = process.cpuUsage(began);
      assert.ok(user + system < 1_000_000, `${JSON.stringify(piece + other)} takes ${(user + system) / 1000} ms`);
      assert.ok(depthOf(tree) < 150, `${JSON.stringify(piece + other)} is ${depthOf(tree)} deep`);
    }
  }
});

test("all_words_of_any_text_are_rendered", () => {
  let state = Number(process.env.SEED ?? 5);
  const dice = (n) => (state = (state * 48_271) % 2_147_483_647) % n;
  const pieces = [
    "**",
    "*",
    "_",
    "`",
    "[",
    "](https://example.com)",
    "!",
    "\n",
    "\n\n",
    "- ",
    "> ",
    "# ",
    "| ",
    "~~",
    "  ",
    "1. ",
  ];
  for (let game = 0; game < 3_000; game += 1) {
    const words = [];
    let text = "";
    for (let n = 0; n < 20; n += 1) {
      const word = `w${game}x${n}y`;
      words.push(word);
      text += pieces[dice(pieces.length)] + word + (dice(2) ? " " : pieces[dice(pieces.length)]);
    }
    const there = textOf(parseMarkdown(text));
    for (const word of words) assert.ok(there.includes(word), `${word} of ${JSON.stringify(text)} is missing`);
  }
});
