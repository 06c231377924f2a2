// With `MODEL_WAIT = "worker"`, the front Worker waits for the model while the object may be
// evicted. The client must receive the same as when the object waits, whatever is lost in between.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { call, openTurns, startChatServer } from "./chat_server.mjs";
import { startCollector } from "./collector.mjs";
import { startServer } from "./harness.mjs";
import { callTool, gate, refuse, say } from "./model_server.mjs";
import { answerInChunks, startWorkersAi } from "./servers/workers_ai.mjs";
import { startTools } from "./tool_server.mjs";

/**
 * A front Worker that the test controls: it begins a turn, connects if `messages` exists, sends the
 * messages once the object requests the model, and closes the socket.
 */
const FRONT = `
const bytesOf = (text) => new TextEncoder().encode(text);
async function sign(key, text) {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, bytesOf(text)));
}
export default {
  async fetch(request, env) {
    const { agent, secret, body, messages } = await request.json();
    const expires = Date.now() + 60_000;
    const key = await sign(bytesOf(secret), "session-agent front signing key 1");
    const seal = async (text) => btoa(String.fromCharCode(...await sign(key, text)))
      .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const signed = (signature) => ({ authorization: "Bearer " + secret, "x-session-agent-front": signature });
    const headers = signed(expires + "." + (await seal(expires + "\\n" + agent)));
    const object = env.OBJECT.getByName(agent);
    const url = "https://agent/agents/session-agent/" + agent + "/chat";
    const begun = await object.fetch(url, { method: "POST", headers, body });
    const id = begun.headers.get("x-session-agent-lease");
    if (messages === undefined) return Response.json({ id });
    const connect = (given) =>
      object.fetch(url, { headers: { upgrade: "websocket", "x-session-agent-lease": id, ...given } });
    const ofLease = async (lease) => signed(await seal("lease\\n" + agent + "\\n" + lease));
    const refused = [{ authorization: "Bearer " + secret }, headers, await ofLease("t-other")];
    const statuses = [];
    for (const wrong of refused) statuses.push((await connect(wrong)).status);
    const { webSocket } = await connect(await ofLease(id));
    const frames = [];
    const asked = new Promise((resolve) => {
      webSocket.addEventListener("message", ({ data }) => {
        frames.push(data);
        if (data.startsWith("c")) resolve();
      });
    });
    webSocket.accept();
    await asked;
    const twice = await connect(await ofLease(id));
    for (const message of messages) webSocket.send(Uint8Array.from(message));
    webSocket.close(1000);
    return Response.json({ id, frames, refused: [...statuses, twice.status] });
  },
};`;

const TOKEN = "a secret of a test, longer than 32 characters";
const headers = { authorization: `Bearer ${TOKEN}` };
const tools = await startTools();
const collector = await startCollector();
const start = (wait) =>
  startChatServer({
    token: TOKEN,
    vars: { MODEL_WAIT: wait, TOOL_ORIGINS: tools.origin, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    workers: { front: FRONT },
  });
const [waiting, usual] = await Promise.all([start("worker"), start("object")]);
const { server, model } = waiting;

after(async () => {
  await Promise.all([waiting.stop(), usual.stop()]);
  await tools.stop();
  await collector.stop();
});
afterEach(() => model.forget());

const message = (text) => ({ id: `u-${text}`, role: "user", parts: [{ type: "text", text }] });

function send(to, agent, text = "Go.", init = {}) {
  return to.fetch(`/agents/session-agent/${agent}/chat`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json", ...init.headers },
    body: JSON.stringify({ id: "s", message: message(text) }),
    signal: init.signal,
  });
}

const resume = (agent) => server.fetch(`/agents/session-agent/${agent}/chat/s/stream`, { headers });

/** The chunks of a stream, without the generated ids of messages. */
function chunksOf(text) {
  const events = text.split("\n\n").filter(Boolean);
  assert.equal(events.pop(), "data: [DONE]", text);
  return events.map((event) => JSON.parse(event.slice("data: ".length))).map(({ messageId, ...chunk }) => chunk);
}

const typesOf = (text) => chunksOf(text).map(({ type }) => type);

async function textsOf(agent, to = server) {
  const { messages } = await call(to, agent, "getHistory", { sessionId: "s" }, headers);
  return messages.map(({ role, parts }) => [role, parts.map(({ text = "" }) => text).join("")]);
}

