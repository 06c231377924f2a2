// The programs printed in the documentation of the Agents SDK's memory, in a custom class from the
// packed archive: as printed, or with changed imports and binding names. They compile with
// TypeScript 5.9 and 7, and run in workerd.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { OPERATIONS } from "../../client/dist/operations.js";
import { ROOT } from "../../scripts/paths.mjs";
import { NODE } from "../../scripts/wrangler.mjs";
import { compilerErrors } from "./compile_typescript.mjs";
import { dev, project } from "./packed_project.mjs";

const LINKS = ["agents", "ai", "@cloudflare/workers-types", "@types/node"];
const FILES = ["src/index.ts", "src/types.ts", "src/overrides.ts"];

let app;
let server;
before(async () => {
  app = await project(join(import.meta.dirname, "agents_sdk_programs"), LINKS);
  server = await dev(app.folder);
  await fetch(`${server.url}/own/put`, { method: "POST", body: "Our API." });
});
after(async () => {
  await server?.stop();
  await app?.remove();
});

/** A method of an object over its binding. */
async function call(binding, agent, method, ...given) {
  const response = await fetch(`${server.url}/own/call`, {
    method: "POST",
    body: JSON.stringify({ binding, agent, method, given }),
  });
  assert.equal(response.status, 200, await response.clone().text());
  return await response.json();
}

async function ok(binding, agent, method, ...given) {
  const { answer, thrown } = await call(binding, agent, method, ...given);
  assert.equal(thrown, undefined);
  return answer;
}

const documented = (agent, method, ...given) => ok("Documented", agent, method, ...given);

const RULE = "═".repeat(46);

/** A class that overrides every operation. */
const overrides = () =>
  [
    'import { SessionAgent } from "session-agent/worker";',
    "export class Overriding extends SessionAgent {",
    ...Object.keys(OPERATIONS).map(
      (name) => `  override async ${name}(input: any, options?: any) { return await super.${name}(input, options); }`,
    ),
    "}",
    "",
  ].join("\n");

test("the_programs_compile_in_strict_mode", async () => {
  await writeFile(join(app.folder, "src/overrides.ts"), overrides());
  const options = { allowJs: true, skipLibCheck: true };
  assert.equal(await compilerErrors(app.folder, FILES, options), "");
  const older = join(ROOT, "tests/client/node_modules/typescript-5/bin/tsc");
  const problems = await promisify(execFile)(NODE, [older, "--project", app.folder, "--pretty", "false"], {
    cwd: app.folder,
  }).then(
    () => "",
    ({ stdout, message }) => stdout || message,
  );
  assert.equal(problems, "");
});

test("a_conversation_is_stored_read_and_searched", async () => {
  const { history, found, other } = await documented("conversation", "converse");
  assert.deepEqual([history.length, history[0].parts[0].text, other], [1, "What's the status of the deployment?", 2]);
  assert.equal(found[0].id, "friday");
});

test("a_provider_with_only_get_is_readonly", async () => {
  for (const { prompt, tools } of [
    await documented("readonly", "look"),
    await documented("late", "later", "readonly"),
  ]) {
    assert.match(prompt, /^═+\nSOUL \[readonly\]\n═+\nYou are a senior TypeScript engineer\. .*guessing\.$/);
    assert.deepEqual(tools, []);
  }
  assert.match((await documented("fromBucket", "look")).prompt, /You are of the bucket\./);
});

test("a_block_without_a_provider_is_writable_within_its_budget", async () => {
  const { prompt, tools } = await documented("writable", "look");
  assert.deepEqual(tools, ["set_context"]);
  assert.ok(
    prompt.includes(`MEMORY (Important facts learned during conversation) [0% — 0/1100 tokens] [writable]\n${RULE}`),
  );
  assert.match(prompt, /TODOS .* \[0% — 0\/2000 tokens\] \[writable\]/);
  await documented("writable", "tool", "set_context", { label: "memory", content: "Likes tea." });
  assert.match(
    await documented("writable", "tool", "set_context", { label: "memory", content: "word ".repeat(3000) }),
    /1,?100/,
  );
  const late = await documented("late", "later", "writable");
  assert.match(late.prompt, /MEMORY/);
});

