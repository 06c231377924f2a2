// The client against the built Worker: from Node through a URL, and from another Worker through a
// service binding and a Durable Object namespace.
//
// The other Worker runs in the same runtime. With `CLIENT_FROM=second` in the environment it runs
// in its own runtime beside the shipped configuration of Session Agent: see client_second_worker.test.mjs.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { simulateReadableStream } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { build, transform } from "esbuild";
import {
  NetworkError,
  RateLimitedError,
  sessionAgent,
  SessionAgentError,
} from "../../packages/session-agent/dist/index.js";
import { CLIENT, OPENAPI, ROOT } from "../../scripts/paths.mjs";
import { answers } from "./answers.mjs";
import { clientGuides, clientProgram } from "./documents.mjs";
import { startServer } from "./harness.mjs";
import { startWithSecond } from "./second_worker.mjs";

const SECRET = "the secret of this test, long enough";
const VIAS = ["url", "service", "namespace"];

const api = JSON.parse(await readFile(OPENAPI, "utf8"));
const [{ text: program }] = (
  await build({
    entryPoints: [join(ROOT, "tests/workerd/workers/client.mjs")],
    bundle: true,
    format: "esm",
    write: false,
    external: ["cloudflare:workers"],
  })
).outputFiles;
const settings = { vars: { MODEL: "demo" }, secrets: { SESSION_AGENT_TOKEN: SECRET } };
const { server, worker, stop } =
  process.env.CLIENT_FROM === "second" ? await startWithSecond(settings, program) : await startTogether();
after(() => stop());

async function startTogether() {
  const both = await startServer({ ...settings, workers: { client: program } });
  return { server: both, worker: await both.urlOf("client"), stop: () => both.stop() };
}

/** The result or the exception of a client method, in the other Worker or here. */
async function perform({ via = "url", options, ...call }) {
  const given = { options: { token: SECRET, ...options }, via, ...call };
  if (via === "url") return await performHere(given);
  const response = await fetch(worker, { method: "POST", body: JSON.stringify(given) });
  if (response.status !== 200) assert.fail(await response.text());
  return await response.json();
}

async function performHere({ agent, options, session, method, given = [], take = Infinity }) {
  const client = sessionAgent(server.url, agent, options);
  const on = session === undefined ? client : client.session(session);
  try {
    const value = await on[method](...given);
    if (value instanceof ReadableStream) return { answer: await new Response(value).text() };
    if (value?.[Symbol.asyncIterator] === undefined) return { answer: value ?? null };
    const items = [];
    for await (const item of value) if (items.push(item) >= take) break;
    return { answer: items };
  } catch (error) {
    const { name, code, status, details, message, operation } = error;
    return { error: { name, code, status, details, message, operation, isError: error instanceof Error } };
  }
}

async function done(call) {
  const { answer, error } = await perform(call);
  assert.equal(error, undefined, JSON.stringify(error));
  return answer;
}

const open = (agent, options) => sessionAgent(server.url, agent, { token: SECRET, ...options });
const user = (id, text = id) => ({ id, role: "user", parts: [{ type: "text", text }] });

/** A session of some messages, each a user's. */
async function sessionOf(agent, count, id = "s") {
  const session = open(agent).session(id);
  await session.create();
  const events = Array.from({ length: count }, (_, n) => ({
    id: `e${n + 1}`,
    action: "user_message",
    content: `message ${n + 1}`,
  }));
  while (events.length > 0) await session.appendEvents({ events: events.splice(0, 1000) });
  return session;
}

const rpc = Object.entries(api.paths)
  .filter(([path]) => path.includes("/rpc/"))
  .map(([, { post }]) => post);

test("every_operation_answers_alike_over_a_url_a_binding_and_a_namespace", async () => {
  // The examples in openapi.json, run on an existing session. `destroy` is last.
  const ordered = [...rpc].sort((one, other) => rank(one) - rank(other));
  // One transport after another: three backups at once would not fit into an isolate.
  const outcomes = {};
  for (const via of VIAS) outcomes[via] = await outcomesVia(via, ordered);
  assert.equal(Object.keys(outcomes.url).length, rpc.length);
  for (const via of VIAS) assert.deepEqual(outcomes[via], outcomes.url, via);
  const good = Object.values(outcomes.url).filter((outcome) => outcome.startsWith("answer"));
  // This Worker has no directory of agents, no point-in-time recovery, and its agent does not
  // learn. Some of the other operations are refused: there is no secret, no proposal and no backup.
  const absent = Object.values(outcomes.url).filter((outcome) => outcome.includes("not_configured"));
  assert.equal(absent.length, 6, JSON.stringify(outcomes.url, null, 1));
  assert.ok(good.length > (rpc.length - absent.length) * 0.9, JSON.stringify(outcomes.url, null, 1));
});

