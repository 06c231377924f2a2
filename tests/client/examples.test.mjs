// Each example by its one command, on this machine, without an account.

import "./resolve.mjs";
import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentClient } from "agents/client";
import { callTool, say } from "../workerd/model_server.mjs";
import { withChat, withExample } from "./example.mjs";

const { sessionAgent } = await import("session-agent");

test("the_loop_of_the_ai_sdk_runs_in_its_own_worker", async () => {
  await withExample("ai-sdk-worker", async (url) => {
    const ask = async (body) => {
      const response = await fetch(`${url}/ask`, { method: "POST", body: JSON.stringify(body) });
      return { status: response.status, text: await response.text() };
    };
    assert.deepEqual(await ask({ session: "first", text: "Remember that I like tea." }), { status: 200, text: "I will remember that I like tea." });
    assert.deepEqual(await ask({ session: "first", text: "Hello" }), { status: 200, text: "I am a stand-in for a model. You said: Hello" });
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
      const response = await fetch(`${url}/api/token`, { method: "POST", headers: cookie === undefined ? {} : { cookie } });
      return { ...(await response.json()), cookie: response.headers.get("set-cookie").split(";")[0] };
    };
    const visit = await welcome();
    assert.equal((await welcome(visit.cookie)).agent, visit.agent);
    assert.notEqual((await welcome()).agent, visit.agent);

    // What the page does, with the stock client of the Agents SDK.
    const agent = sessionAgent(url, visit.agent, { token: visit.token });
    const { id: sessionId } = await agent.createSession({ name: "Chat 1" });
    const socket = new AgentClient({ agent: "SessionAgent", name: visit.agent, host: url.replace("http://", ""), protocol: "ws", query: { sessionId, token: visit.token } });
    await socket.ready;
    const message = { id: "q", role: "user", parts: [{ type: "text", text: "How is Oslo?" }] };
    const chunks = [];
    for await (const chunk of agent.session(sessionId).chat({ message })) chunks.push(chunk);
    const weather = chunks.find(({ type }) => type === "tool-output-available");
    assert.deepEqual(weather.output.city ?? JSON.parse(weather.output).city, "Oslo");
    for await (const _ of agent.session(sessionId).chat({ trigger: "regenerate-message", messages: [message] })) continue;
    const { messages: answers } = await agent.getBranches({ sessionId, messageId: "q" });
    assert.equal(answers.length, 2);
    await agent.setLeaf({ sessionId, id: answers[0].id });
    assert.equal((await agent.getHistory({ sessionId })).messages[1].id, answers[0].id);
    assert.deepEqual((await agent.getBlocks()).map(({ label }) => label), ["soul", "memory"]);
    socket.close();

    // A visitor's token is for the visitor's agent, and for what the page does.
    const other = await welcome();
    await assert.rejects(sessionAgent(url, other.agent, { token: visit.token }).listSessions(), { status: 401 });
    await assert.rejects(agent.defineTool({ name: "x", description: "x", service: "TOOLS" }), { code: "forbidden" });
    await assert.rejects(sessionAgent(url, visit.agent).listSessions(), { code: "unauthorized" });
    assert.equal((await fetch(`${url}/echo`, { method: "POST", body: '{"name":"echo","arguments":{"text":"x"}}' })).status, 404);
  });
});
