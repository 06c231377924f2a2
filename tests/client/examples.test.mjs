// Each example by its one command, on this machine, without an account.

import "./resolve.mjs";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { AgentClient } from "agents/client";
import { ROOT } from "../../scripts/places.mjs";
import { NODE } from "../../scripts/wrangler.mjs";
import { callTool, say, startModel } from "../workerd/model_server.mjs";

const { sessionAgent } = await import("session-agent");

const START_MS = 240_000;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

/** Runs `npm start` of an example while `work` asks it. */
async function started(name, work, env = {}) {
  const port = await freePort();
  const child = spawn(NODE, [join(ROOT, "scripts/run.cjs"), "example", name], { cwd: join(ROOT, "examples", name), env: { ...process.env, ...env, PORT: `${port}` }, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (said += text));
  const ended = once(child, "exit");
  try {
    const url = `http://127.0.0.1:${port}`;
    for (const until = Date.now() + START_MS; ; await wait(200)) {
      if (await fetch(url).then((response) => response.arrayBuffer(), () => null)) break;
      assert.ok(child.exitCode === null && Date.now() < until, said);
    }
    await work(url);
  } catch (error) {
    throw new Error(`${error.message}\n${said}`, { cause: error });
  } finally {
    child.kill("SIGINT");
    await ended;
  }
}

test("the_loop_of_the_ai_sdk_runs_in_its_own_worker", async () => {
  await started("ai-sdk-worker", async (url) => {
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
  const model = await startModel();
  model.next(callTool("weather", { city: "Oslo" }), say("Snow in Oslo."), say("Still snow."));
  const env = { MODEL: "openai:test", OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "a key" };
  await started("session-agent", async (url) => {
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
  }, env);
  await model.stop();
});