/** Calls that delete something run after the calls that need it. */
const rank = ({ operationId }) =>
  operationId === "destroy"
    ? 3
    : operationId === "deleteSession"
      ? 2
      : /^(delete|clear|remove|revert|erase$)/.test(operationId)
        ? 1
        : 0;

async function outcomesVia(via, operations) {
  const agent = `all ${via}`;
  for (const id of ["s", "t"]) await done({ via, agent, method: "createSession", given: [{ id }] });
  await done({ via, agent, session: "s", method: "appendMessage", given: [{ message: user("b1") }] });
  for (const [label, kind] of Object.entries({ memory: "writable", kb: "searchable", skills: "loadable" })) {
    await done({ via, agent, method: "defineBlock", given: [{ label, kind }] });
    await done({ via, agent, session: "s", method: "defineBlock", given: [{ label, kind }] });
  }
  await done({ via, agent, method: "putSkill", given: [{ label: "skills", key: "k", content: "a document" }] });
  const outcomes = {};
  for (const { operationId, requestBody } of operations) {
    const input = operationId === "destroy" ? { confirm: agent } : requestBody.content["application/json"].example;
    const { answer, error } = await perform({ via, agent, method: operationId, given: [input] });
    if (error === undefined) answers.holdAnswer(operationId, answer);
    else assert.equal(error.operation, operationId);
    outcomes[operationId] =
      error === undefined ? `answer ${typeof answer}` : `${error.name} ${error.code} ${error.status}`;
  }
  return outcomes;
}

test("session_operations_include_their_session", async () => {
  for (const via of VIAS) {
    const on = { via, agent: `bound ${via}`, session: "s" };
    assert.equal((await done({ ...on, method: "create", given: [{ name: "n" }] })).id, "s");
    const { message } = await done({ ...on, method: "appendMessage", given: [{ message: user("m", "deploy it") }] });
    assert.equal(message.id, "m");
    assert.deepEqual(
      (await done({ ...on, method: "getHistory" })).messages.map(({ id }) => id),
      ["m"],
    );
    assert.deepEqual(
      (await done({ ...on, method: "getMessages" })).map(({ id }) => id),
      ["m"],
    );
    assert.deepEqual(
      (await done({ ...on, method: "search", given: [{ query: "deploy" }] })).results.map(({ id }) => id),
      ["m"],
    );
    assert.equal(
      (await done({ ...on, method: "defineBlock", given: [{ label: "notes", kind: "writable" }] })).scope,
      "session",
    );
  }
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(open("x").session("s")));
  const bound = rpc.filter(({ requestBody }) => "sessionId" in (resolved(requestBody).properties ?? {}));
  assert.ok(bound.length > 40);
  for (const { operationId } of bound) assert.ok(methods.includes(operationId), operationId);
});

const resolved = ({ content }) => {
  const { schema } = content["application/json"];
  return schema.$ref ? api.components.schemas[schema.$ref.split("/").at(-1)] : schema;
};

test("namespaces_without_getByName_and_stubs_work", async () => {
  for (const via of ["older", "stub", "fetchOnly"]) {
    const agent = `other ${via}`;
    await done({ via, agent, method: "createSession", given: [{ id: "s" }] });
    const { agentId } = await done({ via, agent, method: "getSession", given: [{ sessionId: "s" }] });
    assert.equal(agentId, agent);
  }
});

test("a_call_and_a_request_over_a_binding_return_the_same", async () => {
  for (const via of ["service", "namespace", "stub"]) {
    const on = { via, agent: `ways ${via}`, method: "createSession", given: [{ id: "s" }] };
    assert.equal((await done({ ...on, options: { transport: "call" } })).agentId, on.agent);
    const refused = await Promise.all(
      ["call", "fetch", "auto"].map(async (transport) => (await perform({ ...on, options: { transport } })).error),
    );
    for (const error of refused) assert.deepEqual(error, refused[0]);
    assert.deepEqual([refused[0].name, refused[0].status], ["AlreadyExistsError", 409]);
  }
});

