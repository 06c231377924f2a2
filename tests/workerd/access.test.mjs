// Authentication over HTTP, through the Worker and directly at the object.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

const SECRET = "correct horse battery staple, twice and again";
const guarded = await startServer({ vars: {}, secrets: { SESSION_AGENT_TOKEN: SECRET } });
const unset = await startServer({ vars: {}, site: true });
after(() => Promise.all([guarded.stop(), unset.stop()]));

const bearer = (token) => ({ headers: { authorization: `Bearer ${token}` } });
const owner = bearer(SECRET);

async function mint(agent, claims) {
  const { status, body } = await guarded.call(agent, "mintToken", { expiresIn: 60, ...claims }, owner);
  assert.equal(status, 200);
  return body.token;
}

async function statusOf(agent, operation, input, options) {
  const { status, body } = await guarded.call(agent, operation, input, options);
  return status === 200 ? 200 : [status, body.error.code];
}

test("without_a_secret_only_health_and_static_files_are_served", async () => {
  const { status, body, headers } = await unset.call("a", "listSessions");
  assert.deepEqual([status, body.error.code, headers.get("www-authenticate")], [401, "unauthorized", "Bearer"]);
  assert.match(body.error.message, /SESSION_AGENT_TOKEN.*AUTH = "open"/);
  const object = await unset.call("a", "listSessions", {}, { via: "object" });
  assert.equal(object.status, 401);
  for (const path of ["/health", "/openapi.json", "/"]) assert.equal((await unset.fetch(path)).status, 200, path);
});

test("only_the_secret_gives_full_access", async () => {
  assert.equal(await statusOf("a", "listSessions", {}, owner), 200);
  for (const token of ["", "x", SECRET.slice(1), `${SECRET} x`, "sa2.e30.AAAA", "x".repeat(20_000)]) {
    for (const via of [undefined, "service", "object"]) {
      assert.deepEqual(await statusOf("a", "listSessions", {}, { ...bearer(token), via }), [401, "unauthorized"]);
    }
  }
  assert.deepEqual(await statusOf("a", "listSessions", {}, { headers: { authorization: `Basic ${SECRET}` } }), [
    401,
    "unauthorized",
  ]);
});

test("a_scoped_token_reaches_only_its_session", async () => {
  for (const id of ["mine", "other"]) await guarded.call("scoped", "createSession", { id }, owner);
  const token = bearer(await mint("scoped", { sessionId: "mine" }));
  assert.equal(await statusOf("scoped", "loadEvents", { sessionId: "mine" }, token), 200);
  const { body } = await guarded.call("scoped", "listSessions", {}, token);
  assert.deepEqual(
    body.sessions.map(({ id }) => id),
    ["mine"],
  );
  assert.deepEqual(await statusOf("scoped", "loadEvents", { sessionId: "other" }, token), [403, "forbidden"]);
  assert.deepEqual(await statusOf("scoped", "mintToken", { expiresIn: 60 }, token), [403, "forbidden"]);
  assert.deepEqual(await statusOf("scoped", "destroy", { confirm: "scoped" }, token), [403, "forbidden"]);
  assert.deepEqual(await statusOf("scoped", "configureAgent", { maxSteps: 1 }, token), [403, "forbidden"]);
  // The token is valid only at the agent that minted it.
  assert.deepEqual(await statusOf("another", "loadEvents", { sessionId: "mine" }, token), [401, "unauthorized"]);
  assert.deepEqual(await statusOf("another", "loadEvents", { sessionId: "mine" }, { ...token, via: "object" }), [
    401,
    "unauthorized",
  ]);
});

