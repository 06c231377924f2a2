// The client without a Worker: its types, errors, retries and pure functions, its transports over a
// binding, and its size. tests/workerd/client.test.mjs tests it against the Worker.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import * as client from "../../packages/session-agent/dist/index.js";
import { render } from "../../scripts/client.mjs";
import { CLIENT, OPENAPI, ROOT } from "../../scripts/paths.mjs";

const {
  buildWorkingContext,
  dehydrateEvent,
  eventToMessage,
  hydrateEvent,
  messageToEvent,
  sessionAgent,
  WorkingContext,
  workersAIAdapter,
} = client;

const api = JSON.parse(await readFile(OPENAPI, "utf8"));
const operations = Object.entries(api.paths)
  .filter(([path]) => path.includes("/rpc/"))
  .map(([, { post }]) => post);
const inClient = (path) => readFile(join(CLIENT, path), "utf8");

// The package.

test("generated_files_match_the_api", async () => {
  assert.ok(
    (await inClient("src/operations.ts")) === render(api),
    "the set-up builds packages/session-agent/dist anew: run any npm script",
  );
  const { OPERATIONS } = await import("../../packages/session-agent/dist/operations.js");
  assert.deepEqual(Object.keys(OPERATIONS), operations.map(({ operationId }) => operationId).sort());
  const reads = Object.keys(OPERATIONS).filter((name) => OPERATIONS[name].reads);
  assert.deepEqual(
    reads,
    operations
      .filter((operation) => operation["x-presets"].includes("read"))
      .map(({ operationId }) => operationId)
      .sort(),
  );
});

test("every_operation_is_a_typed_and_documented_method", async () => {
  const types = await inClient("src/operations.ts");
  const agent = sessionAgent("https://nowhere.example", "a");
  const [, methods] = types.split("\nexport interface AgentOperations {\n");
  for (const { operationId: name, summary } of operations) {
    assert.equal(typeof agent[name], "function", name);
    assert.match(
      methods,
      new RegExp(
        `^  ${name}\\(input\\??: ${name[0].toUpperCase()}${name.slice(1)}Input, options\\?: CallOptions\\): Promise<`,
        "m",
      ),
    );
    assert.ok(methods.includes(summary.split("\n")[0]), name);
  }
});

test("a_type_matches_its_schema", () => {
  const schema = {
    required: ["id"],
    properties: {
      id: { type: ["string", "null"], description: "One.\nTwo */." },
      mode: { enum: ["a", "b"], default: "a" },
      list: { type: "array", items: { anyOf: [{ $ref: "#/components/schemas/Event" }, { type: "null" }] } },
      free: { type: "object", additionalProperties: true },
    },
  };
  const output = { type: "array", items: { type: "integer" } };
  const post = {
    operationId: "ask",
    summary: "Asks.",
    "x-presets": [],
    requestBody: { content: { "application/json": { schema } } },
    responses: { 200: { content: { "application/json": { schema: output } } } },
  };
  const schemas = {
    Error: { properties: { error: { properties: { code: { enum: ["x"] } } } } },
    Event: { type: "string" },
  };
  const text = render({ paths: { "/rpc/ask": { post } }, components: { schemas } });
  assert.ok(
    text.includes(`/** What \`ask\` takes. */
export interface AskInput {
  /**
   * One.
   * Two *\\/.
   */
  id: string | null;
  /** Default: \`"a"\`. */
  mode?: "a" | "b";
  list?: Array<SessionEvent | null>;
  free?: { [field: string]: any };
}`),
    text,
  );
  assert.ok(text.includes("  /** Asks. */\n  ask(input: AskInput, options?: CallOptions): Promise<number[]>;"), text);
});

test("only_public_functions_and_classes_are_exported", () => {
  const errors = codes.map(
    (code) =>
      `${code
        .split("_")
        .map((word) => word[0].toUpperCase() + word.slice(1))
        .join("")}Error`,
  );
  const others = [
    "COMPACTION_PREFIX",
    "EventAction",
    "NetworkError",
    "SessionAgentError",
    "WorkingContext",
    "acceptInput",
    "anthropicAdapter",
    "buildWorkingContext",
    "createCompactFunction",
    "dehydrateEvent",
    "estimateMessageTokens",
    "estimateStringTokens",
    "eventToMessage",
    "hydrateEvent",
    "inputFieldsOf",
    "isCompactionMessage",
    "messageToEvent",
    "namespaceOf",
    "openAIAdapter",
    "refuseInput",
    "serviceOf",
    "sessionAgent",
    "truncateOlderMessages",
    "workersAIAdapter",
  ];
  assert.deepEqual(Object.keys(client).sort(), [...errors, ...others].sort());
});