test("errors_have_class_code_details_and_status_over_every_transport", async () => {
  for (const via of VIAS) {
    const agent = `errors ${via}`;
    await done({ via, agent, method: "createSession", given: [{ id: "s" }] });
    const thrown = async (method, input, options) =>
      (await perform({ via, agent, method, given: [input], options })).error;
    const missing = await thrown("loadEvents", { sessionId: "nowhere" });
    assert.deepEqual([missing.name, missing.code, missing.status], ["SessionNotFoundError", "session_not_found", 404]);
    assert.match(missing.message, /no such session/);
    const field = await thrown("loadEvents", { sesionId: "s" });
    assert.deepEqual([field.name, field.details.field, field.status], ["InvalidRequestError", "sesionId", 400]);
    const moved = await thrown("appendEvents", {
      sessionId: "s",
      expectedLeafId: "x",
      events: [{ action: "user_message", content: "a" }],
    });
    assert.deepEqual([moved.name, moved.details.expectedLeafId], ["LeafMovedError", "x"]);
    const stranger = await thrown("listSessions", {}, { token: "wrong" });
    assert.deepEqual([stranger.name, stranger.status], ["UnauthorizedError", 401]);
    assert.equal((await thrown("createSession", { id: "s" })).name, "AlreadyExistsError");
    assert.ok(moved.isError);
  }
});

/** The stream of a guide's model. */
const STREAMED = [
  { type: "text-start", id: "1" },
  { type: "text-delta", id: "1", delta: "Tea it is." },
  { type: "text-end", id: "1" },
  {
    type: "finish",
    finishReason: { unified: "stop", raw: "stop" },
    usage: { inputTokens: { total: 9 }, outputTokens: { total: 3 } },
  },
];

test("the_programs_of_the_guide_run", async () => {
  const fetcher = (via, agent) => ({ fetch: (url, init) => server.fetch(new URL(url).pathname, init, { via, agent }) });
  globalThis.guided = {
    env: {
      SESSION_AGENT_TOKEN: SECRET,
      MEMORY: fetcher("service"),
      AGENTS: { getByName: (name) => fetcher("object", name) },
      AI: { run: async (model, { messages }) => ({ response: `${model} read ${messages.length} messages` }) },
    },
    console: { log: () => {} },
    model: new MockLanguageModelV4({
      doStream: { stream: simulateReadableStream({ chunks: STREAMED, initialDelayInMs: null, chunkDelayInMs: null }) },
    }),
  };
  for (const guide of clientGuides) {
    const { code } = await transform(clientProgram(guide, "const { env, console, model } = globalThis.guided;"), {
      loader: "ts",
    });
    // A module built from text resolves no packages by name.
    const found = code.replaceAll(
      / from "(.+?)"/g,
      (_, name) =>
        ` from ${JSON.stringify(name === "session-agent" ? pathToFileURL(join(CLIENT, "dist/index.js")).href : import.meta.resolve(name))}`,
    );
    assert.notEqual(found, code, guide.path);
    await import(`data:text/javascript,${encodeURIComponent(found)}`);
  }
  const session = open("guide").session("trip");
  assert.deepEqual(
    (await session.loadEvents({ tail: true, limit: 3 })).map(({ content }) => content),
    ["And tomorrow?", "@cf/meta/llama-3-8b-instruct read 10 messages", "Thank you."],
  );
  assert.deepEqual(
    (await open("guide").session("talk").getHistory()).messages.map(({ parts }) => parts[0].text),
    ["Remember that I like tea.", "Tea it is."],
  );
  assert.equal((await open("copy").session("trip").getPathLength()).length, 6);
  assert.equal((await open("alice").session("trip").getSession()).name, "A trip to Oslo");
});

test("a_token_may_come_from_a_function", async () => {
  const { token } = await open("tokens").mintToken({ preset: "read", expiresIn: 60 });
  let tokenCalls = 0;
  const agent = open("tokens", { token: async () => ((tokenCalls += 1), token) });
  assert.deepEqual((await agent.listSessions()).sessions, []);
  await assert.rejects(agent.createSession(), { name: "ForbiddenError" });
  assert.equal(tokenCalls, 2);
});

