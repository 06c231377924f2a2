// The agent's settings in the console: their values, the origin of each, and invalid deployed
// values.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { delayRequests, skip, startConsole, until } from "./browser.mjs";

describe("settings", { skip }, async () => {
  const site = skip
    ? null
    : await startConsole({
        vars: { AUTH: "open", MODEL: "demo", TOOL_ORIGINS: "https://app.example.com" },
        defaults: { maxSteps: 3, temperature: 0.5, blocks: [{ label: "wrong", kind: "list" }] },
      });
  after(() => site?.stop());
  const ask = (...given) => site.ask(...given);
  const setting = (page, label) => page.locator(".setting").filter({ has: page.getByLabel(label, { exact: true }) });

  test("every_setting_can_be_changed_and_reset", async (t) => {
    const page = await site.open(t, "#/set/settings");
    const fill = (label, text) => page.getByLabel(label, { exact: true }).fill(text);
    const choose = (label, option) => page.getByLabel(label, { exact: true }).selectOption(option);
    await fill("Summary model", "demo");
    await fill("Context limit", "50000");
    await fill("Output limit", "2000");
    await fill("Temperature", "0.25");
    await choose("Reasoning effort", "low");
    await fill("System instructions", "Be brief.\nBe kind.");
    await choose("When to update the stored system prompt", "turn");
    await fill("How many recent messages are sent with their files", "2");
    await choose("If a message arrives during a turn", "queue");
    await choose("Memory in requests over the base URL", "read");
    await page.getByLabel("Let the model search all sessions").check();
    await fill("Reserved metadata keys", "a\nb");
    await fill("Price per million input tokens", "2.5");
    await fill("Price per million output tokens", "10");
    await fill("Prices per model", '{"demo": {"input": 0, "output": 1}}');
    await fill("Webhook URL for turns", "https://app.example.com/ended");
    await fill("Webhook URL for memory changes", "https://app.example.com/changed");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    const { origins, problems, ...config } = await ask("set", "getConfig");
    const { limits: _, ...without } = config;
    assert.deepEqual(without, {
      model: null,
      summaryModel: "demo",
      maxContextTokens: 50_000,
      maxOutputTokens: 2000,
      temperature: 0.25,
      reasoningEffort: "low",
      refreshPrompt: "turn",
      prices: { input: 2.5, output: 10, models: { demo: { input: 0, output: 1 } } },
      systemInstructions: ["Be brief.\nBe kind."],
      maxSteps: 3,
      sessionSearch: true,
      vectors: false,
      keepMedia: 2,
      reservedMetadataKeys: ["a", "b"],
      whenBusy: "queue",
      sessionMemory: "read",
      onTurnEnd: { url: "https://app.example.com/ended" },
      onMemoryChange: { url: "https://app.example.com/changed" },
      // No service is bound here.
      summarize: null,
      // These are set in the Manage views.
      retention: null,
      backups: null,
      learn: null,
    });
    // An unchanged value keeps its origin.
    assert.deepEqual([origins.temperature, origins.maxSteps, origins.model], ["agent", "defaults", "built-in"]);
    assert.equal(problems.length, 1);

    for (const [label, origin] of [
      ["Temperature", "set for this agent"],
      ["Step limit per turn", "deployed for all agents"],
      ["Model", "built in"],
    ]) {
      await setting(page, label).getByText(origin).waitFor();
    }
    await page.getByRole("button", { name: "Reset temperature" }).click();
    await setting(page, "Temperature").getByText("deployed for all agents").waitFor();
    assert.equal(await page.getByLabel("Temperature", { exact: true }).inputValue(), "0.5");
    assert.equal((await ask("set", "getConfig")).origins.temperature, "defaults");
    await page.getByRole("button", { name: "Reset prices" }).click();
    await until(
      () => ask("set", "getConfig"),
      ({ prices }) => prices === null,
    );
  });

  test("edits_made_while_a_change_is_saved_are_kept", async (t) => {
    const page = await site.open(t, "#/hasty/settings");
    const field = (label) => page.getByLabel(label, { exact: true });
    await field("Temperature").fill("0.75");
    const reading = await delayRequests(page, "**/rpc/getConfig");
    await page.getByRole("button", { name: "Save" }).click();
    await reading.arrived;
    await field("Step limit per turn").fill("7");
    reading.open();
    await setting(page, "Temperature").getByText("set for this agent").waitFor();
    assert.deepEqual(
      [await field("Temperature").inputValue(), await field("Step limit per turn").inputValue()],
      ["0.75", "7"],
    );
    await page.getByRole("button", { name: "Reset temperature" }).click();
    await setting(page, "Temperature").getByText("deployed for all agents").waitFor();
    assert.deepEqual(
      [await field("Temperature").inputValue(), await field("Step limit per turn").inputValue()],
      ["0.5", "7"],
    );
    // Reloading the settings also discards an unsaved change.
    await page.getByRole("button", { name: "Reload" }).click();
    await until(
      () => field("Step limit per turn").inputValue(),
      (text) => text === "3",
    );
    assert.equal((await ask("hasty", "getConfig")).maxSteps, 3);
  });

  test("limits_can_be_set_if_the_worker_supports_them", async (t) => {
    const { origins } = await ask("limited", "getConfig");
    const page = await site.open(t, "#/limited/settings");
    await page.getByLabel("Temperature").waitFor();
    assert.equal(await page.getByLabel("Turn limit (per minute)").count(), "limits" in origins ? 1 : 0);
    if (!("limits" in origins)) return;
    await page.getByLabel("Turn limit (per minute)").fill("5");
    await page.getByLabel("Token limit (per day)").fill("1000");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    assert.deepEqual((await ask("limited", "getConfig")).limits, { turnsPerMinute: 5, tokensPerDay: 1000 });
  });

  test("invalid_deployed_settings_are_shown_in_the_workers_words", async (t) => {
    const { problems } = await ask("wrong", "getConfig");
    const page = await site.open(t, "#/wrong/settings");
    const shown = page.getByRole("region", { name: "Invalid deployed defaults" });
    await shown.getByText(problems[0].message).waitFor();
    await shown.getByText("agent-defaults.json: blocks[0].kind").waitFor();
  });

  test("a_refused_setting_shows_why_and_writes_nothing", async (t) => {
    const page = await site.open(t, "#/refused/settings");
    await page.getByLabel("Temperature").fill("9");
    await page.getByLabel("Step limit per turn").fill("7");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".notice.failed").getByText("temperature").waitFor();
    assert.equal(await page.getByLabel("Temperature").inputValue(), "9");
    assert.equal((await ask("refused", "getConfig")).maxSteps, 3);
    await page.getByLabel("Temperature").fill("");
    await page.getByLabel("Prices per model").fill("{");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("is not valid JSON").waitFor();
    assert.equal((await ask("refused", "getConfig")).maxSteps, 3);
  });
});
