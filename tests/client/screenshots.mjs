// Regenerates the screenshot of the example's page: `node tests/client/screenshots.mjs`. Review it
// before committing.

import { join } from "node:path";
import { ROOT } from "../../scripts/paths.mjs";
import { launch } from "../console/browser.mjs";
import { callTool, say } from "../workerd/model_server.mjs";
import { withChat } from "./example.mjs";

const browser = await launch();
await withChat(async (url, model) => {
  const page = await browser.newPage({ viewport: { width: 1200, height: 720 }, colorScheme: "light" });
  const write = async (text, answer) => {
    await page.getByRole("textbox", { name: "Message" }).fill(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText(answer).waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
  };
  await page.goto(url);
  await page.getByRole("button", { name: "New chat" }).click();
  model.next(callTool("weather", { city: "Oslo" }), say("Clouds in Oslo, 9 °C. Take a jacket."));
  await write("How is the weather in Oslo?", "Take a jacket.");
  await page.getByText('weather {"city":"Oslo"}').click();
  model.next(
    callTool("set_context", { label: "memory", content: "Travels to Oslo in May. Eats no meat." }),
    say("I will remember that."),
  );
  await write("I go there in May, and I eat no meat.", "I will remember that.");
  await page.getByRole("button", { name: "New chat" }).click();
  await page.getByRole("button", { name: "Chat 1", exact: true }).click();
  model.next(say("Then the old town."), say("Begin at the opera, and walk on its roof."));
  await write("Where should I begin?", "Then the old town.");
  await page.getByRole("button", { name: "Regenerate" }).click();
  await page.getByRole("button", { name: "Answer 2" }).waitFor();
  model.next(callTool("book", { place: "A table for two at Nordvegan" }));
  await page.getByRole("textbox", { name: "Message" }).fill("Book a table for dinner.");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("button", { name: "Allow" }).waitFor();
  await page.screenshot({ path: join(ROOT, "docs/images/example-chat.png") });
});
await browser.close();
