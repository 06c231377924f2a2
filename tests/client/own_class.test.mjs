// A custom class over the packed archive of the npm package: its model, tools, blocks and login,
// and the effect of a failing method.

import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { ROOT } from "../../scripts/paths.mjs";
import { startWorkerd } from "../../scripts/workerd.mjs";
import { compilerErrors } from "./compile_typescript.mjs";
import { dev, project, wrangler } from "./packed_project.mjs";

/** The class that people copy. */
const GUIDES = ["docs/embed.md", "packages/session-agent/README.md"];

/** The guides whose classes compile. */
const TYPED = [
  "README.md",
  ...GUIDES,
  "docs/agents-sdk.md",
  "docs/how-to.md",
  "docs/testing.md",
  "docs/memory.md",
  "docs/chat.md",
  "docs/mcp.md",
];

/** A provider's package that the tests don't install. */
const PROVIDERS =
  'declare module "@ai-sdk/openai" { export function openai(id: string): Exclude<import("ai").LanguageModel, string>; }';

const SOURCES = join(import.meta.dirname, "own");
const LINKS = ["ai", "zod", "@cloudflare/workers-types"];

let app;
let server;
before(async () => {
  app = await project(SOURCES, LINKS);
  server = await dev(app.folder);
});
after(async () => {
  await server?.stop();
  await app?.remove();
});

/** Calls one operation, as a page with this cookie does. */
async function ask(agent, operation, input = {}, user = "operator") {
  const headers = { "content-type": "application/json", ...(user && { cookie: `user=${user}` }) };
  const response = await fetch(`${server.url}/agents/session-agent/${agent}/rpc/${operation}`, {
    method: "POST",
    headers,
    body: JSON.stringify(input),
  });
  return { status: response.status, body: await response.json() };
}

