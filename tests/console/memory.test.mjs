// Memory in the console: blocks, versions, entries, documents, and the rendered prompt.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { rendered, delayRequests, skip, startConsole, until } from "./browser.mjs";

describe("memory", { skip }, async () => {
  const site = skip
    ? null
    : await startConsole({ vars: { AUTH: "open", MODEL: "demo", TOOL_ORIGINS: "https://tools.example.com" } });
  after(() => site?.stop());
  const ask = (...given) => site.ask(...given);

  test("a_block_is_defined_edited_compared_and_reverted", async (t) => {
    const page = await site.open(t, "#/blocks/memory");
    await page.getByRole("button", { name: "Define block" }).click();
    await page.getByLabel("Label").fill("notes");
    await page.getByLabel("Description").fill("What was noticed");
    await page.getByLabel("Token limit").fill("100");
    await page.getByRole("dialog").getByRole("button", { name: "Define" }).click();
    await page.getByRole("button", { name: /^notes/ }).click();
    for (const [text, reason] of [
      ["One.\nTwo.", "first"],
      ["One.\nThree.", "second"],
    ]) {
      await page.getByLabel("Text", { exact: true }).fill(text);
      await page.getByLabel("Reason").fill(reason);
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: new RegExp(reason) }).waitFor();
    }
    assert.equal((await ask("blocks", "getBlock", { label: "notes" })).content, "One.\nThree.");
    assert.deepEqual(await page.locator(".diff del").allTextContents(), ["Two."]);
    assert.deepEqual(await page.locator(".diff ins").allTextContents(), ["Three."]);
    assert.equal(await page.getByRole("meter").getAttribute("aria-valuemax"), "100");

    await page.getByRole("button", { name: "Restore version 1" }).click();
    await page.getByText("Restored version 1 as a new version.").waitFor();
    const block = await ask("blocks", "getBlock", { label: "notes" });
    assert.deepEqual([block.content, block.version], ["One.\nTwo.", 3]);
    const { versions } = await ask("blocks", "getBlockVersions", { label: "notes" });
    assert.deepEqual(versions.map(({ reason }) => reason).slice(-2), ["second", "first"]);

    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByText("No memory yet").waitFor();
    assert.equal(await ask("blocks", "getBlock", { label: "notes" }), null);
  });

  test("a_stale_write_overwrites_nothing", async (t) => {
    await ask("raced", "defineBlock", { label: "notes", kind: "writable" });
    const page = await site.open(t, "#/raced/memory/notes");
    await page.getByLabel("Text", { exact: true }).fill("Mine.");
    await ask("raced", "setBlock", { label: "notes", content: "Theirs." });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The block was changed by someone else").waitFor();
    assert.equal((await ask("raced", "getBlock", { label: "notes" })).content, "Theirs.");
    assert.equal(await page.getByLabel("Text", { exact: true }).inputValue(), "Mine.");
  });

  test("entries_are_added_found_changed_and_deleted", async (t) => {
    await ask("entries", "defineBlock", { label: "places", kind: "searchable" });
    const page = await site.open(t, "#/entries/memory/places");
    await page.getByRole("button", { name: "Add entry" }).click();
    await page.getByLabel("Key").fill("opera");
    await page.getByLabel("Title").fill("Opera house");
    await page.getByRole("dialog").getByLabel("Text").fill("You can walk on its roof.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("You can walk on its roof.").waitFor();
    await page.getByLabel("Search entries").fill("roofs");
    await page.keyboard.press("Enter");
    await page.getByText("1 result").waitFor();
    assert.deepEqual(await page.locator(".entry mark").allTextContents(), ["roof"]);
    await page.getByLabel("Search entries").fill("");
    await page.getByRole("button", { name: "Change opera" }).click();
    await page.getByRole("dialog").getByLabel("Text").fill("Closed.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Closed.").waitFor();
    assert.deepEqual(
      (await ask("entries", "listEntries", { label: "places" })).entries.map(({ key, content }) => [key, content]),
      [["opera", "Closed."]],
    );
    await page.getByRole("button", { name: "Delete opera" }).click();
    await page.getByText("No entries yet").waitFor();
    assert.deepEqual((await ask("entries", "listEntries", { label: "places" })).entries, []);
  });

  test("late_entries_and_hits_are_not_shown_in_another_view", async (t) => {
    for (const label of ["first", "second"]) {
      await ask("late", "defineBlock", { label, kind: "searchable" });
      await ask("late", "setEntry", { label, key: "k", content: `Of the ${label} block.` });
    }
    const page = await site.open(t, "");
    const listing = await delayRequests(
      page,
      "**/rpc/listEntries",
      (request) => request.postDataJSON().label === "first",
    );
    await page.goto(site.at("#/late/memory/first"));
    await listing.arrived;
    await page.goto(site.at("#/late/memory/second"));
    await page.getByText("Of the second block.").waitFor();
    const isListed = page.waitForResponse("**/rpc/listEntries").then((response) => response.finished());
    listing.open();
    await isListed;
    const searching = await delayRequests(page, "**/rpc/searchContext");
    await page.getByLabel("Search entries").fill("block");
    await page.keyboard.press("Enter");
    await searching.arrived;
    await page.getByLabel("Search entries").fill("");
    const isFound = page.waitForResponse("**/rpc/searchContext").then((response) => response.finished());
    searching.open();
    await isFound;
    await rendered(page);
    assert.deepEqual(
      [await page.getByText("1 result").count(), await page.locator(".entry .prose").allTextContents()],
      [0, ["Of the second block."]],
    );
  });

  test("entries_requested_twice_are_shown_once", async (t) => {
    await ask("twice", "defineBlock", { label: "notes", kind: "searchable" });
    for (let n = 0; n < 60; n += 1)
      await ask("twice", "setEntry", { label: "notes", key: `k${n}`, content: `Entry ${n}.` });
    const page = await site.open(t, "#/twice/memory/notes");
    const more = await delayRequests(
      page,
      "**/rpc/listEntries",
      (request) => request.postDataJSON().cursor !== undefined,
    );
    const button = page.getByRole("button", { name: "Show more" });
    await button.waitFor();
    await button.dblclick();
    await more.arrived;
    more.open();
    await button.waitFor({ state: "detached" });
    await rendered(page);
    await until(
      () => page.locator(".entry").count(),
      (count) => count === 60,
    );
  });

  test("tags_and_metadata_are_shown_edited_and_filtered", async (t) => {
    await ask("marks", "defineBlock", { label: "facts", kind: "searchable" });
    const set = (key, more) => ask("marks", "setEntry", { label: "facts", key, content: `About ${key}.`, ...more });
    await set("tea", { tags: ["taste"], metadata: { city: "Oslo" }, source: "user" });
    await set("rain", { tags: ["weather"] });
    const page = await site.open(t, "#/marks/memory/facts");
    const card = (text) => page.locator(".entry").filter({ hasText: text });
    await card("About tea").getByText("Source: user").waitFor();
    await card("About tea").getByText("city: Oslo").waitFor();
    await page.getByRole("button", { name: "Show only entries tagged taste" }).click();
    await until(
      () => page.locator(".entry").count(),
      (count) => count === 1,
    );
    await page.getByRole("button", { name: "Show all entries" }).click();
    await card("About rain").waitFor();
    await page.getByRole("button", { name: "Change rain" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Tags").fill("weather\nOslo");
    await dialog.getByLabel("Metadata").fill('{"level": 3}');
    await page.getByRole("button", { name: "Save" }).click();
    await card("About rain").getByText("level: 3").waitFor();
    const rain = await ask("marks", "getEntry", { label: "facts", key: "rain" });
    assert.deepEqual([rain.tags, rain.metadata], [["weather", "Oslo"], { level: 3 }]);
  });

  test("a_replaced_fact_is_shown_with_its_time_and_found_in_the_past", async (t) => {
    await ask("facts", "defineBlock", { label: "homes", kind: "searchable" });
    await ask("facts", "setEntry", {
      label: "homes",
      key: "lisbon",
      title: "Lisbon",
      content: "The user lives by the river.",
      validFrom: Date.UTC(2020, 0, 1),
    });
    const page = await site.open(t, "#/facts/memory/homes", { timezoneId: "Europe/Oslo" });
    await page.getByRole("button", { name: "Add entry" }).click();
    await page.getByLabel("Key").fill("oslo");
    await page.getByRole("dialog").getByLabel("Text").fill("The user lives by the fjord.");
    await page.getByLabel("Valid from").fill("2025-05-01T12:30");
    await page.getByLabel("Replaces").fill("lisbon");
    await page.getByRole("button", { name: "Save" }).click();
    const card = (text) => page.locator(".entry").filter({ hasText: text });
    await card("the river").getByText("no longer true").waitFor();
    await card("the river").getByText("Replaced by oslo").waitFor();
    await card("the fjord").getByText("Replaces lisbon").waitFor();
    const { entries } = await ask("facts", "listEntries", { label: "homes" });
    const stored = entries.find(({ key }) => key === "oslo");
    assert.deepEqual([stored.validFrom, stored.supersedes], [Date.UTC(2025, 4, 1, 10, 30), ["lisbon"]]);

    // An edit keeps the unchanged fields, to the millisecond.
    await ask("facts", "setEntry", {
      label: "homes",
      key: "oslo",
      content: "The user lives by the fjord.",
      validFrom: 1_750_000_012_345,
      supersedes: ["lisbon"],
    });
    await page.reload();
    await page.getByRole("button", { name: "Change oslo" }).click();
    await page.getByRole("dialog").getByLabel("Title").fill("Oslo");
    await page.getByRole("button", { name: "Save" }).click();
    // The page shows the entry's new form, not the previous one under the same key.
    await page.getByRole("heading", { name: "Oslo", exact: true }).waitFor();
    const changed = (await ask("facts", "listEntries", { label: "homes" })).entries.find(({ key }) => key === "oslo");
    assert.deepEqual([changed.title, changed.validFrom, changed.supersedes], ["Oslo", 1_750_000_012_345, ["lisbon"]]);

    await page.getByLabel("Search entries").fill("lives");
    await page.keyboard.press("Enter");
    await page.getByRole("status").getByText("1 result").waitFor();
    await page.getByRole("region", { name: "Earlier facts" }).getByText("Lisbon", { exact: true }).waitFor();
    await page.getByLabel("As of").fill("2022-06-01T00:00");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByText("result, as of").waitFor();
    await card("the river").waitFor();
    assert.equal(await card("the fjord").count(), 0);
  });

  test("entries_and_documents_have_versions_and_can_be_restored", async (t) => {
    await ask("past", "defineBlock", { label: "places", kind: "searchable" });
    await ask("past", "defineBlock", { label: "guides", kind: "loadable" });
    for (const content of ["Open.", "Closed."]) {
      await ask("past", "setEntry", { label: "places", key: "opera", content });
      await ask("past", "putSkill", { label: "guides", key: "packing", content, description: "What to pack" });
    }
    const entry = async () => (await ask("past", "listEntries", { label: "places" })).entries[0]?.content;
    const skill = async () =>
      (await ask("past", "listSkills", { label: "guides" })).skills.length === 0
        ? undefined
        : (await ask("past", "loadSkill", { label: "guides", key: "packing" })).content;
    for (const [label, read, open, remove] of [
      [
        "places",
        entry,
        async (page) => await page.getByRole("button", { name: "History of opera" }).click(),
        "Delete opera",
      ],
      [
        "guides",
        skill,
        async (page) => {
          await page.getByText("What to pack").first().click();
          await page.getByRole("button", { name: "Versions" }).click();
        },
        "Delete",
      ],
    ]) {
      const page = await site.open(t, `#/past/memory/${label}`);
      await open(page);
      await page.getByText("Version 1 on the left, version 2 on the right").waitFor();
      assert.deepEqual(
        [await page.locator(".diff del").allTextContents(), await page.locator(".diff ins").allTextContents()],
        [["Open."], ["Closed."]],
      );
      await page.getByRole("button", { name: "Restore version 1" }).click();
      await page.getByText("Restored version 1 as a new version.").waitFor();
      await until(read, (content) => content === "Open.");
      await page.getByRole("button", { name: remove }).click();
      await until(read, (content) => content === undefined);
      await page
        .getByRole("region", { name: "Deleted item" })
        .getByRole("button", { name: "Restore version 2" })
        .click();
      await until(read, (content) => content === "Closed.");
      await page.getByRole("region", { name: "Deleted item" }).waitFor({ state: "detached" });
    }
  });

  test("documents_are_added_read_and_deleted", async (t) => {
    await ask("documents", "defineBlock", { label: "guides", kind: "loadable" });
    const page = await site.open(t, "#/documents/memory/guides");
    await page.getByRole("button", { name: "Add document" }).click();
    await page.getByLabel("Key").fill("packing");
    await page.getByLabel("Description").fill("What to pack");
    await page.getByRole("dialog").getByLabel("Text").fill("Take a jacket.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("What to pack").click();
    await page.getByText("Take a jacket.").waitFor();
    assert.equal((await ask("documents", "loadSkill", { label: "guides", key: "packing" })).content, "Take a jacket.");
    await page.getByLabel("Search documents").fill("no such words");
    assert.equal(await page.getByText("What to pack").count(), 0);
    await page.getByLabel("Search documents").fill("pack");
    await page.getByText("What to pack").click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("No documents yet").waitFor();
    assert.deepEqual((await ask("documents", "listSkills", { label: "guides" })).skills, []);
  });

  test("the_prompt_is_shown_verbatim_with_its_tokens_and_tools", async (t) => {
    await ask("prompted", "createSession", { id: "s" });
    await ask("prompted", "defineBlock", { label: "soul", kind: "readonly", defaultContent: "You are brief." });
    await ask("prompted", "defineBlock", { label: "memory", kind: "writable", maxTokens: 50 });
    await ask("prompted", "appendEvents", {
      sessionId: "s",
      events: [{ action: "user_message", content: "Hello there." }],
    });
    const page = await site.open(t, "#/prompted/sessions/s/context");
    const { prompt } = await ask("prompted", "renderPrompt", { sessionId: "s" });
    assert.equal(await page.getByRole("region", { name: "System prompt" }).textContent(), prompt);
    const { messages, systemPrompt } = await ask("prompted", "estimateTokens", { sessionId: "s" });
    const turn = { sessionId: "s", asTurn: true };
    const { tokensEstimate: total } = await ask("prompted", "buildWorkingContext", turn);
    const tools = total - messages - systemPrompt;
    const ledger = await page.locator(".shares figcaption").innerText();
    for (const number of [messages, tools]) assert.match(ledger.replaceAll(",", ""), new RegExp(`\\b${number}\\b`));
    await page.getByText(`The next turn will send about ${total} tokens.`).waitFor();
    const listed = (await ask("prompted", "getTools", { sessionId: "s" })).tools;
    for (const { name } of listed) await page.locator("details.fold", { hasText: name }).first().waitFor();

    await page.getByRole("button", { name: "Show frozen prompt" }).click();
    await page.getByText("Same as the prompt above.").waitFor();
    await ask("prompted", "setBlock", { label: "memory", content: "Likes tea." });
    await page.getByRole("link", { name: "Events", exact: true }).click();
    await page.getByRole("link", { name: "Context", exact: true }).click();
    await page.getByRole("region", { name: "System prompt" }).getByText("Likes tea.").waitFor();
    await page.getByRole("button", { name: "Show frozen prompt" }).click();
    await page.locator(".diff ins", { hasText: "Likes tea." }).waitFor();
    await page.getByRole("button", { name: "Refresh prompt" }).click();
    await page.getByText("Same as the prompt above.").waitFor();
    assert.match((await ask("prompted", "freezePrompt", { sessionId: "s" })).prompt, /Likes tea\./);

    // The complete request, with one of the agent's own tools.
    const url = "https://tools.example.com/weather";
    await ask("prompted", "defineTool", { name: "weather", description: "Tells the weather.", url });
    await page.getByRole("button", { name: "Reload", exact: true }).click();
    await page.locator("details.fold", { hasText: "registered" }).getByText("weather", { exact: true }).waitFor();
    await page.getByText("Full request").click();
    const shown = page.locator("pre", { hasText: '"messages"' });
    await shown.waitFor();
    const { modelInput } = await ask("prompted", "buildWorkingContext", turn);
    assert.deepEqual(JSON.parse(await shown.textContent()), modelInput);
    assert.match(JSON.stringify(modelInput.tools), /Tells the weather\./);
  });

  test("a_session_has_its_own_memory", async (t) => {
    await ask("own", "createSession", { id: "s" });
    const page = await site.open(t, "#/own/sessions/s/memory");
    await page.getByRole("button", { name: "Define block" }).click();
    await page.getByLabel("Label").fill("here");
    await page.getByRole("dialog").getByRole("button", { name: "Define" }).click();
    await page.getByRole("button", { name: /^here/ }).waitFor();
    assert.equal((await ask("own", "getBlock", { sessionId: "s", label: "here" })).scope, "session");
    assert.deepEqual(await ask("own", "getBlocks"), []);
  });

  test("the_models_own_writes_are_labeled", async (t) => {
    await ask("written", "defineBlock", { label: "memory", kind: "writable" });
    await ask("written", "createSession", { id: "s" });
    const page = await site.open(t, "#/written/sessions/s");
    await page.getByRole("textbox", { name: "Message" }).fill("Remember that I like window seats.");
    await page.keyboard.press("Enter");
    await page.getByText("set_context").first().waitFor();
    await until(
      () => ask("written", "getBlock", { label: "memory" }),
      ({ content }) => content.includes("window seats"),
    );
    await page.goto(site.at("#/written/memory/memory"));
    await page.getByRole("button", { name: /by the model/ }).waitFor();
  });
});