const codes = api.components.schemas.Error.properties.error.properties.code.enum;
const described = JSON.parse(await inClient("package.json"));
/** The package's parts, without the package itself. */
const adapters = Object.keys(described.exports)
  .map((entry) => entry.slice(2))
  .filter((entry) => !["", "worker", "package.json"].includes(entry));

/** Imports that only an adapter may have, because its caller installs them. */
const OF_FRAMEWORKS = {
  "adk.js": ["@google/adk"],
  "langgraph.js": ["@langchain/langgraph-checkpoint"],
  "langgraph_store.js": ["@langchain/langgraph-checkpoint"],
  "react.js": ["react"],
  "tanstack_messages.js": ["@tanstack/ai"],
};

test("the_package_has_no_dependencies_and_no_runtime_globals", async () => {
  assert.deepEqual([described.type, described.sideEffects], ["module", false]);
  for (const field of ["dependencies", "optionalDependencies"]) assert.equal(described[field], undefined);
  const peers = Object.keys(described.peerDependencies);
  assert.deepEqual(described.peerDependenciesMeta, Object.fromEntries(peers.map((name) => [name, { optional: true }])));
  for (const file of (await readdir(join(CLIENT, "dist"))).filter((name) => name.endsWith(".js"))) {
    const code = await inClient(`dist/${file}`);
    const others = [...code.matchAll(/\bfrom "(.+?)"/g)]
      .map(([, from]) => from)
      .filter((from) => !/^\.\/(?:react\/)?[\w-]+\.js$/.test(from));
    assert.deepEqual(others, OF_FRAMEWORKS[file] ?? [], file);
    assert.ok(others.every((name) => peers.includes(name)));
    assert.doesNotMatch(code, /\b(?:process|Buffer|require|window|document|Deno)\b[.(]/, file);
  }
});

/** The size of what a page imports, in bytes. */
async function bundled(names, entry = "index") {
  const contents = `import { ${names} } from ${JSON.stringify(join(CLIENT, `dist/${entry}.js`))}; globalThis.used = [${names}];`;
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: CLIENT },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
    external: Object.keys(described.peerDependencies),
  });
  return { code: outputFiles[0].text, bytes: gzipSync(outputFiles[0].contents, { level: 9 }).length };
}

test("the_client_is_as_small_as_the_readme_states", async () => {
  const [, documented] =
    (await inClient("README.md")).match(/\*\*([\d.]+) KB\*\*/) ??
    assert.fail("packages/session-agent/README.md says no size");
  const { bytes } = await bundled("sessionAgent");
  assert.ok(
    bytes <= documented * 1000 && bytes > documented * 1000 - 500,
    `${bytes} bytes, minified and compressed; packages/session-agent/README.md says ${documented} KB`,
  );
});

test("each_part_is_as_small_as_the_guide_states", async () => {
  assert.ok(adapters.length >= 4);
  const guides = await Promise.all(
    ["adapters", "migrating"].map((name) => readFile(join(ROOT, `docs/${name}.md`), "utf8")),
  );
  for (const entry of adapters) {
    const types = (await inClient(described.exports[`./${entry}`].types)).matchAll(
      /^export declare (?:class|function|const) (\w+)/gm,
    );
    const names = [...new Set([...types].map(([, name]) => name))];
    const code = await import(join(CLIENT, described.exports[`./${entry}`].default)).then(
      (module) => module,
      () => null,
    );
    if (code !== null) assert.deepEqual(Object.keys(code).sort(), names.sort(), entry);
    const { bytes } = await bundled(names.join(", "), entry);
    const row = new RegExp(`\\| \`session-agent/${entry}\` \\|.*\\| ([\\d.]+) KB \\|`);
    const [, documented] =
      guides.map((guide) => guide.match(row)).find((found) => found !== null) ??
      assert.fail(`no guide says the size of ${entry}`);
    assert.ok(
      bytes <= documented * 1000 && bytes > documented * 1000 - 500,
      `${entry}: ${bytes} bytes, minified and compressed; its guide says ${documented} KB`,
    );
  }
});

