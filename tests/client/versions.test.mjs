// The packed archive with the oldest supported versions and with other ways to run a Worker: models
// and tools of each `ai`, wrangler, the vitest pool, and miniflare alone.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { VERSIONS } from "../../client/dist/versions.js";
import { NODE, quietEnv } from "../../scripts/wrangler.mjs";
import { callTool, say, startModel } from "../workerd/model_server.mjs";
import { compilerErrors } from "./compile_typescript.mjs";
import { dev, project, wrangler } from "./packed_project.mjs";

const SOURCES = join(import.meta.dirname, "own_versions");
const PACKAGES = join(import.meta.dirname, "versions");
const SECRET = "the secret of this test, long enough";

let app;
let model;
let server;
before(async () => {
  model = await startModel();
  app = await project(SOURCES, ["@cloudflare/workers-types"], PACKAGES);
  server = await dev(app.folder, "--var", `MODEL_URL:${model.url}`);
});
after(async () => {
  await server?.stop();
  await app?.remove();
  await model?.stop();
});

async function ask(agent, operation, input, at = server.url) {
  const response = await fetch(`${at}/agents/session-agent/${agent}/rpc/${operation}`, {
    method: "POST",
    body: JSON.stringify(input),
  });
  return { status: response.status, body: await response.json() };
}

