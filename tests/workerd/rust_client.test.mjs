// The crate session-agent-client in Rust Workers, each in its own runtime beside the shipped
// configuration, over a service binding and a Durable Object namespace. The compiler checks the
// types; these tests check the answers and errors of a real agent.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";
import { compileWorkers } from "./rust_worker.mjs";
import { NEWEST_DATE, startBeside } from "./second_worker.mjs";

const SECRET = "the secret of this test, long enough";
const WAYS = ["SERVICE", "namespace"];

const workers = await compileWorkers();
const registry = await mkdtemp(join(tmpdir(), "session-agent-registry-"));
const server = await startServer({
  inspect: false,
  site: true,
  registry,
  vars: { MODEL: "demo" },
  secrets: { SESSION_AGENT_TOKEN: SECRET },
});
const stops = [() => rm(registry, { recursive: true, force: true }), () => server.stop()];
const [program, example] = [await beside(await workers.tests()), await beside(await workers.example())];
after(async () => {
  for (const stop of stops.reverse()) await stop();
});

async function beside({ contents, modules }) {
  const env = {
    SELF: { type: "worker", worker: "second" },
    MEMORY: { type: "worker", worker: "session-agent" },
    SESSION_AGENT_TOKEN: { type: "text", value: SECRET },
  };
  const { url, stop } = await startBeside(server, registry, contents, NEWEST_DATE, { modules, env });
  stops.push(stop);
  return url;
}