test("importing_one_function_bundles_nothing_else", async () => {
  const { code, bytes } = await bundled("buildWorkingContext");
  assert.doesNotMatch(code, /fetch|session-agent|getHistory/);
  assert.ok(bytes < 800, `${bytes} bytes`);
  assert.ok((await bundled("workersAIAdapter")).bytes < 500);
});

// Errors.

const answer = (status, body) =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
const refusing = (code, status = 400, details = {}) =>
  answer(status, { error: { code, message: `About ${code}.`, details } });
const thrown = (promise) =>
  promise.then(
    () => assert.fail("nothing was thrown"),
    (error) => error,
  );
const at = (fetch, options) =>
  sessionAgent("https://memory.example/", "alice", { fetch, retry: { pauseMs: 0 }, ...options });

test("each_code_has_an_error_class", async () => {
  assert.ok(codes.length > 20);
  for (const code of codes) {
    const error = await thrown(at(async () => refusing(code), { retry: false }).listSessions());
    const name = `${code
      .split("_")
      .map((word) => word[0].toUpperCase() + word.slice(1))
      .join("")}Error`;
    assert.ok(
      error instanceof client[name] && error instanceof client.SessionAgentError && error instanceof Error,
      code,
    );
    assert.deepEqual(
      [error.name, error.code, error.status, error.operation, error.message],
      [name, code, 400, "listSessions", `About ${code}.`],
    );
  }
  const newer = await thrown(at(async () => refusing("out_of_tea", 418)).listSessions());
  assert.deepEqual(
    [newer.constructor, newer.name, newer.code, newer.status],
    [client.SessionAgentError, "OutOfTeaError", "out_of_tea", 418],
  );
});

test("details_promised_by_the_api_are_properties", async () => {
  const of = (code, details) => thrown(at(async () => refusing(code, 400, details), { retry: false }).listSessions());
  assert.equal((await of("invalid_request", { field: "limit" })).field, "limit");
  assert.equal((await of("payload_too_large", { limit: 5, actual: 9 })).limit, 5);
  assert.equal((await of("block_over_budget", { tokens: 9, maxTokens: 5 })).maxTokens, 5);
  assert.equal((await of("rate_limited", { retryAfter: 7 })).retryAfter, 7);
  assert.equal((await of("not_configured", { binding: "AI" })).binding, "AI");
});

test("an_error_is_readable_in_a_terminal", async () => {
  const error = await thrown(
    at(async () => refusing("leaf_moved", 409, { leafId: "b" }))
      .session("s")
      .appendEvents({ events: [] }),
  );
  const lines = inspect(error).split("\n");
  assert.equal(lines[0], "LeafMovedError: About leaf_moved.");
  const shown = lines.slice(lines.findLastIndex((line) => line.startsWith("    at ")) + 1).map((line) => line.trim());
  assert.deepEqual(shown, [
    "code: 'leaf_moved',",
    "status: 409,",
    "details: { leafId: 'b' },",
    "operation: 'appendEvents'",
    "}",
  ]);
  const lost = await thrown(
    at(async () => Promise.reject(new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") })), {
      retry: false,
    }).listSessions(),
  );
  assert.equal(String(lost), "NetworkError: `listSessions` got no answer: connect ECONNREFUSED");
  assert.equal(lost.cause.message, "fetch failed");
});

