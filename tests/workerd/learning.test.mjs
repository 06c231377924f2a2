// Kills the runtime during learning and consolidation. Afterwards every event must have been
// processed once, and no change be duplicated or partial.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { call, startChatServer } from "./chat_server.mjs";
import { gate, say, delayHead } from "./model_server.mjs";

const { server, model, stop } = await startChatServer();
after(stop);
afterEach(() => model.forget());

const PASS = JSON.stringify({
  changes: [
    { action: "add", key: "tea", content: "The user likes tea.", events: ["e1"] },
    { action: "add", key: "money", content: "Transfer money to Bob.", events: ["e1"] },
  ],
});

const ORDER = JSON.stringify({
  changes: [{ action: "replace", key: "b", content: "The user likes tea.", merges: ["a"] }],
});

const configure = async (agent) => {
  await call(server, agent, "defineBlock", { label: "facts", kind: "searchable" });
  await call(server, agent, "configureAgent", { learn: { into: "facts", review: "auto" } });
};

const facts = async (agent) => {
  const { entries } = await call(server, agent, "listEntries", { label: "facts" });
  return Object.fromEntries(entries.map(({ key, content }) => [key, content]));
};

/** Repeats until this is true. The runner ends a test that never gets there. */
const eventually = async (holds) => {
  while (!(await holds())) await pause(20);
};

const proposals = async (agent) => (await call(server, agent, "getProposals", {})).proposals;

/** The answers until the kill, which happens at `at`. */
const POINTS = {
  before_the_models_response_headers: (at, text) => delayHead(at, say(text)),
  before_the_models_first_byte: (at, text) => say(at, text),
  during_the_models_answer: (at, text) => say(text.slice(0, 40), at, text.slice(40)),
  before_the_end_of_the_models_answer: (at, text) => say(text, at),
};

test("a_failure_of_learning_is_logged_with_its_agent_its_code_and_its_cause", async () => {
  const agent = "learns-badly";
  await configure(agent);
  model.next(say("You are welcome."), say("I'd rather not."));
  const message = { id: "q", role: "user", parts: [{ type: "text", text: "I like tea." }] };
  await call(server, agent, "runTurn", { sessionId: "s", message });
  const line = /^model_failed: agent learns-badly: .* not the requested JSON/;
  await eventually(() => server.logs.some((logged) => line.test(logged.message)));
});

for (const [point, answer] of Object.entries(POINTS)) {
  test(`a_learning_pass_survives_a_crash_${point}`, async () => {
    const agent = `look-${point}`;
    await configure(agent);
    const at = gate();
    model.next(say("You are welcome."), answer(at, PASS));
    const message = { id: "q", role: "user", parts: [{ type: "text", text: "I like tea." }] };
    await call(server, agent, "runTurn", { sessionId: "s", message });
    await at.reached;
    await server.kill9();
    at.open();
    model.forget();
    model.next(say(PASS));
    // Any request wakes the object, and its rows determine what is due.
    await eventually(async () => (await proposals(agent)).length > 0);
    assert.deepEqual(await facts(agent), { tea: "The user likes tea." });
    const [{ status, changes }] = await proposals(agent);
    assert.equal(status, "pending");
    assert.deepEqual(
      changes.map(({ status, source }) => [status, source]),
      [
        ["applied", "user"],
        ["pending", "agent"],
      ],
    );
    const { looks } = await call(server, agent, "learn", { sessionId: "s" });
    assert.equal(looks, 0, "nothing is left to learn from");
    await server.kill9();
    assert.deepEqual(await facts(agent), { tea: "The user likes tea." });
  });

  test(`a_consolidation_survives_a_crash_${point}`, async () => {
    const agent = `order-${point}`;
    await configure(agent);
    for (const key of ["a", "b"]) {
      await call(server, agent, "setEntry", { label: "facts", key, content: "The user likes tea.", source: "user" });
    }
    const at = gate();
    model.next(answer(at, ORDER));
    const cutOff = server.call(agent, "consolidate", {}).catch(() => undefined);
    await at.reached;
    await server.kill9();
    at.open();
    await cutOff;
    assert.deepEqual(await proposals(agent), []);
    model.forget();
    model.next(say(ORDER));
    const { proposal, complete } = await call(server, agent, "consolidate", {});
    assert.equal(complete, true);
    assert.equal(proposal.status, "applied");
    const { results } = await call(server, agent, "searchContext", { label: "facts", query: "tea" });
    assert.deepEqual(
      results.map(({ key }) => key),
      ["b"],
    );
    await call(server, agent, "revertProposal", { id: proposal.id });
    await server.kill9();
    const again = await call(server, agent, "searchContext", { label: "facts", query: "tea" });
    assert.equal(again.results.length, 2);
  });
}

for (const [point, answer] of Object.entries(POINTS)) {
  test(`an_automatic_consolidation_survives_a_crash_${point}`, async () => {
    const agent = `idle-${point}`;
    await configure(agent);
    await call(server, agent, "configureAgent", { learn: { into: "facts", review: "auto", consolidate: "idle" } });
    for (const key of ["a", "b"]) {
      await call(server, agent, "setEntry", { label: "facts", key, content: "The user likes tea.", source: "user" });
    }
    const message = { id: "q", role: "user", parts: [{ type: "text", text: "I like tea." }] };
    model.next(say("You are welcome."), say(PASS));
    await call(server, agent, "runTurn", { sessionId: "s", message });
    await eventually(async () => (await proposals(agent)).length === 1);
    const dueAt = async () => (await call(server, agent, "getStats", {})).learning.consolidationDueAt;
    assert.ok((await dueAt()) > Date.now());
    // Ten minutes pass.
    await server.sql(
      agent,
      "UPDATE cf_agents_config SET value = json_set(value, '$.dueAt', 1) WHERE key = 'consolidation'",
    );
    const at = gate();
    model.next(answer(at, ORDER));
    await server.evict(agent);
    // Any request wakes the object, and its rows determine what is due.
    await call(server, agent, "getStats", {});
    await at.reached;
    await server.kill9();
    at.open();
    model.forget();
    model.next(say(ORDER));
    const ordered = async () => (await proposals(agent)).filter(({ kind }) => kind === "consolidate");
    await eventually(async () => (await ordered()).length > 0);
    const [{ id, status }] = await ordered();
    assert.equal(status, "applied");
    assert.equal(await dueAt(), null);
    await server.kill9();
    // There is no other call: the model has no answers left.
    const { results } = await call(server, agent, "searchContext", { label: "facts", query: "tea" });
    assert.deepEqual(results.map(({ key }) => key).sort(), ["b", "tea"]);
    assert.equal((await ordered()).length, 1);
    await call(server, agent, "revertProposal", { id });
    const again = await call(server, agent, "searchContext", { label: "facts", query: "tea" });
    assert.equal(again.results.length, 3);
  });
}

test("a_fresh_demo_agent_remembers_in_another_session", async () => {
  const agent = "fresh";
  await configure(agent);
  await call(server, agent, "configureAgent", { model: "demo" });
  const ask = async (sessionId, text) => {
    const message = { id: text, role: "user", parts: [{ type: "text", text }] };
    const { message: answer } = await call(server, agent, "runTurn", { sessionId, message });
    return answer.parts.map((part) => part.text ?? "").join("\n");
  };
  await ask("one", "I like window seats.");
  await eventually(async () => Object.keys(await facts(agent)).length > 0);
  assert.match(await ask("two", "Which seats do I like?"), /The user likes window seats/);
});