test("entries_are_found_in_the_object_or_by_a_custom_provider", async () => {
  const own = await documented("searchable", "look");
  assert.deepEqual(own.tools, ["forget", "search_context", "set_context"]);
  assert.match(own.prompt, /KNOWLEDGE .* \[searchable\]/);
  await documented("searchable", "tool", "set_context", {
    label: "knowledge",
    content: "Penguins swim.",
    metadata: { title: "birds" },
  });
  assert.match(
    await documented("searchable", "tool", "search_context", { label: "knowledge", query: "penguin" }),
    /Penguins swim\./,
  );

  const elsewhere = await documented("searchableElsewhere", "look");
  assert.deepEqual(elsewhere.tools, ["forget", "search_context", "set_context"]);
  assert.match(elsewhere.prompt, /Product documentation and FAQs/);
  const found = await documented("searchableElsewhere", "tool", "search_context", {
    label: "knowledge",
    query: "penguin",
  });
  // Its author is unknown, so the model sees a quotation.
  assert.match(found, /> found by 7\n>\n> of 5/);
  await documented("searchableElsewhere", "tool", "set_context", {
    label: "knowledge",
    content: "Penguins swim.",
    metadata: { title: "birds" },
  });
  const { indexed } = await documented("searchableElsewhere", "look");
  assert.equal(indexed.length, 1);
  assert.deepEqual(indexed[0][1], "Penguins swim.", "the key comes first");
  assert.notEqual(indexed[0][0], "Penguins swim.");
});

test("documents_in_a_bucket_or_a_database_are_listed_loaded_and_written", async () => {
  const { prompt, tools } = await documented("skills", "look");
  assert.deepEqual(tools, ["forget", "load_context", "set_context", "unload_context"]);
  assert.match(prompt, /SKILLS \[loadable\]\n═+\n- api-ref: API Reference documentation\n- plain/);
  assert.match(prompt, /for a relevant skill and use load_context to load it\./);
  assert.equal(await documented("skills", "tool", "load_context", { label: "skills", key: "api-ref" }), "Our API.");

  assert.equal((await documented("database", "look")).tools.includes("load_context"), true);
  const set = { label: "skills", content: "Ship it.", metadata: { title: "deploy", description: "How we deploy" } };
  await documented("database", "tool", "set_context", set);
  const written = await documented("database", "tool", "load_context", { label: "skills", key: "deploy" });
  assert.equal(written, "Ship it.");
  assert.match(
    await ok("Documented", "database", "renderPrompt").then(({ prompt }) => prompt),
    /- deploy: How we deploy/,
  );
});

test("a_compacted_session_may_have_remote_documents", async () => {
  const { history } = await documented("compactingSkills", "converse");
  assert.equal(history.length, 1);
});

test("an_ai_sdk_turn_has_the_memory_tools_and_prompt", async () => {
  const loads = await documented("skills", "turn", 'use load_context {"label":"skills","key":"plain"}');
  assert.deepEqual(loads.results, ["Plain."]);
  assert.deepEqual(loads.tools.sort(), ["forget", "load_context", "set_context", "unload_context", "weather"]);
  assert.match(loads.system, /SKILLS \[loadable\]/);
  assert.deepEqual((await documented("skills", "loaded")).sort(), ["skills:api-ref", "skills:plain"]);
  await documented("skills", "tool", "unload_context", { label: "skills", key: "plain" });
  assert.deepEqual(await documented("skills", "loaded"), ["skills:api-ref"]);
});

test("a_frozen_prompt_stays_until_it_is_refreshed", async () => {
  const { system, during, after } = await documented("cached", "cached");
  assert.equal(system, during);
  assert.ok(!system.includes("Likes tea.") && after.includes("Likes tea."), after);
});

test("a_growing_conversation_is_compacted_and_truncated", async () => {
  // 30 messages of about 4,000 tokens each exceed the threshold of 100,000.
  const history = await documented("compacting", "grow", 30, "word ".repeat(3000));
  assert.ok(history.length < 30, JSON.stringify(history));
  assert.deepEqual(
    history.slice(0, 4).map(([id]) => id.slice(0, 11)),
    ["m0", "m1", "m2", "compaction_"],
  );
  assert.match(history[3][1], /^Heard: Summarize this conversation/);
  const lengths = await documented("compacting", "truncated");
  assert.ok(lengths.slice(0, 2).every((length) => length < 10_040) && lengths.at(-1) > 15_000, JSON.stringify(lengths));
});

test("a_session_has_the_documented_methods", async () => {
  const whole = await documented("whole", "whole");
  assert.deepEqual(whole.seen, [4, 3]);
  assert.deepEqual(whole.compacted, { summary: "All of it.", fromMessageId: "w0", toMessageId: "w2" });
  assert.deepEqual(
    [whole.after, whole.again],
    [
      ["compaction_", "w3"],
      ["compaction_", "w4"],
    ],
  );
  assert.deepEqual(whole.overlays.at(-1), ["w0", "w3"]);
  assert.deepEqual([whole.leaf, whole.added, whole.removed], ["w4", ["readonly", "More."], true]);
  assert.match(whole.prompt, /EXTRA \[readonly\]\n═+\nMore\./);
  assert.deepEqual(whole.isStable, [true, true]);
  assert.deepEqual(whole.split, ["own", "[Context from the previous session]\n\nThey spoke of words."]);
  assert.deepEqual([whole.found.includes(true), whole.client, whole.chatted], [true, 5, true]);
  assert.match(whole.searched, /They spoke of words/);
});

