// Access to the console: by keyboard, with a screen reader, on a phone, in dark mode, and with a
// credential.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, describe, test } from "node:test";
import { say, startModel } from "../workerd/model_server.mjs";
import { rendered, delayRequests, skip, startConsole, until } from "./browser.mjs";

const AXE = skip ? "" : await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SECRET = "the secret of this test, long enough";

/** Every view, and a text that is shown once the view is complete. */
const VIEWS = [
  ["", "New here?"],
  ["#/example", "Choose a session"],
  ["#/example/sessions/trip", "Walk on the roof"],
  ["#/example/sessions/trip/turns", "No turns yet"],
  ["#/example/sessions/trip/branches", "7 events, 2 branches"],
  ["#/example/sessions/trip/events", "Bring an umbrella."],
  ["#/example/sessions/trip/changes", "so far"],
  ["#/example/sessions/trip/context", "System prompt"],
  ["#/example/sessions/trip/memory", "No memory yet"],
  ["#/example/sessions/empty", "Start the conversation"],
  ["#/example/memory", "Likes window seats."],
  ["#/example/memory/memory", "Version 1 on the left"],
  ["#/example/memory/places", "walk on its roof"],
  ["#/example/memory/places?entry=opera", "the oldest stored version"],
  ["#/example/memory/guides", "What to pack"],
  ["#/example/activity", "Durable Object"],
  ["#/example/settings", "Step limit per turn"],
  ["#/exmaple/activity", "Did you mean"],
  ["#/read/sessions/said", "night train"],
  ["#/read/sessions/asked", "built-in demo"],
  ["#/read/sessions/asked/turns", "Contents of the last request"],
  ["#/read/sessions/asked/context", "Next request"],
  ["#/read/sessions/asked/changes", "What can you do?"],
  ["#/read/sessions/failed", "The turn failed."],
  ["#/read/sessions/failed/turns", "waiting for first token"],
  ["#/read/sessions/thread", "LangGraph thread"],
  ["#/read/activity", "Turn failed"],
  ["#/example/sessions/tirp", "There is no session"],
];

const MARKDOWN = `### Oslo

# By train

- [x] the [night train](https://example.com)
  1. ~~a seat~~ **a bed**

| day | °C |
|:-:|--:|
| Fri | \`4\` |

> It *rains*.

\`\`\`js
pack("umbrella");
\`\`\`
---
| another | table |
|--|--|
| a | b |`;