test("health_returns_the_build", async () => {
  for (const via of VIAS) assert.equal((await done({ via, agent: "h", method: "health" })).name, "session-agent");
});

test("history_is_read_backwards_in_pages_and_by_message", async () => {
  await sessionOf("history", 7);
  for (const via of VIAS) {
    const on = { via, agent: "history", session: "s", given: [{ limit: 3 }] };
    const pages = await done({ ...on, method: "historyPages" });
    assert.deepEqual(
      pages.map(({ messages }) => messages.map(({ id }) => id)),
      [["e5", "e6", "e7"], ["e2", "e3", "e4"], ["e1"]],
    );
    const messages = await done({ ...on, method: "history" });
    assert.deepEqual(
      messages.map(({ id }) => id),
      ["e7", "e6", "e5", "e4", "e3", "e2", "e1"],
    );
    assert.deepEqual(
      (await done({ ...on, method: "history", take: 2 })).map(({ id }) => id),
      ["e7", "e6"],
    );
  }
});

test("events_are_read_in_order_of_seq", async () => {
  const session = await sessionOf("events", 1203);
  const seqs = [];
  for await (const { seq } of session.events()) seqs.push(seq);
  assert.deepEqual(
    seqs,
    Array.from({ length: 1203 }, (_, n) => n + 1),
  );
  for (const via of VIAS) {
    const events = await done({
      via,
      agent: "events",
      session: "s",
      method: "events",
      given: [{ afterSeq: 1199, limit: 2 }],
    });
    assert.deepEqual(
      events.map(({ id }) => id),
      ["e1200", "e1201", "e1202", "e1203"],
    );
  }
});

test("all_sessions_entries_and_documents_are_iterated", async () => {
  const agent = open("lists");
  for (const id of ["a", "b", "c"]) await agent.createSession({ id });
  const idsOf = async (items, of) => {
    const found = [];
    for await (const item of items) found.push(item[of]);
    return found.sort();
  };
  assert.deepEqual(await idsOf(agent.sessions({ limit: 2 }), "id"), ["a", "b", "c"]);
  await agent.defineBlock({ label: "facts", kind: "searchable" });
  await agent.defineBlock({ label: "skills", kind: "loadable" });
  for (const key of ["k1", "k2", "k3"]) {
    await agent.setEntry({ label: "facts", key, content: key });
    await agent.putSkill({ label: "skills", key, content: key });
  }
  assert.deepEqual(await idsOf(agent.entries({ label: "facts", limit: 2 }), "key"), ["k1", "k2", "k3"]);
  assert.deepEqual(await idsOf(agent.skills({ label: "skills", limit: 2 }), "key"), ["k1", "k2", "k3"]);
});

test("changes_are_followed_until_the_signal_aborts", async () => {
  const session = await sessionOf("changes", 2);
  const stop = new AbortController();
  const seen = [];
  let since;
  const following = (async () => {
    for await (const { type, id, cursor } of session.changes({ signal: stop.signal, pauseMs: 10, limit: 1 })) {
      seen.push([type, id]);
      if (seen.length === 1) since = cursor;
      if (seen.length === 2) await session.appendMessage({ message: user("m") });
      if (seen.length === 3) stop.abort(new Error("seen enough"));
    }
  })();
  await assert.rejects(following, { message: "seen enough" });
  assert.deepEqual(seen, [
    ["append", "e1"],
    ["append", "e2"],
    ["append", "m"],
  ]);
  for (const via of VIAS) {
    const changes = await done({
      via,
      agent: "changes",
      session: "s",
      method: "changes",
      given: [{ follow: false, since }],
    });
    assert.deepEqual(
      changes.map(({ id }) => id),
      ["e2", "m"],
    );
  }
});

