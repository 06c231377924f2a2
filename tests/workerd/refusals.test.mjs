// Errors reach a user's Worker with their class and code: over a service binding, a Durable Object
// namespace and a URL, through the client and each of its adapters, at any compatibility date. The
// Worker runs in its own runtime, beside the shipped configuration with its static files.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";
import { CODES, createData, REFUSALS } from "./refusals.mjs";
import { NEWEST_DATE, startSecond } from "./second_worker.mjs";

const SECRET = "the secret of this test, long enough";
const TARGETS = ["url", "service", "namespace"];
const ADAPTERS = ["openaiAgents", "langgraph", "agentsContext", "anthropicMemory", "tanstackAi"];

/** A date before errors kept their fields, and one after. */
const DATES = { older: "2024-09-23", newest: NEWEST_DATE };

const registry = await mkdtemp(join(tmpdir(), "session-agent-registry-"));
const server = await startServer({
  inspect: false,
  site: true,
  registry,
  vars: { MODEL: "demo" },
  secrets: { SESSION_AGENT_TOKEN: SECRET },
});
const seconds = {};
for (const [name, compatibilityDate] of Object.entries(DATES))
  seconds[name] = await startSecond(server, registry, { compatibilityDate });
after(async () => {
  for (const { stop } of Object.values(seconds)) await stop();
  await server.stop();
  await rm(registry, { recursive: true, force: true });
});

