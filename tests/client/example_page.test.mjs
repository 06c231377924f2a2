// The page of `examples/session-agent` in a browser, as a visitor uses it. A scripted model
// answers; all else is what `npm start` in the example's folder runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { launch, skip, until } from "../console/browser.mjs";
import { callTool, callTools, gate, say } from "../workerd/model_server.mjs";
import { withChat } from "./example.mjs";

const PATIENCE_MS = 20_000;

test("a_visitor_chats_approves_branches_corrects_the_memory_and_comes_back", { skip }, async (t) => {
  const browser = await launch();
  t.after(() => browser.close());
  await withChat(async (url, model) => {
    const wrong = [];
    const context = await browser.newContext({ viewport: { width: 1200, height: 760 } });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    page.on("pageerror", (error) => wrong.push(error.stack));
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== url && request.url().startsWith("http")) wrong.push(`asked ${request.url()}`);
    });
    const button = (name) => page.getByRole("button", { name, exact: true });
    const shows = (text) => page.getByRole("list").last().getByText(text, { exact: true }).waitFor();
    const write = async (text) => {
      await page.getByRole("textbox", { name: "Message" }).fill(text);
      await button("Send").click();
    };

    await page.goto(url);
    await page.getByText("Begin a chat.").waitFor();
    await button("New chat").click();

    // The service's tool is asked, and the answer is shown while it comes.
    const rest = gate();
    model.next(callTools(["weather", { city: "Oslo" }], ["echo", { text: "hei" }]), say("Snow ", rest, "in Oslo."));
    await write("How is Oslo?");
    await shows("Snow");
    assert.equal(await button("Stop").isVisible(), true);
    rest.open();
    await shows("Snow in Oslo.");
    await page.getByText('weather {"city":"Oslo"}').click();
    await page.getByText(/"sky"/).waitFor();
    await page.getByText('echo {"text":"hei"}').click();
    await page.getByText(/"text": "hei"/).waitFor();

    // What the model keeps stands in the panel, and the visitor corrects it.
    model.next(callTool("set_context", { label: "memory", content: "Likes snow." }), say("Noted."));
    await write("I like snow.");
    await shows("Noted.");
    const memory = page.getByRole("textbox", { name: "memory" });
    await until(() => memory.inputValue(), (text) => text === "Likes snow.");
    await memory.fill("Likes snow and tea.");
    const saved = page.waitForResponse((response) => response.url().endsWith("/rpc/setBlock"));
    await memory.blur();
    assert.equal((await saved).status(), 200);

    // A call that the visitor must allow waits for the visitor.
    model.next(callTool("book", { place: "Maaemo" }), say("Your table is booked."));
    await write("Book a table.");
    await button("Allow").click();
    await shows("Your table is booked.");
    await page.getByText('book {"place":"Maaemo"}').click();
    await page.getByText(/"booked": "Maaemo"/).waitFor();
    model.next(callTool("book", { place: "Noma" }), say("Then not."));
    await write("And another.");
    await button("Refuse").click();
    await shows("Then not.");
    assert.equal(await page.getByText(/"booked": "Noma"/).count(), 0);

    // Another answer stands beside the first, and the visitor chooses.
    model.next(say("Rather not."));
    await button("Answer anew").click();
    await shows("Rather not.");
    await button("Answer 1").click();
    await shows("Then not.");
    await page.reload();
    await shows("Then not.");
    assert.equal(await page.getByText("Rather not.").count(), 0);
    assert.equal(await memory.inputValue(), "Likes snow and tea.");

    // A page that is loaded again in the middle of an answer hears the rest.
    const later = gate();
    model.next(say("Before, ", later, "and after."));
    await write("Go on.");
    await shows("Before,");
    await page.reload();
    await shows("Before,");
    later.open();
    await shows("Before, and after.");
    await button("Send").waitFor();

    // Another chat has messages of its own, and the same memory.
    await button("New chat").click();
    await button("Chat 2").waitFor();
    model.next(say("A new one."));
    await write("Hello?");
    await shows("A new one.");
    assert.equal(await page.getByText("Before, and after.").count(), 0);
    assert.match(JSON.stringify(model.requests.at(-1).messages), /Likes snow/);
    await button("Chat 1").click();
    await shows("Before, and after.");
    await button("Delete Chat 1").click();
    await page.getByText("Begin a chat.").waitFor();
    await until(() => page.getByRole("navigation").getByRole("listitem").count(), (count) => count === 1);

    assert.equal(model.left, 0);
    assert.deepEqual(wrong, []);
    await context.close();
  });
});