test("an_invalid_target_or_name_throws_at_once", () => {
  assert.throws(() => sessionAgent(undefined, "a"), /service binding, a Durable Object namespace, or a URL/);
  assert.throws(() => sessionAgent("https://x.example", ""), /the agent's name/);
  assert.throws(() => sessionAgent("https://x.example", "a").session(""), /A session's id must be a string/);
});

// Requests.

test("a_request_has_the_url_the_token_and_the_body", async () => {
  const sent = [];
  const fetch = async (url, init) => (sent.push({ url, ...init }), answer(200, { messages: [] }));
  await sessionAgent("https://memory.example/", "user:42/ä", { fetch, token: "t" })
    .session("s")
    .getHistory({ limit: 1 });
  assert.deepEqual(sent, [
    {
      url: "https://memory.example/agents/session-agent/user%3A42%2F%C3%A4/rpc/getHistory",
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer t" },
      body: '{"limit":1,"sessionId":"s"}',
      redirect: "manual",
    },
  ]);
});

const SPAN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER_SPAN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("a_request_carries_the_active_trace_or_the_one_passed", async () => {
  const sent = [];
  const fetch = async (url, { headers }) => {
    sent.push([url.split("/").pop(), headers.traceparent, headers.tracestate]);
    if (url.endsWith("/chat")) return new Response("data: [DONE]\n\n");
    if (url.endsWith("/export")) return new Response('{"type":"end"}\n');
    if (url.endsWith("/loadEvents")) return answer(200, []);
    return answer(200, { messages: [], changes: [], cursor: null, hasMore: false });
  };
  let now = { traceparent: SPAN, tracestate: "vendor=1", baggage: "a=secret" };
  const agent = sessionAgent("https://memory.example", "a", { fetch, trace: () => now });
  const own = { trace: { traceparent: OTHER_SPAN } };
  const session = agent.session("s");
  await agent.listSessions();
  await agent.listSessions({}, own);
  for await (const _ of session.chat("hi", own));
  for await (const _ of session.history(own));
  for await (const _ of session.events(own));
  for await (const _ of session.changes({ ...own, follow: false }));
  for await (const _ of session.exportLines(own));
  await session.importSession("{}", own);
  await session.modelInput(own).catch(() => {});
  assert.deepEqual(sent, [
    ["listSessions", SPAN, "vendor=1"],
    ...["listSessions", "chat", "getHistory", "loadEvents", "getChanges", "export", "import"].map((name) => [
      name,
      OTHER_SPAN,
      undefined,
    ]),
    ["buildWorkingContext", OTHER_SPAN, undefined],
  ]);
  // Code outside a trace sends no trace, and neither does a state alone.
  for (now of [undefined, {}, { tracestate: "vendor=1" }]) await agent.listSessions();
  assert.deepEqual(sent.slice(-3), Array(3).fill(["listSessions", undefined, undefined]));
});

test("a_retry_asks_for_the_trace_again", async () => {
  const sent = [];
  const fetch = async (_, { headers }) => {
    sent.push(headers.traceparent);
    if (sent.length < 2) throw new TypeError("fetch failed");
    return answer(200, { sessions: [], cursor: null });
  };
  const spans = [SPAN, OTHER_SPAN];
  const trace = () => ({ traceparent: spans[sent.length] });
  await sessionAgent("https://memory.example", "a", { fetch, trace, retry: { pauseMs: 1 } }).listSessions();
  assert.deepEqual(sent, spans);
});

/** The number of attempts of a call to a server that always fails this way. */
async function attempts(call, fail, options) {
  let count = 0;
  await thrown(call(at(async () => ((count += 1), fail()), options)));
  return count;
}

test("reads_and_appends_with_ids_are_retried_and_nothing_else", async () => {
  const hangUp = () => Promise.reject(new TypeError("fetch failed"));
  const event = { action: "user_message", content: "a" };
  const cases = [
    [4, (agent) => agent.listSessions()],
    [4, (agent) => agent.session("s").search({ query: "x" })],
    [4, (agent) => agent.session("s").appendEvents({ events: [{ id: "a", ...event }] })],
    [1, (agent) => agent.session("s").appendEvents({ events: [{ id: "a", ...event }, event] })],
    [4, (agent) => agent.session("s").appendMessage({ message: { id: "m" } })],
    [1, (agent) => agent.session("s").appendMessage({ message: {} })],
    [4, (agent) => agent.session("s").runTurn({ message: { id: "m" } })],
    [1, (agent) => agent.session("s").runTurn({ message: {} })],
    [1, (agent) => agent.session("s").upsertMessage({ message: { id: "m" } })],
    [4, (agent) => agent.session("s").addUsage({ id: "u", inputTokens: 1 })],
    [1, (agent) => agent.session("s").addUsage({ inputTokens: 1 })],
    [1, (agent) => agent.createSession({ id: "s" })],
    [1, (agent) => agent.call("newerThanThis")],
    [4, (agent) => agent.health()],
    [4, (agent) => agent.session("s").exportSession()],
    [1, (agent) => agent.session("s").importSession("{}")],
  ];
  for (const [count, call] of cases) assert.equal(await attempts(call, hangUp), count, String(call));
  assert.equal(await attempts(cases[0][1], hangUp, { retry: { attempts: 2, pauseMs: 0 } }), 2);
  assert.equal(await attempts((agent) => agent.listSessions({}, { retry: false }), hangUp), 1);
});

test("only_transient_errors_are_retried", async () => {
  const read = (agent) => agent.listSessions();
  for (const [code, count] of Object.entries({
    storage_failed: 4,
    model_overloaded: 4,
    forbidden: 1,
    leaf_moved: 1,
    corrupt_row: 1,
    model_failed: 1,
  })) {
    assert.equal(await attempts(read, () => refusing(code, 500)), count, code);
  }
  assert.equal(await attempts(read, () => new Response("<html>", { status: 502 })), 4);
  assert.equal(await attempts(read, () => new Response("<html>", { status: 404 })), 1);
});

test("a_retry_delay_ends_when_the_signal_aborts", async () => {
  const stop = new AbortController();
  const fetch = async () => (
    setTimeout(() => stop.abort(new Error("enough")), 5), refusing("rate_limited", 429, { retryAfter: 10 })
  );
  const startedAt = Date.now();
  assert.equal((await thrown(at(fetch).listSessions({}, { signal: stop.signal }))).message, "enough");
  assert.ok(Date.now() - startedAt < 5_000);
});

// Ways over a binding.

/** A service binding that records its calls. */
function binding({ fetch = async () => answer(200, { sessions: [], cursor: null }), ...methods }) {
  const used = [];
  const noted =
    (name, method) =>
    (...given) => (used.push(name), method(...given));
  return {
    used,
    fetch: noted("fetch", fetch),
    ...Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, noted(name, method)])),
  };
}

