// The console's views of requests, turns, failures and usage.

import assert from "node:assert/strict";
import { after, beforeEach, describe, test } from "node:test";
import { awayFromMidnight } from "../workerd/harness.mjs";
import { skip, startConsole } from "./browser.mjs";

describe("activity", { skip }, async () => {
  const site = skip ? null : await startConsole();
  after(() => site?.stop());
  beforeEach(awayFromMidnight);
  const ask = (...given) => site.ask(...given);

  test("every_request_shows_its_rows_and_duration", async (t) => {
    await ask("metered", "createSession", { id: "s", name: "Metered" });
    const page = await site.open(t, "#/metered/sessions/s");
    await page.getByRole("heading", { name: "Metered" }).waitFor();
    const { rowsRead } = await site.server.call("metered", "getStats");
    await page.getByRole("link", { name: "Activity", exact: true }).click();
    const row = page.getByRole("region", { name: "Requests" }).getByRole("row").filter({ hasText: "getStats" });
    await row.waitFor();
    const [, , time, read, written, status] = await row.getByRole("cell").allInnerTexts();
    assert.match(time, /^\d+ ms$/);
    assert.deepEqual([Number(read.replaceAll(",", "")), written, status], [rowsRead, "0", "200"]);
  });

  test("usage_and_object_state_match_the_worker", async (t) => {
    for (const [id, inputTokens, cost] of [
      ["one", 1000, 0.5],
      ["two", 234, 0.25],
    ]) {
      await ask("used", "createSession", { id });
      await ask("used", "addUsage", { sessionId: id, inputTokens, outputTokens: 10, cost });
    }
    const page = await site.open(t, "#/used/activity");
    const number = async (name) =>
      await page
        .locator(".numbers div")
        .filter({ has: page.getByText(name, { exact: true }) })
        .locator("dd")
        .innerText();
    await page.getByText("Input tokens", { exact: true }).waitFor();
    assert.deepEqual(
      [
        await number("Turns"),
        await number("Failed turns"),
        await number("Input tokens"),
        await number("Output tokens"),
        await number("Total cost"),
      ],
      ["0", "0", "1,234", "20", "$0.75"],
    );
    await page.locator(".plot").first().getByText("Show as table").click();
    assert.equal(
      await page
        .locator(".plot")
        .first()
        .getByRole("row")
        .last()
        .innerText()
        .then((text) => text.split("\t").at(-1)),
      "1,254",
    );
    const { tables } = await ask("used", "getStats");
    await page
      .getByRole("region", { name: "Tables" })
      .getByRole("row")
      .filter({ hasText: tables[0].name })
      .first()
      .waitFor();
  });

  test("usage_is_shown_by_day_by_model_and_by_turn", async (t) => {
    await ask("spent", "configureAgent", { prices: { input: 1_000_000, output: 1_000_000 } });
    for (const sessionId of ["one", "two"])
      await ask("spent", "runTurn", {
        sessionId,
        message: { id: sessionId, role: "user", parts: [{ type: "text", text: "What can you do?" }] },
      });
    const [turns, models, days] = await Promise.all(
      ["turn", "model", "day"].map(async (by) => (await ask("spent", "getUsage", { by })).usage),
    );
    assert.deepEqual([turns.length, models.length, days.length], [2, 1, 1]);
    const page = await site.open(t, "#/spent/activity");
    const plot = (title) => page.locator(".plot").filter({ hasText: title });
    const numbers = async (rows) =>
      (await rows.allInnerTexts()).map((text) => text.replaceAll(/[,$]/g, "").split(/\s*\t\s*/));
    await plot("Recent turns").getByText("Show as table").click();
    const shown = await numbers(plot("Recent turns").getByRole("row"));
    assert.deepEqual(
      shown.slice(1).map((cells) => [cells[1], cells[2], Number(cells[3]), Number(cells[5]), Number(cells[6])]),
      turns.map(({ sessionId, model, inputTokens, outputTokens, cost }) => [
        sessionId,
        model,
        inputTokens,
        outputTokens,
        cost,
      ]),
    );
    const byModel = await numbers(page.getByRole("region", { name: "Usage by model" }).getByRole("row"));
    assert.deepEqual([byModel[1][0], byModel[1].at(-5), byModel[1].at(-4), byModel[1].at(-2)].map(String), [
      models[0].model,
      "2",
      String(models[0].inputTokens),
      String(models[0].outputTokens),
    ]);
    await plot("Tokens").getByText("Show as table").click();
    assert.equal(
      (await numbers(plot("Tokens").getByRole("row"))).at(-1).at(-1),
      String(days[0].inputTokens + days[0].outputTokens),
    );
    assert.equal(await plot("Recent turns").locator("rect").count(), 2);
    await plot("Recent turns").getByRole("link", { name: turns[0].sessionId }).click();
    await page.getByText("built-in demo").waitFor();
  });

  test("a_failed_call_is_found_in_few_requests", async (t) => {
    await ask("open", "createSession", { id: "s", name: "The night" });
    await ask("open", "createSession", { id: "t", name: "The day" });
    await ask("open", "appendEvents", {
      sessionId: "s",
      events: [{ action: "user_message", content: "Is anybody there?" }],
    });
    await ask("open", "appendEvents", {
      sessionId: "t",
      events: [
        { action: "user_message", content: "Good morning?" },
        { action: "agent_message", content: "Good morning." },
      ],
    });
    await site.server.sql(
      "open",
      "INSERT INTO cf_agents_callbacks (id, session_id, message_id, report, attempts, due_at, reason, failed_at) VALUES ('d', 't', 'm', '{}', 5, 1, 'The service answered 503.', 1)",
    );
    const { callbacks } = await ask("open", "getStats");
    assert.equal(callbacks.failed.length, 1);
    const page = await site.open(t, "#/open/activity");
    const failures = page.locator(".failures li");
    await failures.filter({ hasText: "failed 5 times" }).getByText("The service answered 503.").waitFor();
    assert.equal(await failures.count(), 1);
    assert.equal(await page.getByText("Is anybody there?").count(), 0);
    // However many sessions there are.
    for (let n = 0; n < 30; n += 1) await ask("open", "createSession", { id: `more-${n}` });
    let requests = 0;
    page.on("request", (request) => (requests += request.url().includes("/rpc/") ? 1 : 0));
    await page.reload();
    await failures.filter({ hasText: "failed 5 times" }).waitFor();
    await page.getByRole("region", { name: "Tables" }).first().waitFor();
    assert.ok(requests > 4 && requests <= 16, `${requests} requests`);
  });

  test("a_failed_turn_appears_among_the_failures_at_once", async (t) => {
    const page = await site.open(t, "#/heard/sessions/s");
    await ask("heard", "configureAgent", { model: "openai:none" });
    await page.getByRole("textbox", { name: "Message" }).fill("Anyone?");
    await page.keyboard.press("Enter");
    const text = await page.locator(".answering-problem p").first().innerText();
    await page.getByRole("link", { name: "Activity", exact: true }).click();
    // Learning from the turn may have failed for the same reason.
    await page.locator(".failures li").getByText(text).first().waitFor();
  });

  test("an_older_tool_failure_is_found", async (t) => {
    await ask("night", "createSession", { id: "s", name: "The night" });
    await ask("night", "appendEvents", {
      sessionId: "s",
      events: [
        { id: "ask", action: "user_message", content: "Pay." },
        { id: "call", action: "tool_call_request", toolCalls: [{ id: "c", name: "pay", arguments: {} }] },
        {
          id: "failed",
          action: "tool_result",
          toolCallId: "c",
          toolName: "pay",
          content: "The bank is closed.",
          isError: true,
        },
      ],
    });
    const page = await site.open(t, "#/night/activity");
    await page.getByText("The bank is closed.").waitFor();
    await page.getByRole("link", { name: "The night" }).last().click();
    await page.getByText("failed", { exact: true }).waitFor();
  });

  test("errors_are_shown_in_the_workers_words", async (t) => {
    const page = await site.open(t, "#/refused");
    await ask("refused", "createSession", { id: "taken" });
    await page.getByRole("button", { name: "New session" }).click();
    await page.getByRole("dialog").getByLabel("Id").fill("taken");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    const { body } = await site.server.call("refused", "createSession", { id: "taken" });
    await page.getByText(body.error.message).first().waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Activity", exact: true }).click();
    await page
      .getByRole("cell", { name: /already_exists/ })
      .first()
      .waitFor();
  });
});
