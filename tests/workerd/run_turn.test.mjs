// Turns started by servers on the real runtime: `runTurn` over HTTP, Workers RPC and a socket,
// queued messages, and callers that disconnect.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { after, afterEach, test } from "node:test";
import { AgentClient } from "agents/client";
import { transform } from "esbuild";
import { call, history, openTurns, startChatServer, textOf } from "./chat_server.mjs";
import { gate, refuse, say, USAGE } from "./model_server.mjs";
import { startTools } from "./tool_server.mjs";

const { server, model, stop } = await startChatServer();
const clients = [];
after(async () => {
  clients.forEach((client) => client.close());
  await stop();
});
afterEach(() => assert.equal(model.unusedAnswers, 0, "a scripted answer was never requested"));

const asks = (text, more = {}) => ({
  sessionId: "s",
  message: { id: `u-${text}`, role: "user", parts: [{ type: "text", text }] },
  ...more,
});

const runTurn = (agent, text, more) => server.call(agent, "runTurn", asks(text, more));

const waiting = async (agent) =>
  (await server.sql(agent, "SELECT number FROM cf_agents_waiting WHERE part = 1 ORDER BY number")).map(
    ({ number }) => number,
  );

function connect(agent) {
  const client = new AgentClient({
    agent: "SessionAgent",
    name: agent,
    host: new URL(server.url).host,
    protocol: "ws",
    query: { sessionId: "s" },
  });
  clients.push(client);
  return client;
}

test("a_turn_is_answered_over_http_rpc_and_a_socket", async () => {
  const client = connect("doors");
  await client.ready;
  const entryPoints = {
    http: async (text) => (await runTurn("doors", text)).body,
    service: async (text) =>
      JSON.parse(await server.rpc("doors", "runTurn", [JSON.stringify(asks(text))], { via: "service" })),
    object: async (text) =>
      JSON.parse(await server.rpc("doors", "runTurn", [JSON.stringify(asks(text))], { via: "object" })),
    socket: async (text) => await client.call("runTurn", [asks(text)]),
  };
  for (const [entryPoint, ask] of Object.entries(entryPoints)) {
    model.next(say("Hello ", `${entryPoint}.`));
    const ran = await ask(entryPoint);
    assert.equal(textOf(ran.message), `Hello ${entryPoint}.`);
    const { prompt_tokens: inputTokens, completion_tokens: outputTokens } = USAGE;
    assert.deepEqual(
      { ...ran, message: null },
      {
        message: null,
        usage: { inputTokens, outputTokens, cachedInputTokens: 0, cost: 0 },
        finishReason: "stop",
        steps: 1,
      },
    );
    assert.deepEqual(await ask(entryPoint), ran, "the same answer again");
  }
  await server.evict("doors", { webSockets: "hibernate" });
  assert.equal(textOf((await runTurn("doors", "http")).body.message), "Hello http.");
});

test("the_turn_continues_without_its_caller_and_can_be_joined", async () => {
  const rest = gate();
  model.next(say("One ", rest, "two."));
  const caller = new AbortController();
  const path = "/agents/session-agent/leaves/rpc/runTurn";
  const abandoned = server.fetch(path, { method: "POST", body: JSON.stringify(asks("hi")), signal: caller.signal });
  await rest.reached;
  caller.abort();
  await assert.rejects(abandoned);
  const joined = runTurn("leaves", "hi");
  rest.open();
  assert.equal(textOf((await joined).body.message), "One two.");
  assert.deepEqual(await history(server, "leaves", "s"), [
    ["user", "hi"],
    ["assistant", "One two."],
  ]);
});

test("messages_are_queued_joined_and_answered_in_order", async () => {
  const rest = gate();
  model.next(say("One", rest, "."), say("Two."), say("Three."));
  const first = runTurn("queue", "first");
  await rest.reached;
  const second = runTurn("queue", "second", { whenBusy: "queue" });
  while ((await waiting("queue")).length < 1);
  const third = runTurn("queue", "third", { whenBusy: "queue" });
  while ((await waiting("queue")).length < 2);
  const again = runTurn("queue", "third", { whenBusy: "queue" });
  assert.equal((await runTurn("queue", "fourth")).body.error.code, "turn_in_progress");
  rest.open();
  const answers = await Promise.all([first, second, third, again]);
  assert.deepEqual(
    answers.map(({ body }) => textOf(body.message)),
    ["One.", "Two.", "Three.", "Three."],
  );
  assert.deepEqual(
    (await history(server, "queue", "s")).map(([, text]) => text),
    ["first", "One.", "second", "Two.", "third", "Three."],
  );
  assert.deepEqual(await waiting("queue"), []);
});