async function ask(request) {
  const response = await fetch(program, {
    method: "POST",
    body: JSON.stringify({ way: "SERVICE", agent: "alice", token: SECRET, ...request }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
}

const call = (operation, input, more) => ask({ what: "call", operation, input, ...more });

async function answerOf(request) {
  const { answer, error } = await ask(request);
  assert.equal(error, undefined, JSON.stringify(error));
  return answer;
}

for (const way of WAYS) {
  test(`typed_calls_of_every_kind_work_by_${way}`, async () => {
    const answer = await answerOf({ way, agent: `tour ${way}`, what: "tour" });
    assert.deepEqual(answer, {
      session: ["s", "A tour", null, null],
      inserted: [true, false],
      seqs: [2, 3, 4],
      history: ["Penguins swim.", "Seven penguins."],
      kept: true,
      found: [answer.found[0], "q"],
      actions: ["user_message", "tool_call_request", "tool_result", "agent_message"],
      texts: ["Seven penguins.", "Penguins swim."],
      kinds: ["append", "append", "append", "update", "append"],
      types: ["session", "event", "event", "event", "event", "end"],
      versions: [0, 1, 1],
      entry: "Tea is drunk at five.",
      facts: ["tea"],
      promptHasBlock: true,
      contextIsReady: true,
      tools: ["set_context", "search_context", "forget"],
      config: [10, 0.5, "built-in"],
      usage: [5, 0.5, true],
      compacted: "nothing_to_compact",
      hasEstimate: true,
      turn: ["stop", 1],
      hasStats: true,
    });
  });

  test(`a_moved_leaf_is_an_error_variant_by_${way}`, async () => {
    const on = { way, agent: `leaf ${way}`, what: "append" };
    await call("createSession", { id: "s" }, { way, agent: on.agent });
    const { leafId } = await answerOf({ ...on, expected: null });
    assert.equal(await answerOf({ ...on, expected: null }), "the leaf has moved");
    assert.equal(await answerOf({ ...on, expected: "gone" }), "the leaf has moved");
    assert.equal(typeof (await answerOf({ ...on, expected: leafId })).leafId, "string");
    const { answer } = await call("getPathLength", { sessionId: "s" }, { way, agent: on.agent });
    assert.equal(answer.length, 2);
  });

  test(`each_error_has_its_code_status_and_details_by_${way}`, async () => {
    const agent = `refusals ${way}`;
    const ask = (operation, input, token = SECRET) => call(operation, input, { way, agent, token });
    await ask("createSession", { id: "s" });
    await ask("defineBlock", { label: "soul", kind: "readonly", defaultContent: "You are kind." });
    await ask("defineBlock", { label: "memory", kind: "writable", maxTokens: 20 });
    const { answer: read } = await ask("mintToken", { preset: "read", expiresIn: 600 });
    const user = { role: "user", parts: [{ type: "text", text: "Hi" }] };
    const refusals = [
      ["loadEvents", { sesionId: "s" }, "invalid_request", 400, { field: "sesionId" }],
      ["listSessions", {}, "unauthorized", 401, {}, "not a token"],
      ["listSessions", {}, "unauthorized", 401, {}, null],
      ["createSession", {}, "forbidden", 403, {}, read.token],
      ["setBlock", { label: "soul", content: "x" }, "block_read_only", 403, { label: "soul" }],
      ["frobnicate", {}, "unknown_operation", 404, {}],
      ["getHistory", { sessionId: "nowhere" }, "session_not_found", 404, { sessionId: "nowhere" }],
      [
        "appendMessage",
        { sessionId: "s", message: user, expectedLeafId: "gone" },
        "leaf_moved",
        409,
        { expectedLeafId: "gone" },
      ],
      ["setBlock", { label: "memory", content: "x", expectedVersion: 99 }, "version_conflict", 409, {}],
      ["createSession", { id: "s" }, "already_exists", 409, {}],
      ["createSession", { name: "x".repeat(3_000_000) }, "payload_too_large", 413, {}],
      ["setBlock", { label: "memory", content: "word ".repeat(400) }, "block_over_budget", 422, { maxTokens: 20 }],
    ];
    for (const [operation, input, code, status, details, token] of refusals) {
      const { error } = await ask(operation, input, token);
      const place = `${operation} ${code}: ${JSON.stringify(error)}`;
      assert.equal(error?.kind, "refused", place);
      assert.deepEqual(
        [error.refusal.code, error.refusal.isKnown, error.refusal.status, error.refusal.operation],
        [code, true, status, operation],
        place,
      );
      for (const [field, value] of Object.entries(details))
        assert.deepEqual(error.refusal.details[field], value, place);
    }
    const { answer } = await ask("listSessions", {});
    assert.equal(answer.sessions.length, 1);
  });

  test(`a_name_reaches_only_its_own_agent_by_${way}`, async () => {
    await call("createSession", { id: "bobs" }, { way, agent: "bob" });
    const names = [
      "../bob",
      "alice/../bob",
      "bob/rpc/listSessions?",
      "%2e%2e%2fbob",
      "bob#",
      "bob%",
      "x/../../bob",
      "\\..\\bob",
      "..%2Fbob",
    ];
    for (const agent of names) {
      const created = await call("createSession", { id: "own" }, { way, agent });
      assert.equal(created.answer?.agentId, agent, JSON.stringify(created));
      const { answer } = await call("listSessions", {}, { way, agent });
      assert.deepEqual(
        answer.sessions.map(({ id }) => id),
        ["own"],
        agent,
      );
      await call("deleteSession", { sessionId: "own" }, { way, agent });
    }
    for (const agent of ["", ".", ".."]) {
      const { error } = await call("listSessions", {}, { way, agent });
      assert.equal(error.kind, "invalid", agent);
    }
    for (const operation of ["../../bob/rpc/listSessions", "..", "listSessions?x", "%2e%2e"]) {
      const { error } = await call(operation, {}, { way, agent: "carol" });
      assert.equal(error.kind, "invalid", operation);
    }
    const { answer } = await call("listSessions", {}, { way, agent: "bob" });
    assert.deepEqual(
      answer.sessions.map(({ id }) => id),
      ["bobs"],
    );
  });

  test(`a_session_is_streamed_to_another_agent_by_${way}`, async () => {
    const agent = `copied ${way}`;
    await call("createSession", { id: "s" }, { way, agent });
    const events = Array.from({ length: 400 }, (_, n) => ({
      action: "user_message",
      content: `${n} ${"é".repeat(1000)}`,
    }));
    await call("appendEvents", { sessionId: "s", events }, { way, agent });
    assert.deepEqual(await answerOf({ what: "copy", to: `${agent} there`, way, agent }), [400, "s"]);
    const history = (of) => call("loadEvents", { sessionId: "s", limit: 1000 }, { way, agent: of });
    const [here, there] = [await history(agent), await history(`${agent} there`)];
    assert.deepEqual(there.answer, here.answer);
    const { error } = await ask({ what: "import", file: "no file", way, agent: "imports" });
    assert.deepEqual([error.kind, error.refusal.code], ["refused", "invalid_request"]);
  });
}

test("a_redirect_is_not_followed", async () => {
  const { error } = await call("listSessions", {}, { way: "SELF" });
  assert.deepEqual([error.kind, error.refusal], ["unreached", null]);
  assert.match(error.message, /^`listSessions` was answered with a redirect to http\S+, which is not followed/);
  assert.doesNotMatch(error.message, /secret|elsewhere/);
});

test("the_example_stores_and_finds_notes", async () => {
  const notes = new URL("/notes", example);
  const get = async (query = "") => (await fetch(`${notes}${query}`)).json();
  assert.deepEqual(await get(), { notes: [] });
  for (const body of ["Penguins swim.", "Tea is hot."]) {
    const response = await fetch(notes, { method: "POST", body });
    assert.deepEqual([response.status, await response.text()], [200, "Noted.\n"]);
  }
  assert.deepEqual(await get(), { notes: ["Penguins swim.", "Tea is hot."] });
  const { found } = await get("?query=penguin");
  assert.deepEqual(
    found.map(({ snippet, sessionId }) => [snippet, sessionId]),
    [["Penguins swim.", "notes"]],
  );
  assert.equal((await fetch(notes, { method: "POST", body: " " })).status, 400);
  assert.equal((await fetch(notes, { method: "DELETE" })).status, 405);
  assert.equal((await fetch(example)).status, 404);
});
