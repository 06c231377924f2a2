// Makes the pictures of the guide anew: `node tests/console/images.mjs`. They are of the
// console's own example, and are looked at before they are kept.

import { join } from "node:path";
import { ROOT } from "../../scripts/places.mjs";
import { startConsole } from "./browser.mjs";

const WIDE = { viewport: { width: 1200, height: 760 } };
const PHONE = { viewport: { width: 390, height: 760 } };

/** A file's name, how the page is looked at, the view, and a text of the whole view. */
const IMAGES = [
  ["console-light", { ...WIDE, colorScheme: "light" }, "#/example/sessions/trip", "Walk on the roof"],
  ["console-dark", { ...WIDE, colorScheme: "dark" }, "#/example/sessions/trip/context", "System prompt"],
  ["console-memory", { ...WIDE, colorScheme: "light" }, "#/example/memory/memory", "Version 1 on the left"],
  ["console-activity", { ...WIDE, colorScheme: "dark" }, "#/example/activity", "The agent's object"],
  ["console-branches", { ...WIDE, colorScheme: "light" }, "#/example/sessions/trip/branches", "2 branches"],
  ["console-phone", { ...PHONE, colorScheme: "light" }, "#/example/sessions/trip", "Walk on the roof"],
  ["console-phone-dark", { ...PHONE, colorScheme: "dark" }, "#/example", "A trip to Oslo"],
];

const site = await startConsole();
const noTest = { after: () => {} };
const first = await site.open(noTest, "");
await first.getByRole("button", { name: "Show me an example" }).click();
await first.getByText("Walk on the roof").waitFor();
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
