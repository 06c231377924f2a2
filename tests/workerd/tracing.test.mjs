// Traces on the real runtime: from a caller's `traceparent` to the headers of models, tools and
// tool servers, and to the collector. A collector that stalls or refuses does not affect a request.
// Records of turns survive crashes.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { call, startChatServer, until } from "./chat_server.mjs";
import { allOf } from "./chat_stream.mjs";
import { drawTrace, MODES, startCollector } from "./collector.mjs";
import { startMcpServer } from "./mcp_server.mjs";
import { callTools, gate, say } from "./model_server.mjs";
import { startTools } from "./tool_server.mjs";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER = "00f067aa0ba902b7";
const traceparent = `00-${TRACE}-${CALLER}-01`;

const collector = await startCollector();
const tools = await startTools();
const mcp = await startMcpServer();
const { server, model, stop } = await startChatServer({
  vars: {
    TOOL_ORIGINS: `${tools.origin} ${mcp.origin}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20of-the-collector",
  },
});
after(async () => {
  await stop();
  await tools.stop();
  await mcp.stop();
  await collector.stop();
});
afterEach(() => {
  model.forget();
  assert.deepEqual(collector.mistakes, []);
  collector.forget();
});

/** Begins a turn in session `s`, in a trace if `headers` name one. */
const begin = (agent, id, headers = {}) =>
  server.fetch(`/agents/session-agent/${agent}/chat`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({
      id: "s",
      message: { id, role: "user", parts: [{ type: "text", text: "Go to Atlantis." }] },
    }),
  });

const spanOf = (header) => header.split("-")[2];
const inTrace = (spans) => spans.filter(({ traceId }) => traceId === TRACE);
const isOver = (spans) => inTrace(spans).some(({ name }) => name.startsWith("invoke_agent"));

test("a_trace_passes_from_the_caller_to_tools_servers_and_the_collector", async () => {
  await call(server, "traced", "defineTool", { name: "walk", description: "Walks.", url: `${tools.origin}/walk` });
  await call(server, "traced", "defineTool", { name: "calc", mcp: mcp.url, needsApproval: false });
  const before = (await mcp.requests()).length;
  model.next(callTools(["walk", { to: "Rome" }, "a"], ["calc_add", { a: 1, b: 2 }, "b"]), say("Done."));
  const response = await begin("traced", "u1", { traceparent, tracestate: "vendor=1" });
  assert.match(response.headers.get("traceparent"), new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
  await allOf(response);
  const spans = inTrace(await collector.spans(isOver));
  const named = (name) =>
    spans.find((span) => span.name === name) ?? assert.fail(`${name}: ${spans.map((s) => s.name)}`);
  const parentOf = (span) => spans.find(({ spanId }) => spanId === span.parentSpanId);
  // The request, the turn, its steps and its calls are connected, below the caller's span.
  const request = named("chat");
  assert.equal(request.parentSpanId, CALLER);
  assert.equal(spanOf(response.headers.get("traceparent")), request.spanId);
  const turn = named("invoke_agent traced");
  assert.equal(turn.parentSpanId, request.spanId);
  assert.equal(turn.attributes["gen_ai.conversation.id"], "s");
  const chats = spans.filter(({ name }) => name === "chat test");
  assert.equal(chats.length, 2);
  for (const span of [...chats, named("execute_tool walk"), named("execute_tool calc_add")]) {
    assert.equal(parentOf(span), turn);
  }
  // Each outgoing call is a span whose id its receiver got.
  const received = [
    ...model.headers.slice(-2).map((headers) => [headers, "chat test"]),
    [tools.headers.at(-1), "execute_tool walk"],
  ];
  for (const [headers, parent] of received) {
    assert.equal(headers.tracestate, "vendor=1");
    const outgoing = spans.find(({ spanId }) => spanId === spanOf(headers.traceparent));
    assert.equal(outgoing.kind, 3);
    assert.equal(parentOf(outgoing).name, parent);
  }
  const toolCall = (await mcp.requests()).slice(before).find(({ method }) => method === "tools/call");
  const outgoing = spans.find(({ spanId }) => spanId === spanOf(toolCall.trace));
  assert.equal(parentOf(outgoing).name, "execute_tool calc_add");
  // The message itself names the call's span, so a gateway in between can't separate them.
  const calc = named("execute_tool calc_add");
  assert.deepEqual(toolCall.meta, { traceparent: `00-${TRACE}-${calc.spanId}-01`, tracestate: "vendor=1" });
  // The collector gets its own header and no text of the conversation.
  for (const { headers, text } of collector.requests) {
    assert.equal(headers.authorization, "Bearer of-the-collector");
    assert.equal(headers.traceparent, undefined);
    assert.doesNotMatch(text, /Atlantis|Rome|Done\./);
  }
  const { turns } = await call(server, "traced", "getTurns", { sessionId: "s" });
  assert.equal(turns[0].traceId, TRACE);
  if (process.env.SHOW_TRACE) {
    const lines = [...received.map(([headers, what]) => `${what}: ${headers.traceparent}`)];
    lines.push(`execute_tool calc_add: ${toolCall.trace}, _meta ${JSON.stringify(toolCall.meta)}`);
    console.log(`the page sent ${traceparent}\n${drawTrace(spans)}\nothers were sent\n${lines.join("\n")}`);
  }
});

test("operations_join_a_trace_over_http_and_rpc_with_memory_spans", async () => {
  const headers = { traceparent };
  await call(server, "ops", "defineBlock", { label: "notes", kind: "writable" }, headers);
  const given = [JSON.stringify({ label: "notes", content: "x" }), { traceparent }];
  const answer = await server.rpc("ops", "setBlock", given, { via: "object" });
  assert.equal(JSON.parse(answer).label, "notes");
  const spans = inTrace(await collector.spans((spans) => spans.some(({ name }) => name === "upsert_memory")));
  assert.deepEqual(
    spans.map(({ name, parentSpanId, kind }) => [name, parentSpanId, kind]),
    [
      ["create_memory_store", CALLER, 2],
      ["upsert_memory", CALLER, 2],
    ],
  );
  // Another form counts neither as a caller's trace nor as an error.
  for (const bad of ["00-x", traceparent.toUpperCase(), `${traceparent}-00`]) {
    const { status } = await server.call("ops", "getBlock", { label: "notes" }, { headers: { traceparent: bad } });
    assert.equal(status, 200);
  }
});

test("an_mcp_message_may_carry_its_trace", async () => {
  await call(server, "served", "defineTool", { name: "walk", description: "Walks.", url: `${tools.origin}/walk` });
  const other = "0af7651916cd43dd8448eb211c80319c";
  const near = "b7ad6b7169203331";
  const ask = async (meta, headers) => {
    const params = { name: "walk", arguments: {}, ...(meta && { _meta: meta }) };
    const response = await server.fetch("/agents/session-agent/served/mcp", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
    assert.equal(response.status, 200);
    assert.equal((await response.json()).error, undefined);
    return [response.headers.get("traceparent"), tools.headers.at(-1).traceparent];
  };
  const meta = { traceparent, tracestate: "vendor=1" };
  const parents = [];
  for (const [header, trace, parent] of [
    [undefined, TRACE, CALLER],
    // A gateway's own trace: the message is the client's.
    [`00-${other}-${near}-01`, TRACE, CALLER],
    // The client's own request, which is the closer parent.
    [`00-${TRACE}-${near}-01`, TRACE, near],
  ]) {
    const [answered, passed] = await ask(meta, header && { traceparent: header });
    assert.deepEqual(
      [answered, passed].map((header) => header.split("-")[1]),
      [trace, trace],
    );
    parents.push([spanOf(answered), parent]);
  }
  const spans = await collector.spans((spans) => parents.every(([id]) => spans.some(({ spanId }) => spanId === id)));
  for (const [id, parent] of parents) {
    const span = spans.find(({ spanId }) => spanId === id);
    assert.deepEqual([span.name, span.parentSpanId], ["mcp", parent]);
  }
  // Nonsense counts neither as a caller's trace nor as an error.
  for (const bad of [{ traceparent: "00-x" }, { traceparent: 7 }, { traceparent: [traceparent] }])
    assert.notEqual((await ask(bad))[0].split("-")[1], TRACE);
});

test("a_slow_hostile_or_unavailable_collector_does_not_affect_a_turn", async () => {
  for (const mode of [...Object.keys(MODES), "flood", "away"]) {
    const agent = `receiver-${mode}`;
    if (mode === "away") await collector.stopListening();
    else collector.mode = mode;
    model.next(say("One."), say("Two."), say("Three."));
    const floodEnded = mode === "flood" ? collector.floodEnded() : 0;
    const began = performance.now();
    assert.equal((await allOf(await begin(agent, "u1", { traceparent }))).text, "One.");
    // The next turns run in spite of the collector: none waits for it.
    if (mode !== "away") await collector.untilRequestWith(agent);
    assert.equal((await allOf(await begin(agent, "u2", { traceparent }))).text, "Two.");
    assert.equal((await allOf(await begin(agent, "u3", { traceparent }))).text, "Three.");
    const elapsedMs = performance.now() - began;
    assert.ok(elapsedMs < 4_500, `${mode}: ${elapsedMs} ms`);
    const { turns } = await call(server, agent, "getTurns", { sessionId: "s" });
    assert.deepEqual(
      turns.map(({ finishReason }) => finishReason),
      ["stop", "stop", "stop"],
    );
    // Only the part in the socket's buffers, not at the collector.
    assert.ok((await floodEnded) < 32 << 20, `${collector.flooded} bytes`);
    if (mode === "away") await collector.listenAgain();
    // The collector is paused, and redirects are not followed.
    else assert.equal(collector.requestsWith(agent).length, 1, mode);
    assert.ok(collector.requests.every(({ url }) => url === "/v1/traces"));
    collector.forget();
  }
});

test("a_turn_ended_by_crashes_is_recorded_with_its_code_and_trace", async () => {
  await call(server, "killed", "createSession", { id: "s" });
  for (let activation = 0; activation < 3; activation += 1) {
    const at = gate();
    model.next(say("One ", at, "two."));
    const requestCount = model.requests.length + 1;
    if (activation === 0)
      void begin("killed", "u1", { traceparent }).then(
        (response) => response.body?.cancel(),
        () => {},
      );
    else void call(server, "killed", "getSession", { sessionId: "s" }).catch(() => {});
    await model.untilRequests(requestCount);
    await server.kill9();
  }
  let turns = [];
  await until(
    () => turns.length > 0,
    (check) => {
      const timer = setInterval(async () => {
        ({ turns } = await call(server, "killed", "getTurns", { sessionId: "s", failed: true }));
        check();
      }, 200);
      return () => clearInterval(timer);
    },
    () => "the turn is not over",
  );
  const [turn] = turns;
  assert.equal(turn.failure.code, "model_failed");
  assert.match(turn.failure.message, /interrupted several times/);
  assert.deepEqual([turn.recoveries, turn.traceId, turn.requestId !== null], [3, TRACE, true]);
  const spans = inTrace(await collector.spans(isOver));
  const over = spans.find(({ name }) => name === "invoke_agent killed");
  assert.equal(over.attributes["error.type"], "model_failed");
  assert.equal(over.status.code, 2);
});

test("a_simple_turn_writes_four_rows_and_a_failed_one_five", async () => {
  await call(server, "rows", "createSession", { id: "s" });
  const written = async (...answers) => {
    model.next(...answers);
    const id = `u-${model.requests.length}`;
    const { written } = await server.metered("rows", async () => {
      await allOf(await begin("rows", id));
      await call(server, "rows", "getSession", { sessionId: "s" });
    });
    return written;
  };
  await written(say("First."));
  const plain = await written(say("Hello."));
  const failed = await written({ status: 400, message: "no" });
  const { written: stopped } = await server.metered("rows", async () => {
    const [requestCount, at] = [model.requests.length + 1, gate()];
    model.next(say(at, "Never."));
    const answer = begin("rows", "u-stopped").then(allOf);
    await model.untilRequests(requestCount);
    await call(server, "rows", "cancelTurn", { sessionId: "s" });
    await answer;
    at.open();
  });
  console.log(`rows: a plain turn ${plain}, one that says nothing: failed ${failed}, stopped ${stopped}`);
  assert.equal(plain, 4);
  // The message with its index entry, the turn's row twice, and the record.
  assert.deepEqual([failed, stopped], [5, 5]);
  const { turns } = await call(server, "rows", "getTurns", { sessionId: "s" });
  const last = turns
    .slice(0, 2)
    .map(({ finishReason, failure, messageId }) => [finishReason, failure?.code, messageId]);
  assert.deepEqual(last, [
    ["cancelled", undefined, null],
    ["error", "model_failed", null],
  ]);
});

test("a_token_cannot_have_its_request_recorded_or_set_its_trace", async () => {
  const secret = "the secret of these traces, long enough";
  const sampler = { OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" };
  const guarded = await startChatServer({
    token: secret,
    vars: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...sampler },
  });
  try {
    const { server, model } = guarded;
    const owner = { authorization: `Bearer ${secret}` };
    const claims = { preset: "chat", sessionId: "s", expiresIn: 600 };
    const { token } = await call(server, "theirs", "mintToken", claims, owner);
    const chat = (id, headers) =>
      server.fetch("/agents/session-agent/theirs/chat", {
        method: "POST",
        headers: { "content-type": "application/json", traceparent, tracestate: "vendor=1", ...headers },
        body: JSON.stringify({ id: "s", message: { id, role: "user", parts: [{ type: "text", text: "Hello" }] } }),
      });
    const bearer = { authorization: `Bearer ${token}` };
    model.next(say("Yes."));
    const response = await chat("u1", bearer);
    await allOf(response);
    for (const header of [response.headers.get("traceparent"), model.headers.at(-1).traceparent]) {
      assert.match(header, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
      assert.ok(!header.includes(TRACE), header);
    }
    assert.equal(model.headers.at(-1).tracestate, undefined);
    const { turns } = await call(server, "theirs", "getTurns", { sessionId: "s" }, owner);
    assert.notEqual(turns[0].traceId, TRACE);
    // Over the other entry points: an operation, a binding, an MCP message, a refused request.
    const { headers } = await server.call(
      "theirs",
      "getHistory",
      { sessionId: "s" },
      { headers: { ...bearer, traceparent } },
    );
    assert.ok(!headers.get("traceparent").includes(TRACE));
    await server.rpc("theirs", "getHistory", ['{"sessionId":"s"}', { token, traceparent }], { via: "object" });
    for (const [path, body] of [
      ["mcp", { jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: { traceparent } } }],
      ["rpc/deleteSession", { sessionId: "s" }],
    ]) {
      const answer = await server.fetch(`/agents/session-agent/theirs/${path}`, {
        method: "POST",
        headers: { ...bearer, traceparent, "content-type": "application/json", accept: "application/json" },
        body: JSON.stringify(body),
      });
      await answer.text();
      assert.ok(!answer.headers.get("traceparent")?.includes(TRACE), path);
    }
    // A request with the secret is recorded, in its trace.
    model.next(say("Yes."));
    await allOf(await chat("u2", owner));
    assert.equal(model.headers.at(-1).tracestate, "vendor=1");
    const spans = await collector.spans(isOver);
    // Other requests belong to earlier tests and are late.
    const theirs = spans.filter(({ attributes }) => attributes["gen_ai.agent.name"] === "theirs");
    assert.ok(theirs.length > 0 && theirs.every(({ traceId }) => traceId === TRACE));
    const own = response.headers.get("traceparent").split("-")[1];
    assert.ok(spans.every(({ traceId }) => traceId !== own));
    assert.equal(theirs.filter(({ name }) => name.startsWith("invoke_agent")).length, 1);
  } finally {
    await guarded.stop();
  }
});