/** Reads a stream until it has contained `text`; `rest()` reads the rest. */
async function readUntil(response, text) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let received = "";
  while (!received.includes(text)) {
    const { done, value } = await reader.read();
    assert.ok(!done, `the stream ended: ${received}`);
    received += value;
  }
  const rest = async () => {
    for (let step = await reader.read(); !step.done; step = await reader.read()) received += step.value;
    return received;
  };
  return { rest, cancel: () => reader.cancel() };
}

/** Waits until the agent has no open turn. */
async function ended(agent) {
  for (let tries = 0; tries < 600; tries += 1) {
    if ((await openTurns(server, agent)).length === 0) return;
    await pause(100);
  }
  assert.fail("the turn did not end");
}

test("a_client_gets_the_same_chunks_with_and_without_a_lease", async () => {
  const answers = () => [callTool("walk", { to: "Rome" }, "a"), say("Three ", "miles, ", "à pied. ", "🚶")];
  tools.run = async () => ({ miles: 3 });
  const received = {};
  for (const [name, one] of Object.entries({ waiting, usual })) {
    await call(
      one.server,
      "alice",
      "defineTool",
      { name: "walk", description: "Walks.", url: `${tools.origin}/walk` },
      headers,
    );
    one.model.next(...answers());
    const response = await send(one.server, "alice");
    assert.equal(response.status, 200);
    const [kind, stream] = ["content-type", "x-vercel-ai-ui-message-stream"].map((head) => response.headers.get(head));
    assert.deepEqual([kind, stream], ["text/event-stream", "v1"]);
    assert.equal(response.headers.get("x-session-agent-lease"), null);
    received[name] = chunksOf(await response.text());
    assert.equal(one.model.headers.at(-1).authorization, "Bearer a test's key");
  }
  assert.deepEqual(received.waiting, received.usual);
  assert.deepEqual(await textsOf("alice"), await textsOf("alice", usual.server));
});

test("a_turn_has_the_same_trace_with_and_without_a_lease", async () => {
  const traces = [];
  for (const one of [waiting, usual]) {
    collector.forget();
    await call(
      one.server,
      "traced",
      "defineTool",
      { name: "walk", description: "Walks.", url: `${tools.origin}/walk` },
      headers,
    );
    one.model.next(callTool("walk", { to: "Rome" }, "a"), say("Done."));
    const answer = await send(one.server, "traced");
    const traceId = answer.headers.get("traceparent").split("-")[1];
    await answer.text();
    const isOf = (span) => span.traceId === traceId;
    const isOver = (spans) => spans.some((span) => isOf(span) && span.name === "invoke_agent traced");
    const spans = (await collector.spans(isOver)).filter(isOf);
    const nameOf = (id) => spans.find(({ spanId }) => spanId === id)?.name;
    const shapes = spans.map(({ name, kind, parentSpanId, attributes }) =>
      [name, kind, nameOf(parentSpanId), ...Object.keys(attributes)].join(" "),
    );
    traces.push(shapes.sort());
    for (const { traceparent } of one.model.headers.slice(-2)) {
      const called = spans.find(({ spanId }) => spanId === traceparent.split("-")[2]);
      assert.equal(nameOf(called.parentSpanId), "chat test");
    }
  }
  assert.deepEqual(traces[0], traces[1]);
  assert.deepEqual(collector.mistakes, []);
});

test("the_object_may_be_evicted_while_the_model_answers", async () => {
  const at = gate();
  model.next(say("One ", at, "two."), say("Again."));
  const first = await readUntil(await send(server, "evicted"), "One ");
  const activation = await server.incarnation("evicted");
  // The runtime refuses to evict an object that has a request, a timer or a connection.
  await server.evict("evicted");
  // The next request wakes the object, which calls the model again.
  at.open();
  const received = await first.rest();
  assert.equal(typesOf(received).at(-1), "error");
  assert.match(received, /The turn continues: resume it/);
  await ended("evicted");
  assert.notEqual(await server.incarnation("evicted"), activation);
  assert.deepEqual(await textsOf("evicted"), [
    ["user", "Go."],
    ["assistant", "Again."],
  ]);
});