test("a_page_is_notified_of_changes_to_its_session", async () => {
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/agents/documented/compacting?sessionId=default`);
  const frames = [];
  socket.addEventListener("message", ({ data }) => frames.push(JSON.parse(data)));
  await once(socket, "open");
  await documented("compacting", "grow", 31, "again");
  for (const until = Date.now() + 10_000; !frames.some(({ phase }) => phase === "idle"); await wait(20))
    assert.ok(Date.now() < until, JSON.stringify(frames).slice(0, 2000));
  socket.close();
  const { tokenEstimate, ...frame } = frames.find(({ type }) => type === "cf_agent_session");
  assert.deepEqual(frame, { type: "cf_agent_session", phase: "idle", tokenThreshold: 100_000 });
  assert.ok(tokenEstimate > 0);
});

test("an_operation_takes_positional_fields_and_can_be_overridden", async () => {
  const { appended, count, length, error } = await documented("overriding", "overridden");
  assert.deepEqual([appended, count, length], [[1, 1], 1, 3]);
  assert.match(error, /^`getBlock` requires an object that contains only JSON values: `getBlock\(\{ label \}\)`\.$/);
});

test("a_turn_is_built_and_persisted_at_once", async () => {
  const started = await ok("MY_AGENT", "primitives", "begin");
  assert.deepEqual([started.metadata, started.named], [{ topic: "weather" }, "Named"]);
  const { sessionId } = started;
  const answer = await ok("MY_AGENT", "primitives", "handleUserMessage", sessionId, "Hello");
  assert.equal(answer, "system: You are a helpful assistant. | user: Hello");
  await ok("MY_AGENT", "primitives", "turn", sessionId, "And now", "Rain.");
  assert.deepEqual(
    (await ok("MY_AGENT", "primitives", "loadEvents", sessionId)).map(({ content }) => content),
    ["Hello", answer, "And now", "Rain."],
  );
  assert.deepEqual((await ok("MY_AGENT", "primitives", "nothing", sessionId)).events, []);
  assert.equal((await ok("MY_AGENT", "primitives", "getPathLength", { sessionId })).length, 4);
  await ok("MY_AGENT", "primitives", "destroy");
  assert.deepEqual((await ok("MY_AGENT", "primitives", "listSessions")).sessions, []);
});

test("a_workflow_and_npm_agents_reach_it_under_any_binding_name", async () => {
  await ok("MY_AGENT", "agent-id", "createSession", { id: "s" });
  const response = await fetch(`${server.url}/own/workflow`, { method: "POST", body: '{"sessionId":"s"}' });
  assert.deepEqual(
    (await response.json()).map(({ content }) => content),
    ["From afar"],
  );
  const listed = await (await fetch(`${server.url}/own/npm`)).json();
  assert.deepEqual(
    listed.sessions.map(({ id }) => id),
    ["s"],
  );
  for (const [binding, name] of [
    ["my-agent", "agent-id"],
    ["documented", "any%20name"],
    ["contextual", "x"],
    ["session-agent", "plain"],
  ]) {
    const response = await fetch(`${server.url}/agents/${binding}/${name}/rpc/listSessions`, {
      method: "POST",
      body: "{}",
    });
    assert.equal(response.status, 200, `${binding}: ${await response.text()}`);
  }
});

test("labeled_texts_are_read_and_written_at_once", async () => {
  const { labels, soul, before, written, edited, cleared, refused } = await ok("CONTEXTUAL", "labelled", "run");
  assert.deepEqual(labels, ["soul", "todos", "preferences"]);
  assert.deepEqual([soul.content, soul.readonly, soul.tokens], ["You are helpful.", true, 4]);
  assert.ok(
    before.startsWith(
      '<context_block label="soul" description="Agent personality" readonly="true">\nYou are helpful.\n</context_block>\n\n<context_block label="todos" description="User\'s todo list">\n',
    ),
    before,
  );
  assert.deepEqual(
    [written.todos.content, written.preferences.content, edited.content, cleared.todos.content],
    ["- Buy milk", "\n- likes dark mode", "- Sleep", ""],
  );
  assert.match(refused[0], /readonly/);
  assert.match(refused[1], /no block `none`/);
  assert.match(refused[2], /budget is 5000/);
});

test("labeled_texts_can_be_stored_by_a_custom_provider", async () => {
  const { labels, text, refused, cleared } = await ok("CONTEXTUAL", "labelled", "over");
  // In the order of their definitions, whatever was written first.
  assert.deepEqual(labels, ["soul", "todos", "preferences", "notes"]);
  assert.match(text, /label="soul" readonly="true">\nYou are helpful\.[^]*label="notes" description="Notes">\nNew\./);
  assert.deepEqual(refused, ["Block `soul` is readonly.", refused[1]]);
  assert.match(refused[1], /its budget is 20/);
  assert.deepEqual(cleared, ["soul", "todos", "preferences"]);
});
