// `limits` on the real runtime: the error of a refused turn at each entry point, counting across
// evictions and crashes, and the cost of counting.

import assert from "node:assert/strict";
import { after, afterEach, beforeEach, test } from "node:test";
import { AgentClient } from "agents/client";
import { call, startChatServer, until } from "./chat_server.mjs";
import { awayFromMidnight } from "./harness.mjs";
import { gate, refuse, say, USAGE } from "./model_server.mjs";

const SECRET = "the secret of these tests, which is long enough";
const { server, model, stop } = await startChatServer({
  token: SECRET,
  vars: { ALLOWED_ORIGINS: "https://page.example" },
});
const clients = [];
after(async () => {
  clients.forEach((client) => client.close());
  await stop();
});
beforeEach(awayFromMidnight);
afterEach(() => assert.equal(model.unusedAnswers, 0, "a scripted answer was never requested"));

const bearer = (token) => ({ authorization: `Bearer ${token}` });
const owner = bearer(SECRET);
const { total_tokens: TOKENS } = USAGE;

const configure = (agent, limits, more) => call(server, agent, "configureAgent", { limits, ...more }, owner);
const mint = async (agent, claims) =>
  bearer((await call(server, agent, "mintToken", { expiresIn: 60, ...claims }, owner)).token);
const bodyOf = (text) => ({
  id: "s",
  message: { id: text.slice(0, 20), role: "user", parts: [{ type: "text", text }] },
});

function ask(agent, text, headers = owner, more = {}) {
  const body = JSON.stringify({ ...bodyOf(text), ...more });
  return server.fetch(`/agents/session-agent/${agent}/chat`, { method: "POST", headers, body });
}

async function isAnswered(agent, text, headers) {
  model.next(say("Yes."));
  const response = await ask(agent, text, headers);
  const stream = await response.text();
  assert.equal(response.status, 200, stream);
  assert.ok(stream.endsWith("data: [DONE]\n\n") && !stream.includes('"error"'), stream);
}

/**
 * Checks that a limit refuses a turn before the model is called. Returns the seconds until it may
 * begin.
 */
async function isRefused(agent, text, field, headers) {
  const requestsBefore = model.requests.length;
  const response = await ask(agent, text, headers);
  const { error } = await response.json();
  assert.deepEqual([response.status, error.code, error.details.field], [429, "rate_limited", `limits.${field}`]);
  assert.equal(response.headers.get("retry-after"), String(error.details.retryAfter));
  assert.equal(model.requests.length, requestsBefore);
  return error.details.retryAfter;
}

const textsIn = async (agent) =>
  (await call(server, agent, "getHistory", { sessionId: "s" }, owner)).messages
    .filter(({ role }) => role === "user")
    .map(({ id }) => id);

test("turns_over_the_minute_limit_are_refused_even_after_an_eviction_and_a_crash", async () => {
  await configure("pace", { turnsPerMinute: 2 });
  await isAnswered("pace", "one");
  await isAnswered("pace", "two");
  for (const restart of [() => {}, () => server.evict("pace"), () => server.kill9()]) {
    await restart();
    const seconds = await isRefused("pace", "three", "turnsPerMinute");
    assert.ok(seconds >= 1 && seconds <= 60, String(seconds));
  }
  assert.deepEqual(await textsIn("pace"), ["one", "two"]);
});

test("runTurn_and_a_socket_get_the_same_error", async () => {
  await configure("doors", { turnsPerMinute: 1 });
  await isAnswered("doors", "one");
  const ran = await server.call(
    "doors",
    "runTurn",
    { sessionId: "s", message: bodyOf("two").message },
    { headers: owner },
  );
  assert.deepEqual(
    [ran.status, ran.body.error.code, ran.headers.get("retry-after")],
    [429, "rate_limited", String(ran.body.error.details.retryAfter)],
  );
  const token = await mint("doors", { preset: "chat", sessionId: "s" });
  const client = new AgentClient({
    agent: "SessionAgent",
    name: "doors",
    host: new URL(server.url).host,
    protocol: "ws",
    query: { sessionId: "s", token: token.authorization.slice("Bearer ".length) },
  });
  clients.push(client);
  const frames = [];
  client.addEventListener("message", ({ data }) => frames.push(JSON.parse(data)));
  await client.ready;
  const init = { method: "POST", body: JSON.stringify({ messages: [bodyOf("three").message] }) };
  client.send(JSON.stringify({ type: "cf_agent_use_chat_request", id: "r", init }));
  const reply = () => frames.find(({ type, id }) => type === "cf_agent_use_chat_response" && id === "r");
  await until(
    () => reply() !== undefined,
    (check) => client.addEventListener("message", check),
    () => JSON.stringify(frames),
  );
  assert.equal(reply().error, true);
  assert.match(reply().body, /limits\.turnsPerMinute/);
  assert.deepEqual(await textsIn("doors"), ["one"]);
});