test("a_browser_token_acts_only_for_its_user", async () => {
  const agent = "browser";
  for (const id of ["s", "other"]) await guarded.call(agent, "createSession", { id }, owner);
  const block = { label: "memory", kind: "writable" };
  assert.equal((await guarded.call(agent, "defineBlock", block, owner)).status, 200);
  const token = bearer(await mint(agent, { preset: "chat", sessionId: "s" }));
  const message = (role) => ({ role, parts: [{ type: "text", text: "Hello." }] });
  const chat = async (body, options = token) => {
    const init = {
      method: "POST",
      headers: options.headers,
      body: JSON.stringify({ message: message("user"), ...body }),
    };
    const response = await guarded.fetch(`/agents/session-agent/${agent}/chat`, init, { ...options, agent });
    const text = await response.text();
    return response.status === 200 ? 200 : [response.status, JSON.parse(text).error.details.field];
  };
  const tools = [{ name: "mine", parameters: { type: "object" } }];
  for (const via of [undefined, "object"]) {
    const past = { ...token, via };
    assert.equal(await chat({ id: "s", tools: [], clientTools: [], systemInstructions: [] }, past), 200);
    for (const [field, value] of Object.entries({
      model: "demo",
      systemInstructions: "Obey.",
      tools,
      clientTools: tools,
    })) {
      assert.deepEqual(await chat({ id: "s", [field]: value }, past), [403, field]);
    }
    assert.deepEqual(await chat({ id: "other" }, past), [403, undefined]);
    const refused = [
      ["appendMessage", { sessionId: "s", message: message("assistant") }],
      ["setBlock", { label: "memory", content: "forged" }],
      ["callTool", { sessionId: "s", name: "set_context", arguments: {} }],
      ["deleteSession", { sessionId: "s" }],
      ["mintToken", { expiresIn: 60 }],
    ];
    for (const [operation, input] of refused) {
      assert.deepEqual(await statusOf(agent, operation, input, past), [403, "forbidden"], operation);
    }
    assert.equal(await statusOf(agent, "getHistory", { sessionId: "s" }, past), 200);
  }
  const session = bearer(await mint(agent, { sessionId: "s" }));
  assert.deepEqual(await statusOf(agent, "appendMessage", { sessionId: "s", message: message("assistant") }, session), [
    403,
    "forbidden",
  ]);
  assert.equal(await statusOf(agent, "appendMessage", { sessionId: "s", message: message("user") }, session), 200);
  const allowed = bearer(
    await mint(agent, {
      preset: "chat",
      sessionId: "s",
      allow: { models: ["demo"], systemInstructions: true, clientTools: true },
    }),
  );
  assert.equal(await chat({ id: "s", model: "demo", systemInstructions: "Be kind.", tools }, allowed), 200);
});

test("a_token_expires_when_stated", async () => {
  let [token, isAnswered, ends] = [null, false, 0];
  // A request sent after the token expired proves nothing about expiry. The next token lives
  // longer.
  for (let expiresIn = 1; !isAnswered; expiresIn *= 2) {
    const startedAt = Date.now();
    token = bearer(await mint("brief", { expiresIn }));
    ends = Date.now() + expiresIn * 1000;
    const status = await statusOf("brief", "listSessions", {}, token);
    isAnswered = Date.now() < startedAt + expiresIn * 1000;
    if (isAnswered) assert.equal(status, 200);
  }
  await new Promise((resolve) => setTimeout(resolve, ends - Date.now() + 100));
  assert.deepEqual(await statusOf("brief", "listSessions", {}, token), [401, "unauthorized"]);
});

test("tokens_appear_in_no_response_and_no_log", async () => {
  const token = await mint("quiet", { sessionId: "s" });
  const answers = [
    await guarded.call("quiet", "destroy", { confirm: token }, bearer(token)),
    await guarded.call("quiet", "loadEvents", { sessionId: token }, owner),
    await guarded.call("other", "loadEvents", {}, bearer(`${token}x`)),
  ];
  for (const { status, body } of answers) {
    assert.ok(status >= 400);
    assert.ok(!body.error.message.includes(token) && !JSON.stringify(body).includes(SECRET));
  }
  assert.ok(!JSON.stringify(guarded.logs).includes(SECRET));
  assert.ok(!JSON.stringify(guarded.logs).includes(token));
});
