// Sessions in the console: viewing, creating, renaming, forking, deleting, exporting and importing.
// The result is checked in the Worker.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, describe, test } from "node:test";
import { gate } from "../workerd/model_server.mjs";
import { rendered, skip, startConsole, until } from "./browser.mjs";

describe("sessions", { skip }, async () => {
  const site = skip ? null : await startConsole();
  after(() => site?.stop());
  const ask = (...given) => site.ask(...given);

  /** A session with a few messages. */
  async function seeded(agent, id = "s", name = "A session") {
    await ask(agent, "createSession", { id, name });
    await ask(agent, "appendEvents", {
      sessionId: id,
      events: [
        { id: `${id}-1`, action: "user_message", content: "Where is the umbrella?" },
        { id: `${id}-2`, action: "agent_message", content: "Behind the door." },
        { id: `${id}-3`, action: "user_message", content: "And the keys?" },
        { id: `${id}-4`, action: "agent_message", content: "In the bowl." },
      ],
    });
  }

  test("an_agent_is_opened_by_name_and_remembered_in_the_browser", async (t) => {
    await seeded("opened");
    const page = await site.open(t, "");
    await page.getByLabel("Agent", { exact: true }).fill("opened");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: /A session/ }).waitFor();
    await page.getByRole("link", { name: "All agents" }).click();
    await page.getByRole("link", { name: /^opened/ }).click();
    await page.getByRole("link", { name: /A session/ }).click();
    await page.getByText("In the bowl.").waitFor();
  });

  test("the_example_is_created_once", async (t) => {
    const page = await site.open(t, "");
    await page.getByRole("button", { name: "Create an example" }).click();
    await page.getByText("Walk on the roof").waitFor();
    const { sessions } = await ask("example", "listSessions");
    assert.deepEqual(
      sessions.map(({ name }) => name),
      ["A trip to Oslo"],
    );
    assert.equal((await ask("example", "getBlocks")).length, 4);
    await page.goto(site.at(""));
    await page.getByRole("button", { name: "Create an example" }).click();
    await page.getByText("Walk on the roof").waitFor();
    assert.equal((await ask("example", "loadEvents", { sessionId: "trip" })).length, 7);
  });

  test("a_session_is_created_renamed_and_forked", async (t) => {
    const page = await site.open(t, "#/made");
    await page.getByRole("button", { name: "New session" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Plans");
    await page.getByRole("dialog").getByLabel("Id").fill("plans");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("heading", { name: "Plans" }).waitFor();
    assert.equal((await ask("made", "getSession", { sessionId: "plans" })).name, "Plans");

    await page.getByLabel("Session actions").click();
    await page.getByRole("button", { name: "Name and tags" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Better plans");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Better plans" }).waitFor();
    assert.equal((await ask("made", "getSession", { sessionId: "plans" })).name, "Better plans");

    await ask("made", "appendMessage", {
      sessionId: "plans",
      message: { id: "m", role: "user", parts: [{ type: "text", text: "One." }] },
    });
    await page.getByText("One.").waitFor();
    await page.getByRole("button", { name: "Fork" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Fork" }).click();
    await page.getByRole("heading", { name: "Better plans (fork)" }).waitFor();
    const { sessions } = await ask("made", "listSessions");
    const fork = sessions.find(({ name }) => name === "Better plans (fork)");
    assert.equal(fork.parentSessionId, "plans");
    assert.deepEqual(
      (await ask("made", "loadEvents", { sessionId: fork.id })).map(({ id }) => id),
      ["m"],
    );
  });

  test("tags_and_metadata_are_shown_and_filter_the_list", async (t) => {
    const sessions = [
      { id: "oslo", name: "To Oslo", tags: ["travel", "summer"], metadata: { channel: "web", n: 7 } },
      { id: "rome", name: "To Rome", tags: ["travel"], metadata: { channel: "mail" } },
      { id: "rent", name: "The rent" },
    ];
    for (const session of sessions) {
      await ask("marked", "createSession", session);
      await ask("marked", "appendEvents", {
        sessionId: session.id,
        events: [{ action: "user_message", content: "A window seat." }],
      });
    }
    const page = await site.open(t, "#/marked/sessions/rent");
    const listed = () => page.locator(".session-links .session-link > .name").allTextContents();
    const shows = (...names) =>
      until(listed, (found) => JSON.stringify([...found].sort()) === JSON.stringify([...names].sort()));
    await shows("To Oslo", "To Rome", "The rent");
    await page.getByLabel("Session actions").click();
    await page.getByRole("button", { name: "Name and tags" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Tags").fill("home\nsummer");
    await dialog.getByLabel("Metadata").fill('{"channel": "mail"}');
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.locator(".session-title").getByText("channel: mail").waitFor();
    const { tags, metadata } = await ask("marked", "getSession", { sessionId: "rent" });
    assert.deepEqual([tags, metadata], [["home", "summer"], { channel: "mail" }]);

    // By a session's tag, with one click; the search is narrowed too.
    await page.getByRole("button", { name: "Show only sessions tagged summer" }).click();
    await shows("To Oslo", "The rent");
    await page.getByLabel("Search all sessions").fill("window");
    await page.keyboard.press("Enter");
    await page.getByText("2 results for").waitFor();
    await page.getByRole("button", { name: "Clear search" }).click();
    // By typing in the list's filter.
    await page.getByRole("button", { name: "Filter sessions" }).click();
    assert.equal(await dialog.getByLabel("Tags").inputValue(), "summer");
    await dialog.getByLabel("Tags").fill("");
    await dialog.getByLabel("Metadata").fill('{"n": {"gt": 5}}');
    await dialog.getByRole("button", { name: "Filter", exact: true }).click();
    await shows("To Oslo");
    await page.getByRole("button", { name: "Filter sessions" }).click();
    await dialog.getByLabel("Metadata").fill('{"n": 8}');
    await dialog.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByText("No sessions match the filter.").waitFor();
    await page.getByRole("button", { name: "Show all sessions" }).click();
    await shows("To Oslo", "To Rome", "The rent");
  });

  test("a_deleted_session_can_be_restored_until_the_page_is_left", async (t) => {
    await seeded("deleted");
    const page = await site.open(t, "#/deleted/sessions/s");
    const remove = async () => {
      await page.getByLabel("Session actions").click();
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByText("will be deleted when you leave this page").waitFor();
    };
    await remove();
    await page.getByText("This agent has no sessions").waitFor();
    assert.notEqual(await ask("deleted", "getSession", { sessionId: "s" }), null);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("link", { name: /A session/ }).click();
    await page.getByText("In the bowl.").waitFor();

    await remove();
    await page.goto("about:blank");
    await until(
      () => ask("deleted", "getSession", { sessionId: "s" }),
      (session) => session === null,
    );
  });

  test("a_session_can_be_deleted_at_once_if_configured", async (t) => {
    await seeded("at-once");
    const page = await site.open(t, "#/at-once/sessions/s");
    await page.getByRole("link", { name: /A session/ }).waitFor();
    // The list is read before the session is deleted, and answered after it.
    const reading = gate();
    await page.route(
      "**/rpc/listSessions",
      async (route) => {
        const response = await route.fetch();
        reading.reach();
        await reading.gate;
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    await reading.reached;
    await page.getByLabel("Session actions").click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("button", { name: "Delete now" }).click();
    await until(
      () => ask("at-once", "getSession", { sessionId: "s" }),
      (session) => session === null,
    );
    await page.getByRole("button", { name: "Delete now" }).waitFor({ state: "detached" });
    const isRead = page.waitForResponse("**/rpc/listSessions").then((response) => response.finished());
    reading.open();
    await isRead;
    await rendered(page);
    assert.equal(await page.getByRole("link", { name: /A session/ }).count(), 0);
  });

  test("a_session_is_exported_to_a_file_and_imported_again", async (t) => {
    await seeded("carried", "out", "Carried");
    const page = await site.open(t, "#/carried/sessions/out");
    await page.getByLabel("Session actions").click();
    await page.getByRole("button", { name: "Export" }).click();
    await page.getByText("The file is ready").waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Save file" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), "Carried.ndjson");
    const file = await readFile(await download.path());
    assert.match(file.toString().trimEnd().split("\n").at(-1), /"type":"end"/);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();

    await page.getByRole("button", { name: "Import session" }).click();
    await page
      .getByLabel("File")
      .setInputFiles({ name: "carried.ndjson", mimeType: "application/x-ndjson", buffer: file });
    await page.getByLabel("ID of the new session").fill("in");
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.getByText("Imported 4 events.").waitFor();
    await page.getByText("In the bowl.").waitFor();
    const [out, come] = await Promise.all(
      ["out", "in"].map((sessionId) => ask("carried", "loadEvents", { sessionId })),
    );
    assert.deepEqual(
      come.map(({ sessionId: _, ...event }) => event),
      out.map(({ sessionId: _, ...event }) => event),
    );
  });

  test("an_id_typed_while_a_file_is_inspected_is_kept", async (t) => {
    await seeded("hasty", "out", "Hasty");
    const page = await site.open(t, "");
    await page.addInitScript(() => {
      const { text } = Blob.prototype;
      const isOpen = new Promise((resolve) => (window.readOn = resolve));
      Blob.prototype.text = function () {
        return isOpen.then(() => text.call(this));
      };
    });
    await page.goto(site.at("#/hasty"));
    await page.reload();
    await page.getByRole("button", { name: "Import session" }).click();
    const choose = (id) =>
      page
        .getByLabel("File")
        .setInputFiles({ name: "x.ndjson", mimeType: "text/plain", buffer: Buffer.from(`{"id":"${id}"}\n`) });
    const id = page.getByLabel("ID of the new session");
    await choose("first");
    await id.fill("mine");
    await page.evaluate(() => window.readOn());
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)));
    assert.equal(await id.inputValue(), "mine");
    // Without a typed id, the session gets the file's id.
    await id.fill("");
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Import session" }).click();
    for (const name of ["first", "second"]) {
      await choose(name);
      await until(
        () => id.inputValue(),
        (text) => text === name,
      );
    }
  });

  test("a_malformed_file_is_refused_with_the_workers_message", async (t) => {
    const page = await site.open(t, "#/broken");
    await page.getByRole("button", { name: "Import session" }).click();
    await page
      .getByLabel("File")
      .setInputFiles({ name: "x.ndjson", mimeType: "text/plain", buffer: Buffer.from("not a line\n") });
    await page.getByLabel("ID of the new session").fill("x");
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page
      .getByRole("dialog")
      .getByRole("alert")
      .filter({ hasText: /[Ll]ine 1/ })
      .waitFor();
    assert.equal(await ask("broken", "getSession", { sessionId: "x" }), null);
  });

  test("a_search_covers_all_sessions_and_links_to_the_message", async (t) => {
    await seeded("searched", "one", "First");
    await seeded("searched", "two", "Second");
    const page = await site.open(t, "#/searched");
    await page.getByLabel("Search all sessions").fill("umbrellas");
    await page.keyboard.press("Enter");
    await page.getByText(/\d results for/).waitFor();
    assert.deepEqual(await page.locator(".found mark").allTextContents(), ["umbrella", "umbrella"]);
    await page
      .getByRole("link", { name: /^Second/ })
      .first()
      .click();
    await page.getByRole("heading", { name: "Second" }).waitFor();
    await page.getByText("Where is the umbrella?").first().waitFor();
    await page.getByRole("button", { name: "Clear search" }).click();
    await page
      .getByRole("link", { name: /^First/ })
      .first()
      .waitFor();
  });

  test("thousands_of_sessions_load_as_the_list_scrolls", async (t) => {
    // The oldest are deleted one by one, so that the last ones are known.
    for (let n = 0; n < 10; n += 1) await ask("many", "createSession", { id: `s${n}`, name: `Number ${n}` });
    for (let n = 10; n < 1510; n += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, k) =>
          ask("many", "createSession", { id: `s${n + k}`, name: `Number ${n + k}` }),
        ),
      );
    }
    const page = await site.open(t, "#/many");
    const list = page.getByRole("region", { name: "All sessions" });
    await list.getByRole("link").first().waitFor();
    await list.focus();
    await until(
      async () => {
        await page.keyboard.press("End");
        return await list.locator(".virtual-all").evaluate((all) => all.getBoundingClientRect().height);
      },
      (height) => height > 1500 * 40,
    );
    assert.ok((await list.getByRole("link").count()) < 100, "only sessions near the viewport exist");
    await until(
      async () => (
        await page.keyboard.press("End"),
        await list.getByRole("link", { name: /Number (0|1|2|3|4|5|6|7|8|9) / }).count()
      ),
      (count) => count > 0,
    );
  });

  test("changes_made_elsewhere_appear_by_themselves", async (t) => {
    await seeded("live");
    const page = await site.open(t, "#/live/sessions/s");
    await page.getByText("In the bowl.").waitFor();
    await ask("live", "appendMessage", {
      sessionId: "s",
      message: { id: "later", role: "user", parts: [{ type: "text", text: "Written by another tab." }] },
    });
    await page.getByText("Written by another tab.").waitFor();
  });
});
