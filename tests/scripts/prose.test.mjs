// The prose check: which texts of each kind of file it reads, what its rules find, and that this
// repository has no findings.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { test } from "node:test";
import { coveredFiles, findings } from "../../scripts/prose.mjs";
import { findingsIn, RULES } from "../../scripts/prose/rules.mjs";
import { textsOf } from "../../scripts/prose/texts.mjs";
import { ROOT } from "../../scripts/paths.mjs";

const BAD = [
  "The prompt is rendered anew.",
  "The row stands in an index.",
  "The block holds 7 tokens.",
  "The receipt says what was erased.",
  "The service is told of the change.",
  "The model is asked once.",
  "The texts are kept for a week.",
  "The next look covers them.",
  "The page looks after its sockets.",
  "It is a strict door.",
  "This is the house's rule.",
  "Each district names those to its right.",
  "The user's words bear it out.",
  "A method that throws costs its own effect.",
  "The model's answer is a stranger's.",
  "The message was changed meanwhile.",
  "The entry is gone.",
  "A part was heard.",
  "It is the same to the letter.",
  "The turn goes on.",
  "A proposal can be taken back.",
  "A fork takes along its blocks.",
  "The row lies behind the cursor.",
  "The text beside the row.",
  "A model in place of a person.",
  "An id of yours is stored.",
  "A token for one session alone.",
  "Compact when there are so many tokens.",
  "The provider wants its tokens.",
  "A summary is no event.",
  "It has to be stored or refused.",
  "Of a failure: which.",
  "Who writes it pays for it.",
  "Session Agent takes those of ai 7.",
  "A field that can't be said to this model.",
  "The method gave no list.",
  "A rule that is nobody's.",
  "The bucket has no place for tags.",
  "The build failed (its reason is above).",
  "An answer of one's own.",
  "The caller shall retry.",
  "What was learnt today.",
  "A labelled text.",
  "The colour of a row.",
  "It summarises the text.",
  "The centre of the plot.",
  "A Websocket is closed.",
  "One durable object per user.",
  "The file name is stored.",
  "An e-mail arrives.",
  "Use a tool, e.g. a calculator.",
];

const GOOD = [
  "You can add a class of your own.",
  "Agents are created on first use.",
  "The answer is sent again.",
  "What a user says in one chat is in the prompt of the next.",
  "There is no session with this ID.",
  "The fact is no longer true.",
  "You don't have to do anything.",
  "Look for a missing comma, or look up the code.",
  "Visit the opera house or the library next door.",
  "If you need the graph, use it as a checkpointer.",
  "Each learning pass covers the events since the previous pass.",
  "One of them is open. Who is it?",
  "The model expects an array, and raises an exception otherwise.",
  "It runs on its own Durable Object over a WebSocket.",
];

test("each_rule_matches_its_examples", () => {
  for (const text of BAD) assert.ok(findingsIn(text).length > 0, text);
  const found = new Set(BAD.flatMap((text) => RULES.filter(({ pattern }) => pattern.test(text))));
  const unused = RULES.filter((rule) => !found.has(rule) && !/whatever|jsx/.test(rule.pattern.source));
  assert.deepEqual(
    unused.map(({ pattern }) => pattern.source),
    [],
  );
});

test("standard_english_has_no_findings", () => {
  for (const text of GOOD) assert.deepEqual(findingsIn(text), [], text);
});

test("markdown_is_checked_except_code_and_urls", () => {
  const source =
    "# A title\n\nFirst line\nof `code anew` and [a link](anew.md).\n\n```sh\nanew code\n```\n\n| a | b |\n";
  assert.deepEqual(textsOf("a.md", source), [
    { line: 1, text: "# A title" },
    { line: 3, text: "First line of `x` and [a link]." },
    { line: 10, text: "| a | b |" },
  ]);
});

test("scripts_are_checked_in_strings_templates_and_jsx", () => {
  const source = [
    "// A comment is anew.",
    'const a = "First text.";',
    "const b = `Second ${ok ? `an inner text` : 1} text.`;",
    "const c = /not a text/.test(a) ? 1 / 2 : x;",
    'if (kind === "take back") run({ do: "take back" });',
    "const d = (",
    "  <p>",
    "    Between the tags",
    "    of JSX.",
    "  </p>",
    ");",
  ].join("\n");
  assert.deepEqual(textsOf("a.tsx", source), [
    { line: 2, text: "First text." },
    { line: 3, text: "an inner text" },
    { line: 3, text: "Second {} text." },
    { line: 8, text: "Between the tags of JSX." },
  ]);
});

test("rust_is_checked_in_strings_outside_tests", () => {
  const source = [
    "// A comment is anew.",
    "/// A doc's text.",
    "fn a<'a>() -> char { '\"' }",
    'const A: &str = "First \\',
    '    text, `{a}` \\"of\\" it.";',
    'const B: &str = r#"Second "raw" text."#;',
    'const C: &str = "SELECT id FROM rows";',
    "#[cfg(test)]",
    "mod tests {",
    '    const D: &str = "Not this text.";',
    "}",
  ].join("\n");
  assert.deepEqual(textsOf("a.rs", source), [
    { line: 4, text: 'First text, `{}` "of" it.' },
    { line: 6, text: 'Second "raw" text.' },
  ]);
});

test("python_is_checked_in_strings_and_docstrings", () => {
  const source = 'def a():\n    """Returns a text."""\n    return f"A {b} text"  # anew\n';
  assert.deepEqual(textsOf("a.py", source), [
    { line: 2, text: "Returns a text." },
    { line: 3, text: "A {b} text" },
  ]);
});

test("every_covered_kind_of_file_has_texts", () => {
  const kinds = Map.groupBy(coveredFiles(), (path) => extname(path));
  for (const [kind, paths] of kinds) {
    const texts = paths.flatMap((path) => textsOf(path, readFileSync(join(ROOT, path), "utf8")));
    assert.ok(texts.length > 0, kind);
  }
});

test("this_repository_has_no_findings", () => {
  assert.deepEqual(
    findings().map(({ path, line, found }) => `${path}:${line} ${found}`),
    [],
  );
});