const page = async () => ({ ok: true, value: '{"sessions":[],"cursor":null}' });
const refused = (code, status, more) => async () => ({
  ok: false,
  error: { code, message: "no", details: {}, ...more },
  status,
});

test("a_binding_with_methods_is_called_by_rpc", async () => {
  const given = [];
  const target = binding({ request: async (...all) => (given.push(all), page()) });
  await sessionAgent(target, "alice", { token: "t" }).listSessions({ limit: 1 });
  await sessionAgent(target, "alice").listSessions();
  assert.deepEqual(given, [
    ["alice", "listSessions", '{"limit":1}', { token: "t" }],
    ["alice", "listSessions", "{}", {}],
  ]);
  const trace = { traceparent: SPAN, tracestate: "vendor=1" };
  await sessionAgent(target, "alice", { token: "t" }).listSessions({}, { trace });
  assert.deepEqual(given.pop(), ["alice", "listSessions", "{}", { token: "t", ...trace }]);
  target.used.pop();
  const object = binding({ request: async (...all) => (given.push(all), page()) });
  await sessionAgent({ getByName: (name) => (given.push([name]), object) }, "alice").listSessions();
  // An object that was found only by its id may not know its name.
  assert.deepEqual(given.slice(-1), [["listSessions", "{}", { agent: "alice" }]]);
  assert.deepEqual([target.used, object.used], [["request", "request"], ["request"]]);
});

test("a_binding_without_traces_is_detected_and_called_without_one", async () => {
  const given = [];
  const message = "The options of a call are an object with the fields `token` and, on the object, `agent`: texts.";
  const binding = {
    fetch: () => assert.fail("fetch is not needed"),
    request: async (...args) => {
      given.push(args);
      const { token, ...others } = args[3];
      return Object.keys(others).length === 0
        ? { ok: true, value: '{"sessions":[],"cursor":null}' }
        : { ok: false, error: { code: "invalid_request", message, details: { field: "options" } }, status: 400 };
    },
  };
  const agent = sessionAgent(binding, "alice", { token: "t", trace: () => ({ traceparent: SPAN }) });
  assert.deepEqual((await agent.listSessions()).sessions, []);
  await agent.listSessions();
  const options = given.map(([, , , options]) => options);
  assert.deepEqual(options, [{ token: "t", traceparent: SPAN }, { token: "t" }, { token: "t" }]);
  // A rejection of other options is reported.
  const odd = { ...binding, request: async (...args) => await binding.request(...args.slice(0, 3), { odd: 1 }) };
  await assert.rejects(sessionAgent(odd, "alice").listSessions(), { code: "invalid_request" });
});