test("a_queued_chat_request_starts_streaming_with_its_turn", async () => {
  const rest = gate();
  model.next(say("One", rest, "."), say("Two."));
  const first = runTurn("stream", "first");
  await rest.reached;
  const body = JSON.stringify({ id: "s", message: asks("second").message, whenBusy: "queue" });
  const streaming = await server.fetch("/agents/session-agent/stream/chat", { method: "POST", body });
  assert.equal(streaming.status, 200, "the message is stored before the stream begins");
  assert.deepEqual(await waiting("stream"), [1]);
  const resume = await server.fetch("/agents/session-agent/stream/chat/s/stream");
  rest.open();
  await first;
  assert.match(await resume.text(), /"One"/);
  const text = await streaming.text();
  assert.match(text, /^data: \{"type":"start"/);
  assert.match(text, /"Two\."/);
  assert.ok(text.endsWith("data: [DONE]\n\n"));
});

test("a_message_replaces_the_turn_and_its_text_is_kept", async () => {
  const never = gate();
  model.next(say("One ", never), say("Now."));
  const first = runTurn("replace", "first");
  await never.reached;
  // The page's stream shows that the object has received the model's text.
  const resume = await server.fetch("/agents/session-agent/replace/chat/s/stream");
  const reader = resume.body.getReader();
  for (let received = ""; !received.includes("One "); )
    received += new TextDecoder().decode((await reader.read()).value);
  const urgent = await runTurn("replace", "now", { whenBusy: "replace" });
  assert.equal(textOf(urgent.body.message), "Now.");
  const { body } = await first;
  assert.deepEqual([body.finishReason, textOf(body.message)], ["cancelled", "One "]);
  assert.deepEqual(
    (await history(server, "replace", "s")).map(([, text]) => text),
    ["first", "One ", "now", "Now."],
  );
  never.open();
});

test("a_queued_message_is_withdrawn", async () => {
  const rest = gate();
  model.next(say("One", rest, "."));
  const first = runTurn("back", "first");
  await rest.reached;
  const second = runTurn("back", "second", { whenBusy: "queue" });
  while ((await waiting("back")).length < 1);
  assert.deepEqual(await call(server, "back", "cancelTurn", { sessionId: "s", messageId: "u-second" }), {
    cancelled: true,
  });
  assert.deepEqual((await second).body, {
    message: null,
    usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cost: 0 },
    finishReason: "cancelled",
    steps: 0,
  });
  rest.open();
  await first;
  assert.equal((await history(server, "back", "s")).length, 2);
});

test("deleting_the_session_ends_its_queue", async () => {
  const never = gate();
  model.next(say("One", never, "."));
  const first = runTurn("gone", "first");
  await never.reached;
  const second = runTurn("gone", "second", { whenBusy: "queue" });
  while ((await waiting("gone")).length < 1);
  await call(server, "gone", "deleteSession", { sessionId: "s" });
  assert.deepEqual([(await first).body.finishReason, (await second).body.finishReason], ["cancelled", "cancelled"]);
  assert.deepEqual(await waiting("gone"), []);
  assert.deepEqual(await openTurns(server, "gone"), []);
  never.open();
});

test("a_model_failure_is_an_error_of_the_call", async () => {
  model.next(refuse(400), say("Better."));
  const { status, body } = await runTurn("fails", "hi");
  assert.deepEqual([status, body.error.code], [502, "model_failed"]);
  assert.equal(textOf((await runTurn("fails", "hi")).body.message), "Better.");
});

test("a_long_queued_message_leaves_capacity_for_other_requests", async () => {
  const rest = gate();
  model.next(say("One", rest, "."), say("Two."));
  const long = (text) => ({
    sessionId: "s",
    message: { id: text, role: "user", parts: [{ type: "text", text: text.repeat(400_000) }] },
  });
  const first = server.call("long", "runTurn", long("first"));
  await rest.reached;
  const second = server.call("long", "runTurn", { ...long("later"), whenBusy: "queue" });
  while ((await waiting("long")).length < 1);
  const { requests } = await call(server, "long", "getStats", {});
  assert.equal(requests.heldBytes, 0, "bodies that were read are not held while their turns run");
  rest.open();
  assert.equal(textOf((await first).body.message), "One.");
  assert.equal(textOf((await second).body.message), "Two.");
});