test("a_page_of_another_origin_can_read_retry_after", async () => {
  await configure("page", { turnsPerMinute: 1 });
  await isAnswered("page", "one");
  const response = await ask("page", "two", { ...owner, origin: "https://page.example" });
  assert.equal(response.status, 429);
  assert.match(response.headers.get("access-control-expose-headers"), /retry-after/);
  await response.text();
});

test("a_token_is_limited_and_the_secret_is_not", async () => {
  const claims = { preset: "chat", sessionId: "s", holder: "user-42", limits: { tokensPerDay: TOKENS } };
  const [first, again] = [await mint("tokens", claims), await mint("tokens", claims)];
  await isAnswered("tokens", "one", first);
  const untilMidnight = (86_400_000 - (Date.now() % 86_400_000)) / 1_000;
  const seconds = await isRefused("tokens", "two", "tokensPerDay", first);
  assert.ok(Math.abs(seconds - untilMidnight) < 60, `${seconds} ${untilMidnight}`);
  await isRefused("tokens", "three", "tokensPerDay", again);
  await isAnswered("tokens", "four");
  assert.equal(
    (await server.call("tokens", "mintToken", claims, { headers: first })).status,
    403,
    "no token mints a looser one",
  );
});

test("stopped_answers_and_calls_lost_in_a_crash_count", async () => {
  const long = "many words ".repeat(40);
  for (const [agent, ends] of [
    ["stopped", async () => await call(server, "stopped", "cancelTurn", { sessionId: "s" }, owner)],
    ["killed", async () => await server.kill9()],
  ]) {
    await configure(agent, { tokensPerDay: 50 });
    const shut = gate();
    const requestsBefore = model.requests.length;
    model.next(say(shut, "Never heard."));
    const response = ask(agent, long)
      .then((answer) => answer.text())
      .catch(() => {});
    await model.untilRequests(requestsBefore + 1);
    await ends();
    shut.open();
    await response;
    // The killed turn resumes, and its second request would exceed the limit.
    const codes = new Set();
    while (!codes.has("rate_limited")) codes.add((await (await ask(agent, "again")).json()).error.code);
    codes.delete("turn_in_progress");
    assert.deepEqual([...codes], ["rate_limited"]);
    assert.equal(model.requests.length, requestsBefore + 1);
  }
});

test("an_error_of_the_provider_counts_no_cost", async () => {
  await configure("refused", { tokensPerDay: 1 });
  model.next(refuse(400));
  assert.match(await (await ask("refused", "one")).text(), /"error"/);
  await isAnswered("refused", "two");
  await isRefused("refused", "three", "tokensPerDay");
});

test("counting_writes_a_row_per_turn_and_two_per_call_only_with_limits", async () => {
  const written = {};
  const high = { turnsPerMinute: 1_000, tokensPerDay: 1_000_000 };
  for (const [name, limits] of Object.entries({
    none: null,
    turns: { turnsPerMinute: 1_000 },
    tokens: { tokensPerDay: 1_000_000 },
    both: high,
  })) {
    const agent = `costs-${name}`;
    await configure(agent, limits);
    await isAnswered(agent, "one");
    written[name] = (await server.metered(agent, () => isAnswered(agent, "two"))).written;
    assert.deepEqual(await textsIn(agent), ["one", "two"]);
  }
  assert.deepEqual(written, { none: 4, turns: 5, tokens: 6, both: 7 });
});
