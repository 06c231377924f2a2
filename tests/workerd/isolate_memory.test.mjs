// Sends the largest request of each operation to four busy objects at the same time and measures
// the memory that the runtime uses beyond its idle state. The process's memory includes
// JavaScript's strings and garbage, which no counter of Wasm does.
//
// openapi.json lists the operations and the maximum length of each body, so a new operation is
// measured with its longest body.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { OPENAPI } from "../../scripts/paths.mjs";
import { startServer } from "./harness.mjs";

const MIB = 2 ** 20;
/** The most bytes above idle. An isolate has 128 MB for everything. */
const MOST = 100 * 1000 * 1000;
/** The length of a text that makes a message about as large as allowed. */
const LONGEST = 3.99 * MIB;
const AGENTS = ["a", "b", "c", "d"];
const API = JSON.parse(await readFile(OPENAPI, "utf8"));

/** The longest body of each operation, in bytes. */
const LIMITS = Object.fromEntries(
  Object.entries(API.paths)
    .filter(([path]) => path.includes("/rpc/"))
    .map(([, { post }]) => [post.operationId, post["x-max-body-bytes"]]),
);

/** The longest reads, of the sessions that `createWorstData` creates. */
const READS = {
  getHistory: () => ({ sessionId: "long", maxBytes: 32 * MIB }),
  getMessage: () => ({ sessionId: "long", messageId: "m1" }),
  getLatestLeaf: () => ({ sessionId: "long" }),
  getBranches: () => ({ sessionId: "long", messageId: "m0" }),
  loadEvents: () => ({ sessionId: "many", limit: 1000 }),
  buildWorkingContext: () => ({ sessionId: "long", limit: 1000, format: "anthropic" }),
  estimateTokens: () => ({ sessionId: "long" }),
  compact: () => ({ sessionId: "many", dryRun: true }),
  forkSession: () => ({ sessionId: "many" }),
  deleteMessages: () => ({ sessionId: "calls", messageIds: ["r0"] }),
  getBlocks: () => ({}),
  renderPrompt: () => ({}),
  refreshPrompt: () => ({ sessionId: "long" }),
  getBlockVersions: () => ({ label: "text" }),
  listEntries: () => ({ label: "entries", limit: 200 }),
  searchContext: () => ({ label: "entries", query: "word" }),
  loadSkill: () => ({ label: "documents", key: "k0", sessionId: "long" }),
  listSessions: () => ({ limit: 500 }),
};

let folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "session-agent-memory-"));
  const server = await startServer({ storage: folder });
  try {
    for (const agent of AGENTS) {
      await createData(server, agent);
      await createWorstData(server, agent);
    }
  } finally {
    await server.stop();
  }
});
after(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Writes the longest sessions, blocks and documents that are allowed. */
async function createData(server, agent) {
  const call = async (operation, input) => {
    const { status, body } = await server.call(agent, operation, input);
    assert.equal(status, 200, `${operation}: ${JSON.stringify(body).slice(0, 300)}`);
  };
  for (const id of ["long", "many", "calls", "empty"]) await call("createSession", { id });
  await call("appendMessage", { sessionId: "long", message: user("m0", "Begin.") });
  for (const id of ["m1", "m2", "m3", "m4", "m5"])
    await call("appendMessage", { sessionId: "long", message: user(id, words(LONGEST)) });
  for (let n = 0; n < 4; n++) {
    const content = words(4 * 1024);
    await call("appendEvents", { sessionId: "many", events: list(1000, () => ({ action: "user_message", content })) });
  }
  for (let n = 0; n < 4; n++) {
    const events = list(125, (k) => [
      { id: `r${n}-${k}`, action: "tool_call_request", toolCalls: [{ id: `c${n}-${k}`, name: "t", arguments: {} }] },
      { action: "tool_result", toolCallId: `c${n}-${k}`, toolName: "t", content: words(16 * 1024) },
    ]);
    await call("appendEvents", { sessionId: "calls", events: events.flat() });
  }
  await call("defineBlock", { label: "text", kind: "writable", maxTokens: 1_000_000 });
  await call("defineBlock", { label: "entries", kind: "searchable" });
  await call("defineBlock", { label: "documents", kind: "loadable" });
  for (let n = 0; n < 6; n++) await call("setBlock", { label: "text", content: `${n}${words(0.95 * MIB)}` });
  for (let n = 0; n < 50; n++) await call("setEntry", { label: "entries", key: `k${n}`, content: words(60 * 1024) });
  for (let n = 0; n < 4; n++) await call("putSkill", { label: "documents", key: `k${n}`, content: words(250 * 1024) });
}

/** A text whose characters are stored as one byte each and written as six. */
const controls = (bytes) => "\u0001".repeat(bytes);

/** The longest body of every operation that accepts such texts. */
async function createWorstData(server, agent) {
  const call = async (operation, input) => {
    const { status, body } = await server.call(agent, operation, input);
    assert.equal(status, 200, `${operation}: ${JSON.stringify(body).slice(0, 300)}`);
  };
  await call("createSession", { id: "worst" });
  for (let n = 0; n < 10; n++) {
    const events = list(40, () => ({ action: "user_message", content: controls(20_000) }));
    await call("appendEvents", { sessionId: "worst", events });
  }
  for (const [label, kind] of [
    ["worst", "writable"],
    ["worst entries", "searchable"],
    ["worst documents", "loadable"],
  ]) {
    await call("defineBlock", {
      label,
      kind,
      sessionId: "worst",
      maxTokens: kind === "writable" ? 1_000_000 : undefined,
    });
  }
  for (let n = 0; n < 8; n++)
    await call("setBlock", { sessionId: "worst", label: "worst", content: `${n}${controls(0.95 * MIB)}` });
  for (let n = 0; n < 50; n++) {
    await call("setEntry", {
      sessionId: "worst",
      label: "worst entries",
      key: `k${n}`,
      content: `word ${controls(60 * 1024)}`,
    });
  }
  await call("putSkill", { sessionId: "worst", label: "worst documents", key: "k", content: controls(250 * 1024) });
}

/** Reads of such texts, and the maximum length of each response, including what surrounds the texts. */
const WORST_READS = [
  ["loadEvents", { limit: 1000 }, 5],
  ["loadEvents", { limit: 30, tail: true }, 5],
  ["getHistory", { limit: 1000, maxBytes: 32 * MIB }, 8],
  ["getHistory", { limit: 1000, forModel: true }, 8],
  ["buildWorkingContext", { limit: 1000 }, 5],
  ...["openai", "anthropic", "workers-ai"].map((format) => ["buildWorkingContext", { limit: 1000, format }, 9]),
  ["buildWorkingContext", { limit: 1000, format: "openai", memory: true, maxTokens: 50_000_000 }, 15],
  ["getBlockVersions", { label: "worst" }, 9],
  ["getBlock", { label: "worst" }, 7],
  ["getBlocks", {}, 5],
  ["listEntries", { label: "worst entries", limit: 200 }, 5],
  ["searchContext", { label: "worst entries", query: "word", limit: 50 }, 5],
  ["renderPrompt", {}, 5],
  ["loadSkill", { label: "worst documents", key: "k", dryRun: true }, 2],
];

/** The longest writes, a different one for each `n`. */
const WRITES = {
  appendMessage: (n) => ({ sessionId: "empty", message: user(`n${n}`, words(LONGEST)) }),
  upsertMessage: (n) => ({ sessionId: "long", message: user("m5", `${n}${words(LONGEST - 10)}`) }),
  updateMessage: (n) => ({ sessionId: "long", message: user("m5", `${n}${words(LONGEST - 10)}`) }),
  appendEvents: () => ({
    sessionId: "empty",
    events: list(1000, () => ({ action: "user_message", content: words(4 * 1024) })),
  }),
  persistWorkingContext: () => ({
    sessionId: "empty",
    messages: list(1000, () => ({ role: "user", content: words(4 * 1024) })),
  }),
  setBlock: (n) => ({ label: "text", content: `${n}${words(0.95 * MIB)}` }),
  appendToBlock: (n) => ({ label: "text", content: `${n}${words(0.9 * MIB)}` }),
  putSkill: (n) => ({ label: "documents", key: `n${n}`, content: words(250 * 1024) }),
  setEntry: (n) => ({ label: "entries", key: `n${n}`, content: words(60 * 1024) }),
};

/** Bodies that cost more to parse than to send, whether they are refused or not. */
const EXPENSIVE = {
  "nothing but names": (limit) => filled('{"sessionId":"empty"', limit, (n) => `,"n${n}":0`, "}"),
  "nothing but numbers": (limit) => filled('{"sessionId":"empty","events":[', limit, () => "0,", "0]}"),
  "one text": (limit) => `{"sessionId":"${"x".repeat(limit - 16)}"}`,
  "a message of many parts": (limit) =>
    filled('{"sessionId":"empty","message":{"role":"user","parts":[', limit, () => '{"type":"x"},', '{"type":"x"}]}}'),
  "a message of numbers": (limit) =>
    filled('{"sessionId":"empty","message":{"role":"user","parts":[],"metadata":[', limit, () => "0,", "0]}}"),
};

test("the_largest_request_of_every_operation_fits_in_memory", async (context) => {
  const failures = [];
  for (const [operation, limit] of Object.entries(LIMITS)) {
    const input = WRITES[operation] ?? READS[operation];
    const requests = [];
    // Each request is sent twice: garbage that the first leaves counts, too.
    for (const round of [0, 1]) {
      for (const [k, agent] of AGENTS.entries()) {
        const body = input === undefined ? EXPENSIVE["one text"](limit) : JSON.stringify(input(round * 10 + k));
        requests.push(rpc(agent, operation, body));
      }
    }
    failures.push(...(await measured(context, operation, requests)));
  }
  assert.deepEqual(failures, []);
});

test("multi_byte_texts_need_no_more_memory_than_the_longest", async (context) => {
  const failures = [];
  for (const [operation, input, mostMib] of WORST_READS) {
    const what = `${operation} ${JSON.stringify(input)}`;
    const body = JSON.stringify({ sessionId: "worst", ...input });
    const requests = [...AGENTS, ...AGENTS].map((agent) => async (server) => {
      const response = await server.fetch(`/agents/session-agent/${agent}/rpc/${operation}`, { method: "POST", body });
      let length = 0;
      for await (const piece of response.body) length += piece.length;
      if (length > mostMib * MIB) failures.push(`${what} answers ${length} bytes`);
      return response.status;
    });
    failures.push(...(await measured(context, what, requests)));
  }
  assert.deepEqual(failures, []);
});

test("bodies_that_are_expensive_to_parse_fit_in_memory", async (context) => {
  const failures = [];
  for (const [what, of] of Object.entries(EXPENSIVE)) {
    for (const operation of ["appendMessage", "appendEvents"]) {
      const body = of(LIMITS[operation]);
      const requests = [...AGENTS, ...AGENTS].map((agent) => rpc(agent, operation, body));
      failures.push(...(await measured(context, `${operation}: ${what}`, requests)));
    }
  }
  assert.deepEqual(failures, []);
});

test("the_other_entry_points_fit_in_memory", async (context) => {
  const failures = [];
  const path = (agent, rest) => `/agents/session-agent/${agent}/${rest}`;
  // turn_limits.test.mjs tests the limits of a running turn's memory.
  const ENTRY_POINTS = {
    "get-messages": (agent) => [path(agent, "get-messages?sessionId=long"), {}],
    export: (agent) => [path(agent, "sessions/long/export"), {}],
    "export of many": (agent) => [path(agent, "sessions/many/export"), {}],
  };
  for (const [what, request] of Object.entries(ENTRY_POINTS)) {
    const requests = [0, 1].flatMap(() =>
      AGENTS.map((agent) => async (server) => readToEnd(await server.fetch(...request(agent)))),
    );
    failures.push(...(await measured(context, what, requests)));
  }
  const server = await startServer({ storage: folder });
  const file = await (await server.fetch(path("a", "sessions/long/export"))).text();
  await server.stop();
  const imports = AGENTS.map(
    (agent) => async (to) =>
      readToEnd(await to.fetch(path(agent, "sessions/copy/import"), { method: "POST", body: file })),
  );
  failures.push(...(await measured(context, "import", imports)));
  assert.deepEqual(failures, []);
});

test("stalled_readers_are_limited_by_the_memory_budget", async (context) => {
  const body = JSON.stringify(READS.getHistory());
  const stalled = list(20, (n) => async (server) => {
    const { port } = new URL(server.url);
    const socket = connect(Number(port), "127.0.0.1");
    socket.pause();
    const path = `/agents/session-agent/${AGENTS[n % 4]}/rpc/getHistory`;
    socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await pause(1_000);
    socket.destroy();
    return 200;
  });
  assert.deepEqual(await measured(context, "getHistory, unread by 20", stalled, stalled.length), []);
});

test("an_aborted_body_releases_its_reservation", { timeout: 60_000 }, async () => {
  const server = await startServer();
  try {
    const reservedBytes = async () => (await server.call("a", "getStats", {})).body.requests.heldBytes;
    const { port } = new URL(server.url);
    const senders = [];
    const limit = LIMITS.appendMessage;
    const { maxBytes } = (await server.call("a", "getStats", {})).body.requests;
    const most = Math.floor(maxBytes / limit);
    // One agent may use half of the budget, so the bodies go to several.
    const send = () => {
      const path = `/agents/session-agent/${"abc"[senders.length % 3]}/rpc/appendMessage`;
      const socket = connect(Number(port), "127.0.0.1");
      socket.on("error", () => {});
      socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${limit}\r\n\r\n{"sessionId":"`);
      senders.push(socket);
    };
    for (let n = 0; n < most; n++) send();
    for (let tries = 1; (await reservedBytes()) < most * limit; tries++) {
      assert.ok(tries < 1_000, `${await reservedBytes()} of ${most * limit} bytes are held`);
      // A request that arrived too early was refused. Another one replaces it.
      if (tries % 50 === 0) send();
      await pause(20);
    }
    // There is room for small requests, and for no other large one.
    const { status } = await server.call("a", "createSession", { id: "s" });
    assert.equal(status, 200);
    const large = { sessionId: "s", message: user("m", words(LONGEST)) };
    const next = await server.call("a", "appendMessage", large);
    const refused = [next.status, next.body.error?.code, next.body.error?.details];
    assert.deepEqual(refused, [429, "rate_limited", { retryAfter: 5 }]);
    for (const socket of senders) socket.destroy();
    const deadline = Date.now() + 20_000;
    while ((await reservedBytes()) > 0 && Date.now() < deadline) await pause(20);
    assert.equal(await reservedBytes(), 0);
    assert.equal((await server.call("a", "appendMessage", large)).status, 200);
  } finally {
    await server.stop();
  }
});

test("a_client_that_disconnects_midway_ends_only_its_own_request", { timeout: 30_000 }, async () => {
  const server = await startServer();
  try {
    await server.call("a", "createSession", { id: "s" });
    const half = (agent, path, length, text) => {
      const socket = connect(Number(server.url.port), "127.0.0.1");
      socket.on("error", () => {});
      socket.write(
        `POST /agents/session-agent/${agent}/${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${length}\r\n\r\n${text}`,
      );
      return socket;
    };
    const [head, tail] = ['{"id":"', 't"}'];
    for (const path of ["rpc/appendMessage", "chat?sessionId=s", "sessions/copy/import"]) {
      // At the same time, a request to another agent waits for the rest of its body.
      const other = half("b", "rpc/createSession", head.length + tail.length + path.length, head);
      const given = half("a", path, 1_000, '{"a":"');
      await pause(300);
      given.destroy();
      await pause(300);
      other.write(path + tail);
      let answer = "";
      for await (const bytes of other) answer += bytes;
      assert.match(answer, /^HTTP\/1\.1 200 /, path);
      assert.equal((await server.call("a", "getSession", { sessionId: "s" })).status, 200);
    }
    assert.deepEqual(
      server.logs.filter(({ message }) => message.includes("Critical")),
      [],
    );
  } finally {
    await server.stop();
  }
});

test("a_body_over_the_limit_is_refused_before_it_arrives", async () => {
  const server = await startServer();
  try {
    for (const [operation, limit] of [
      ["getSession", LIMITS.getSession],
      ["appendEvents", LIMITS.appendEvents],
    ]) {
      for (const actual of [limit + 1, 50 * MIB]) {
        const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
        socket.write(
          `POST /agents/session-agent/a/rpc/${operation} HTTP/1.1\r\nhost: x\r\ncontent-length: ${actual}\r\n\r\n{`,
        );
        let answer = "";
        for await (const bytes of socket) {
          answer += bytes;
          if (answer.endsWith("}}}")) break;
        }
        assert.match(answer, /^HTTP\/1\.1 413 /);
        const { error } = JSON.parse(answer.slice(answer.indexOf("{")));
        assert.deepEqual([error.code, error.details], ["payload_too_large", { limit, actual }]);
      }
    }
  } finally {
    await server.stop();
  }
});

test("a_socket_has_the_same_limits", async () => {
  const server = await startServer();
  try {
    const socket = new WebSocket(`${server.url.href.replace(/^http/, "ws")}agents/session-agent/a`);
    const frames = [];
    socket.addEventListener("message", ({ data }) => frames.push(JSON.parse(data)));
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    const call = async (id, input) => {
      socket.send(JSON.stringify({ type: "rpc", id, method: "createSession", args: [input] }));
      for (;;) {
        const answer = frames.find((frame) => frame.type === "rpc" && frame.id === id);
        if (answer) return answer;
        await pause(10);
      }
    };
    const around = JSON.stringify({ id: "s", name: "" }).length;
    assert.equal((await call("1", { id: "s", name: "x" })).success, true);
    const long = await call("2", { id: "s", name: "x".repeat(LIMITS.createSession + 1 - around) });
    assert.equal(long.success, false);
    assert.match(JSON.stringify(long), new RegExp(String(LIMITS.createSession)));
    // No frame of a client is as long as this one.
    socket.send("x".repeat(8 * MIB + 1));
    assert.equal((await call("3", { id: "t", name: "x" })).success, true);
    socket.close();
  } finally {
    await server.stop();
  }
});

/**
 * Measures the memory of this many concurrent requests in a separate process, and returns the
 * failure, if any. The engine collects garbage at any time, so a peak differs from run to run: a
 * request over the limit is measured again.
 */
async function measured(context, what, requests, atOnce = AGENTS.length) {
  const first = await measuredOnce(context, what, requests, atOnce);
  const isOver = first.length === 1 && first[0].startsWith(`${what} takes `);
  return isOver ? await measuredOnce(context, `${what}, again`, requests, atOnce) : first;
}

async function measuredOnce(context, what, requests, atOnce) {
  const server = await startServer({ storage: folder, vars: { AUTH: "open", MODEL: "demo" } });
  const failures = [];
  try {
    for (const agent of AGENTS) await server.call(agent, "getStats", {});
    const idle = await server.memory();
    await server.peakMemory();
    const statuses = [];
    for (let n = 0; n < requests.length; n += atOnce) {
      statuses.push(...(await Promise.all(requests.slice(n, n + atOnce).map((request) => request(server)))));
    }
    const peak = await server.peakMemory();
    if (peak === null) return [];
    const above = peak - idle;
    // A socket that was closed is noticed a moment later.
    const deadline = Date.now() + 20_000;
    let stats;
    do stats = (await server.call(AGENTS[0], "getStats", {})).body;
    while (stats.requests.heldBytes !== 0 && Date.now() < deadline);
    const shown = [...new Set(statuses)].sort().join(" ");
    const mb = (bytes) => `${(bytes / 1e6).toFixed(0)} MB`;
    context.diagnostic(`${what}: ${mb(above)} (wasm ${mb(stats.memory.wasmBytes)}; ${shown})`);
    if (above > MOST) failures.push(`${what} takes ${mb(above)}`);
    if (statuses.some((status) => status >= 500)) failures.push(`${what} answers ${shown}`);
    if (stats.requests.heldBytes !== 0) failures.push(`${what} leaves ${stats.requests.heldBytes} bytes held`);
  } finally {
    await server.stop();
  }
  return failures;
}

function rpc(agent, operation, body) {
  return async (server) =>
    readToEnd(await server.fetch(`/agents/session-agent/${agent}/rpc/${operation}`, { method: "POST", body }));
}

async function readToEnd(response) {
  for await (const _ of response.body ?? []);
  return response.status;
}

function user(id, text) {
  return { id, role: "user", parts: [{ type: "text", text }] };
}

function words(bytes) {
  return "some words of a text ".repeat(bytes / 21 + 1).slice(0, bytes);
}

function list(n, item) {
  return Array.from({ length: n }, (_, k) => item(k));
}

/** The longest body within the limit, consisting of one repeated item. */
function filled(head, limit, item, tail) {
  const items = [];
  let length = head.length + tail.length;
  for (let n = 0; ; n++) {
    const next = item(n);
    length += next.length;
    if (length > limit) return head + items.join("") + tail;
    items.push(next);
  }
}