async function ok(agent, operation, input, user) {
  const { status, body } = await ask(agent, operation, input, user);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

/** The notifications that the class has recorded. */
async function notifications(agent, of, isComplete = () => true) {
  for (const until = Date.now() + 20_000; ; await wait(50)) {
    const recorded = await (await fetch(`${server.url}/own/recorded?agent=${agent}&of=${of}`)).json();
    if (recorded !== null && isComplete(recorded)) return recorded;
    assert.ok(Date.now() < until, `the class was not notified: ${of}, ${JSON.stringify(recorded)}`);
  }
}

let turns = 0;

/** Runs a turn, and returns its answer's parts. */
async function turn(agent, text, sessionId = "s", user = "operator") {
  const message = { id: `m${(turns += 1)}`, role: "user", parts: [{ type: "text", text }] };
  return await ok(agent, "runTurn", { sessionId, message }, user);
}

const textOf = ({ message }) =>
  message.parts
    .filter(({ type }) => type === "text")
    .map(({ text }) => text)
    .join("");

test("the_class_is_bundled_and_passes_a_dry_run_deployment", async () => {
  const output = await wrangler(app.folder, "deploy", "--dry-run", "--outdir", "bundled");
  assert.match(output, /Total Upload: .* gzip: /);
  assert.match(output, /env\.SESSION_AGENT \(Assistant\)/);
  assert.ok((await readdir(join(app.folder, "bundled"))).some((name) => name.endsWith(".wasm")));
  // With the configuration as the guides print it, which is the same in all.
  const printed = await Promise.all(
    GUIDES.map(async (guide) => (await readFile(join(ROOT, guide), "utf8")).match(/^```toml own\n(.*?)^```$/ms)[1]),
  );
  assert.deepEqual(new Set(printed).size, 1);
  await writeFile(join(app.folder, "printed.toml"), printed[0]);
  assert.match(
    await wrangler(app.folder, "deploy", "--dry-run", "--config", "printed.toml"),
    /env\.SESSION_AGENT \(Assistant\)/,
  );
});

test("the_packages_types_fit_a_class", async () => {
  const files = ["src/index.ts", "src/providers.d.ts"];
  await writeFile(join(app.folder, "src/providers.d.ts"), PROVIDERS);
  for (const guide of TYPED) {
    const text = await readFile(join(ROOT, guide), "utf8");
    const blocks = [...text.matchAll(/^```ts own\n(.*?)^```$/gms)];
    assert.ok(blocks.length > 0, guide);
    for (const [n, [, block]] of blocks.entries()) {
      files.push(`src/${guide.replaceAll(/\W/g, "-")}-${n}.ts`);
      await writeFile(join(app.folder, files.at(-1)), block);
    }
  }
  const problems = await compilerErrors(app.folder, files, { skipLibCheck: false, noImplicitOverride: true });
  // Errors in other packages' types are ignored.
  const ours = problems
    .split(/\n(?! )/)
    .filter((error) => error !== "" && !/node_modules\/(?!session-agent)/.test(error));
  assert.deepEqual(ours, []);
});

test("the_classs_model_answers_and_its_tools_run_in_the_object", async () => {
  assert.equal(textOf(await turn("model", "hello there")), "You said: hello there");
  const { message, usage, steps } = await turn("model", 'use weather {"city":"Oslo"}');
  const called = message.parts.find(({ type }) => type === "tool-weather");
  assert.deepEqual(
    [called.state, called.input, called.output],
    ["output-available", { city: "Oslo" }, { city: "Oslo", sky: "rain" }],
  );
  assert.equal(textOf({ message }), 'The tool says: {"city":"Oslo","sky":"rain"}');
  assert.deepEqual([usage.inputTokens, usage.outputTokens, usage.cachedInputTokens, steps], [20, 6, 4, 2]);
  const shown = Object.fromEntries(JSON.parse(textOf(await turn("model", "tools"))));
  assert.deepEqual(shown.weather.properties, { city: { type: "string" } });
  assert.ok(!("odd" in shown), "a tool without a schema is left out");
  const { usage: used } = await ok("model", "getUsage", { by: "model" });
  assert.deepEqual(
    used.map(({ model }) => model),
    ["own:mock-1"],
  );
  // Of several preliminary outputs, the last one counts.
  assert.equal(textOf(await turn("model", 'use count {"to":3}')), "The tool says: 3");
});

test("a_tools_exception_or_invalid_input_is_an_error_for_the_model", async () => {
  assert.match(
    textOf(await turn("tools", "use broken")),
    /^The tool says: Error: `broken` failed with status 422: No pencil\./,
  );
  assert.match(textOf(await turn("tools", 'use weather {"city":7}')), /The arguments are invalid: city: /);
});

test("a_tool_that_needs_approval_waits_for_it", async () => {
  const waiting = await turn("pay", 'use pay {"amount":5}');
  const called = waiting.message.parts.find(({ type }) => type === "tool-pay");
  assert.equal(called.state, "approval-requested");
  const approved = {
    ...waiting.message,
    parts: waiting.message.parts.map((part) =>
      part === called ? { ...part, state: "approval-responded", approval: { ...part.approval, approved: true } } : part,
    ),
  };
  const response = await fetch(`${server.url}/agents/session-agent/pay/chat`, {
    method: "POST",
    headers: { cookie: "user=operator" },
    body: JSON.stringify({ id: "s", messages: [approved], trigger: "submit-message" }),
  });
  const text = await response.text();
  assert.match(text, /"output":"Paid 5\."/);
  // The provider received what it had returned with the call, although another turn continues it.
  const { messages } = await ok("pay", "getHistory", { sessionId: "s" });
  assert.equal(textOf({ message: messages.at(-1) }), "The tool says: Paid 5.");
  assert.equal(textOf(await turn("pay", "signed")), "The model signed 1 of 1 calls.");
  assert.match(text, /\[DONE\]/);
});

test("a_function_decides_whether_each_call_needs_approval", async () => {
  const { message } = await turn("send", 'use send {"amount":5}');
  assert.equal(textOf({ message }), "The tool says: Sent 5.");
  // The function and the tool receive the same call.
  assert.deepEqual(await notifications("send", "asked"), await notifications("send", "sent"));
  for (const amount of [100, 13, 14, "many"]) {
    const { message } = await turn("send", `use send {"amount":${JSON.stringify(amount)}}`);
    const called = message.parts.find(({ type }) => type === "tool-send");
    assert.deepEqual([called.state, called.input], ["approval-requested", { amount }]);
    await ok("send", "createSession", { id: `s${turns}` });
  }
  assert.equal((await notifications("send", "sent")).amount, 5);
});

test("functions_can_store_blocks", async () => {
  const { prompt } = await ok("blocks", "renderPrompt");
  assert.match(prompt, /SOUL.*\n═+\nYou are kind\./);
  assert.match(prompt, /GUIDES/);
  await ok("blocks", "createSession", { id: "s" });
  const call = async (name, input) => await ok("blocks", "callTool", { sessionId: "s", name, arguments: input });
  assert.equal((await call("set_context", { label: "notes", content: "Likes tea." })).isError, false);
  assert.equal((await ok("blocks", "getBlock", { label: "notes" })).content, "Likes tea.");
  assert.match((await call("search_context", { label: "facts", query: "drinks" })).output, /Known of drinks: tea\./);
  assert.equal((await call("load_context", { label: "guides", key: "deploy" })).output, "Test, then ship.");
  assert.equal((await call("load_context", { label: "guides", key: "none" })).isError, true);
  assert.match(textOf(await turn("blocks", "system")), /You are kind\.[\s\S]*Likes tea\./);
  // A receipt contains the function's result, and nothing if there is no function that deletes.
  const purged = async (operation, input) => (await ok("blocks", operation, { ...input, purge: true })).home.deleted;
  assert.equal(await purged("deleteSkill", { label: "guides", key: "deploy" }), true);
  assert.equal(await purged("deleteSkill", { label: "guides", key: "none" }), false);
  assert.equal(await purged("deleteEntry", { label: "facts", key: "tea" }), false);
});

test("a_failing_or_hanging_block_function_affects_only_its_block", { timeout: 60_000 }, async () => {
  const startedAt = Date.now();
  const blocks = await ok("homes", "getBlocks");
  assert.ok(Date.now() - startedAt < 40_000, "a home has a deadline");
  const of = (label) => (blocks.blocks ?? blocks).find((block) => block.label === label);
  assert.equal(of("soul").content, "You are kind.");
  assert.match(of("lost").unavailable, /status 500/);
  assert.ok(of("slow").unavailable);
});

test("a_model_failure_is_an_error_with_its_reason", async () => {
  const refused = await ask("failing", "runTurn", {
    sessionId: "s",
    message: { id: "r", role: "user", parts: [{ type: "text", text: "refuse" }] },
  });
  assert.deepEqual([refused.status, refused.body.error?.code], [502, "model_failed"]);
  assert.match(refused.body.error.message, /^The model of this class /);
  const { messages } = await ok("failing", "getHistory", { sessionId: "s" });
  assert.deepEqual(
    messages.map(({ id }) => id),
    ["r"],
  );
  assert.equal(textOf(await turn("failing", "and now")), "You said: and now");
});

test("a_turn_with_a_hanging_model_can_be_cancelled", async () => {
  const message = { id: "w", role: "user", parts: [{ type: "text", text: "wait" }] };
  const running = ask("hanging", "runTurn", { sessionId: "s", message });
  for (const until = Date.now() + 20_000; ; ) {
    const { body } = await ask("hanging", "cancelTurn", { sessionId: "s" });
    if (body.cancelled) break;
    assert.ok(Date.now() < until, JSON.stringify(body));
  }
  const { body } = await running;
  assert.ok(body.finishReason === "cancelled" || body.error, JSON.stringify(body));
});

test("a_cookie_determines_the_rights_of_a_request", async () => {
  assert.deepEqual(
    [
      (await ask("login", "createSession", { id: "x" }, null)).status,
      (await ask("login", "createSession", { id: "x" }, "confused")).status,
    ],
    [401, 401],
  );
  await ok("login", "createSession", { id: "of-ann" }, "operator");
  await ok("login", "createSession", { id: "of-bob" }, "operator");
  assert.equal(textOf(await turn("login", "hello", "of-ann", "ann")), "You said: hello");
  for (const [operation, input] of [
    ["getHistory", { sessionId: "of-bob" }],
    ["deleteSession", { sessionId: "of-ann" }],
    ["configureAgent", { maxSteps: 1 }],
    ["mintToken", { preset: "read" }],
  ]) {
    const { status, body } = await ask("login", operation, input, "ann");
    assert.ok(status === 403 || status === 404, `${operation}: ${status} ${JSON.stringify(body)}`);
  }
  // A cookie is also sent with the requests of another origin's page.
  const forged = await fetch(`${server.url}/agents/session-agent/login/rpc/getSession`, {
    method: "POST",
    headers: { cookie: "user=ann", origin: "https://elsewhere.example" },
    body: JSON.stringify({ sessionId: "of-ann" }),
  });
  assert.equal(forged.status, 403);
});

test("a_hanging_login_is_refused_after_a_timeout", { timeout: 30_000 }, async () => {
  const startedAt = Date.now();
  assert.equal((await ask("patient", "listSessions", {}, "patient")).status, 401);
  assert.ok(Date.now() - startedAt < 20_000);
});

test("the_classs_own_calls_have_all_rights_and_others_are_authorized", async () => {
  const { events } = await (
    await fetch(`${server.url}/own/note?agent=noting`, { method: "POST", body: "Bring an umbrella." })
  ).json();
  assert.equal(events[0].seq, 1);
  const loaded = await (await fetch(`${server.url}/own/events?agent=noting`)).json();
  assert.deepEqual(
    loaded.map(({ content }) => content),
    ["Bring an umbrella."],
  );
  const refused = await (await fetch(`${server.url}/own/refused?agent=noting`)).json();
  assert.deepEqual([refused.ok, refused.error.code], [false, "unauthorized"]);
  // Also from a tool, in the middle of a turn.
  assert.equal(textOf(await turn("noting", 'use remember {"text":"And boots."}')), "The tool says: Noted.");
  assert.equal((await ok("noting", "loadEvents", { sessionId: "notebook" })).length, 2);
});

test("operations_in_a_rolled_back_transaction_of_the_class_leave_nothing", async () => {
  const events = await (await fetch(`${server.url}/own/undone?agent=undoing`)).json();
  assert.deepEqual(
    events.map(({ seq, content }) => [seq, content]),
    ["one", "two", "three", "four", "five", "six"].map((content, index) => [index + 1, content]),
  );
  for (const [index, { parentId }] of events.entries()) assert.equal(parentId, events[index - 1]?.id ?? null);
  assert.deepEqual((await ok("undoing", "getHistory", { sessionId: "notebook" })).messages.length, 6);
});

test("the_class_provides_summaries_and_vectors", async () => {
  await ok("short", "createSession", { id: "s" });
  const events = Array.from({ length: 40 }, (_, n) => ({
    action: n % 2 ? "agent_message" : "user_message",
    content: `${n} ${"word ".repeat(200)}`,
  }));
  await ok("short", "appendEvents", { sessionId: "s", events });
  await ok("short", "configureCompaction", { sessionId: "s", tailTokenBudget: 1000 });
  const { compaction, reason } = await ok("short", "compact", { sessionId: "s" });
  assert.equal(reason, "compacted");
  assert.match(compaction.summary, /In short \(asked\)\./);
  assert.deepEqual(await notifications("short", "compacted"), { sessionId: "s", isLess: true });
  await ok("short", "appendEvents", {
    sessionId: "s",
    events: [{ id: "tea", action: "user_message", content: "I like tea in the morning." }],
  });
  const { results } = await ok("short", "search", { query: "what does she drink", sessionId: "s" });
  assert.ok(
    results.some(({ id }) => id === "tea"),
    JSON.stringify(results),
  );
});

test("the_class_counts_tokens", async () => {
  await ok("counting", "createSession", { id: "s" });
  const messages = async () => (await ok("counting", "estimateTokens", { sessionId: "s" })).messages;
  const before = await messages();
  const append = async (content) =>
    await ok("counting", "appendEvents", { sessionId: "s", events: [{ action: "user_message", content }] });
  await append(`counted:${"x".repeat(992)}`);
  const counted = (await messages()) - before;
  assert.ok(counted >= 1000 && counted < 1020, `${counted}`);
  // A text that the class can't count is estimated.
  await append(`fail to count ${"x".repeat(986)}`);
  const estimated = (await messages()) - before - counted;
  assert.ok(estimated >= 250 && estimated < 270, `${estimated}`);
});

test("the_class_is_notified_when_a_turn_ends", async () => {
  await turn("ending", "hello");
  const { sessionId, finishReason, usage } = await notifications("ending", "ended");
  assert.deepEqual([sessionId, finishReason, usage.inputTokens], ["s", "stop", 10]);
  assert.deepEqual(await notifications("ending", "phases", (phases) => phases.includes("idle")), [
    "thinking",
    "ending",
    "idle",
  ]);
});

test("the_class_is_notified_when_an_automatic_compaction_starts_and_ends", async () => {
  await ok("status", "createSession", { id: "s" });
  await ok("status", "configureCompaction", { sessionId: "s", compactAfter: 1000, tailTokenBudget: 200 });
  const events = Array.from({ length: 20 }, (_, n) => ({
    action: n % 2 ? "agent_message" : "user_message",
    content: `${n} ${"word ".repeat(200)}`,
  }));
  await ok("status", "appendEvents", { sessionId: "s", events });
  const phases = await notifications("status", "phases", (phases) => phases.includes("idle"));
  assert.deepEqual(phases, ["compacting", "idle"]);
});

test("the_class_is_notified_of_memory_changes_except_its_own_in_response", async () => {
  await ok("diarist", "defineBlock", { label: "diary", kind: "searchable" });
  await ok("diarist", "setEntry", { label: "diary", key: "monday", content: "It rained." });
  const changes = await notifications("diarist", "changes");
  assert.deepEqual(changes, [{ kind: "entry", key: "monday", content: "It rained." }]);
  // The class searches by meaning, so both are found, in any order.
  const { results } = await ok("diarist", "searchContext", { label: "diary", query: "heard" });
  assert.deepEqual(results.map(({ key }) => key).sort(), ["monday", "monday again"]);
  await ok("diarist", "setEntry", { label: "diary", key: "tuesday", content: "Sun." });
  const all = await notifications("diarist", "changes", (changes) => changes.length > 1);
  assert.deepEqual(
    all.map(({ key }) => key),
    ["monday", "tuesday"],
  );
});

test("the_packages_own_object_is_the_shipped_one", async () => {
  // Without a secret and without a method of its own, nobody is admitted.
  const response = await fetch(`${server.url}/agents/plain/p/rpc/listSessions`, {
    method: "POST",
    headers: { cookie: "user=operator" },
    body: "{}",
  });
  assert.equal(response.status, 401);
});

test("a_url_reaches_only_objects_that_the_program_names", async () => {
  for (const kind of ["rooms", "ROOMS", "directory", "plain/../rooms", "%72ooms"]) {
    const response = await fetch(`${server.url}/agents/${kind}/p/rpc/listSessions`, { method: "POST", body: "{}" });
    assert.deepEqual([response.status, await response.text()], [404, "Nothing here."], kind);
  }
});

test("a_turn_interrupted_by_a_crash_ends_after_a_restart", { timeout: 120_000 }, async () => {
  await wrangler(app.folder, "deploy", "--dry-run", "--outdir", "alone");
  const out = join(app.folder, "alone");
  const files = await readdir(out);
  const modules = Object.fromEntries(
    await Promise.all(
      files
        .filter((name) => /\.(js|wasm)$/.test(name))
        .map(async (name) => {
          const bytes = await readFile(join(out, name));
          return [
            name,
            name.endsWith(".wasm")
              ? { type: "wasm", contents: new Uint8Array(bytes) }
              : { type: "esm", contents: bytes.toString() },
          ];
        }),
    ),
  );
  const object = (exportName) => ({ type: "durable-object", worker: "own-class", exportName });
  const config = {
    name: "own-class",
    compatibilityDate: "2026-11-17",
    manifest: { mainModule: "index.js", modulesRoot: out, modules },
    env: { SESSION_AGENT: object("Assistant"), PLAIN: object("SessionAgent") },
    exports: {
      Assistant: { type: "durable-object", storage: "sqlite" },
      SessionAgent: { type: "durable-object", storage: "sqlite" },
    },
  };
  const workers = [{ config, dev: { unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }] } }];
  const storage = join(app.folder, "storage");
  // miniflare by itself, without wrangler.
  const first = await startWorkerd(workers, storage, { enableDevRegistry: false });
  const url = async ({ miniflare }) => await miniflare.unsafeGetDirectURL("own-class");
  const post = async (at, operation, input) => {
    const response = await fetch(new URL(`/agents/session-agent/killed/rpc/${operation}`, at), {
      method: "POST",
      headers: { cookie: "user=operator" },
      body: JSON.stringify(input),
    });
    return await response.json();
  };
  const message = { id: "cut", role: "user", parts: [{ type: "text", text: "slow" }] };
  const running = post(await url(first), "runTurn", { sessionId: "s", message }).catch(() => null);
  for (let stored = []; stored.length === 0; )
    stored = (await post(await url(first), "getHistory", { sessionId: "s" })).messages ?? [];
  process.kill(first.workerd.pid, "SIGKILL");
  await running;
  await first.miniflare.dispose().catch(() => {});
  const second = await startWorkerd(workers, storage, { enableDevRegistry: false });
  try {
    for (const until = Date.now() + 60_000; ; ) {
      const { messages } = await post(await url(second), "getHistory", { sessionId: "s" });
      if (messages?.length === 2) {
        assert.deepEqual(
          messages.map(({ role }) => role),
          ["user", "assistant"],
        );
        assert.equal(messages[1].parts.find(({ type }) => type === "text").text, "At last.");
        return;
      }
      assert.ok(Date.now() < until, JSON.stringify(messages));
    }
  } finally {
    await second.miniflare.dispose();
  }
});