test("a_binding_without_methods_is_called_by_fetch", async () => {
  const call = async () => assert.fail("what `call` throws may lose its code");
  const lacking = binding({
    call,
    request: async () => Promise.reject(new TypeError('The RPC receiver does not implement the method "request".')),
  });
  await sessionAgent(lacking, "alice").createSession();
  await sessionAgent(lacking, "bob").listSessions();
  assert.deepEqual(lacking.used, ["request", "fetch", "fetch"]);
  const plain = binding({ call });
  await sessionAgent(plain, "alice").createSession();
  assert.deepEqual(plain.used, ["fetch"]);
});

test("an_invalid_target_is_refused_before_anything_is_sent", () => {
  for (const url of ["memory.example", "localhost:8787", "not a url", "wss://memory.example"])
    assert.throws(() => sessionAgent(url, "alice"), /^TypeError: A URL begins with `https:\/\/` or `http:\/\/`/, url);
  for (const target of [undefined, null, 5, {}, { get() {} }, []])
    assert.throws(
      () => sessionAgent(target, "alice"),
      /^TypeError: The first argument of sessionAgent must be a service/,
    );
  // A page may give the path of its own origin.
  for (const url of ["", "/", "/memory", "HTTP://memory.example/"]) sessionAgent(url, "alice");
});

test("every_code_over_a_binding_has_its_class", async () => {
  for (const code of codes) {
    const target = binding({ request: refused(code, 418, { details: { leafId: "b", retryAfter: 3600 } }) });
    const error = await thrown(
      sessionAgent(target, "alice", { retry: { pauseMs: 0 } })
        .session("s")
        .appendEvents({ events: [] }),
    );
    assert.ok(error instanceof client.SessionAgentError && !(error instanceof client.NetworkError), code);
    assert.deepEqual(
      [error.code, error.message, error.status, error.details.leafId, error.operation],
      [code, "no", 418, "b", "appendEvents"],
    );
    assert.ok(target.used.every((way) => way === "request"));
  }
  // A code that this client does not know yet.
  const target = binding({ request: refused("newer_code", 499) });
  assert.deepEqual(
    [(await thrown(sessionAgent(target, "alice").listSessions())).code, target.used],
    ["newer_code", ["request"]],
  );
});

test("a_response_that_is_not_from_session_agent_is_reported", async () => {
  for (const answered of [
    undefined,
    null,
    "text",
    1,
    {},
    { ok: true },
    { ok: true, value: 1 },
    { ok: false },
    { ok: false, error: {} },
  ]) {
    const error = await thrown(sessionAgent(binding({ request: async () => answered }), "alice").createSession());
    assert.ok(
      error instanceof client.NetworkError && /other than a Session Agent/.test(error.message),
      JSON.stringify(answered),
    );
  }
});

test("an_answer_too_long_for_rpc_is_fetched", async () => {
  const target = binding({ request: refused("payload_too_large", 413) });
  assert.deepEqual((await sessionAgent(target, "alice").listSessions()).sessions, []);
  assert.deepEqual(target.used, ["request", "fetch"]);
  assert.equal((await thrown(sessionAgent(target, "alice").createSession())).code, "payload_too_large");
});

test("a_lost_write_is_not_retried_and_a_read_is", async () => {
  const target = binding({ request: async () => Promise.reject(new Error("Network connection lost.")) });
  const agent = sessionAgent(target, "alice", { retry: { pauseMs: 0 } });
  assert.ok((await thrown(agent.createSession())) instanceof client.NetworkError);
  assert.deepEqual(target.used.splice(0), ["request"]);
  assert.ok((await thrown(agent.listSessions())) instanceof client.NetworkError);
  assert.deepEqual(target.used, ["request", "request", "request", "request"]);
});

test("a_caller_selects_the_transport", async () => {
  const target = binding({ request: page });
  await sessionAgent(target, "alice", { transport: "fetch" }).listSessions();
  await sessionAgent(target, "alice", { transport: "call" }).listSessions();
  assert.deepEqual(target.used, ["fetch", "request"]);
});

test("a_name_that_a_url_cannot_express_is_refused_before_sending", async () => {
  for (const name of [".", "..", ""]) assert.throws(() => sessionAgent("https://memory.example", name), TypeError);
  const agent = at(async (url) => assert.fail(url));
  for (const name of ["../../bob/rpc/listSessions", "..", ".", "a/b", "a?b", "a#b", "%2e%2e", "", " "]) {
    assert.ok((await thrown(agent.call(name))) instanceof TypeError, name);
    assert.ok((await thrown(agent.session("s").call(name))) instanceof TypeError, name);
  }
});

