// What happened and what it cost.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { skip, startConsole } from "./browser.mjs";

describe("activity", { skip }, async () => {
  const site = skip ? null : await startConsole();
  after(() => site?.stop());
  const ask = (...given) => site.ask(...given);

  test("every_request_of_the_page_says_its_rows_and_its_time", async (t) => {
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

  test("usage_and_the_state_of_the_object_are_what_the_worker_says", async (t) => {
    for (const [id, inputTokens, cost] of [["one", 1000, 0.5], ["two", 234, 0.25]]) {
      await ask("used", "createSession", { id });
      await ask("used", "addUsage", { sessionId: id, inputTokens, outputTokens: 10, cost });
    }
    const page = await site.open(t, "#/used/activity");
    const number = async (name) => await page.locator(".numbers div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd").innerText();
    await page.getByText("Tokens in", { exact: true }).waitFor();
    assert.deepEqual([await number("Sessions"), await number("Tokens in"), await number("Tokens out"), await number("Cost")], ["2", "1,234", "20", "0.75"]);
    await page.locator(".plot").first().getByText("As a table").click();
    assert.equal(await page.locator(".plot").first().getByRole("row").last().innerText().then((text) => text.split("\t").at(-1)), "1,254");
    const { tables } = await ask("used", "getStats");
    await page.getByRole("region", { name: "Tables" }).getByRole("row").filter({ hasText: tables[0].name }).first().waitFor();
  });

  test("a_tool_that_failed_last_night_is_found", async (t) => {
    await ask("night", "createSession", { id: "s", name: "The night" });
    await ask("night", "appendEvents", {
      sessionId: "s",
      events: [
        { id: "ask", action: "user_message", content: "Pay." },
        { id: "call", action: "tool_call_request", toolCalls: [{ id: "c", name: "pay", arguments: {} }] },
        { id: "failed", action: "tool_result", toolCallId: "c", toolName: "pay", content: "The bank is closed.", isError: true },
      ],
    });
    const page = await site.open(t, "#/night/activity");
    await page.getByText("The bank is closed.").waitFor();
    await page.getByRole("link", { name: "The night" }).last().click();
    await page.getByText("failed", { exact: true }).waitFor();
  });

  test("what_is_refused_is_told_in_the_worker_s_words", async (t) => {
    const page = await site.open(t, "#/refused");
    await ask("refused", "createSession", { id: "taken" });
    await page.getByRole("button", { name: "New session" }).click();
    await page.getByRole("dialog").getByLabel("Id").fill("taken");
    await page.getByRole("button", { name: "Create" }).click();
    const { body } = await site.server.call("refused", "createSession", { id: "taken" });
    await page.getByText(body.error.message).first().waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Activity", exact: true }).click();
    await page.getByRole("cell", { name: /already_exists/ }).first().waitFor();
  });
});