async function callHere(agent, operation, input) {
  const headers = { authorization: `Bearer ${SECRET}` };
  const { status, body } = await server.call(agent, operation, input, { headers });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const prepare = (agent) => createData((operation, input) => callHere(agent, operation, input));

for (const [date, second] of Object.entries(seconds)) {
  test(`every_error_has_its_class_over_each_transport_with_the_${date}_date`, async () => {
    for (const target of TARGETS) {
      // An object that is first woken over the namespace knows only its id.
      const agent = `refusals ${date} ${target}`;
      const [first] = await second.ask([
        { target, agent, options: { token: SECRET }, method: "listSessions", given: [] },
      ]);
      assert.deepEqual(first.answer, { sessions: [], cursor: null }, JSON.stringify(first));
      const tokens = await prepare(agent);
      const requests = REFUSALS.map(([method, input, , , , token]) => ({
        target,
        agent,
        options: { token: tokens[token] ?? SECRET },
        method: "call",
        given: [method, input],
      }));
      const answers = await second.ask(requests);
      for (const [n, [operation, , name, status, details]] of REFUSALS.entries()) {
        const { error } = answers[n];
        const place = `${target} ${operation} ${n}: ${JSON.stringify(answers[n])}`;
        assert.ok(error?.isOurs, place);
        assert.deepEqual(
          [error.name, error.class.replace(/^_/, ""), error.code, error.status, error.operation],
          [name, name, CODES[name], status, operation],
          place,
        );
        for (const [field, value] of Object.entries(details)) assert.deepEqual(error.details[field], value, place);
      }
      assert.equal((await callHere(agent, "getPathLength", { sessionId: "s" })).length, 1);
    }
  });

  test(`each_adapter_writes_then_fails_over_each_transport_with_the_${date}_date`, async () => {
    for (const target of TARGETS) {
      const outcomes = await second.ask(
        ADAPTERS.map((adapter) => ({
          target,
          agent: `${adapter} ${date} ${target}`,
          options: { token: SECRET },
          adapter,
        })),
      );
      assert.deepEqual(outcomes[0], { answer: ["Hello", "again"] }, target);
      assert.deepEqual(outcomes[1], { answer: ["c1", [["task", "channel", "value"]]] }, target);
      assert.deepEqual(outcomes[2], { answer: [null, "Likes tea."] }, target);
      assert.match(outcomes[3].answer ?? JSON.stringify(outcomes[3]), /tea/, target);
      assert.deepEqual(outcomes[4], { answer: [{ role: "user", content: "Hello" }] }, target);
      const agents = ADAPTERS.map((adapter) => `${adapter} refused ${date} ${target}`);
      const { read } = await prepare(agents[0]);
      for (const [token, name, status] of [
        ["wrong", "UnauthorizedError", 401],
        [read, "ForbiddenError", 403],
      ]) {
        // A token belongs to one agent.
        const refused = await second.ask(
          ADAPTERS.map((adapter, n) => ({
            target,
            agent: token === read ? agents[0] : agents[n],
            options: { token },
            adapter,
          })),
        );
        for (const [n, { error }] of refused.entries())
          assert.deepEqual(
            [error?.name, error?.status],
            [name, status],
            `${target} ${ADAPTERS[n]} ${JSON.stringify(error)}`,
          );
      }
    }
  });

  test(`requests_other_than_operations_reach_their_agent_with_the_${date}_date`, async () => {
    for (const target of TARGETS) {
      const agent = `asked ${date} ${target}`;
      const on = { target, agent, options: { token: SECRET }, session: "s" };
      const [created] = await second.ask([{ ...on, method: "create", given: [] }]);
      assert.equal(created.answer?.agentId, agent, JSON.stringify(created));
      const [messages, context, page] = await second.ask([
        { ...on, method: "getMessages", given: [] },
        { ...on, method: "getHistory", given: [], options: { token: SECRET, transport: "fetch" } },
        { ...on, method: "getHistory", given: [] },
      ]);
      assert.deepEqual(
        [messages.answer, context.answer, page.answer],
        [[], { messages: [], truncated: false, cursor: null }, { messages: [], truncated: false, cursor: null }],
      );
    }
  });
}

test("over_a_binding_an_error_is_data_and_an_answer_is_calls_json", async () => {
  for (const second of Object.values(seconds)) {
    for (const target of ["service", "namespace"]) {
      const agent = `raw ${target}`;
      const names = target === "service" ? [agent] : [];
      const request = (...given) => second.raw({ target, agent, method: "request", given: [...names, ...given] });
      const options = { token: SECRET, ...(target === "namespace" && { agent }) };
      const sessions = '{"sessions":[],"cursor":null}';
      assert.deepEqual(await request("listSessions", "{}", options), { answer: { ok: true, value: sessions } });
      assert.deepEqual(
        await second.raw({ target, agent, method: "call", given: [...names, "listSessions", "{}", { token: SECRET }] }),
        { answer: sessions },
      );
      const { answer } = await request("loadEvents", '{"sessionId":"nowhere"}', options);
      const { code, details, message } = answer.error;
      assert.deepEqual(
        [answer.ok, code, details, answer.status],
        [false, "session_not_found", { sessionId: "nowhere" }, 404],
      );
      assert.match(message, /no such session/);
      assert.deepEqual(Object.keys(answer).sort(), ["error", "ok", "status"]);
      // A wrong argument is an error as well, and so is a call without access.
      for (const [given, refusal] of [
        [[1, "{}", options], "invalid_request"],
        [["listSessions", 1, options], "invalid_request"],
        [["listSessions", "{}", { tokn: "x" }], "invalid_request"],
        [["listSessions", "{}"], "unauthorized"],
      ]) {
        assert.equal((await request(...given)).answer?.error.code, refusal, JSON.stringify(given));
      }
    }
  }
});

test("a_name_other_than_the_objects_is_refused", async () => {
  const options = { token: SECRET, agent: "somebody else" };
  for (const agent of ["named before", "not named before"]) {
    if (agent === "named before") await callHere(agent, "createSession", {});
    const { answer } = await seconds.newest.raw({
      target: "namespace",
      agent,
      method: "request",
      given: ["listSessions", "{}", options],
    });
    assert.deepEqual([answer.error.code, answer.error.details.field], ["invalid_request", "agent"]);
  }
});

test("a_name_given_once_is_known_after_an_eviction", async () => {
  const agent = "found by its id";
  const method = async (...given) =>
    (await seconds.newest.raw({ target: "namespace", agent, method: "createSession", given })).answer.agentId;
  assert.equal(await method({}, { token: SECRET, agent }), agent);
  await server.evict(agent);
  assert.equal(await method({}, { token: SECRET }), agent);
});

test("every_operation_is_a_method_of_the_object_with_plain_values", async () => {
  const agent = "methods";
  await prepare(agent);
  const method = (name, ...given) => seconds.newest.raw({ target: "namespace", agent, method: name, given });
  assert.deepEqual(
    (await method("loadEvents", { sessionId: "s" }, { token: SECRET })).answer.map(({ id }) => id),
    ["e1"],
  );
  assert.equal((await method("getSession", { sessionId: "nothing" }, { token: SECRET })).answer, null);
  assert.match((await method("listSessions", {})).error.message, /token/i);
});