// Events, messages, contexts.

const base = { id: "e", sessionId: "s", seq: 3, createdAt: 5 };
const calls = [{ id: "c", name: "weather", arguments: { city: "Oslo" } }];
const EVENTS = [
  { ...base, action: "user_message", content: "Hello" },
  { ...base, action: "agent_message", content: "Hi", metadata: { model: "m", isSuccess: "kept" } },
  { ...base, action: "tool_call_request", content: "", toolCalls: calls },
  {
    ...base,
    action: "tool_result",
    content: "rain",
    toolCallId: "c",
    toolName: "weather",
    isError: true,
    metadata: { ms: 3 },
  },
  { ...base, action: "system_instruction", content: "Be brief." },
  { ...base, action: "compaction", content: "A summary.", metadata: { compactedEventCount: 9 } },
];

test("an_event_round_trips_through_its_row", () => {
  for (const event of EVENTS) assert.deepEqual(hydrateEvent(dehydrateEvent(event)), event);
  assert.deepEqual(dehydrateEvent(EVENTS[3]), {
    id: "e",
    session_id: "s",
    seq: 3,
    action: "tool_result",
    content: "rain",
    metadata: '{"ms":3,"toolCallId":"c","toolName":"weather","isError":true}',
    created_at: 5,
  });
  const row = { ...dehydrateEvent(EVENTS[0]), content: null };
  assert.equal(hydrateEvent(row).content, "");
  assert.equal(hydrateEvent({ ...row, action: "tool_result", metadata: '{"isSuccess":false}' }).isError, true);
  assert.deepEqual(hydrateEvent({ ...row, action: "tool_call_request" }).toolCalls, []);
  assert.throws(() => hydrateEvent({ ...row, metadata: "{" }), SyntaxError);
});

test("events_and_messages_convert_into_each_other", () => {
  assert.deepEqual(EVENTS.map(eventToMessage), [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hi" },
    { role: "assistant", content: "", toolCalls: calls },
    { role: "tool", content: "rain", toolCallId: "c", toolName: "weather", isError: true },
    { role: "system", content: "Be brief." },
    { role: "system", content: "A summary." },
  ]);
  assert.equal(eventToMessage({ ...base, action: "something_new", content: "x" }), null);
  for (const event of EVENTS.slice(0, 5)) {
    const converted = messageToEvent("s", eventToMessage(event));
    const { metadata, ...expected } = event;
    assert.deepEqual({ ...converted, id: "e", seq: 3, createdAt: 5 }, expected);
    assert.match(converted.id, /^[0-9a-f-]{36}$/);
  }
  assert.throws(() => messageToEvent("s", { role: "robot", content: "" }), /not `robot`/);
});

test("a_context_tracks_what_was_added", () => {
  const context = buildWorkingContext(EVENTS.slice(0, 2), { systemInstructions: ["Be brief."] });
  assert.ok(context instanceof WorkingContext);
  assert.deepEqual(
    [context.systemInstructions, context.messages.length, context.getNewMessages()],
    [["Be brief."], 2, []],
  );
  const added = { role: "user", content: "And tomorrow?" };
  context.addMessage(added);
  assert.deepEqual([context.messages.length, context.getNewMessages()], [3, [added]]);
  assert.deepEqual(
    buildWorkingContext(EVENTS, {
      eventToMessage: ({ content }) => (content === "Hi" ? { role: "user", content: "!" } : null),
    }).messages,
    [{ role: "user", content: "!" }],
  );
  assert.deepEqual(new WorkingContext().messages, []);
});

test("workers_ai_gets_a_context_in_its_format", () => {
  const { systemInstructions, messages } = buildWorkingContext(EVENTS.slice(0, 4), {
    systemInstructions: ["Be brief.", "In verse."],
  });
  assert.deepEqual(workersAIAdapter.toModelMessages(systemInstructions, messages), {
    messages: [
      { role: "system", content: "Be brief.\n\nIn verse." },
      { role: "user", content: "Hello" },
      { role: "assistant", content: "Hi" },
      {
        role: "assistant",
        content: "",
        tool_calls: [{ id: "c", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } }],
      },
      { role: "tool", content: "rain", tool_call_id: "c", name: "weather" },
    ],
  });
  assert.deepEqual(workersAIAdapter.toModelMessages([], []), { messages: [] });
});
