// The JavaScript in front of the Wasm module, from the runtime's side. The module is a fake that
// crashes on demand.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readFile } from "node:fs/promises";
import { build } from "esbuild";
import { namesOfOperations } from "../../scripts/build/worker.mjs";
import { OPENAPI } from "../../scripts/paths.mjs";

const SHIM = fileURLToPath(new URL("../../scripts/build/shim.mjs", import.meta.url));

/** A fake of bindgen's output. As in the real one, a crashed instance can't be used any more. */
const FAKE_MODULE = `
  export const module = { instanceId: 1 };
  export const calls = [];
  export let isBroken = false;
  let restartsByItself = false;
  function guard() {
    if (!isBroken) return;
    if (!restartsByItself) throw new Error("Module terminated");
    __wbg_reset_state();
  }
  export function crash({ restarts }) {
    isBroken = true;
    restartsByItself = restarts;
  }
  export function __wbg_reset_state() {
    module.instanceId += 1;
    isBroken = false;
  }
  export function __worker_init_state() {
    guard();
    return module;
  }
  export function call(...args) {
    guard();
    calls.push(["call", ...args]);
    return answerOf(args[0], "{}");
  }
  /** What refuses, and how: a refusal has a code, and what the runtime throws has none. */
  function answerOf(name, answer) {
    if (name === "refusing") return Promise.reject(Object.assign(new Error("no"), { code: "leaf_moved", details: { id: "x" }, status: 409 }));
    if (name === "failing") return Promise.reject(new Error("the connection failed"));
    return Promise.resolve(name === "object refuses" ? { ok: false, error: { code: "leaf_moved" }, status: 409 } : answer);
  }
  export function fetch(...args) {
    guard();
    calls.push(["fetch", ...args]);
    return Promise.resolve("answered");
  }
  export class SessionAgent {
    #instanceId = module.instanceId;
    constructor(state, env) {
      if (env === "broken") throw new Error("no such binding");
      calls.push(["new", state, env]);
    }
    fetch(request, body, granted) {
      if (this.#instanceId !== module.instanceId) throw new Error("an object of another instance");
      if (request.url === "panic") {
        isBroken = true;
        throw new WebAssembly.RuntimeError("unreachable");
      }
      const more = granted === undefined ? (body === undefined ? [] : [body.length]) : [body?.length, granted];
      calls.push(["object.fetch", request.url, ...more]);
      return request.url === "refused" ? Promise.reject(new Error("refused")) : Promise.resolve("answered");
    }
    call(...args) {
      calls.push(["object.call", ...args]);
      return answerOf(args[0], "{}");
    }
    alarm(...args) {
      calls.push(["alarm", ...args]);
    }
    webSocketMessage(...args) {
      calls.push(["webSocketMessage", ...args]);
    }
    webSocketClose(...args) {
      calls.push(["webSocketClose", ...args]);
    }
    webSocketError(...args) {
      calls.push(["webSocketError", ...args]);
    }
    free() {}
    __destroy_into_raw() {}
  }
`;

const FAKE_RUNTIME = `
  export class WorkerEntrypoint {
    constructor(ctx, env) {
      Object.assign(this, { ctx, env });
    }
  }
  export class DurableObject extends WorkerEntrypoint {}
`;

const api = JSON.parse(await readFile(OPENAPI, "utf8"));
const FAKES = { module: FAKE_MODULE, runtime: FAKE_RUNTIME, operations: namesOfOperations(api) };

/** The bundle of the shim and the fakes. */
const { outputFiles } = await build({
  stdin: {
    contents: `export * from ${JSON.stringify(SHIM)}; export { default } from ${JSON.stringify(SHIM)}; export * as fake from "fake";`,
    resolveDir: "/",
  },
  bundle: true,
  write: false,
  format: "esm",
  plugins: [
    {
      name: "fakes",
      setup({ onResolve, onLoad }) {
        onResolve({ filter: /\/stage\/index\.js$|^fake$/ }, () => ({ path: "module", namespace: "fake" }));
        onResolve({ filter: /\/stage\/operations\.js$/ }, () => ({ path: "operations", namespace: "fake" }));
        onResolve({ filter: /^cloudflare:workers$/ }, () => ({ path: "runtime", namespace: "fake" }));
        onLoad({ filter: /./, namespace: "fake" }, ({ path }) => ({ contents: FAKES[path] }));
      },
    },
  ],
});
const source = outputFiles[0].text;

/** A request as an object receives it, without a body. */
const requestTo = (url) => ({ url, headers: new Map() });