test("another_client_resumes_the_whole_turn", async () => {
  const at = gate();
  model.next(say("One ", at, "two."));
  const first = await readUntil(await send(server, "resumed"), "One ");
  const second = await readUntil(await resume("resumed"), "One ");
  const busy = await send(server, "resumed", "And?");
  assert.equal(busy.status, 409);
  assert.equal((await busy.json()).error.code, "turn_in_progress");
  at.open();
  const [one, other] = await Promise.all([first.rest(), second.rest()]);
  assert.deepEqual(chunksOf(one), chunksOf(other));
  assert.deepEqual((await textsOf("resumed")).at(-1), ["assistant", "One two."]);
});

test("cancelling_a_turn_aborts_its_model_call_at_once", async () => {
  const at = gate();
  model.next(say("One ", at, "two."));
  const abandoned = model.abandoned;
  const first = await readUntil(await send(server, "cancelled"), "One ");
  assert.deepEqual(await call(server, "cancelled", "cancelTurn", { sessionId: "s" }, headers), { cancelled: true });
  assert.equal(typesOf(await first.rest()).at(-1), "abort");
  assert.deepEqual((await textsOf("cancelled")).at(-1), ["assistant", "One "]);
  for (let tries = 0; model.abandoned === abandoned && tries < 100; tries += 1) await pause(50);
  assert.equal(model.abandoned, abandoned + 1);
});

test("a_model_error_is_the_same_with_a_lease", async () => {
  const received = [];
  for (const one of [waiting, usual]) {
    one.model.next(refuse(401, "No."));
    received.push(chunksOf(await (await send(one.server, "refused")).text()));
  }
  assert.deepEqual(received[0], received[1]);
  assert.equal(received[0].at(-1).type, "error");
});

test("a_turn_survives_a_runtime_crash", async () => {
  const at = gate();
  model.next(say("One ", at, "two."), say("Again."));
  const first = await readUntil(await send(server, "killed"), "One ");
  await server.kill9();
  await first.rest().catch(() => {});
  await call(server, "killed", "listSessions", {}, headers);
  await ended("killed");
  assert.deepEqual(await textsOf("killed"), [
    ["user", "Go."],
    ["assistant", "Again."],
  ]);
});

/** A message to the object about its first call, as base/leased_calls.rs reads it. */
const arrival = (kind, text = "") => [...Buffer.from(kind), 0, 0, 0, 0, ...Buffer.from(text)];
const HEAD = arrival("h", JSON.stringify({ status: 200, contentType: "text/event-stream", retryAfter: null }));
const WORDS = arrival("b", `data: ${JSON.stringify({ choices: [{ delta: { content: "Lost words." } }] })}\n\n`);

async function begin(agent, messages) {
  const response = await fetch(await server.urlOf("front"), {
    method: "POST",
    body: JSON.stringify({
      agent,
      secret: TOKEN,
      body: JSON.stringify({ id: "s", message: message("Go.") }),
      messages,
    }),
  });
  assert.equal(response.status, 200);
  return response.json();
}