describe("access", { skip }, async () => {
  const site = skip ? null : await startConsole();
  after(() => site?.stop());

  if (!skip) {
    // The console creates its example once for all tests here.
    const page = await site.open({ after: () => {} }, "");
    await page.getByRole("button", { name: "Create an example" }).click();
    await page.getByText("Walk on the roof").waitFor();
    await page.context().close();
    await site.ask("example", "updateSession", { sessionId: "trip", tags: ["travel"], metadata: { channel: "web" } });
    await createData();
  }

  /**
   * Data that the example lacks: Markdown of all kinds, turns with a record, a thread of LangGraph.
   */
  async function createData() {
    const ask = (operation, input) => site.ask("read", operation, input);
    const question = { id: "q", role: "user", parts: [{ type: "text", text: "What can you do?" }] };
    await ask("createSession", { id: "said" });
    await ask("appendEvents", {
      sessionId: "said",
      events: [
        { action: "user_message", content: "Plan it." },
        { action: "agent_message", content: MARKDOWN },
      ],
    });
    await ask("runTurn", { sessionId: "asked", message: question });
    await ask("createSession", { id: "thread", metadata: { langgraph: "checkpoints", thread: "t", namespace: "" } });
    const checkpoint = { id: "c", metadata: 'json:{"source":"loop","step":1}', channels: ["count"] };
    await ask("appendEvents", {
      sessionId: "thread",
      events: [
        { action: "system_instruction", content: "json:1" },
        { action: "user_message", content: JSON.stringify(checkpoint) },
      ],
    });
    const failed = await site.server.call("read", "runTurn", {
      sessionId: "failed",
      message: question,
      model: "openai:nobody",
    });
    assert.notEqual(failed.status, 0);
  }

  /** The findings of axe. A script that the test injects does not belong to the page. */
  async function faults(page) {
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    return violations.map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join("; ")}`,
    );
  }

  for (const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["phone", { viewport: { width: 320, height: 640 } }],
  ]) {
    test(`axe_finds_no_problem_in_any_view_in_${name}`, async (t) => {
      // axe is injected past the page's policy, which would block it.
      const page = await site.open(t, "", { ...options, bypassCSP: true });
      for (const [hash, text] of VIEWS) {
        await page.goto(site.at(hash));
        if (hash !== "" || name !== "phone")
          await page
            .getByText(text)
            .first()
            .waitFor({ state: name === "phone" && hash === "#/example" ? "attached" : "visible" });
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${hash} is ${overflow} pixels wider than the screen`);
        assert.deepEqual(await faults(page), [], hash);
      }
    });
  }

  test("axe_finds_no_problem_in_dialogs_menus_search_and_editors", async (t) => {
    const page = await site.open(t, "#/example/sessions/trip", { bypassCSP: true });
    await page.getByText("Walk on the roof").waitFor();
    await page.getByLabel("Session actions").click();
    assert.deepEqual(await faults(page), [], "menu");
    for (const [name, text] of [
      ["Name and tags", "One per line."],
      ["Compact", "Compact conversation"],
      ["Export", "The file is ready"],
    ]) {
      if ((await page.getByRole("button", { name, exact: true }).count()) === 0)
        await page.getByLabel("Session actions").click();
      await page.getByRole("button", { name, exact: true }).click();
      await page.getByText(text).waitFor();
      assert.deepEqual(await faults(page), [], name);
      await page.keyboard.press("Escape");
    }
    for (const name of ["New session", "Import session", "Filter sessions"]) {
      await page.getByRole("button", { name }).click();
      await page.getByRole("dialog").waitFor();
      assert.deepEqual(await faults(page), [], name);
      await page.keyboard.press("Escape");
    }
    await page.getByRole("button", { name: "Edit and resend" }).first().click();
    assert.deepEqual(await faults(page), [], "editor");
    await page.getByText("weather").first().click();
    assert.deepEqual(await faults(page), [], "tool call");
    await page.getByLabel("Search all sessions").fill("rain");
    await page.keyboard.press("Enter");
    await page.getByText(/\d results? for/).waitFor();
    assert.deepEqual(await faults(page), [], "search");
  });

  test("autofocused_fields_have_the_focus_when_they_appear", async (t) => {
    const page = await site.open(t, "");
    await page.addInitScript(() => {
      new MutationObserver((_, observer) => {
        const field = document.querySelector("input");
        if (field === null) return;
        window.hadFocus = document.activeElement === field;
        observer.disconnect();
      }).observe(document, { childList: true, subtree: true });
    });
    await page.reload();
    await page.getByLabel("Agent", { exact: true }).waitFor();
    assert.equal(await page.evaluate(() => window.hadFocus), true);
  });

  test("everything_works_by_keyboard_with_visible_focus", async (t) => {
    const page = await site.open(t, "");
    const press = async (key, times = 1) => {
      for (let n = 0; n < times; n += 1) await page.keyboard.press(key);
    };
    /** Presses Tab until the element with this name has the focus. */
    const tabTo = async (name, key = "Tab") => {
      for (let n = 0; n < 60; n += 1) {
        await page.keyboard.press(key);
        const found = await page.evaluate(() => {
          const element = document.activeElement;
          const style = getComputedStyle(element);
          return {
            name: element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent ?? element.textContent,
            outline: style.outlineStyle,
            width: style.outlineWidth,
          };
        });
        if (found.name?.trim().startsWith(name)) {
          assert.notEqual(found.outline, "none", `the focus on ${name} is seen`);
          return;
        }
      }
      assert.fail(`no way with Tab to ${name}`);
    };
    await page.getByLabel("Agent", { exact: true }).waitFor();
    await page.keyboard.type("keyboard");
    await press("Enter");
    await page.getByRole("button", { name: "New session" }).waitFor();
    await tabTo("New session");
    await press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.type("By keyboard");
    await press("Enter");
    await page.getByRole("heading", { name: "By keyboard" }).waitFor();
    await tabTo("Message");
    await page.keyboard.type("Hello!");
    await press("Enter");
    await page.getByText("built-in demo").waitFor();
    await page.getByRole("button", { name: "Regenerate" }).waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    await tabTo("Regenerate", "Shift+Tab");
    await press("Enter");
    await page.getByRole("img", { name: "Branch 2 of 2" }).waitFor();
    await tabTo("Session actions", "Shift+Tab");
    await press("Enter");
    await tabTo("Name and tags");
    await press("Enter");
    await page.getByRole("dialog").waitFor();
    await press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    // The focus returns in a task after the one that removes the dialog.
    await page.waitForFunction(() => document.activeElement.getAttribute("aria-label") === "Session actions");
    await press("Enter");
    await tabTo("Delete");
    await press("Enter");
    await page.getByRole("button", { name: "Undo" }).waitFor();
    await tabTo("Undo");
    await press("Enter");
    const { sessions } = await site.ask("keyboard", "listSessions");
    const answers = await site.ask("keyboard", "loadEvents", { sessionId: sessions[0].id });
    assert.deepEqual(
      answers.map(({ action }) => action),
      ["user_message", "agent_message", "agent_message"],
    );
  });

  test("ctrl_k_navigates_anywhere_and_other_keys_do_what_the_help_lists", async (t) => {
    const page = await site.open(t, "#/example/sessions/trip", { bypassCSP: true });
    await page.getByText("Walk on the roof").waitFor();
    await page.keyboard.press("Control+k");
    // Typing immediately goes into the field.
    await page.keyboard.type("mem");
    const goto = page.getByRole("combobox", { name: "Destination" });
    assert.equal(await goto.inputValue(), "mem");
    assert.deepEqual(await faults(page), [], "go to");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash === "#/example/memory");
    assert.equal(await page.getByRole("dialog").count(), 0);
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
    assert.deepEqual(await faults(page), [], "keys");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("s");
    await page.getByRole("heading", { name: "Use the API" }).waitFor();
    await page.getByText("rpc/getBlocks").waitFor();
    assert.deepEqual(await faults(page), [], "snippet");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await page.keyboard.type("umbrel");
    // While the reader types, results are shown, and keys go to the field.
    await page.getByText(/\d results? for/).waitFor();
    await page.keyboard.type("?k/s");
    assert.equal(await page.getByLabel("Search all sessions").inputValue(), "umbrel?k/s");
    assert.equal(await page.getByRole("dialog").count(), 0);
  });

  test("a_mistyped_agent_or_session_suggests_existing_ones", async (t) => {
    const page = await site.open(t, "#/example");
    await page.getByRole("link", { name: /A trip to Oslo/ }).waitFor();
    for (const view of ["", "/sessions/tirp", "/memory", "/activity", "/settings", "/sessions/trip/turns"]) {
      await page.goto(site.at(`#/exmaple${view}`));
      await page.getByText("There is no agent called").waitFor();
      await page.waitForLoadState("networkidle");
    }
    await page.getByLabel("Search all sessions").fill("anything");
    await page.getByText("0 results for").waitFor();
    assert.deepEqual(
      await site.server.sql("exmaple", "SELECT name FROM sqlite_master WHERE name GLOB 'cf_agents_*'"),
      [],
    );
    // The misspelled agent is not remembered, and one click leads to the intended one.
    await page.locator(".missing").getByRole("link", { name: "example", exact: true }).click();
    await page.getByRole("link", { name: /A trip to Oslo/ }).waitFor();
    await page.goto(site.at("#/"));
    await page.getByText("Recently opened").waitFor();
    assert.equal(await page.getByRole("link", { name: "exmaple" }).count(), 0);
    await page.goto(site.at("#/example/sessions/tirp"));
    await page.getByText("There is no session").waitFor();
    await page.locator(".missing").getByRole("link", { name: "A trip to Oslo" }).click();
    await page.getByText("Walk on the roof").waitFor();
    assert.equal(await site.ask("example", "getSession", { sessionId: "tirp" }), null);
  });

  test("a_phone_scrolls_to_the_open_tab", async (t) => {
    const page = await site.open(t, "#/example/sessions/trip/memory", { viewport: { width: 320, height: 640 } });
    await page.getByText("No memory yet").waitFor();
    const tab = page.getByRole("link", { name: "Memory", exact: true }).last();
    const { x, width } = await tab.boundingBox();
    assert.ok(x >= 0 && x + width <= 320, `the tab stands at ${x}`);
  });

  test("a_phone_scrolls_to_the_open_section_of_manage", async (t) => {
    const page = await site.open(t, "#/example/manage/agents", { viewport: { width: 390, height: 844 } });
    const tab = page.getByRole("link", { name: "Agents", exact: true });
    await tab.waitFor();
    await until(
      () => tab.boundingBox(),
      ({ x, width }) => x >= 0 && x + width <= 390,
    );
  });

  test("rarely_used_views_are_loaded_on_demand", async (t) => {
    const page = await site.open(t, "#/example/sessions/trip");
    const loaded = [];
    page.on("request", (request) => request.url().endsWith(".js") && loaded.push(request.url()));
    await page.reload();
    await page.getByText("Walk on the roof").waitFor();
    await page.waitForLoadState("networkidle");
    assert.deepEqual(
      loaded.filter((url) => url.includes("further")),
      [],
    );
    // A newer console has other files: the page reports the update and reloads.
    await page.route("**/console-further-*.js", (route) => route.fulfill({ status: 404, body: "" }));
    await page.goto(site.at("#/example/settings"));
    await page.getByText("This part of the console didn't load.").waitFor();
    await page.unroute("**/console-further-*.js");
    await page.getByRole("button", { name: "Reload page" }).click();
    await page.getByText("Step limit per turn").waitFor();
  });

  test("a_phone_navigates_from_the_list_to_a_session_and_back", async (t) => {
    const page = await site.open(t, "#/example", { viewport: { width: 320, height: 640 }, hasTouch: true });
    await page.getByRole("link", { name: /A trip to Oslo/ }).tap();
    await page.getByText("Walk on the roof").waitFor();
    assert.equal(await page.getByLabel("Search all sessions").isVisible(), false);
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await page.getByRole("link", { name: "All sessions" }).tap();
    await page.getByLabel("Search all sessions").waitFor();
  });

  test("the_secret_is_requested_once_and_stored_for_the_tab_only", async (t) => {
    const locked = await startConsole({ vars: { MODEL: "demo" }, secrets: { SESSION_AGENT_TOKEN: SECRET } });
    try {
      const page = await locked.open(t, "#/locked", { bypassCSP: true });
      await page.getByRole("heading", { name: "Session Agent" }).waitFor();
      assert.deepEqual(await faults(page), []);
      await page.getByLabel("Secret or token").fill("wrong, and also long enough to be one");
      await page.keyboard.press("Enter");
      await page.getByText("not accepted").waitFor();
      await page.getByLabel("Secret or token").fill(SECRET);
      await page.keyboard.press("Enter");
      await page.getByText("No sessions yet").waitFor();
      await page.reload();
      await page.getByText("No sessions yet").waitFor();
      const stored = await page.evaluate(() => [JSON.stringify({ ...localStorage }), document.cookie, location.href]);
      assert.ok(!stored.join().includes(SECRET));

      const other = await page.context().newPage();
      await other.goto(locked.at("#/locked"));
      await other.getByLabel("Secret or token").waitFor();

      // A token of one session sees only that session.
      const init = { headers: { authorization: `Bearer ${SECRET}` } };
      for (const id of ["mine", "theirs"])
        assert.equal((await locked.server.call("locked", "createSession", { id, name: id }, init)).status, 200);
      const { body } = await locked.server.call("locked", "mintToken", { sessionId: "mine", expiresIn: 600 }, init);
      await other.getByLabel("Secret or token").fill(body.token);
      await other.keyboard.press("Enter");
      await other.getByRole("link", { name: /^mine/ }).waitFor();
      assert.equal(await other.getByRole("link", { name: /^theirs/ }).count(), 0);

      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("Secret or token").waitFor();
      await page.reload();
      await page.getByLabel("Secret or token").waitFor();
    } finally {
      await locked.stop();
    }
  });

  test("a_stale_401_does_not_ask_for_the_secret_again", async (t) => {
    const locked = await startConsole({ vars: { MODEL: "demo" }, secrets: { SESSION_AGENT_TOKEN: SECRET } });
    try {
      const page = await locked.open(t, "");
      const late = await delayRequests(
        page,
        "**/rpc/listSessions",
        (request) => request.headers().authorization === undefined,
      );
      await page.goto(locked.at("#/late/sessions/s"));
      await late.arrived;
      await page.getByLabel("Secret or token").fill(SECRET);
      await page.keyboard.press("Enter");
      await page.getByText("Start the conversation").waitFor();
      const isRefused = page
        .waitForResponse((response) => response.status() === 401)
        .then((response) => response.finished());
      late.open();
      await isRefused;
      await rendered(page);
      assert.equal(await page.getByLabel("Secret or token").count(), 0);
      assert.equal(await page.getByText("Start the conversation").count(), 1);
    } finally {
      await locked.stop();
    }
  });

  test("with_a_chat_token_the_page_offers_what_it_allows", async (t) => {
    const model = await startModel();
    const locked = await startConsole({
      vars: { MODEL: "openai:test", OPENAI_BASE_URL: model.url },
      secrets: { SESSION_AGENT_TOKEN: SECRET, OPENAI_API_KEY: "a key" },
    });
    try {
      const init = { headers: { authorization: `Bearer ${SECRET}` } };
      const ask = async (operation, input) => {
        const { status, body } = await locked.server.call("guest", operation, input, init);
        assert.equal(status, 200, JSON.stringify(body));
        return body;
      };
      for (const id of ["mine", "theirs"]) await ask("createSession", { id, name: `Session ${id}` });
      await ask("appendEvents", {
        sessionId: "mine",
        events: [
          { id: "q", action: "user_message", content: "Rain?" },
          { id: "a", action: "agent_message", content: "A little." },
          { id: "b", parentId: "q", action: "agent_message", content: "None." },
        ],
      });
      const { token } = await ask("mintToken", { preset: "chat", sessionId: "mine", expiresIn: 600 });
      const page = await locked.open(t, "#/guest", { bypassCSP: true });
      await page.getByLabel("Secret or token").fill(token);
      await page.keyboard.press("Enter");
      await page.getByText("Your token is limited to one session.").waitFor();
      assert.deepEqual(await faults(page), [], "list");
      assert.equal(await page.getByText("Session theirs").count(), 0);
      await page.getByRole("link", { name: /^Session mine/ }).click();
      await page.getByText("None.").waitFor();
      await page.getByRole("img", { name: "Branch 2 of 2" }).waitFor();
      assert.deepEqual(await faults(page), [], "conversation");

      // It chats, regenerates an answer, waits and stops.
      model.next(say("A cloud."), say("Two clouds."));
      await page.getByRole("textbox", { name: "Message" }).fill("Clouds?");
      await page.keyboard.press("Enter");
      await page.getByText("A cloud.").waitFor();
      await page.getByRole("button", { name: "Send", exact: true }).waitFor();
      await page.getByRole("button", { name: "Regenerate" }).last().click();
      await page.getByText("Two clouds.").waitFor();
      await page.getByRole("button", { name: "Send", exact: true }).waitFor();
      const texts = (await ask("loadEvents", { sessionId: "mine" })).map(({ content }) => content);
      assert.deepEqual(texts, ["Rain?", "A little.", "None.", "Clouds?", "A cloud.", "Two clouds."]);
      await page.getByLabel("Search all sessions").fill("clouds");
      await page.keyboard.press("Enter");
      await page.getByText(/\d results? for/).waitFor();

      // Features that the token does not allow are not shown.
      for (const name of ["New session", "Import session", "Fork", "Branch before", "Session actions"])
        assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
      const links = async (name) => await page.getByRole("navigation", { name }).getByRole("link").allInnerTexts();
      assert.deepEqual(
        (await links("Agent")).map((text) => text.trim()),
        ["Sessions", "Activity"],
      );
      assert.deepEqual(await links("Views of this session"), ["Conversation", "Branches", "Events", "Changes"]);
      assert.equal(await page.getByText("Agent's model").count(), 0);
      await page.getByLabel("More for this message").first().click();
      assert.deepEqual(
        (await page.locator(".menu[open] li").allInnerTexts()).map((text) => text.trim()),
        ["Copy text"],
      );

      // The views that it offers are complete.
      for (const [tab, text] of [
        ["branches", "3 branches"],
        ["events", "A little."],
        ["changes", "so far"],
      ]) {
        await page.goto(locked.at(`#/guest/sessions/mine/${tab}`));
        await page.getByText(text).first().waitFor();
        assert.equal(await page.getByRole("alert").count(), 0, tab);
      }
      await page.goto(locked.at("#/guest/activity"));
      await page.getByText("Your token can't read everything on this page.").waitFor();
      assert.equal(await page.getByRole("alert").count(), 0, "activity");
      assert.deepEqual(await faults(page), [], "activity");

      // Navigation to another view by its URL is announced in a sentence.
      for (const hash of ["settings", "memory", "sessions/mine/context", "sessions/mine/memory", "sessions/theirs"]) {
        await page.goto(locked.at(`#/guest/${hash}`));
        await page.getByText("Your token doesn't allow this.").first().waitFor();
        assert.deepEqual(await faults(page), [], hash);
      }
      await page.getByRole("button", { name: "Sign in again" }).first().click();
      await page.getByLabel("Secret or token").fill(SECRET);
      await page.keyboard.press("Enter");
      await page.getByRole("link", { name: /^Session theirs/ }).waitFor();
      await page.getByRole("button", { name: "New session" }).waitFor();
    } finally {
      await locked.stop();
      await model.stop();
    }
  });

  test("with_a_read_token_the_page_offers_no_writes", async (t) => {
    const locked = await startConsole({ vars: { MODEL: "demo" }, secrets: { SESSION_AGENT_TOKEN: SECRET } });
    try {
      const init = { headers: { authorization: `Bearer ${SECRET}` } };
      const ask = async (operation, input) => (await locked.server.call("reader", operation, input, init)).body;
      await ask("createSession", { id: "s", name: "Read me" });
      await ask("appendEvents", { sessionId: "s", events: [{ action: "user_message", content: "Written before." }] });
      await ask("defineBlock", { label: "notes", kind: "writable", defaultContent: "Known." });
      const { token } = await ask("mintToken", { preset: "read", expiresIn: 600 });
      const page = await locked.open(t, "#/reader/sessions/s", { bypassCSP: true });
      await page.getByLabel("Secret or token").fill(token);
      await page.keyboard.press("Enter");
      await page.getByText("Written before.").waitFor();
      await page.getByText("Your token can read this conversation").waitFor();
      assert.equal(await page.getByRole("textbox", { name: "Message" }).count(), 0);
      await page.goto(locked.at("#/reader/memory/notes"));
      await page.getByRole("region", { name: "Text of notes" }).getByText("Known.").waitFor();
      for (const name of ["Save", "Remove", "Define block"])
        assert.equal(await page.getByRole("button", { name }).count(), 0, name);
      await page.goto(locked.at("#/reader/settings"));
      await page.getByText("Your token can only read them.").waitFor();
      assert.equal(await page.getByLabel("Temperature").isDisabled(), true);
      assert.equal(await page.getByRole("button", { name: "Save" }).count(), 0);
      assert.deepEqual(await faults(page), []);
    } finally {
      await locked.stop();
    }
  });

  test("a_slow_network_shows_a_loading_state_and_then_the_data", async (t) => {
    const page = await site.open(t, "");
    const session = await page.context().newCDPSession(page);
    await session.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: 800,
      downloadThroughput: 40_000,
      uploadThroughput: 20_000,
    });
    const messages = await delayRequests(page, "**/rpc/getHistory");
    await page.evaluate((hash) => (location.hash = hash), "#/example/sessions/trip");
    await page.getByText("Loading messages").waitFor();
    messages.open();
    await page.getByText("Walk on the roof").waitFor();
  });

  test("a_lost_connection_is_reported_and_the_page_recovers", async (t) => {
    await site.ask("lost", "createSession", { id: "s", name: "Kept" });
    await site.ask("lost", "appendEvents", {
      sessionId: "s",
      events: [{ action: "user_message", content: "Before." }],
    });
    const page = await site.open(t, "#/lost/sessions/s");
    await page.getByText("Before.").waitFor();
    await page.context().setOffline(true);
    await page.getByRole("textbox", { name: "Message" }).fill("Written without a connection.");
    await page.keyboard.press("Enter");
    await page.getByText("Connection lost.").waitFor();
    await until(
      () => page.getByRole("textbox", { name: "Message" }).inputValue(),
      (text) => text === "Written without a connection.",
    );
    await page.getByRole("link", { name: "Events", exact: true }).click();
    await page.getByRole("alert").nth(1).waitFor();
    await site.ask("lost", "appendEvents", {
      sessionId: "s",
      events: [{ action: "agent_message", content: "Meanwhile." }],
    });
    await page.context().setOffline(false);
    await page.getByText("Connection lost.").waitFor({ state: "detached" });
    await page.getByText("Meanwhile.").waitFor();
    await page.getByRole("link", { name: "Conversation", exact: true }).click();
    await page.getByText("Meanwhile.").waitFor();
  });

  test("an_answer_whose_connection_breaks_is_shown_whole_afterwards", async (t) => {
    const page = await site.open(t, "#/broken/sessions/s");
    await page.route("**/chat", async (route) => {
      const response = await route.fetch();
      const body = await response.text();
      // The first half of the answer, without an end.
      await route.fulfill({ response, body: body.slice(0, body.indexOf("\n\n", body.length / 2) + 2) });
    });
    const history = await delayRequests(page, "**/rpc/getHistory", (request) => request.postDataJSON().limit < 100);
    await page.getByRole("textbox", { name: "Message" }).fill("Hello!");
    await page.keyboard.press("Enter");
    // The received part stays until the answer is complete.
    await history.arrived;
    await page.getByRole("article").nth(1).waitFor();
    history.open();
    await page.getByText("what do you remember").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    assert.equal((await site.ask("broken", "getHistory", { sessionId: "s" })).messages.length, 2);
    assert.equal(await page.getByRole("article").count(), 2);
  });
});