test("a_session_is_exported_and_imported_with_progress", async () => {
  const session = await sessionOf("from", 1500);
  const steps = [];
  const file = await session.exportSession({ onProgress: (progress) => steps.push(progress) });
  const text = await new Response(file).text();
  assert.deepEqual(steps.at(-1), { bytes: Buffer.byteLength(text), lines: 1502 });
  assert.ok(steps.length > 1 && steps.every(({ bytes }, n) => n === 0 || bytes >= steps[n - 1].bytes));

  for (const [n, whole] of [
    text,
    new TextEncoder().encode(text),
    new Blob([text]),
    new Response(text),
    pieces(text),
  ].entries()) {
    const progress = [];
    const to = open(`to ${n}`).session("s");
    const outcome = await to.importSession(whole, { onProgress: (step) => progress.push(step) });
    assert.deepEqual([outcome.imported, progress.at(-1)], [1500, { bytes: Buffer.byteLength(text), lines: 1502 }]);
  }
  assert.equal((await open("plain").session("s").importSession(text)).imported, 1500);

  // Directly from one agent to another, without a file.
  const copy = open("copy").session("s");
  assert.equal((await copy.importSession(await session.exportSession())).imported, 1500);
  const types = new Set();
  for await (const { type } of copy.exportLines()) types.add(type);
  assert.deepEqual([...types], ["session", "event", "end"]);
  for (const via of VIAS) {
    const lines = await done({ via, agent: "copy", session: "s", method: "exportLines" });
    assert.equal(lines.length, 1502);
    assert.equal(
      (await done({ via, agent: `in ${via}`, session: "s", method: "importSession", given: [text] })).imported,
      1500,
    );
    assert.equal(
      (await done({ via, agent: `in ${via}`, session: "s", method: "exportSession" })).split("\n").length,
      1503,
    );
  }
  await assert.rejects(session.importSession('{"type":"session"'), {
    name: "InvalidRequestError",
    operation: "importSession",
  });
  await assert.rejects(open("from").session("nowhere").exportSession(), { name: "SessionNotFoundError" });
});

function* pieces(text) {
  for (let at = 0; at < text.length; at += 1000) yield text.slice(at, at + 1000);
}

test("a_turn_streams_chunks_over_every_transport", async () => {
  for (const via of VIAS) {
    const on = { via, agent: `chat ${via}`, session: "s" };
    const chunks = await done({ ...on, method: "chat", given: ["Hello"] });
    assert.equal(chunks[0].type, "start");
    assert.equal(chunks.at(-1).type, "finish");
    const text = chunks
      .filter(({ type }) => type === "text-delta")
      .map(({ delta }) => delta)
      .join("");
    const { messages } = await done({ ...on, method: "getHistory" });
    assert.deepEqual(
      messages.map(({ role }) => role),
      ["user", "assistant"],
    );
    assert.equal(
      messages[1].parts
        .filter(({ type }) => type === "text")
        .map(({ text }) => text)
        .join(""),
      text,
    );
    assert.deepEqual(await done({ ...on, method: "resumeChat" }), []);
    const again = await done({ ...on, method: "chat", given: [{ trigger: "regenerate-message" }] });
    assert.equal(again.at(-1).type, "finish");
    const { error } = await perform({ ...on, method: "chat", given: [{ message: { role: "user" } }] });
    assert.equal(error.name, "InvalidRequestError");
  }
});

/** A proxy between the client and the Worker: `first` answers until it returns `undefined`. */
async function behind(first) {
  const requests = [];
  const proxy = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    requests.push(request.url.split("/").at(-1));
    const refusal = first(requests.length, response);
    if (refusal === true) return;
    const answer = await fetch(new URL(request.url, server.url), {
      method: request.method,
      headers: { authorization: request.headers.authorization },
      ...(body.length > 0 && { body }),
    });
    const text = await answer.text();
    if (first.losesAnswers?.(requests.length)) return response.destroy();
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") }).end(text);
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  after(() => (proxy.closeAllConnections(), proxy.close()));
  return { url: `http://127.0.0.1:${proxy.address().port}`, requests };
}

const hangsUp = (times) => (n, response) => n <= times && (response.destroy(), true);
const quick = { pauseMs: 1 };

test("a_read_is_retried_after_two_server_errors", async () => {
  await sessionOf("twice", 1);
  const { url, requests } = await behind(hangsUp(2));
  const agent = sessionAgent(url, "twice", { token: SECRET, retry: quick });
  assert.equal((await agent.session("s").getSession()).id, "s");
  assert.equal(requests.length, 3);
});

