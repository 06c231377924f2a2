// Chat in the console: streaming and stopping, regenerated answers, edited questions, approvals,
// branches and compaction. A scripted model answers.

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { callTool, gate, refuse, say, startModel } from "../workerd/model_server.mjs";
import { rendered, delayRequests, skip, startConsole, until } from "./browser.mjs";

const TOOLS = `export default {
  async fetch(request) {
    const { name, arguments: given, inputResponses } = await request.json();
    if (name === "book" && inputResponses === undefined) {
      const properties = {
        name: { type: "string", title: "Who <b>travels</b>?", description: "As in the passport." },
        nights: { type: "integer", minimum: 1 },
        breakfast: { type: "boolean" },
        room: { type: "string", enum: ["small", "large"] },
      };
      const requestedSchema = { type: "object", properties, required: ["name", "nights"] };
      const params = { message: "Whom is the room for?", requestedSchema };
      const inputRequests = { guest: { method: "elicitation/create", params } };
      return Response.json({ resultType: "input_required", inputRequests, requestState: "x" });
    }
    return Response.json({ did: name, given, ...(inputResponses && { inputResponses }) });
  },
};`;

describe("chat", { skip }, async () => {
  const model = skip ? null : await startModel();
  const site = skip
    ? null
    : await startConsole({
        vars: { AUTH: "open", MODEL: "openai:test", OPENAI_BASE_URL: model.url },
        secrets: { OPENAI_API_KEY: "a key" },
        workers: { tools: TOOLS },
      });
  after(async () => {
    await site?.stop();
    await model?.stop();
  });
  const ask = (...given) => site.ask(...given);
  const history = async (agent, leafId) => {
    const { messages } = await ask(agent, "getHistory", { sessionId: "s", ...(leafId && { leafId }) });
    return messages.map(({ role, parts }) => [
      role,
      parts
        .filter(({ type }) => type === "text")
        .map(({ text }) => text)
        .join(""),
    ]);
  };

  async function defineWeather(agent) {
    const tool = { name: "weather", description: "Tells it.", service: "TOOLS", needsApproval: false };
    await ask(agent, "defineTool", tool);
  }

  async function write(page, text) {
    await page.getByRole("textbox", { name: "Message" }).fill(text);
    await page.keyboard.press("Enter");
  }

  test("an_answer_is_shown_as_it_streams", async (t) => {
    const rest = gate();
    model.next(say("Hello ", rest, "there."));
    const page = await site.open(t, "#/streamed/sessions/s");
    await write(page, "Hi!");
    await page.getByText("Hello", { exact: true }).waitFor();
    rest.open();
    await page.getByText("Hello there.").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    assert.deepEqual(await history("streamed"), [
      ["user", "Hi!"],
      ["assistant", "Hello there."],
    ]);
    assert.equal(await page.getByRole("article").count(), 2);
  });

  test("a_stopped_answer_keeps_its_text", async (t) => {
    model.next(say("As far as this ", gate()));
    const page = await site.open(t, "#/stopped/sessions/s");
    await write(page, "Go on.");
    await page.getByText("As far as this").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    assert.deepEqual(await history("stopped"), [
      ["user", "Go on."],
      ["assistant", "As far as this "],
    ]);
  });

  test("a_reloaded_page_receives_the_rest_of_the_answer", async (t) => {
    const rest = gate();
    model.next(say("Before, ", rest, "and after."));
    const page = await site.open(t, "#/resumed/sessions/s");
    await write(page, "Go.");
    await page.getByText("Before,").waitFor();
    await page.reload();
    await page.getByText("Before,").waitFor();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    rest.open();
    await page.getByText("Before, and after.").waitFor();
    assert.equal(await page.getByRole("article").count(), 2);
  });

  test("a_message_sent_during_a_refresh_is_not_lost", async (t) => {
    const rest = gate();
    model.next(say("To both: ", rest, "hello."));
    await ask("crossed", "createSession", { id: "s" });
    await ask("crossed", "appendEvents", {
      sessionId: "s",
      events: [{ action: "user_message", content: "From the beginning." }],
    });
    const page = await site.open(t, "#/crossed/sessions/s");
    await page.getByText("From the beginning.").waitFor();
    // The page's read starts before the message is sent, and is answered after it.
    const reading = gate();
    await page.route(
      "**/rpc/getHistory",
      async (route) => {
        const response = await route.fetch();
        reading.reach();
        await reading.gate;
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    await ask("crossed", "appendEvents", {
      sessionId: "s",
      events: [{ action: "user_message", content: "From elsewhere." }],
    });
    await reading.reached;
    await write(page, "From here.");
    await page.getByText("To both:").waitFor();
    const isRead = page.waitForResponse("**/rpc/getHistory").then((response) => response.finished());
    reading.open();
    await isRead;
    await rendered(page);
    assert.equal(await page.getByRole("article").filter({ hasText: "From here." }).count(), 1);
    rest.open();
    await page.getByText("To both: hello.").waitFor();
    await page.getByText("From elsewhere.").waitFor();
  });

  test("a_page_that_starts_a_turn_does_not_also_subscribe_to_it", async (t) => {
    const rest = gate();
    model.next(say("Once ", rest, "only."));
    const page = await site.open(t, "");
    const listening = await delayRequests(page, "**/chat/s/stream");
    const isGivenUp = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/chat/s/stream"));
    await page.goto(site.at("#/once/sessions/s"));
    await listening.arrived;
    await write(page, "Say it.");
    await isGivenUp;
    listening.open();
    rest.open();
    await page.getByText("Once only.").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    assert.equal(await page.getByRole("article").count(), 2);
  });

  test("queued_messages_are_shown_answered_in_order_and_withdrawn", async (t) => {
    const rest = gate();
    model.next(say("First, ", rest, "done."), say("Second done."), say("Fourth done."));
    const page = await site.open(t, "#/queued/sessions/s");
    await write(page, "First?");
    await page.getByText("First,").waitFor();
    for (const text of ["Second?", "Third?", "Fourth?"]) await write(page, text);
    const waiting = page.getByRole("region", { name: "Queued messages" });
    await waiting.getByText("3 messages waiting").waitFor();
    assert.deepEqual(await waiting.locator("li p").allTextContents(), ["Second?", "Third?", "Fourth?"]);
    // A waiting message is not part of the conversation yet, on the page or in the agent.
    assert.equal(await page.getByRole("article").filter({ hasText: "Second?" }).count(), 0);
    assert.deepEqual(await history("queued"), [["user", "First?"]]);

    await waiting.getByRole("listitem").filter({ hasText: "Third?" }).getByRole("button", { name: "Cancel" }).click();
    await waiting.getByText("2 messages waiting").waitFor();
    assert.equal(await page.getByRole("textbox", { name: "Message" }).inputValue(), "Third?");
    rest.open();
    await page.getByText("Fourth done.").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    assert.equal(await waiting.count(), 0);
    const expected = [
      ["user", "First?"],
      ["assistant", "First, done."],
      ["user", "Second?"],
      ["assistant", "Second done."],
      ["user", "Fourth?"],
      ["assistant", "Fourth done."],
    ];
    assert.deepEqual(await history("queued"), expected);
    assert.equal(await page.getByRole("article").count(), expected.length);
  });

  test("messages_reach_the_agent_in_the_order_sent", async (t) => {
    const rest = gate();
    model.next(say("First, ", rest, "done."), say("Second done."), say("Fourth done."));
    const page = await site.open(t, "#/ordered/sessions/s");
    await write(page, "First?");
    await page.getByText("First,").waitFor();
    const sent = [];
    page.on(
      "request",
      (request) => request.url().endsWith("/chat") && sent.push(request.postDataJSON().message.parts[0].text),
    );
    const second = await delayRequests(page, "**/chat", (request) => request.postData().includes("Second?"));
    for (const text of ["Second?", "Third?", "Fourth?"]) await write(page, text);
    await second.arrived;
    const waiting = page.getByRole("region", { name: "Queued messages" });
    await waiting.getByText("3 messages waiting").waitFor();
    assert.deepEqual(sent, ["Second?"]);
    // A message that was not sent to the agent yet can be withdrawn too, without changing the
    // draft.
    await page.getByRole("textbox", { name: "Message" }).fill("A draft.");
    await waiting.getByRole("listitem").filter({ hasText: "Third?" }).getByRole("button", { name: "Cancel" }).click();
    await waiting.getByText("2 messages waiting").waitFor();
    await until(
      () => page.getByRole("textbox", { name: "Message" }).inputValue(),
      (text) => text === "Third?\n\nA draft.",
    );
    second.open();
    // The agent has accepted the second message before it receives the fourth.
    await until(
      () => sent,
      (sent) => sent.length === 2,
    );
    rest.open();
    await page.getByText("Fourth done.").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    await until(
      () => history("ordered"),
      (messages) => messages.length === 6,
    );
    const texts = (await history("ordered")).map(([, text]) => text);
    assert.deepEqual(texts, ["First?", "First, done.", "Second?", "Second done.", "Fourth?", "Fourth done."]);
    assert.deepEqual(sent, ["Second?", "Fourth?"]);
  });

  test("a_message_lost_in_transit_keeps_its_position", async (t) => {
    const rest = gate();
    model.next(say("First, ", rest, "done."), say("Second done."), say("Third done."));
    const page = await site.open(t, "#/kept/sessions/s");
    await write(page, "First?");
    await page.getByText("First,").waitFor();
    let isLost = false;
    await page.route("**/chat", async (route) => {
      if (isLost || !route.request().postData().includes("Second?")) return await route.fallback();
      isLost = true;
      await route.abort("connectionfailed");
    });
    for (const text of ["Second?", "Third?"]) await write(page, text);
    await page.getByText("Connection lost.").waitFor();
    rest.open();
    await page.getByText("Third done.").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    const texts = (await history("kept")).map(([, text]) => text);
    assert.deepEqual(texts, ["First?", "First, done.", "Second?", "Second done.", "Third?", "Third done."]);
  });

  test("the_first_loaded_message_is_edited_in_place", async (t) => {
    await ask("deep", "createSession", { id: "s" });
    await ask("deep", "appendEvents", {
      sessionId: "s",
      events: Array.from({ length: 160 }, (_, n) => ({
        id: `n${n}`,
        action: n % 2 ? "agent_message" : "user_message",
        content: `Number ${n}.`,
      })),
    });
    model.next(say("Anew."));
    const page = await site.open(t, "#/deep/sessions/s");
    await page.getByText("Number 159.").waitFor();
    // The oldest message of the first page: earlier ones are not loaded yet.
    const list = page.getByRole("region", { name: "Messages" });
    const above = await delayRequests(
      page,
      "**/rpc/getHistory",
      (request) => request.postDataJSON().before !== undefined,
    );
    await list.evaluate((list) => (list.scrollTop = 0));
    const oldest = page.getByRole("article").filter({ hasText: "Number 60." });
    await oldest.getByRole("button", { name: "Edit and resend" }).click();
    await page.getByLabel("The message's new text").fill("Another sixty.");
    await above.arrived;
    await page.getByRole("button", { name: "Resend", exact: true }).click();
    above.open();
    await page.getByText("Anew.").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    const events = await ask("deep", "loadEvents", { sessionId: "s", tail: true, limit: 2 });
    assert.deepEqual(
      events.map(({ content }) => content),
      ["Another sixty.", "Anew."],
    );
    assert.equal(events[0].parentId, "n59");
  });

  test("another_answer_is_a_sibling_and_both_can_be_shown", async (t) => {
    model.next(say("Four."), say("It is four."));
    const page = await site.open(t, "#/again/sessions/s");
    await write(page, "2 + 2?");
    await page.getByText("Four.").waitFor();
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.getByText("It is four.").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    assert.deepEqual(await history("again"), [
      ["user", "2 + 2?"],
      ["assistant", "It is four."],
    ]);
    await page.getByRole("img", { name: "Branch 2 of 2" }).waitFor();
    // The tree is read again after the messages.
    const reading = await delayRequests(page, "**/rpc/buildWorkingContext");
    await page.getByRole("button", { name: "Branch before" }).click();
    await page.getByText("Four.", { exact: true }).waitFor();
    assert.deepEqual(await history("again"), [
      ["user", "2 + 2?"],
      ["assistant", "Four."],
    ]);

    await page.getByRole("link", { name: "Branches", exact: true }).click();
    await page.getByText("3 events, 2 branches").waitFor();
    await page.getByRole("button", { name: "Switch to this branch" }).click();
    reading.open();
    await until(
      () => history("again"),
      ([, [, text]]) => text === "It is four.",
    );
    await page.getByRole("link", { name: "Conversation", exact: true }).click();
    await page.getByText("It is four.").waitFor();
  });

  test("an_edited_question_is_answered_again_and_the_old_one_stays", async (t) => {
    model.next(say("Four."), say("Six."), say("Nine."), say("Ten."));
    const page = await site.open(t, "#/edited/sessions/s");
    await write(page, "2 + 2?");
    await page.getByText("Four.").waitFor();
    await write(page, "3 + 3?");
    await page.getByText("Six.").waitFor();
    // First in the middle, then the very first.
    for (const [from, to, answer, rest] of [
      ["3 + 3?", "4 + 5?", "Nine.", "Four."],
      ["2 + 2?", "5 + 5?", "Ten.", null],
    ]) {
      await page
        .getByRole("article")
        .filter({ hasText: from })
        .getByRole("button", { name: "Edit and resend" })
        .click();
      await page.getByLabel("The message's new text").fill(to);
      await page.getByRole("button", { name: "Resend", exact: true }).click();
      await page.getByText(answer).waitFor();
      await page.getByRole("button", { name: "Send", exact: true }).waitFor();
      assert.deepEqual((await history("edited")).slice(-2), [
        ["user", to],
        ["assistant", answer],
      ]);
      assert.equal(await page.getByText(rest ?? "Six.").count(), rest === null ? 0 : 1);
    }
    const texts = (await ask("edited", "loadEvents", { sessionId: "s" })).map(({ content }) => content);
    assert.deepEqual(texts, ["2 + 2?", "Four.", "3 + 3?", "Six.", "4 + 5?", "Nine.", "5 + 5?", "Ten."]);
    await page.getByRole("img", { name: "Branch 2 of 2" }).waitFor();
  });

  for (const isApproved of [true, false]) {
    test(`a_call_that_needs_approval_is_${isApproved ? "approved" : "declined"}`, async (t) => {
      const agent = isApproved ? "approved" : "declined";
      await ask(agent, "defineTool", { name: "pay", description: "Pays.", service: "TOOLS", needsApproval: true });
      model.next(callTool("pay", { amount: 5 }, "c1"), say(isApproved ? "Paid." : "Not paid."));
      const page = await site.open(t, `#/${agent}/sessions/s`);
      await write(page, "Pay 5.");
      await page.getByText("needs approval").waitFor();
      await page.getByRole("button", { name: isApproved ? "Approve" : "Decline" }).click();
      await page.getByText(isApproved ? "Paid." : "Not paid.").waitFor();
      await page
        .locator(".state")
        .getByText(isApproved ? "done" : "declined", { exact: true })
        .waitFor();
      await page.getByRole("button", { name: "Send", exact: true }).waitFor();
      const { messages } = await ask(agent, "getHistory", { sessionId: "s" });
      assert.equal(messages.length, 2);
      const call = messages[1].parts.find(({ type }) => type === "tool-pay");
      assert.equal(call.state, isApproved ? "output-available" : "output-denied");
      if (isApproved) assert.deepEqual(call.output, { did: "pay", given: { amount: 5 } });
    });
  }

  for (const isAccepted of [true, false]) {
    test(`a_tools_question_is_${isAccepted ? "answered" : "declined"}`, async (t) => {
      const agent = isAccepted ? "answering" : "refusing";
      await ask(agent, "defineTool", { name: "book", description: "Books.", service: "TOOLS", needsApproval: false });
      model.next(callTool("book", {}, "c1"), say("All done."));
      const page = await site.open(t, `#/${agent}/sessions/s`);
      await write(page, "Book a room.");
      await page.getByText("Whom is the room for?").waitFor();
      if (isAccepted) {
        await page.getByLabel("Who <b>travels</b>? (required)").fill("Ann");
        await page.getByLabel("nights (required)").fill("2");
        await page.getByLabel("breakfast").check();
        await page.getByLabel("room").selectOption("large");
      }
      await page.getByRole("button", { name: isAccepted ? "Accept" : "Decline" }).click();
      await page.getByText("All done.").waitFor();
      await page.getByText("Whom is the room for?").waitFor({ state: "detached" });
      const { messages } = await ask(agent, "getHistory", { sessionId: "s" });
      const { output } = messages[1].parts.find(({ type }) => type === "tool-book");
      const content = { name: "Ann", nights: 2, breakfast: true, room: "large" };
      assert.deepEqual(output.inputResponses.guest, isAccepted ? { action: "accept", content } : { action: "decline" });
    });
  }

  test("deciding_an_old_call_warns_before_newer_messages_are_hidden", async (t) => {
    await ask("old", "defineTool", { name: "pay", description: "Pays.", service: "TOOLS", needsApproval: true });
    model.next(callTool("pay", { amount: 5 }, "c1"), say("One."), say("Two."));
    const page = await site.open(t, "#/old/sessions/s");
    await write(page, "Pay 5.");
    await page.getByText("needs approval").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    for (const [text, answer] of [
      ["And one?", "One."],
      ["And two?", "Two."],
    ]) {
      await write(page, text);
      await page.getByText(answer, { exact: true }).waitFor();
      await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    }
    const before = await history("old");
    assert.equal(before.length, 6);
    const approve = page.getByRole("button", { name: "Approve", exact: true });
    await approve.click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("4 newer messages after this call").waitFor();
    await dialog.getByRole("button", { name: "Decide later" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual(await history("old"), before);
    assert.equal(await page.getByRole("article").count(), 6);

    model.next(say("Paid."));
    await approve.click();
    await dialog.getByRole("button", { name: "Approve on a new branch" }).click();
    await page.getByText("Paid.", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    // The newer messages are on another branch.
    await page.getByRole("link", { name: "Branches", exact: true }).click();
    await page.getByRole("button", { name: "Switch to this branch" }).click();
    await page.getByRole("link", { name: "Conversation", exact: true }).click();
    await page.getByText("Two.", { exact: true }).waitFor();
    assert.deepEqual((await history("old")).slice(2), before.slice(2));
  });

  test("a_failed_turn_shows_why_and_can_be_retried", async (t) => {
    await ask("retried", "configureAgent", { model: "openai:none" });
    const page = await site.open(t, "#/retried/sessions/s");
    model.next(refuse(400, "There is no such model."));
    await write(page, "Anyone?");
    const notice = page.getByRole("group", { name: "No answer" });
    await notice.getByText("The turn failed.").waitFor();
    const { turns } = await ask("retried", "getTurns", { sessionId: "s", failed: true });
    assert.equal(turns.length, 1);
    await notice.getByText(turns[0].failure.code, { exact: true }).waitFor();
    await page.getByText(turns[0].failure.message).first().waitFor();
    await page.goto(site.at("#/retried/activity"));
    const failure = page.locator(".failures li").filter({ hasText: "Turn failed" });
    await failure.getByText(turns[0].failure.message).waitFor();
    assert.equal(await page.getByText("No failures.").count(), 0);
    await failure.getByRole("link").click();
    await page.locator(".problem", { hasText: turns[0].failure.message }).first().waitFor();

    await page.goto(site.at("#/retried/sessions/s"));
    await notice.getByText("The turn failed.").waitFor();
    model.next(say("Here."));
    await notice.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Here.", { exact: true }).waitFor();
    await notice.waitFor({ state: "detached" });
    assert.deepEqual(await history("retried"), [
      ["user", "Anyone?"],
      ["assistant", "Here."],
    ]);
    // No success is shown while a failure is recorded.
    await page.goto(site.at("#/retried/activity"));
    await failure.waitFor();
  });

  test("a_failed_turn_keeps_its_position_and_can_be_retried_there", async (t) => {
    await ask("left", "configureAgent", { model: "openai:none" });
    const page = await site.open(t, "#/left/sessions/s");
    model.next(refuse(400, "There is no such model."));
    await write(page, "First?");
    const notice = page.getByRole("group", { name: "No answer" });
    await notice.getByText("The turn failed.").waitFor();
    model.next(say("Second."));
    await write(page, "Second?");
    await page.getByText("Second.", { exact: true }).waitFor();
    const { turns } = await ask("left", "getTurns", { sessionId: "s", failed: true });
    for (const again of [false, true]) {
      if (again) await page.reload();
      await page.getByText("Second.", { exact: true }).waitFor();
      await page
        .getByRole("listitem")
        .filter({ hasText: "First?" })
        .getByRole("group", { name: "No answer" })
        .getByText(turns[0].failure.message)
        .waitFor();
    }
    assert.equal(await notice.count(), 1);
    model.next(say("Here."));
    await notice.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Here.", { exact: true }).waitFor();
    await notice.waitFor({ state: "detached" });
    assert.deepEqual(await history("left"), [
      ["user", "First?"],
      ["assistant", "Here."],
    ]);
  });

  test("a_turn_has_a_waterfall_while_running_and_afterwards", async (t) => {
    await defineWeather("drawn");
    const rest = gate();
    model.next(callTool("weather", { city: "Oslo" }, "c1"), say("It ", rest, "rains."));
    const page = await site.open(t, "#/drawn/sessions/s");
    await write(page, "Rain?");
    await page.locator(".live summary").click();
    const live = page.getByRole("region", { name: "Running turn" });
    await live.getByRole("row", { name: /request 2/ }).waitFor();
    await live.getByRole("row", { name: /weather/ }).waitFor();
    await page.getByText("Answering ·").waitFor();
    rest.open();
    await page.getByText("It rains.", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    assert.equal(await page.locator(".live").count(), 0);
    await page.getByLabel("More for this message").last().click();
    await page.getByRole("button", { name: "View turn" }).click();
    const { turns } = await ask("drawn", "getTurns", { sessionId: "s" });
    const rows = page.getByRole("region", { name: "The turn's steps" }).getByRole("row");
    await rows.filter({ hasText: "weather" }).waitFor();
    assert.equal(await rows.count(), 1 + 1 + turns[0].steps.length + 1);
    await page.getByText(`${turns[0].steps[1].context.sentMessages} messages`).waitFor();
  });

  test("a_waterfall_continues_after_a_reconnect", async (t) => {
    await defineWeather("dropped");
    const [rest, last] = [gate(), gate()];
    model.next(callTool("weather", { city: "Oslo" }, "c1"), say("It ", rest, "rains, ", last, "still."));
    const page = await site.open(t, "#/dropped/sessions/s");
    // The page's stream of the turn breaks off after the tool's result, and the turn continues.
    await page.evaluate(() => {
      const { fetch } = window;
      window.fetch = async (url, init) => {
        const response = await fetch(url, init);
        if (!String(url).endsWith("/chat")) return response;
        window.fetch = fetch;
        const reader = response.body.getReader();
        const body = new ReadableStream({
          async pull(controller) {
            const { value, done } = await reader.read();
            if (window.isCut) return controller.error(new TypeError("network error"));
            if (done) return controller.close();
            controller.enqueue(value);
          },
        });
        window.cut = () => {
          window.isCut = true;
          void reader.cancel();
        };
        return new Response(body, response);
      };
    });
    await write(page, "Rain?");
    await page.locator(".live summary").click();
    const row = (name) => page.getByRole("region", { name: "Running turn" }).getByRole("row", { name });
    await row(/request 2/).waitFor();
    const timesShown = () =>
      row(/weather/)
        .getByRole("cell")
        .last()
        .textContent();
    const before = await timesShown();
    assert.match(before, /^\d+ ms$/);
    await page.evaluate(() => window.cut());
    rest.open();
    // Only a page that reconnected to the turn receives this.
    await page.getByText("It rains,", { exact: true }).waitFor();
    await row(/request 2/).waitFor();
    assert.equal(await timesShown(), before);
    assert.equal(await page.getByText("seen for").count(), 0);
    last.open();
    await page.getByText("It rains, still.", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    // A page opened during a turn shows that it missed the beginning.
    const end = gate();
    model.next(say("Still ", end, "raining."));
    await write(page, "And now?");
    await page.getByText("Still", { exact: true }).waitFor();
    await page.reload();
    await page.getByText("seen for").waitFor();
    end.open();
    await page.getByText("Still raining.").waitFor();
  });

  test("a_call_can_be_approved_after_its_turn", async (t) => {
    await ask("slow", "defineTool", { name: "pay", description: "Pays.", service: "TOOLS", needsApproval: true });
    model.next(callTool("pay", { amount: 5 }, "c1"), say("Paid."));
    const page = await site.open(t, "");
    // The call is shown, and the end of the turn's stream is still pending.
    await page.addInitScript(() => {
      const { fetch } = window;
      const isReleased = new Promise((resolve) => (window.release = resolve));
      window.fetch = async (...given) => {
        const response = await fetch(...given);
        if (!/\/chat(\?|$)/.test(response.url)) return response;
        const transform = async (text, controller) => {
          for (const event of text.split(/(?<=\n\n)/)) {
            controller.enqueue(event);
            if (event.includes("tool-approval-request")) await isReleased;
          }
        };
        const delayed = response.body
          .pipeThrough(new TextDecoderStream())
          .pipeThrough(new TransformStream({ transform }));
        return new Response(delayed.pipeThrough(new TextEncoderStream()), response);
      };
    });
    await page.goto(site.at("#/slow/sessions/s"));
    await page.reload();
    await write(page, "Pay 5.");
    await page.getByText("needs approval").waitFor();
    const approve = page.getByRole("button", { name: "Approve" });
    assert.equal(await approve.isDisabled(), true);
    await page.evaluate(() => window.release());
    await approve.click();
    await page.getByText("Paid.").waitFor();
  });

  test("a_failing_turn_is_reported_and_its_text_stays", async (t) => {
    const page = await site.open(t, "#/failed/sessions/s");
    await write(page, "Anyone?");
    await page.getByRole("alert").waitFor();
    assert.deepEqual((await history("failed")).map(([role]) => role)[0], "user");
    model.next(say("Here."));
    await page.getByRole("button", { name: "Dismiss" }).click();
    await write(page, "Again?");
    await page.getByText("Here.").waitFor();
  });

  test("a_model_is_selected_for_the_page_and_for_the_agent", async (t) => {
    const page = await site.open(t, "#/chosen/sessions/s");
    await page.getByText("Agent's model").click();
    await page.getByLabel("Model for messages sent from this page").fill("demo");
    await write(page, "Who are you?");
    await page.getByText("built-in demo").waitFor();
    await page.getByRole("link", { name: "Settings" }).click();
    await page.getByRole("combobox", { name: "Model", exact: true }).fill("openai:other");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    assert.equal((await ask("chosen", "getConfig")).model, "openai:other");
  });

  test("a_compaction_is_previewed_applied_and_expanded_to_the_originals", async (t) => {
    await ask("compacted", "createSession", { id: "s" });
    await ask("compacted", "configureCompaction", {
      sessionId: "s",
      protectHead: 1,
      tailTokenBudget: 10,
      minTailMessages: 1,
    });
    await ask("compacted", "appendEvents", {
      sessionId: "s",
      events: Array.from({ length: 12 }, (_, n) => ({
        action: n % 2 ? "agent_message" : "user_message",
        content: `Said as number ${n}, and some more words to weigh something.`,
      })),
    });
    const page = await site.open(t, "#/compacted/sessions/s");
    await page.getByText("Said as number 11").waitFor();
    await page.getByLabel("Session actions").click();
    await page.getByRole("button", { name: "Compact" }).click();
    await page.getByText("A summary will replace these messages").waitFor();
    assert.deepEqual((await ask("compacted", "getCompactions", { sessionId: "s" })).compactions, []);

    model.next(say("They counted."));
    await page.getByRole("button", { name: "Compact now" }).click();
    await page.getByText("Summary of earlier messages").waitFor();
    assert.equal((await ask("compacted", "getCompactions", { sessionId: "s" })).compactions.length, 1);
    assert.equal(await page.getByText("Said as number 5,").count(), 0);

    await page.getByText("Summary of earlier messages").click();
    await page.getByText("They counted.").waitFor();
    await page.getByRole("button", { name: "Show original messages" }).click();
    await page.getByText("Said as number 5,").waitFor();
    await page.getByRole("button", { name: "Remove summary" }).click();
    await page.getByText("Summary of earlier messages").waitFor({ state: "detached" });
    await page.getByText("Said as number 5,").waitFor();
    assert.deepEqual((await ask("compacted", "getCompactions", { sessionId: "s" })).compactions, []);
  });

  test("a_summary_removed_during_a_send_disappears", async (t) => {
    await ask("moved", "createSession", { id: "s" });
    await ask("moved", "configureCompaction", {
      sessionId: "s",
      protectHead: 1,
      tailTokenBudget: 10,
      minTailMessages: 40,
    });
    await ask("moved", "appendEvents", {
      sessionId: "s",
      events: Array.from({ length: 60 }, (_, n) => ({
        action: n % 2 ? "agent_message" : "user_message",
        content: `Said as number ${n}.`,
      })),
    });
    model.next(say("They counted."), say("Sixty."));
    await ask("moved", "compact", { sessionId: "s" });
    const page = await site.open(t, "#/moved/sessions/s");
    await page.getByText("Said as number 59.").waitFor();
    await page.getByRole("region", { name: "Messages" }).evaluate((list) => (list.scrollTop = 0));
    const summary = page.getByText("Summary of earlier messages");
    await summary.click();
    let readings = 0;
    const first = await delayRequests(page, "**/rpc/getHistory", () => (readings += 1) === 1);
    await page.getByRole("button", { name: "Remove summary" }).click();
    await first.arrived;
    await write(page, "How many?");
    await until(
      () => history("moved"),
      (messages) => messages.at(-1)[1] === "Sixty.",
    );
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
    first.open();
    await summary.waitFor({ state: "detached" });
    await page.getByText("Said as number 5.").waitFor();
  });

  test("a_message_can_be_deleted_and_forked_from", async (t) => {
    await ask("cut", "createSession", { id: "s", name: "Cut" });
    await ask("cut", "appendEvents", {
      sessionId: "s",
      events: [1, 2, 3].map((n) => ({ id: `m${n}`, action: "user_message", content: `Number ${n}` })),
    });
    const page = await site.open(t, "#/cut/sessions/s");
    const more = (text) => page.getByRole("article").filter({ hasText: text }).getByLabel("More for this message");
    await more("Number 2").click();
    await page.getByRole("button", { name: "Delete message" }).click();
    await until(
      () => history("cut"),
      (messages) => messages.length === 2,
    );
    await more("Number 1").click();
    await page.getByRole("button", { name: "Fork from here" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Fork" }).click();
    await page.getByRole("heading", { name: "Cut (fork)" }).waitFor();
    const { sessions } = await ask("cut", "listSessions");
    const fork = sessions.find(({ name }) => name === "Cut (fork)");
    assert.deepEqual(
      (await ask("cut", "loadEvents", { sessionId: fork.id })).map(({ id }) => id),
      ["m1"],
    );
  });

  test("the_log_and_the_feed_show_each_write", async (t) => {
    await ask("logged", "createSession", { id: "s" });
    await ask("logged", "appendEvents", {
      sessionId: "s",
      events: [{ id: "first", action: "user_message", content: "One" }],
    });
    const page = await site.open(t, "#/logged/sessions/s/events");
    await page.getByRole("article", { name: "Event 1" }).waitFor();
    await page.getByRole("link", { name: "Changes", exact: true }).click();
    await page.getByText("1 so far").waitFor();
    await ask("logged", "appendEvents", {
      sessionId: "s",
      events: [{ id: "second", action: "agent_message", content: "Two" }],
    });
    await page.getByText("2 so far").waitFor();
    await ask("logged", "deleteEvents", { sessionId: "s", eventIds: ["first"] });
    await page.locator(".badge.delete").waitFor();
  });
});
