// `Markdown` of `session-agent/react`: how a model's text is rendered, and what it never produces.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";

const { Markdown, visibleInput } = await import("session-agent/react");

const html = (text) => renderToStaticMarkup(createElement(Markdown, { text }));

test("text_lists_code_and_emphasis_become_elements", () => {
  assert.equal(
    html("# Oslo\nIt **snows** _a lot_, `-3°`."),
    "<h3>Oslo</h3><p>It <strong>snows</strong> <em>a lot</em>, <code>-3°</code>.</p>",
  );
  assert.equal(html("1. one\n2. two\n\nafter"), '<ol start="1"><li>one</li><li>two</li></ol><p>after</p>');
  assert.equal(html("- a\n  - b\n- c"), "<ul><li><p>a</p><ul><li>b</li></ul></li><li>c</li></ul>");
  assert.equal(html("> said\n> twice"), "<blockquote><p>said\ntwice</p></blockquote>");
  assert.equal(
    html("```js\nlet a = '<b>';\n```\nend"),
    "<pre><code>let a = &#x27;&lt;b&gt;&#x27;;</code></pre><p>end</p>",
  );
  assert.equal(
    html("```\nan answer that is still being said"),
    "<pre><code>an answer that is still being said</code></pre>",
  );
  assert.equal(html("snake_case_name and 2 * 3 * 4 and \\*no\\*"), "<p>snake_case_name and 2 * 3 * 4 and *no*</p>");
});

test("a_link_may_be_http_https_or_mailto_only", () => {
  const rel = 'target="_blank" rel="noopener noreferrer nofollow"';
  assert.equal(html("[Oslo](https://oslo.no/a?b=1)"), `<p><a href="https://oslo.no/a?b=1" ${rel}>Oslo</a></p>`);
  assert.equal(html("See https://oslo.no."), `<p>See <a href="https://oslo.no/" ${rel}>https://oslo.no</a>.</p>`);
  assert.equal(html("[write](mailto:a@b.no)"), `<p><a href="mailto:a@b.no" ${rel}>write</a></p>`);
  for (const address of [
    "javascript:alert(1",
    "JaVaScRiPt:alert`1`",
    "data:text/html,x",
    "vbscript:x",
    "/local",
    "//evil.example",
    "file:///etc",
  ])
    assert.doesNotMatch(html(`[x](${address})`), /<a/);
});

test("html_is_shown_as_text_and_nothing_is_loaded", () => {
  const text = "<img src=x onerror=alert(1)> <script>alert(1)</script> ![i](https://evil.example/a.png) <https://a.no>";
  assert.doesNotMatch(html(text), /<(?!\/?(?:p|a)\b)/);
});

test("any_text_renders_quickly", () => {
  const shapes = [
    "*",
    "_",
    "`",
    "[",
    "](",
    "> ",
    "- ",
    "**a",
    "~~",
    "1. ",
    "[a](b",
    "``a`",
    "> - ",
    "\\",
    "http://",
    "# ",
    "  \n",
  ];
  for (const shape of shapes) {
    const text = shape.repeat(Math.floor(100_000 / shape.length));
    const from = performance.now();
    html(text);
    html(`${shape}\n`.repeat(20_000));
    const elapsedMs = performance.now() - from;
    assert.ok(elapsedMs < 20_000, `${JSON.stringify(shape)} took ${elapsedMs} ms`);
  }
});

test("invisible_characters_are_escaped_in_approvals", () => {
  assert.equal(visibleInput({ place: "No\u200bma \u202e!" }), '{"place":"No\\u{200B}ma \\u{202E}!"}');
});