test("an_append_with_ids_is_written_once_although_responses_were_lost", async () => {
  await sessionOf("once", 0);
  const first = () => undefined;
  first.losesAnswers = (n) => n <= 2;
  const { url, requests } = await behind(first);
  const session = sessionAgent(url, "once", { token: SECRET, retry: quick }).session("s");
  const { events, leafId } = await session.appendEvents({
    expectedLeafId: null,
    events: [{ id: "e1", action: "user_message", content: "a" }],
  });
  assert.deepEqual([events, leafId, requests.length], [[{ id: "e1", seq: 1, inserted: false }], "e1", 3]);
});

test("calls_that_are_not_idempotent_are_sent_once", async () => {
  await sessionOf("careful", 0);
  for (const write of [
    (session) => session.appendEvents({ events: [{ action: "user_message", content: "a" }] }),
    (session) => session.appendMessage({ message: { role: "user", parts: [{ type: "text", text: "Hi" }] } }),
    (session) => session.clearMessages(),
    (session) => session.addUsage({ inputTokens: 1 }),
    (session) => session.importSession("{}"),
    async (session) => {
      for await (const chunk of session.chat("Hello")) assert.fail(JSON.stringify(chunk));
    },
  ]) {
    const { url, requests } = await behind(hangsUp(1));
    await assert.rejects(write(sessionAgent(url, "careful", { token: SECRET, retry: quick }).session("s")), (error) => {
      assert.ok(error instanceof NetworkError && error instanceof SessionAgentError);
      assert.match(error.message, /^`\w+` got no answer: /);
      return true;
    });
    assert.equal(requests.length, 1);
  }
});

test("rate_limited_gives_a_delay_that_is_waited_for", async () => {
  await sessionOf("limited", 0);
  const refuse = (retryAfter, times) => (n, response) =>
    n <= times &&
    (response
      .writeHead(429, { "content-type": "application/json" })
      .end(JSON.stringify({ error: { code: "rate_limited", message: "Too many.", details: { retryAfter } } })),
    true);
  const soon = await behind(refuse(1, 1));
  const startedAt = Date.now();
  await sessionAgent(soon.url, "limited", { token: SECRET, retry: quick }).session("s").getSession();
  assert.ok(Date.now() - startedAt >= 1000);
  assert.equal(soon.requests.length, 2);
  const late = await behind(refuse(3600, 1));
  await assert.rejects(
    sessionAgent(late.url, "limited", { token: SECRET }).session("s").getSession(),
    (error) => error instanceof RateLimitedError && error.retryAfter === 3600,
  );
  assert.equal(late.requests.length, 1);
});

test("a_truncated_chat_is_reported", async () => {
  const { url } = await behind(
    (_, response) => (
      response.writeHead(200, { "content-type": "text/event-stream" }).end('data: {"type":"start"}\n\n'), true
    ),
  );
  const chunks = [];
  await assert.rejects(
    async () => {
      for await (const chunk of sessionAgent(url, "x", {}).session("s").chat("Hello")) chunks.push(chunk);
    },
    { name: "NetworkError", message: /ended before the answer was complete/ },
  );
  assert.deepEqual(chunks, [{ type: "start" }]);
});

test("a_truncated_or_failed_file_is_reported", async () => {
  const file = (text) =>
    behind((_, response) => (response.writeHead(200, { "content-type": "application/x-ndjson" }).end(text), true));
  const cut = await file('{"type":"session"}\n{"type":"event"}\n');
  await assert.rejects(new Response(await sessionAgent(cut.url, "x").session("s").exportSession()).text(), {
    name: "NetworkError",
    message: /cut off/,
  });
  const failed = await file(
    '{"type":"session"}\n{"type":"error","error":{"code":"corrupt_row","message":"Row 3 is damaged.","details":{}}}\n',
  );
  await assert.rejects(
    async () => {
      for await (const line of sessionAgent(failed.url, "x").session("s").exportLines()) assert.ok(line);
    },
    { name: "CorruptRowError", message: "Row 3 is damaged." },
  );
});