test("a_service_is_notified_of_a_turns_end_and_can_verify_the_sender", async () => {
  const secret = "the secret of this test, long enough";
  const receiver = await startTools();
  const chat = await startChatServer({ token: secret, vars: { TOOL_ORIGINS: receiver.origin } });
  try {
    const headers = { authorization: `Bearer ${secret}` };
    const ask = (operation, input) => call(chat.server, "told", operation, input, headers);
    await ask("configureAgent", { onTurnEnd: { url: `${receiver.origin}/ended` } });
    // The first attempt is refused; the second follows a few seconds later.
    receiver.run = async () => (receiver.calls.length === 1 ? new Response("", { status: 503 }) : { ok: true });
    chat.model.next(say("Hello."));
    const ran = await ask("runTurn", asks("hi"));
    await receiver.untilCalls(1);
    while ((await ask("getStats", {})).callbacks.waiting === 1 && receiver.calls.length < 2)
      await receiver.untilCalls(2);
    const [first, second] = receiver.calls;
    const { deliveryId, ...body } = first;
    assert.deepEqual(body, { agent: "told", sessionId: "s", ...ran });
    assert.deepEqual(second, first);
    const isFromMemory = await verifierOfTheGuide();
    const key = createHmac("sha256", secret).update("session-agent callback signing key 1").digest("base64");
    for (const [n, sent] of receiver.headers.entries()) {
      assert.equal(sent["webhook-id"], deliveryId);
      const request = new Request(receiver.origin, { headers: sent });
      const text = receiver.texts[n];
      assert.equal(await isFromMemory(request, text, key), true);
      assert.equal(await isFromMemory(request, text.replace("Hello", "Forged"), key), false);
      request.headers.set("webhook-timestamp", String(Number(sent["webhook-timestamp"]) - 3600));
      assert.equal(await isFromMemory(request, text, key), false);
    }
    while ((await ask("getStats", {})).callbacks.waiting > 0);
    assert.deepEqual((await ask("getStats", {})).callbacks, { waiting: 0, failed: [] });
  } finally {
    await chat.stop();
    await receiver.stop();
  }
});

test("a_stalled_service_delays_no_turn_and_one_that_runs_a_turn_is_not_notified", async () => {
  const receiver = await startTools();
  const chat = await startChatServer({ vars: { TOOL_ORIGINS: receiver.origin } });
  const never = gate();
  try {
    const ask = (operation, input) => call(chat.server, "loop", operation, input);
    await ask("configureAgent", { onTurnEnd: { url: `${receiver.origin}/ended` } });
    // The service answers each message with another turn.
    receiver.run = async ({ message }) => {
      if (textOf(message) === "Second.") await never.gate;
      chat.model.next(say("From within."));
      return await ask("runTurn", asks("from within"));
    };
    chat.model.next(say("First."));
    await ask("runTurn", asks("first"));
    while (
      (await ask("getPathLength", { sessionId: "s" })).length < 4 ||
      (await ask("getStats", {})).callbacks.waiting > 0
    );
    chat.model.next(say("Second."), say("Third."));
    for (const text of ["second", "third"]) await ask("runTurn", { ...asks(text), sessionId: text });
    await receiver.untilCalls(3);
    assert.deepEqual(receiver.calls.map(({ message }) => textOf(message)).sort(), ["First.", "Second.", "Third."]);
  } finally {
    never.open();
    await chat.stop();
    await receiver.stop();
  }
});

/** The function of docs/chat.md that verifies the sender. */
async function verifierOfTheGuide() {
  const guide = await readFile(new URL("../../docs/chat.md", import.meta.url), "utf8");
  const blocks = [...guide.matchAll(/^```ts\n([^]*?)^```/gm)].map(([, text]) => text);
  const { code } = await transform(
    blocks.find((text) => text.includes("webhook-")),
    { loader: "ts" },
  );
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)).isFromMemory;
}
