// Hostile stored data is displayed harmlessly.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { skip, startConsole } from "./browser.mjs";

const MARKUP = [
  "<script>window.hacked = 1</script>",
  "<img src=x onerror='window.hacked = 2'>",
  "<svg onload='window.hacked = 3'></svg><iframe srcdoc='<script>top.hacked = 4</script>'></iframe>",
  "</p></article><style>body { display: none }</style><a href='javascript:window.hacked = 5'>click</a>",
  "```html\n<script>window.hacked = 6</script>\n```\n<b onmouseover='window.hacked = 7'>over</b>",
  "{{constructor.constructor('window.hacked = 8')()}} ${window.hacked = 9}",
];
const NAMES = [
  "\u0000\u0007\u001b[31m",
  "\u202eevil\u202c",
  "<img src=x onerror='window.hacked = 10'>",
  "a\nb\tc",
  "%2F..%2F",
  "שלום",
];
const HOSTS = "https://tracker.example/pixel.png";
const LONG = 1_000_000;

describe("hostile", { skip }, async () => {
  const site = skip ? null : await startConsole();
  after(() => site?.stop());
  const ask = (...given) => site.ask(...given);

  async function unharmed(page) {
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(
      await page
        .locator(
          "#console script, #console iframe, #console style, #console [onerror], #console [onload], #console [onmouseover]",
        )
        .count(),
      0,
    );
    assert.equal(await page.locator("#console [href^='javascript']").count(), 0);
    assert.equal(await page.locator("#main, main").first().isVisible(), true);
  }

  test("markup_is_shown_as_text_in_every_view", async (t) => {
    await ask("markup", "createSession", { id: "s", name: MARKUP[1] });
    for (const [n, text] of MARKUP.entries()) {
      await ask("markup", "appendEvents", {
        sessionId: "s",
        events: [
          { action: "user_message", content: text, metadata: { [text]: text } },
          { action: "tool_call_request", toolCalls: [{ id: `c${n}`, name: "look<img>", arguments: { [text]: text } }] },
          { action: "tool_result", toolCallId: `c${n}`, toolName: "look<img>", content: text, isError: n % 2 === 0 },
          { action: "agent_message", content: text },
        ],
      });
    }
    await ask("markup", "defineBlock", { label: "notes", kind: "writable", description: MARKUP[1] });
    for (const text of MARKUP) await ask("markup", "setBlock", { label: "notes", content: text, reason: text });
    await ask("markup", "defineBlock", { label: "found", kind: "searchable" });
    await ask("markup", "setEntry", { label: "found", key: MARKUP[1], title: MARKUP[0], content: MARKUP[2] });
    const page = await site.open(t, "#/markup/sessions/s");
    await page.getByRole("article").first().waitFor();
    await page.getByRole("region", { name: "Messages" }).evaluate((list) => (list.scrollTop = 0));
    await page.getByText(MARKUP[0], { exact: true }).first().waitFor();
    await unharmed(page);
    for (const tab of ["branches", "events", "changes", "context", "memory"]) {
      await page.goto(site.at(`#/markup/sessions/s/${tab}`));
      await page.locator("main h1, main h2").first().waitFor();
      await unharmed(page);
    }
    for (const view of ["memory", "memory/notes", "memory/found", "activity", "settings"]) {
      await page.goto(site.at(`#/markup/${view}`));
      await page.locator("main h1, main h2").first().waitFor();
      await unharmed(page);
    }
    await page.getByRole("searchbox", { name: "Search all sessions" }).fill("hacked");
    await page.keyboard.press("Enter");
    await page.getByText(/\d+ results for/).waitFor();
    assert.ok((await page.locator(".found mark").allTextContents()).every((text) => text === "hacked"));
    await unharmed(page);
  });

  test("names_with_any_characters_are_shown_and_link_correctly", async (t) => {
    for (const [n, name] of NAMES.entries()) {
      await ask("names", "createSession", { id: `id ${n} /?#%`, name });
      await ask("names", "appendEvents", {
        sessionId: `id ${n} /?#%`,
        events: [{ action: "user_message", content: `This is number ${n}.` }],
      });
    }
    const page = await site.open(t, "#/names");
    const links = page.getByRole("region", { name: "All sessions" }).getByRole("link");
    await links.nth(NAMES.length - 1).waitFor();
    const shown = await links.locator(".name").allTextContents();
    for (const text of shown) assert.doesNotMatch(text, /[\u0000-\u001f\u202a-\u202e]/);
    assert.ok(shown.includes("␀␇␛[31m") && shown.includes("⟨U+202E⟩evil⟨U+202C⟩") && shown.includes("a␊b␉c"));
    for (const [n] of NAMES.entries()) {
      await page.goto(site.at(`#/names/sessions/${encodeURIComponent(`id ${n} /?#%`)}`));
      await page.getByText(`This is number ${n}.`).waitFor();
    }
    await unharmed(page);
    // The agent itself refuses control characters in its name.
    const strange = "\u202e/?#%é";
    await ask(strange, "createSession", { id: "s", name: "In a strange agent" });
    await page.goto(site.at(`#/${encodeURIComponent(strange)}`));
    await page.getByRole("link", { name: /In a strange agent/ }).waitFor();
    assert.equal(await page.locator(".brand b").innerText(), "⟨U+202E⟩/?#%é");
  });

  test("right_to_left_text_does_not_affect_its_surroundings", async (t) => {
    await ask("rtl", "createSession", { id: "s" });
    await ask("rtl", "appendEvents", {
      sessionId: "s",
      events: [
        { action: "user_message", content: "\u202eabc\n\u2067שלום עולם\u2069" },
        { action: "agent_message", content: "مرحبا" },
      ],
    });
    const page = await site.open(t, "#/rtl/sessions/s");
    await page.getByText("مرحبا").waitFor();
    assert.ok((await page.getByRole("article").first().innerText()).includes("⟨U+202E⟩abc"));
    const [text, actions] = await page
      .getByRole("article")
      .first()
      .evaluate((message) =>
        [message.querySelector("header b"), message.querySelector(".message-actions")].map(
          (element) => element.getBoundingClientRect().x,
        ),
      );
    assert.ok(text < actions, "the header reads from left to right");
  });

  test("embedded_media_is_shown_and_remote_media_is_a_link", async (t) => {
    const pixel =
      "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const svg = `data:image/svg+xml,${encodeURIComponent("<svg xmlns='http://www.w3.org/2000/svg' onload='top.hacked = 11'><script>top.hacked = 12</script></svg>")}`;
    const file = (url, mediaType, filename) => ({ type: "file", url, mediaType, filename });
    await ask("media", "createSession", { id: "s" });
    await ask("media", "appendMessage", {
      sessionId: "s",
      message: {
        id: "m",
        role: "user",
        parts: [
          file(pixel, "image/png", "A pixel"),
          file(svg, "image/svg+xml", "A drawing"),
          file(HOSTS, "image/png", "Elsewhere"),
          file("javascript:window.hacked = 13", "image/png", "No address"),
          file("data:text/html,<script>top.hacked = 14</script>", "text/html", "page.html"),
        ],
      },
    });
    const page = await site.open(t, "#/media/sessions/s");
    await page.getByRole("img", { name: "A pixel" }).waitFor();
    assert.equal(
      await page
        .getByRole("img", { name: "A pixel" })
        .evaluate((image) => image.decode().then(() => image.naturalWidth)),
      1,
    );
    assert.equal(await page.getByRole("link", { name: "Elsewhere" }).getAttribute("href"), HOSTS);
    assert.match(await page.getByRole("link", { name: "Elsewhere" }).getAttribute("rel"), /noopener noreferrer/);
    assert.equal(await page.getByRole("link", { name: "No address" }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "page.html" }).getAttribute("download"), "page.html");
    await unharmed(page);
  });

  test("a_one_megabyte_message_is_rendered_in_chunks", async (t) => {
    await ask("large", "createSession", { id: "s" });
    await ask("large", "appendEvents", {
      sessionId: "s",
      events: [
        { action: "user_message", content: `${"word ".repeat(LONG / 5)}the end` },
        { action: "agent_message", content: "```".repeat(LONG / 10) },
      ],
    });
    const page = await site.open(t, "#/large/sessions/s");
    await page
      .getByRole("button", { name: /^Show more/ })
      .first()
      .waitFor();
    const characters = await page.getByRole("region", { name: "Messages" }).evaluate((list) => list.textContent.length);
    assert.ok(characters < 60_000, `${characters} characters are in the page`);
    await page.getByRole("region", { name: "Messages" }).focus();
    await page.keyboard.press("Home");
    await page.getByText("word word").first().waitFor();
    for (let n = 0; n < 10; n += 1)
      await page
        .getByRole("article")
        .first()
        .getByRole("button", { name: /^Show more/ })
        .evaluate((button) => button.click());
    await page
      .getByRole("article")
      .first()
      .getByRole("button", { name: /^Show more/ })
      .waitFor({ state: "detached" });
    assert.ok((await page.getByRole("article").first().textContent()).endsWith("the end"));
  });

  test("corrupt_messages_and_parts_do_no_harm", async (t) => {
    await ask("damaged", "createSession", { id: "s" });
    const parts = [
      { type: "text", text: "Whole." },
      { type: "tool-", state: 5, input: null },
      { type: "file" },
      { type: "data-x", data: { deep: [[[[]]]] } },
      { type: "source-url", url: "javascript:1", title: "No link" },
      { type: "reasoning", text: "Hm." },
    ];
    await ask("damaged", "appendMessage", {
      sessionId: "s",
      message: { id: "m", role: "assistant", parts, createdAt: "yesterday" },
    });
    const page = await site.open(t, "#/damaged/sessions/s");
    await page.getByText("Whole.").waitFor();
    await page.getByText("No link").waitFor();
    assert.equal(await page.getByRole("link", { name: "No link" }).count(), 0);
    await unharmed(page);
  });
});