let worker;
let rust;
let onError;
let times = 0;

beforeEach(async (t) => {
  // Node has no global events. The shim listens to those of the isolate.
  globalThis.addEventListener = (type, listener) => {
    assert.equal(type, "error");
    onError = listener;
  };
  t.mock.method(console, "error", () => {});
  // Each test gets its own module.
  worker = await import(`data:text/javascript,${encodeURIComponent(`${source}\n// ${(times += 1)}`)}`);
  rust = worker.fake;
});

test("a_request_reaches_rust_with_environment_and_context", async () => {
  const entrypoint = new worker.default("ctx", "env");
  const request = requestTo("request");
  assert.equal(await entrypoint.fetch(request), "answered");
  assert.deepEqual(rust.calls, [["fetch", request, "env", "ctx", false]]);
});

test("a_call_reaches_rust_with_the_environment", async () => {
  const entrypoint = new worker.default("ctx", "env");
  assert.equal(await entrypoint.call("agent", "operation", "json", "options", "more"), "{}");
  assert.deepEqual(rust.calls, [["call", "agent", "operation", "json", "options", "env", false]]);
});

const REFUSED = { ok: false, error: { code: "leaf_moved", message: "no", details: { id: "x" } }, status: 409 };

test("an_rpc_request_is_answered_with_data_even_if_refused", async () => {
  const entrypoint = new worker.default("ctx", "env");
  rust.calls.length = 0;
  assert.deepEqual(await entrypoint.request("refusing", "operation", "json", "options"), REFUSED);
  assert.deepEqual(rust.calls, [["call", "refusing", "operation", "json", "options", "env", true]]);
  // The object's own data is forwarded.
  assert.deepEqual(await entrypoint.request("object refuses"), {
    ok: false,
    error: { code: "leaf_moved" },
    status: 409,
  });
  await assert.rejects(entrypoint.request("failing"), /the connection failed/);
  const object = new worker.SessionAgent("state", "env");
  assert.deepEqual(await object.request("operation", "json", "options"), { ok: true, value: "{}" });
  assert.deepEqual(await object.request("refusing"), REFUSED);
  await assert.rejects(object.request("failing"), /the connection failed/);
});

test("each_operation_is_a_method_and_hides_no_other", async () => {
  const names = Object.keys(api.paths).flatMap((path) => path.match(/\/rpc\/(\w+)$/)?.[1] ?? []);
  assert.ok(names.length >= 60);
  const object = new worker.SessionAgent("state", "env");
  rust.calls.length = 0;
  for (const name of names) assert.deepEqual(await object[name]({ sessionId: "s" }, "options"), {}, name);
  assert.deepEqual(
    rust.calls,
    names.map((name) => ["object.call", name, '{"sessionId":"s"}', "options"]),
  );
  // The names by which the platform, Workers RPC and a custom class call it.
  const platform =
    "alarm call connect constructor ctx delete dup email env fetch get id name put queue request scheduled self tail tailStream test then trace webSocketClose webSocketError webSocketMessage";
  const hooks =
    "authorize blocks countTokens embed model onCompaction onCompactionError onMemoryChange onStatus onTurnEnd summarize tools";
  for (const name of `${platform} ${hooks}`.split(" ")) assert.ok(!names.includes(name), name);
  assert.deepEqual(await object.listSessions(), {});
  assert.equal(rust.calls.at(-1)[2], "{}");
});

test("positional_arguments_become_an_object", async () => {
  const object = new worker.SessionAgent("state", "env");
  const session = { id: "s", agentId: "a", name: null };
  for (const [operation, given, expected] of [
    ["getSession", ["s"], { sessionId: "s" }],
    ["getSession", ["s", "options"], { sessionId: "s" }, "options"],
    ["deleteSession", [session], { sessionId: "s" }],
    ["loadEvents", ["s"], { sessionId: "s" }],
    ["loadEvents", ["s", { limit: 2 }], { limit: 2, sessionId: "s" }],
    ["loadEvents", ["s", undefined, "options"], { sessionId: "s" }, "options"],
    ["appendEvents", [session, [{ id: "e" }]], { events: [{ id: "e" }], sessionId: "s" }],
    ["deleteEvents", ["s", ["e"], "options"], { eventIds: ["e"], sessionId: "s" }, "options"],
    ["buildWorkingContext", ["s", { limit: 3 }], { limit: 3, sessionId: "s" }],
    ["persistWorkingContext", ["s", []], { messages: [], sessionId: "s" }],
    ["createSession", [{ topic: "t" }], { metadata: { topic: "t" } }],
    ["createSession", [{ name: "n", topic: "t" }], { name: "n", topic: "t" }],
    ["createSession", [{ topic: "t" }, "options"], { topic: "t" }, "options"],
    ["createSession", [{}], {}],
  ].map(([operation, given, input, options]) => [operation, given, [JSON.stringify(input), options]])) {
    rust.calls.length = 0;
    await object[operation](...given);
    assert.deepEqual(rust.calls, [["object.call", operation, ...expected]], operation);
  }
});

test("a_refused_input_shows_the_correct_call", async () => {
  const object = new worker.SessionAgent("state", "env");
  const errorOf = async (operation, ...given) => await object[operation](...given).catch(({ message }) => message);
  assert.equal(
    await errorOf("getBlock", "memory"),
    "`getBlock` requires an object that contains only JSON values: `getBlock({ label })`.",
  );
  assert.equal(
    await errorOf("loadEvents", 7),
    "`loadEvents` requires an object that contains only JSON values: `loadEvents({ sessionId })` or `loadEvents(sessionId, { … })`.",
  );
  assert.match(await errorOf("listSessions", "x"), /`listSessions\(\{\}\)`\.$/);
});

test("a_method_refuses_arguments_that_are_not_plain_objects", async () => {
  const object = new worker.SessionAgent("state", "env");
  rust.calls.length = 0;
  for (const input of [null, 1, "{}", true, [], new Map(), new Date(), () => {}, { n: 1n }, Symbol("x")]) {
    await assert.rejects(
      object.listSessions(input),
      { code: "invalid_request", status: 400, details: { field: "input" } },
      String(input),
    );
  }
  assert.deepEqual(rust.calls, []);
});

test("mintToken_refuses_rights_that_json_would_drop", async () => {
  const object = new worker.SessionAgent("state", "env");
  rust.calls.length = 0;
  for (const value of [undefined, null, NaN, () => {}, Symbol("s"), { toJSON: () => undefined }]) {
    const refusal = { code: "invalid_request", status: 400, details: { field: "sessionId" } };
    const rights = { preset: "read", sessionId: value, expiresIn: 60 };
    // The error names the deepest field.
    await assert.rejects(object.mintToken(rights), ({ details, ...error }) => {
      assert.deepEqual([error.code, error.status], [refusal.code, refusal.status]);
      return details.field.startsWith(refusal.details.field);
    });
  }
  assert.deepEqual(rust.calls, []);
  await object.mintToken({ preset: "read", expiresIn: 60 });
  assert.equal(rust.calls.at(-1)[2], '{"preset":"read","expiresIn":60}');
  // Elsewhere, an undefined field is omitted.
  await object.listSessions({ limit: undefined });
  assert.equal(rust.calls.at(-1)[2], "{}");
});

test("an_object_forwards_calls_and_platform_events", async () => {
  const object = new worker.SessionAgent("state", "env");
  assert.equal(await object.fetch(requestTo("request")), "answered");
  assert.equal(await object.call("operation", "json", "options", "more"), "{}");
  object.alarm();
  object.webSocketMessage("socket", "text");
  object.webSocketClose("socket");
  object.webSocketError("socket");
  assert.deepEqual(rust.calls, [
    ["new", "state", "env"],
    ["object.fetch", "request"],
    ["object.call", "operation", "json", "options"],
    ["alarm"],
    ["webSocketMessage", "socket", "text"],
    ["webSocketClose", "socket"],
    ["webSocketError", "socket"],
  ]);
});

test("only_a_subclass_calls_as_itself", async () => {
  class Own extends worker.SessionAgent {
    constructor(ctx, env) {
      super(ctx, env, "seen");
    }
  }
  const object = new Own("state", "env");
  const { inside } = worker.SessionAgent;
  assert.equal(await inside.call(object, "operation", "json"), "{}");
  await inside.fetch(object, requestTo("request"), "granted");
  // Other Workers can't reach anything that allows it, either.
  assert.equal(await object.call("operation", "json", "options", true), "{}");
  await object.fetch(requestTo("request"), "granted");
  assert.deepEqual(rust.calls, [
    ["new", "state", "seen"],
    ["object.call", "operation", "json", undefined, true],
    ["object.fetch", "request", undefined, "granted"],
    ["object.call", "operation", "json", "options"],
    ["object.fetch", "request"],
  ]);
  assert.ok(!("inside" in object));
});

test("a_short_body_is_read_before_rust_runs", async () => {
  const object = new worker.SessionAgent("state", "env");
  // `null`: the body ends early.
  const requestOf = (announced, there) => ({
    headers: new Map(announced === undefined ? [] : [["content-length", announced]]),
    arrayBuffer: async () => {
      if (there === null) throw new Error("lost");
      return new ArrayBuffer(there);
    },
  });
  for (const [announced, there, given] of [
    ["5", 5, 5],
    ["16384", 16_384, 16_384],
    // Rust refuses bodies over its limit.
    ["5", 1_000, 1_000],
    ["5", 4, undefined],
    ["5", null, undefined],
    ["16385", 16_385, undefined],
    ["0", 0, undefined],
    ["-5", 5, undefined],
    ["five", 5, undefined],
    [undefined, 5, undefined],
  ]) {
    const request = requestOf(announced, there);
    assert.equal(await object.fetch(request), "answered");
    assert.deepEqual(rust.calls.at(-1).slice(2), given === undefined ? [] : [given], `${announced} ${there}`);
  }
});

// A Worker that binds a class can call anything on its prototypes.
test("the_classes_have_exactly_their_documented_members", () => {
  const operations = Object.keys(api.paths).flatMap((path) => path.match(/\/rpc\/(\w+)$/)?.[1] ?? []);
  const handlers = {
    default: ["call", "fetch", "request"],
    SessionAgent: [
      // The methods that `getAgentByName` of npm `agents` calls, in its newest and its older
      // versions.
      "__unsafe_ensureInitialized",
      "setName",
      "alarm",
      "call",
      "fetch",
      "request",
      "webSocketClose",
      "webSocketError",
      "webSocketMessage",
      ...operations,
    ],
  };
  for (const [name, methods] of Object.entries(handlers)) {
    const of = new worker[name]("state", "env");
    assert.deepEqual(Object.getOwnPropertyNames(worker[name].prototype).sort(), [...methods, "constructor"].sort());
    // Rust's objects are in a private field.
    assert.deepEqual(Reflect.ownKeys(of), ["ctx", "env"]);
  }
});

test("after_a_panic_the_object_is_recreated_in_a_new_instance", async () => {
  const [object, other] = [new worker.SessionAgent("state", "env"), new worker.SessionAgent("of another", "env")];
  assert.throws(() => object.fetch(requestTo("panic")), /unreachable/);
  assert.equal(await object.fetch(requestTo("request")), "answered");
  assert.equal(await other.fetch(requestTo("request")), "answered");
  assert.equal(rust.module.instanceId, 2);
  assert.deepEqual(rust.calls.slice(2), [
    ["new", "state", "env"],
    ["object.fetch", "request"],
    ["new", "of another", "env"],
    ["object.fetch", "request"],
  ]);
});

test("after_a_panic_the_next_request_gets_a_new_instance", async () => {
  const object = new worker.SessionAgent("state", "env");
  assert.throws(() => object.fetch(requestTo("panic")), /unreachable/);
  assert.equal(await new worker.default("ctx", "env").fetch(requestTo("request")), "answered");
  assert.equal(rust.module.instanceId, 2);
});

test("a_crash_reported_by_bindgen_is_handled_once", async () => {
  const object = new worker.SessionAgent("state", "env");
  rust.crash({ restarts: true });
  assert.equal(await object.fetch(requestTo("request")), "answered");
  assert.equal(rust.module.instanceId, 2);
});

test("a_runtime_crash_counts_and_a_javascript_error_does_not", async () => {
  const object = new worker.SessionAgent("state", "env");
  onError({ error: new TypeError("somebody else's") });
  await object.fetch(requestTo("request"));
  assert.equal(rust.module.instanceId, 1);
  rust.crash({ restarts: false });
  onError({ error: new WebAssembly.RuntimeError("unreachable") });
  assert.equal(await object.fetch(requestTo("request")), "answered");
  assert.equal(rust.module.instanceId, 2);
});

test("an_error_response_is_not_a_crash", async () => {
  const object = new worker.SessionAgent("state", "env");
  await assert.rejects(object.fetch(requestTo("refused")), /refused/);
  await object.fetch(requestTo("request"));
  assert.equal(rust.module.instanceId, 1);
});

test("an_object_that_fails_to_construct_leaves_a_new_instance", async () => {
  assert.throws(() => new worker.SessionAgent("state", "broken"), /no such binding/);
  const object = new worker.SessionAgent("state", "env");
  assert.equal(await object.fetch(requestTo("request")), "answered");
  assert.equal(rust.module.instanceId, 2);
});