test("a_worker_lost_at_any_point_leaves_the_turn_to_the_object", async () => {
  for (const [name, messages] of Object.entries({
    before_the_answer: [],
    after_the_head: [HEAD],
    after_some_words: [HEAD, WORDS],
    after_nonsense: [HEAD, [1, 2, 3]],
    after_a_stale_message: [arrival("b", "x").with(1, 9)],
  })) {
    model.next(say("Again."));
    const { frames, refused } = await begin(name, messages);
    assert.deepEqual(refused, [404, 404, 404, 404], "a lease has one socket, and only for the Worker in front");
    const order = frames.find((text) => text.startsWith("c"));
    assert.match(order, /"url":"http:/);
    await ended(name);
    assert.deepEqual(
      await textsOf(name),
      [
        ["user", "Go."],
        ["assistant", "Again."],
      ],
      name,
    );
    assert.equal(model.unusedAnswers, 0, name);
  }
});

test("a_worker_that_never_connects_leaves_the_turn_to_the_alarm", async () => {
  model.next(say("By alarm."));
  const { id } = await begin("silent");
  assert.match(id, /^t-/);
  await ended("silent");
  assert.deepEqual((await textsOf("silent")).at(-1), ["assistant", "By alarm."]);
});

test("other_tabs_receive_the_running_turn", async () => {
  const at = gate();
  model.next(say("One ", at, "two."));
  await call(server, "tabs", "createSession", { id: "s" }, headers);
  const { token } = await call(
    server,
    "tabs",
    "mintToken",
    { preset: "chat", sessionId: "s", expiresIn: 600 },
    headers,
  );
  const socket = new WebSocket(
    `${server.url.toString().replace("http", "ws")}agents/session-agent/tabs?sessionId=s&token=${token}`,
  );
  const frames = [];
  const receives = (text) =>
    new Promise((resolve) => {
      const check = () => frames.some((frame) => frame.includes(text)) && resolve();
      socket.addEventListener("message", ({ data }) => {
        frames.push(data);
        check();
      });
      check();
    });
  const [receivesOne, receivesTwo] = [receives("One "), receives("two.")];
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  const first = await readUntil(await send(server, "tabs"), "One ");
  await receivesOne;
  at.open();
  await receivesTwo;
  assert.equal(typesOf(await first.rest()).at(-1), "finish");
  socket.close();
});

test("workers_ai_is_called_by_the_front_worker", async () => {
  const ai = await startWorkersAi();
  const bound = await startServer({
    ai: ai.url,
    vars: { MODEL: "workers-ai:@cf/meta/llama-3.1-8b-instruct", MODEL_WAIT: "worker" },
    secrets: { SESSION_AGENT_TOKEN: TOKEN },
  });
  try {
    const at = gate();
    ai.answer = async (_, response) => {
      await at.gate;
      answerInChunks(response, [{ response: "One " }, { response: "two." }]);
    };
    const answer = await send(bound, "bound");
    while (ai.requests.length === 0) await pause(20);
    // Only an object without an outgoing call can be evicted.
    await bound.evict("bound");
    at.open();
    assert.match(await answer.text(), /The turn continues/);
    for (let tries = 0; tries < 600 && (await textsOf("bound", bound)).length < 2; tries += 1) await pause(50);
    assert.deepEqual((await textsOf("bound", bound)).at(-1), ["assistant", "One two."]);
    assert.equal(typesOf(await (await send(bound, "bound", "And?")).text()).at(-1), "finish");
  } finally {
    await bound.stop();
    await ai.stop();
  }
});

test("the_object_of_a_custom_class_can_be_evicted_too", async () => {
  const own = `
    import worker, { SessionAgent as Agent } from "session-agent/worker";
    export default worker;
    export class SessionAgent extends Agent {
      authorizations = 0;
      tools() { return {}; }
      authorize() { this.authorizations += 1; }
      async fetch(request) {
        return request.headers.has("x-count") ? Response.json(this.authorizations) : await super.fetch(request);
      }
    }`;
  const customServer = await startServer({
    own,
    vars: { MODEL: "openai:test", OPENAI_BASE_URL: model.url, MODEL_WAIT: "worker" },
    secrets: { OPENAI_API_KEY: "a key", SESSION_AGENT_TOKEN: TOKEN },
  });
  try {
    const at = gate();
    model.next(say("One ", at, "two."));
    const first = await readUntil(await send(customServer, "own"), "One ");
    const path = "/agents/session-agent/own/chat/s/stream";
    const counted = await customServer.fetch(path, { headers: { ...headers, "x-count": "1" } });
    assert.equal(await counted.json(), 1, "`authorize` decides on a request once");
    await customServer.evict("own");
    await first.cancel();
    model.next(say("Again."));
    at.open();
    for (let tries = 0; tries < 600 && (await textsOf("own", customServer)).length < 2; tries += 1) await pause(50);
    assert.deepEqual((await textsOf("own", customServer)).at(-1), ["assistant", "Again."]);
  } finally {
    await customServer.stop();
  }
});

test("only_the_front_worker_gets_a_lease", async () => {
  model.next(say("Hello."), say("Hello."));
  for (const [agent, forged] of [
    ["forged", { "x-session-agent-front": `${Date.now() + 1_000}.AAAA` }],
    ["named", { "x-session-agent-front": TOKEN }],
  ]) {
    const response = await server.fetch(
      `/agents/session-agent/${agent}/chat`,
      {
        method: "POST",
        headers: { ...headers, ...forged },
        body: JSON.stringify({ id: "s", message: message("Go.") }),
      },
      { via: "object", agent },
    );
    assert.equal(response.headers.get("x-session-agent-lease"), null);
    assert.equal(typesOf(await response.text()).at(-1), "finish");
  }
  const response = await server.fetch(
    "/agents/session-agent/forged/chat",
    { method: "POST", headers: { ...headers, "x-session-agent-lease": "t-x" } },
    { via: "object", agent: "forged" },
  );
  assert.equal(response.status, 404);
  await response.text();
});