async function ok(agent, operation, input) {
  const { status, body } = await ask(agent, operation, input);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

/** Waits until wrangler has logged the sentence. */
async function isLogged(sentence) {
  for (const until = Date.now() + 20_000; !sentence.test(server.output()); await wait(50))
    assert.ok(Date.now() < until, server.output());
}

let turns = 0;

function turnOf(text = "How is Oslo?") {
  turns += 1;
  return { sessionId: "s", message: { id: `m${turns}`, role: "user", parts: [{ type: "text", text }] } };
}

/** Calls a method over the binding. Returns its result, or the message of its exception. */
async function method(binding, agent, name, ...given) {
  const response = await fetch(`${server.url}/own/call`, {
    method: "POST",
    body: JSON.stringify({ binding, agent, method: name, given }),
  });
  return await response.json();
}

test("the_oldest_wrangler_serves_it_and_passes_a_dry_run", async () => {
  assert.equal((await wrangler(app.folder, "--version")).trim().split("\n")[0], VERSIONS.wrangler.oldest);
  const output = await wrangler(app.folder, "deploy", "--dry-run", "--outdir", "bundled");
  assert.match(output, /env\.SESSION_AGENT \(Assistant\)/);
  assert.match(output, /env\.CLOSED \(Closed\)/);
});

for (const [major, name] of [
  ["5", "five"],
  ["6", "six"],
  ["7", "seven"],
]) {
  test(`a_model_and_a_tool_of_ai_${major}_run_a_turn`, async () => {
    const { version } = JSON.parse(await readFile(join(PACKAGES, `node_modules/ai-${major}/package.json`), "utf8"));
    assert.ok(major in VERSIONS.ai.majors && version.startsWith(`${major}.`), version);
    model.next(callTool(name, { city: "Oslo" }, "c1"), say("It ", "rains."));
    const { message, usage, steps } = await ok(`model:${major}`, "runTurn", turnOf());
    const called = message.parts.find(({ type }) => type === `tool-${name}`);
    assert.deepEqual(
      [called.state, called.input, called.output],
      ["output-available", { city: "Oslo" }, "Rain in Oslo."],
    );
    assert.equal(message.parts.at(-1).text, "It rains.");
    assert.deepEqual([usage.inputTokens, usage.outputTokens, steps], [22, 14, 2]);
    const [first, again] = model.requests.slice(-2);
    assert.deepEqual(first.tools.find((tool) => tool.function.name === name).function.parameters.properties, {
      city: { type: "string" },
    });
    const result = again.messages.at(-1);
    assert.deepEqual([result.role, result.tool_call_id, result.content], ["tool", "c1", "Rain in Oslo."]);
  });
}

/** The client from its archive and one version of the AI SDK, in a program next to them. */
async function sdkOf(major) {
  const file = join(app.folder, `sdk-${major}.mjs`);
  await writeFile(
    file,
    [
      `export * as ai from "ai-${major}";`,
      `export { createOpenAI } from "@ai-sdk/openai-${major}";`,
      'export { sessionAgent } from "session-agent";',
      'export { mockModel } from "session-agent/testing";',
    ].join("\n"),
  );
  return await import(file);
}

for (const major of Object.keys(VERSIONS.ai.majors)) {
  test(`the_clients_tools_turns_and_chat_work_with_ai_${major}`, async () => {
    const { ai, createOpenAI, sessionAgent } = await sdkOf(major);
    const agent = sessionAgent(server.url, `client:${major}`, { token: SECRET });
    await agent.defineBlock({ label: "memory", kind: "writable", maxTokens: 500 });
    const session = agent.session("s");
    await session.create();
    const ask = async (text) =>
      await session.appendMessage({ message: { id: text, role: "user", parts: [{ type: "text", text }] } });

    // `modelInput()`: the tools are shown to the model, checked and run.
    await ask("I like tea.");
    const input = await session.modelInput();
    const noted = { label: "memory", content: `Likes tea, says ${major}.` };
    model.next(callTool("set_context", noted, "c1"), say("Noted."));
    const { system, messages, tools } = input;
    const result = ai.streamText({
      model: createOpenAI({ baseURL: model.url, apiKey: "none" }).chat("test"),
      system,
      messages,
      tools,
      stopWhen: ai.stepCountIs(3),
    });
    assert.equal(await result.text, "Noted.");
    const shown = model.requests.at(-1).tools.find((tool) => tool.function.name === "set_context");
    assert.deepEqual(shown.function.parameters.properties.label.enum, ["memory"]);
    assert.equal((await agent.getBlock({ label: "memory" })).content, noted.content);

    // `persist`: the turn is in the log once, even if it is written again.
    const written = await session.persist(result, input);
    assert.deepEqual(written.events.length, 3);
    assert.equal(
      (await session.persist(result, input)).events.every(({ inserted }) => !inserted),
      true,
    );
    const events = await session.loadEvents();
    assert.deepEqual(
      events.map(({ action }) => action),
      ["user_message", "tool_call_request", "tool_result", "agent_message"],
    );

    // The version's own transport works with the agent's chat, and its messages are read back.
    const transport = new ai.DefaultChatTransport({
      api: `${server.url}/agents/session-agent/client:${major}/chat`,
      headers: { authorization: `Bearer ${SECRET}` },
    });
    model.next(callTool("set_context", { ...noted, action: "append" }, "c2"), say("Again."));
    const message = { id: "again", role: "user", parts: [{ type: "text", text: "Again?" }] };
    const stream = await transport.sendMessages({ chatId: "s", trigger: "submit-message", messages: [message] });
    let answer;
    for await (const message of ai.readUIMessageStream({ stream })) answer = message;
    assert.deepEqual(
      answer.parts.filter(({ type }) => type !== "step-start").map(({ type, state }) => [type, state]),
      [
        ["tool-set_context", "output-available"],
        ["text", "done"],
      ],
    );
    const history = await session.getMessages();
    const prompt = await ai.convertToModelMessages(history);
    assert.ok(prompt.length >= history.length, JSON.stringify(prompt));
  });
}

for (const [major, specificationVersion] of Object.entries(VERSIONS.ai.majors)) {
  test(`the_mock_model_works_with_ai_${major}`, async () => {
    const { ai, mockModel } = await sdkOf(major);
    const model = mockModel(
      [
        { toolCalls: [{ toolName: "weather", input: { city: "Oslo" } }], inputTokens: 7 },
        "It rains.",
        new Error("Down."),
      ],
      { specificationVersion },
    );
    const tools = {
      weather: ai.tool({
        inputSchema: ai.jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
        execute: ({ city }) => `Rain in ${city}.`,
      }),
    };
    const request = { model, tools, prompt: "How is Oslo?", stopWhen: ai.stepCountIs(3), maxRetries: 0 };
    const { text, steps } = await ai.generateText(request);
    assert.deepEqual([text, steps.length, steps[0].usage.inputTokens], ["It rains.", 2, 7]);
    assert.deepEqual(model.requests[1].toolResults, [{ toolName: "weather", output: "Rain in Oslo." }]);
    await assert.rejects(ai.generateText(request), /Down\./);
    await assert.rejects(ai.generateText(request), /no answer left for "How is Oslo\?", request 4/);
    const streamed = ai.streamText({ model: mockModel(undefined, { specificationVersion }), prompt: "Hello" });
    assert.equal(await streamed.text, "You said: Hello");
  });
}

test("the_types_of_each_ai_version_fit_a_class", async () => {
  assert.equal(await compilerErrors(app.folder, ["src/index.ts"], { skipLibCheck: true }), "");
});

test("a_model_and_a_tool_of_an_older_ai_are_refused_with_advice", async () => {
  const { status, body } = await ask("model:4", "runTurn", turnOf());
  assert.deepEqual([status, body.error.code], [502, "model_failed"]);
  assert.match(body.error.message, /See the Worker's log for the reason\.$/);
  await isLogged(
    /`model` returned a model of the specification "v1"\. Session Agent supports those of `ai` 5, 6 and 7\. Install `ai@7`/,
  );
  await isLogged(
    /the tool `old` is left out TypeError: it has `parameters` and no `inputSchema`, as tools of `ai` 4\./,
  );
  await isLogged(/under Node 20, npm chooses old versions/);
});

test("a_valibot_schema_is_sent_to_the_model_and_enforced", async () => {
  model.next(
    callTool("valibot", { city: "x".repeat(21) }, "c1"),
    callTool("valibot", { city: "Oslo" }, "c2"),
    callTool("standard", { city: 7 }, "c3"),
    say("So."),
  );
  const { message } = await ok("valibot:7", "runTurn", turnOf());
  const [wrong, right, untyped] = message.parts.filter(({ type }) => /^tool-/.test(type));
  assert.match(wrong.errorText, /The arguments are invalid: city: Invalid length: Expected <=20 but received 21/);
  assert.equal(right.output, "Rain in Oslo.");
  assert.match(untyped.errorText, /The arguments are invalid: city: Invalid type: Expected string but received 7/);
  const shown = Object.fromEntries(
    model.requests.at(-1).tools.map((tool) => [tool.function.name, tool.function.parameters]),
  );
  assert.deepEqual(
    [shown.valibot.properties, shown.valibot.required],
    [{ city: { type: "string", maxLength: 20 } }, ["city"]],
  );
  assert.ok(!("old" in shown), "a tool without a schema is left out");
});

test("a_tool_with_an_approval_function_asks_it_each_time", async () => {
  const stateOf = ({ message }) => message.parts.find(({ type }) => type === "tool-decided").state;
  model.next(callTool("decided", { city: "Bergen" }, "c1"));
  assert.equal(stateOf(await ok("decided:7", "runTurn", turnOf())), "approval-requested");
  model.next(callTool("decided", { city: "Oslo" }, "c2"), say("It rains in Oslo."));
  assert.equal(stateOf(await ok("undecided:7", "runTurn", turnOf())), "output-available");
});

test("a_failed_summary_is_reported_and_affects_nothing_else", async () => {
  const agent = "compacting:7";
  await ok(agent, "createSession", { id: "s" });
  const events = Array.from({ length: 40 }, (_, n) => ({
    action: n % 2 ? "agent_message" : "user_message",
    content: `${n} ${"word ".repeat(200)}`,
  }));
  await ok(agent, "appendEvents", { sessionId: "s", events });
  await ok(agent, "configureCompaction", { sessionId: "s", tailTokenBudget: 1000 });
  const { compaction, reason } = await ok(agent, "compact", { sessionId: "s" });
  assert.deepEqual([compaction, reason], [null, "summariser_failed"]);
  let notification = null;
  for (const until = Date.now() + 20_000; notification === null; ) {
    ({ answer: notification } = await method("SESSION_AGENT", agent, "failed"));
    assert.ok(Date.now() < until, "the class was not notified");
  }
  assert.equal(notification.sessionId, "s");
  assert.ok(notification.code.length > 0 && notification.message.length > 0, JSON.stringify(notification));
  // The failing hook is reported to the class, to readers of the session, and in the log with its
  // cause.
  const { lastCompactionError } = (await method("SESSION_AGENT", agent, "getSession", { sessionId: "s" })).answer;
  assert.match(lastCompactionError.message, /`summarize_failed`/);
  assert.match(notification.message, /`summarize_failed`/);
  await isLogged(/session-agent: `summarize` failed Error: /);
  assert.equal((await ok(agent, "getHistory", { sessionId: "s", limit: 1000 })).messages.length, 40);
});

test("the_client_has_the_rights_of_its_binding", async () => {
  const byClient = async (binding, agent, token) =>
    await (
      await fetch(`${server.url}/own/client`, { method: "POST", body: JSON.stringify({ binding, agent, token }) })
    ).json();
  model.next(say("Fine."));
  const done = await byClient("SESSION_AGENT", "owner:7");
  assert.deepEqual([done.sessions, done.messages, done.chunks.at(-1)], [1, 3, "finish"], JSON.stringify(done));
  assert.ok(done.chunks.includes("text-delta") && done.lines > 3, JSON.stringify(done));
  // An invalid token is refused, and so is a call without a token to a restricted class or the
  // shipped one.
  assert.equal((await byClient("SESSION_AGENT", "token:7", "not the secret, but long enough")).code, "unauthorized");
  assert.equal((await byClient("CLOSED", "closed:7")).code, "unauthorized");
  assert.equal((await byClient("PLAIN", "plain:7")).code, "unauthorized");
  // Over a URL, the class authorizes the request as before.
  const { status } = await ask("owner:7", "listSessions", {});
  assert.equal(status, 403);
});

test("a_binding_gives_full_rights_unless_the_class_restricts_it", async () => {
  // The Worker has a secret. A call without options has the rights of the class's own calls.
  assert.deepEqual(await method("SESSION_AGENT", "bound:7", "listSessions", {}), {
    answer: { sessions: [], cursor: null },
  });
  // A call with options is limited to their token. `call` and `request` are always limited.
  assert.match((await method("SESSION_AGENT", "bound:7", "listSessions", {}, {})).thrown, /secret/);
  assert.match((await method("SESSION_AGENT", "bound:7", "call", "listSessions", "{}")).thrown, /secret/);
  assert.equal(
    (await method("SESSION_AGENT", "bound:7", "request", "listSessions", "{}")).answer.error.code,
    "unauthorized",
  );

  // The class as shipped requires the secret, even if the runner wraps it.
  for (const given of [[{}], [{}, {}]])
    assert.match((await method("PLAIN", "shipped", "listSessions", ...given)).thrown, /secret/);
  assert.deepEqual((await method("PLAIN", "shipped", "listSessions", {}, { token: SECRET })).answer.sessions, []);
  assert.equal((await method("PLAIN", "shipped", "getSession", "s", { token: SECRET })).answer, null);

  // A class that reserves its operations: only its own methods may run them.
  assert.equal((await method("CLOSED", "shut", "note", "hello")).answer.events[0].seq, 1);
  for (const operation of ["loadEvents", "createSession", "mintToken"]) {
    assert.match(
      (await method("CLOSED", "shut", operation, { sessionId: "s" })).thrown,
      /does not implement the method/,
    );
    assert.match(
      (await method("CLOSED", "shut", operation, { sessionId: "s" }, { token: SECRET })).thrown,
      /does not implement the method/,
    );
  }
  assert.equal(
    (await method("CLOSED", "shut", "request", "getPathLength", '{"sessionId":"s"}')).answer.error.code,
    "unauthorized",
  );
  assert.deepEqual(await method("CLOSED", "shut", "request", "getPathLength", '{"sessionId":"s"}', { token: SECRET }), {
    answer: { ok: true, value: '{"length":1}' },
  });
});

test("an_outdated_compatibility_date_is_explained_in_a_sentence", async () => {
  const old = await dev(app.folder, "--compatibility-date", "2024-04-02", "--persist-to", "old");
  try {
    const { status, body } = await ask("old", "createSession", {}, old.url);
    assert.deepEqual(
      [status, body.error.code, body.error.details],
      [501, "not_configured", { binding: "compatibility_date", field: "compatibility_date" }],
    );
    const { oldest, newest } = VERSIONS.compatibilityDate;
    assert.match(body.error.message, new RegExp(`is older than ${oldest}, .* from ${oldest} to ${newest} `));
    assert.ok(old.output().includes(body.error.message));
  } finally {
    await old.stop();
  }
});

test("the_oldest_compatibility_date_serves_methods_and_turns", async () => {
  const oldest = await dev(
    app.folder,
    "--compatibility-date",
    VERSIONS.compatibilityDate.oldest,
    "--var",
    `MODEL_URL:${model.url}`,
    "--persist-to",
    "oldest",
  );
  try {
    model.next(say("Here."));
    const { status, body } = await ask("model:7", "runTurn", turnOf(), oldest.url);
    assert.deepEqual([status, body.message?.parts.at(-1).text], [200, "Here."], JSON.stringify(body));
    const response = await fetch(`${oldest.url}/own/call`, {
      method: "POST",
      body: JSON.stringify({ binding: "CLOSED", agent: "a", method: "note", given: ["x"] }),
    });
    assert.equal((await response.json()).answer.events[0].seq, 1);
  } finally {
    await oldest.stop();
  }
});

test("a_test_of_the_vitest_pool_passes", { timeout: 120_000 }, async () => {
  const { NODE_TEST_CONTEXT, ...env } = quietEnv();
  const program = join(PACKAGES, "node_modules/vitest/vitest.mjs");
  const { stdout } = await promisify(execFile)(NODE, [program, "run", "--reporter=json"], {
    cwd: app.folder,
    env: { ...env, CI: "1" },
  }).catch((error) => error);
  const { numPassedTests, numFailedTests } = JSON.parse(stdout.slice(stdout.indexOf('{"num')));
  assert.deepEqual([numPassedTests, numFailedTests], [1, 0], stdout);
});

test("the_public_miniflare_runs_what_wrangler_bundled", async () => {
  const { Miniflare } = await import(join(PACKAGES, "node_modules/miniflare-4/dist/src/index.js")).then(
    (module) => module.default ?? module,
  );
  await wrangler(app.folder, "deploy", "--dry-run", "--outdir", "alone");
  const out = join(app.folder, "alone");
  const files = (await readdir(out))
    .filter((name) => /\.(js|wasm)$/.test(name))
    .sort((one) => (one === "index.js" ? -1 : 1));
  const modules = files.map((name) => ({
    type: name.endsWith(".wasm") ? "CompiledWasm" : "ESModule",
    path: join(out, name),
  }));
  const objects = {
    SESSION_AGENT: { className: "Assistant", useSQLite: true },
    CLOSED: { className: "Closed", useSQLite: true },
  };
  const miniflare = new Miniflare({
    modules,
    modulesRoot: out,
    compatibilityDate: "2026-07-01",
    durableObjects: objects,
    bindings: { MODEL_URL: model.url },
  });
  try {
    const url = await miniflare.ready;
    model.next(say("Alone."));
    const { status, body } = await ask("model:6", "runTurn", turnOf(), url.origin);
    assert.deepEqual([status, body.message?.parts.at(-1).text], [200, "Alone."], JSON.stringify(body));
  } finally {
    await miniflare.dispose();
  }
});