test("a_signal_aborts_a_call_and_a_streaming_turn", async () => {
  const silent = await behind(() => true);
  const stop = new AbortController();
  const waiting = sessionAgent(silent.url, "x").session("s").getSession({}, { signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, { message: "enough" });
  await assert.rejects(open("x").listSessions({}, { signal: AbortSignal.abort(new Error("before")) }), {
    message: "before",
  });
});

const HOSTILE = [
  "..",
  ".",
  "../..",
  "../../bob/rpc/listSessions",
  "..%2F..%2Fbob%2Frpc%2FlistSessions",
  "%2e%2e",
  "a/../b",
  "a?b",
  "a#b",
  "a\\\\b",
  "",
  " ",
  "rpc/x",
  "//evil.example/x",
  "é",
  "\u0000",
  "\ud800",
];

test("no_name_changes_the_url", async () => {
  const seen = [];
  const listener = createServer((request, response) => {
    seen.push(request.url);
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  after(() => (listener.closeAllConnections(), listener.close()));
  const url = `http://127.0.0.1:${listener.address().port}`;
  const alice = sessionAgent(url, "alice", { token: SECRET, retry: false });
  const tried = async (work) => {
    await (async () => await work())().catch((error) =>
      assert.ok(error instanceof Error && error.message.length > 10, String(error)),
    );
    return seen.splice(0);
  };
  let [sent, cells] = [0, 0];
  const assertUrls = (urls, form) => {
    cells += 1;
    for (const one of urls) assert.match(one, form);
    sent += urls.length;
  };
  for (const name of HOSTILE) {
    const [agent, operation] = ["[^/?#]+", "\\w+"];
    assertUrls(await tried(() => alice.call(name)), new RegExp(`^/agents/session-agent/alice/rpc/${operation}$`));
    assertUrls(
      await tried(() => alice.session("s").call(name)),
      new RegExp(`^/agents/session-agent/alice/rpc/${operation}$`),
    );
    assertUrls(
      await tried(() => sessionAgent(url, name, { retry: false }).listSessions()),
      new RegExp(`^/agents/session-agent/${agent}/rpc/listSessions$`),
    );
    const session = () => alice.session(name);
    assertUrls(
      await tried(() => session().getMessages()),
      /^\/agents\/session-agent\/alice\/get-messages\?sessionId=[^&#/]+$/,
    );
    assertUrls(
      await tried(() => session().exportSession()),
      new RegExp(`^/agents/session-agent/alice/sessions/${agent}/export$`),
    );
    assertUrls(
      await tried(() => session().importSession("{}")),
      new RegExp(`^/agents/session-agent/alice/sessions/${agent}/import$`),
    );
    assertUrls(
      await tried(async () => {
        for await (const chunk of session().resumeChat()) assert.ok(chunk);
      }),
      new RegExp(`^/agents/session-agent/alice/chat/${agent}/stream$`),
    );
  }
  assert.equal(cells, HOSTILE.length * 7);
  assert.ok(sent > 40, String(sent));
});

test("a_redirect_is_refused_without_sending_token_or_input", async () => {
  const elsewhere = await behind((_, response) => (response.end("{}"), true));
  for (const status of [301, 302, 303, 307, 308]) {
    const { url, requests } = await behind(
      (_, response) => (response.writeHead(status, { location: `${elsewhere.url}/stolen?secret=1` }).end(), true),
    );
    const agent = sessionAgent(url, "x", { token: SECRET });
    for (const ask of [
      () => agent.listSessions(),
      () => agent.createSession({ name: "my input" }),
      () => agent.session("s").getMessages(),
      () => agent.session("s").importSession("{}"),
      () => agent.session("s").exportSession(),
      () => agent.session("s").chat("Hello").next(),
      () => agent.health(),
    ]) {
      await assert.rejects(ask(), (error) => {
        assert.deepEqual([error.name, error.status], ["NetworkError", status]);
        assert.match(error.message, /was answered with a redirect to http:\/\/127\.0\.0\.1:\d+\. It is not followed/);
        assert.doesNotMatch(error.message, /secret|stolen/);
        return true;
      });
    }
    assert.equal(requests.length, 7);
  }
  assert.equal(elsewhere.requests.length, 0);
});

test("a_server_that_is_not_session_agent_is_reported", async () => {
  const page = await behind((_, response) => (response.writeHead(404).end("<html>not here</html>"), true));
  await assert.rejects(sessionAgent(page.url, "x").listSessions(), {
    name: "NetworkError",
    status: 404,
    message: "`listSessions` was answered with status 404, but not by a Session Agent: <html>not here</html>",
  });
  assert.equal(page.requests.length, 1);
});
