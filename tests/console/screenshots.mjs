// Regenerates the pictures of the guide from the console's own example: `node
// tests/console/screenshots.mjs`. Review them before committing.

import { join } from "node:path";
import { ROOT } from "../../scripts/paths.mjs";
import { startConsole } from "./browser.mjs";

const WIDE = { viewport: { width: 1200, height: 760 } };
const PHONE = { viewport: { width: 390, height: 760 } };

/** A file's name, how the page is displayed, the view, and a text of the loaded view. */
const IMAGES = [
  ["console-light", { ...WIDE, colorScheme: "light" }, "#/example/sessions/trip", "Walk on the roof"],
  ["console-dark", { ...WIDE, colorScheme: "dark" }, "#/example/sessions/trip/context", "System prompt"],
  ["console-turns", { ...WIDE, colorScheme: "light" }, "#/example/sessions/rent/turns", "Contents of the last request"],
  ["console-memory", { ...WIDE, colorScheme: "light" }, "#/example/memory/memory", "Version 1 on the left"],
  ["console-proposals", { ...WIDE, colorScheme: "light" }, "#/example/manage/proposals", "Based on"],
  ["console-fact", { ...WIDE, colorScheme: "light" }, "#/example/memory/facts?entry=home", "Based on"],
  ["console-activity", { ...WIDE, colorScheme: "dark" }, "#/example/activity", "Durable Object"],
  ["console-settings", { ...WIDE, colorScheme: "light" }, "#/example/settings", "Step limit per turn"],
  ["console-branches", { ...WIDE, colorScheme: "light" }, "#/example/sessions/trip/branches", "2 branches"],
  ["console-phone", { ...PHONE, colorScheme: "light" }, "#/example/sessions/trip", "Walk on the roof"],
  ["console-phone-dark", { ...PHONE, colorScheme: "dark" }, "#/example", "A trip to Oslo"],
];

const site = await startConsole();
const noTest = { after: () => {} };
const first = await site.open(noTest, "");
await first.getByRole("button", { name: "Create an example" }).click();
await first.getByText("Walk on the roof").waitFor();
await addOthers(site);
for (const [name, options, hash, text] of IMAGES) {
  const page = await site.open(noTest, hash, options);
  await page.getByText(text).first().waitFor();
  if (hash.endsWith("/trip")) {
    await page.getByText("weather").first().click();
    await page.getByRole("region", { name: "Messages" }).evaluate((list) => (list.scrollTop = 0));
    await page.getByText("Is it raining in Oslo?").first().waitFor();
  }
  await page.waitForLoadState("networkidle");
  await page.screenshot({ path: join(ROOT, `docs/images/${name}.png`) });
  await page.context().close();
}
await site.stop();

/**
 * In addition to the example: settings, learned facts, a failed tool, other sessions, and a month
 * of usage.
 */
async function addOthers({ server }) {
  const ask = (operation, input) => server.call("example", operation, input);
  await ask("configureAgent", {
    prices: { input: 3, output: 15, cachedInput: 0.3 },
    temperature: 0.3,
    whenBusy: "queue",
  });
  for (const [id, name] of [
    ["rent", "The rent in June"],
    ["night", "The report of the night"],
    ["visa", "Does a visit need a visa?"],
    ["seats", "Window seats"],
  ]) {
    await ask("createSession", { id, name });
    await ask("runTurn", {
      sessionId: id,
      message: { id: `${id}-1`, role: "user", parts: [{ type: "text", text: "What do you remember?" }] },
    });
  }
  await ask("appendEvents", {
    sessionId: "night",
    events: [
      { action: "user_message", content: "Book the flight." },
      { action: "tool_call_request", toolCalls: [{ id: "b1", name: "book", arguments: { to: "OSL" } }] },
      {
        action: "tool_result",
        toolCallId: "b1",
        toolName: "book",
        content: "The airline answered 503. Nothing is booked.",
        isError: true,
      },
    ],
  });
  await ask("updateSession", { sessionId: "trip", tags: ["travel"], metadata: { channel: "web" } });
  await ask("defineBlock", { label: "facts", kind: "searchable", description: "Learned facts" });
  await ask("configureAgent", { learn: { into: "facts", after: "manual" } });
  const learn = async (content) => {
    await ask("appendEvents", { sessionId: "seats", events: [{ action: "user_message", content }] });
    return (await ask("learn", { sessionId: "seats" })).body.proposals;
  };
  for (const place of ["Lisbon", "Oslo"]) {
    const [{ id }] = await learn(`I live in ${place}.`);
    await ask("decideProposal", { id, approve: true });
  }
  await learn("I like window seats on night trains. My dog is Bo.");
  const today = Math.floor(Date.now() / 86_400_000);
  for (let n = 1; n < 30; n += 1) {
    const turns = 4 + ((n * 7) % 11);
    await server.sql(
      "example",
      `INSERT INTO cf_agents_usage_days
         (day, model, turns, input_tokens, output_tokens, cached_input_tokens, cost)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      today - n,
      "demo",
      turns,
      turns * 2100,
      turns * 320,
      turns * 900,
      turns * 0.011,
    );
  }
}
