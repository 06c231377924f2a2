// Peers that open a connection and then neither read nor answer: their memory is bounded and
// released within half a minute, and other callers are served in the meantime.
//
// All entry points are tested at the same time, so the half minute passes once.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { call, startChatServer } from "./chat_server.mjs";
import { say } from "./model_server.mjs";

const MIB = 2 ** 20;
const PEERS = 6;
/** The deadline, and additional time for a busy machine. */
const RELEASED_MS = 30_000;
const SLACK_MS = 8_000;
/** The maximum memory of the runtime for all peers. */
const MOST_BYTES = 600 * MIB;

const words = (length) => "word ".repeat(Math.ceil(length / 5)).slice(0, length);
const rpc = (operation, input) => (agent) =>
  post(`/agents/session-agent/${agent}/rpc/${operation}`, JSON.stringify(input));
const get = (path) => (agent) => `GET /agents/session-agent/${agent}${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const post = (path, body, length = Buffer.byteLength(body)) =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: ${length}\r\n\r\n${body}`;
const user = (text) => ({ role: "user", parts: [{ type: "text", text }] });

/** What each peer sends to each entry point; the session `s` of its agent is 4 MiB long. */
const ENTRY_POINTS = {
  getHistory: rpc("getHistory", { sessionId: "s" }),
  getMessage: rpc("getMessage", { sessionId: "s", messageId: "long" }),
  getLatestLeaf: rpc("getLatestLeaf", { sessionId: "s" }),
  loadEvents: rpc("loadEvents", { sessionId: "s" }),
  buildWorkingContext: rpc("buildWorkingContext", { sessionId: "s" }),
  getBlockVersions: rpc("getBlockVersions", { label: "text" }),
  "get-messages": get("/get-messages?sessionId=s"),
  export: get("/sessions/s/export"),
  chat: (agent, n) =>
    post(`/agents/session-agent/${agent}/chat`, JSON.stringify({ id: `c${n}`, message: user("Go.") })),
  stream: get("/chat/s/stream"),
  mcp: (agent) =>
    post(
      `/agents/session-agent/${agent}/mcp`,
      JSON.stringify({ jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri: "memory://block/text" } }),
    ),
  socket: (agent) =>
    `GET /agents/session-agent/${agent}?sessionId=s HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n`,
  import: (agent, n) => post(`/agents/session-agent/${agent}/sessions/i${n}/import`, '{"type":"session"', 5 * MIB),
};

let server;
let model;
let stop;
before(async () => {
  ({ server, model, stop } = await startChatServer());
  for (const entryPoint of Object.keys(ENTRY_POINTS)) await createData(agentOf(entryPoint));
  await call(server, "door-short", "createSession", { id: "short" });
  await call(server, "door-short", "appendMessage", { sessionId: "short", message: user(words(SHORT_BYTES)) });
});
after(() => stop());

const agentOf = (entryPoint) => `door-${entryPoint}`;

async function createData(agent) {
  await call(server, agent, "createSession", { id: "s" });
  await call(server, agent, "appendMessage", { sessionId: "s", message: { id: "long", ...user(words(3.9 * MIB)) } });
  await call(server, agent, "defineBlock", { label: "text", kind: "writable", maxTokens: 1_000_000 });
  await call(server, agent, "setBlock", { label: "text", content: words(0.9 * MIB) });
  await call(server, agent, "setBlock", { label: "text", content: words(0.8 * MIB) });
}

/**
 * Responses that are too short to be counted. The system's buffers hold several of them, so a peer
 * requests many over one connection.
 */
const SHORT = rpc("getHistory", { sessionId: "short" })("door-short").repeat(24);
const SHORT_BYTES = 480 * 1024;

/** Opens a connection, sends a request, and never reads the response. */
function open(text) {
  const socket = connect({ port: Number(new URL(server.url).port), host: "127.0.0.1" });
  socket.on("error", () => {});
  socket.pause();
  socket.write(text);
  return socket;
}

/** Finally reads what was sent to a peer: the number of complete responses once the connection is closed. */
async function readAtLast(socket) {
  let bytes = 0;
  socket.on("data", (more) => (bytes += more.length));
  const over = new Promise((resolve) => socket.once("close", resolve));
  socket.resume();
  await Promise.race([over, pause(20_000, undefined, { ref: false })]);
  return { answers: Math.floor(bytes / SHORT_BYTES), isOver: socket.destroyed };
}

/** The reservations of the isolate's agents in total. */
async function reserved() {
  const { turns, requests } = await call(server, "watcher", "getStats", {});
  return turns.heldBytes + requests.heldBytes;
}

test("stalled_peers_use_little_memory_and_time_out", { timeout: 150_000 }, async (context) => {
  const idle = await server.memory();
  model.next(...Array.from({ length: 2 * PEERS }, () => say(...Array.from({ length: 8 }, () => words(128 * 1024)))));
  const began = Date.now();
  const sockets = Object.entries(ENTRY_POINTS).flatMap(([entryPoint, request]) =>
    Array.from({ length: PEERS }, (_, n) => open(request(agentOf(entryPoint), n))),
  );
  const short = Array.from({ length: PEERS }, () => open(SHORT));
  const most = [];
  for (let n = 0; n < 8; n += 1) {
    most.push(await reserved());
    await pause(250);
  }
  context.diagnostic(`${Math.max(...most)} bytes held at most`);
  // Writes to a session are sent to its sockets.
  for (let n = 0; n < 6; n += 1) {
    await call(server, agentOf("socket"), "appendMessage", { sessionId: "s", message: user(`${n}`) });
    await pause(1_100);
  }
  // Small requests are served at once despite all reservations.
  const first = Date.now();
  await call(server, "bystander", "createSession", { id: "s" });
  assert.ok(Date.now() - first < 5_000);
  const peak = await server.memory();
  if (idle !== null) {
    context.diagnostic(
      `${Math.round(idle / MIB)} MiB idle, ${Math.round(peak / MIB)} MiB with ${sockets.length} peers`,
    );
    assert.ok(peak - idle < MOST_BYTES, `${Math.round((peak - idle) / MIB)} MiB`);
  }
  // All reservations are released, although no peer has disconnected.
  let left;
  while ((left = await reserved()) > 0 && Date.now() - began < RELEASED_MS + SLACK_MS) await pause(500);
  context.diagnostic(`${left} bytes held after ${Date.now() - began} ms`);
  assert.equal(left, 0);
  assert.ok(sockets.every((socket) => !socket.destroyed || socket.errored === null));
  // Uncounted responses were dropped, too: the rest of them never arrives.
  for (const { answers, isOver } of await Promise.all(short.map(readAtLast))) {
    context.diagnostic(`${answers} of 24 short answers`);
    assert.ok(isOver && answers < 24, `${answers} answers, and the connection ${isOver ? "ended" : "continues"}`);
  }
  // A long request is served again.
  await call(server, "bystander", "appendMessage", { sessionId: "s", message: user(words(3 * MIB)) });
  assert.equal((await call(server, "bystander", "getHistory", { sessionId: "s" })).messages.length, 1);
  sockets.forEach((socket) => socket.destroy());
});

test("one_agents_stalled_readers_leave_capacity_for_another", async () => {
  await createData("slow");
  await createData("other");
  const sockets = Array.from({ length: 3 }, () => open(rpc("getHistory", { sessionId: "s" })("slow")));
  await pause(500);
  const { messages } = await call(server, "other", "getHistory", { sessionId: "s" });
  assert.equal(messages.length, 1);
  sockets.forEach((socket) => socket.destroy());
});
