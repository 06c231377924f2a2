// Runs each example by its documented command, on this machine, without an account. A browser uses
// the chat's page as a visitor would; a scripted model answers. The tests share one file because
// two runs of an example would share its folder.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentClient } from "agents/client";
import { launch, skip, until } from "../console/browser.mjs";
import { callTool, callTools, gate, say } from "../workerd/model_server.mjs";
import { withChat, withExample } from "./example.mjs";

const { sessionAgent } = await import("session-agent");

const PATIENCE_MS = 60_000;

test("the_ai_sdk_loop_runs_in_its_own_worker", async () => {
  await withExample("ai-sdk-worker", async (url) => {
    const ask = async (body) => {
      const response = await fetch(`${url}/ask`, { method: "POST", body: JSON.stringify(body) });
      return { status: response.status, text: await response.text() };
    };
    assert.deepEqual(await ask({ session: "first", text: "Remember that I like tea." }), {
      status: 200,
      text: "I will remember that I like tea.",
    });
    assert.deepEqual(await ask({ session: "first", text: "Hello" }), {
      status: 200,
      text: "I am a stand-in for a model. You said: Hello",
    });
    assert.equal((await ask({ session: "first" })).status, 400);
    assert.equal((await fetch(url)).status, 404);
  });
});

test("the_chat_serves_its_page_and_gives_each_visitor_an_agent", async () => {
  await withChat(async (url, model) => {
    model.next(callTool("weather", { city: "Oslo" }), say("Snow in Oslo."), say("Still snow."));
    const page = await (await fetch(url)).text();
    const [, script] = page.match(/src="(\/assets\/.+?\.js)"/);
    assert.equal((await fetch(`${url}${script}`)).status, 200);

    const welcome = async (cookie) => {
      const response = await fetch(`${url}/api/token`, {
        method: "POST",
        headers: cookie === undefined ? {} : { cookie },
      });
      return { ...(await response.json()), cookie: response.headers.get("set-cookie").split(";")[0] };
    };
    const visit = await welcome();
    assert.equal((await welcome(visit.cookie)).agent, visit.agent);
    assert.notEqual((await welcome()).agent, visit.agent);

    // The page's operations, with the stock client of the Agents SDK.
    const agent = sessionAgent(url, visit.agent, { token: visit.token });
    const { id: sessionId } = await agent.createSession({ name: "Chat 1" });
    const socket = new AgentClient({
      agent: "SessionAgent",
      name: visit.agent,
      host: url.replace("http://", ""),
      protocol: "ws",
      query: { sessionId, token: visit.token },
    });
    await socket.ready;
    const message = { id: "q", role: "user", parts: [{ type: "text", text: "How is Oslo?" }] };
    const chunks = [];
    for await (const chunk of agent.session(sessionId).chat({ message })) chunks.push(chunk);
    const weather = chunks.find(({ type }) => type === "tool-output-available");
    assert.deepEqual(weather.output.city ?? JSON.parse(weather.output).city, "Oslo");
    for await (const _ of agent.session(sessionId).chat({ trigger: "regenerate-message", messages: [message] }));
    const { messages: answers } = await agent.getBranches({ sessionId, messageId: "q" });
    assert.equal(answers.length, 2);
    await agent.setLeaf({ sessionId, id: answers[0].id });
    assert.equal((await agent.getHistory({ sessionId })).messages[1].id, answers[0].id);
    assert.deepEqual(
      (await agent.getBlocks()).map(({ label }) => label),
      ["soul", "memory"],
    );
    socket.close();

    // A visitor's token is for the visitor's agent, and for what the page does.
    const other = await welcome();
    await assert.rejects(sessionAgent(url, other.agent, { token: visit.token }).listSessions(), { status: 401 });
    await assert.rejects(agent.defineTool({ name: "x", description: "x", service: "TOOLS" }), { code: "forbidden" });
    await assert.rejects(sessionAgent(url, visit.agent).listSessions(), { code: "unauthorized" });
    assert.equal(
      (await fetch(`${url}/echo`, { method: "POST", body: '{"name":"echo","arguments":{"text":"x"}}' })).status,
      404,
    );
  });
});

test("a_visitor_chats_approves_branches_edits_the_memory_and_returns", { skip }, async (t) => {
  const browser = await launch();
  t.after(() => browser.close());
  await withChat(async (url, model) => {
    const wrong = [];
    const context = await browser.newContext({ viewport: { width: 1200, height: 760 } });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    page.on("pageerror", (error) => wrong.push(error.stack));
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== url && request.url().startsWith("http"))
        wrong.push(`asked ${request.url()}`);
    });
    const button = (name) => page.getByRole("button", { name, exact: true });
    // For a moment, an answer may be shown twice: from the stream and from the log.
    const shows = async (text) => {
      const shown = page.getByRole("list").last().getByText(text, { exact: true });
      await shown.first().waitFor();
      for (const deadline = Date.now() + PATIENCE_MS; (await shown.count()) !== 1; await page.waitForTimeout(20))
        assert.ok(Date.now() < deadline, `${text} is shown ${await shown.count()} times`);
    };
    const write = async (text) => {
      await page.getByRole("textbox", { name: "Message" }).fill(text);
      await button("Send").click();
    };

    await page.goto(url);
    await page.getByText("Begin a chat.").waitFor();
    await button("New chat").click();

    // The service's tool is called, and the answer is shown as it streams.
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

    // Text that the model stores appears in the panel, and the visitor edits it.
    model.next(callTool("set_context", { label: "memory", content: "Likes snow." }), say("Noted."));
    await write("I like snow.");
    await shows("Noted.");
    const memory = page.getByRole("textbox", { name: "memory" });
    await until(
      () => memory.inputValue(),
      (text) => text === "Likes snow.",
    );
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

    // Another answer is a sibling of the first, and the visitor selects one.
    model.next(say("Rather not."));
    await button("Regenerate").click();
    await shows("Rather not.");
    await button("Answer 1").click();
    await shows("Then not.");
    await page.reload();
    await shows("Then not.");
    assert.equal(await page.getByText("Rather not.").count(), 0);
    await until(
      () => memory.inputValue(),
      (text) => text === "Likes snow and tea.",
    );

    // A page reloaded in the middle of an answer receives the rest.
    const later = gate();
    model.next(say("Before, ", later, "and after."));
    await write("Go on.");
    await shows("Before,");
    await page.reload();
    await shows("Before,");
    later.open();
    await shows("Before, and after.");
    await button("Send").waitFor();

    // Another chat has its own messages and the same memory.
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
    await shows("A new one.");
    await until(
      () => page.getByRole("navigation").getByRole("listitem").count(),
      (count) => count === 1,
    );

    assert.equal(model.unusedAnswers, 0);
    assert.deepEqual(wrong, []);
    await context.close();
  });
});
