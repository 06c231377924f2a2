// Request bodies that never end: the memory they reserve, and when they time out.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { startServer } from "./harness.mjs";

let server;

before(async () => {
  server = await startServer();
});

after(() => server.stop());

/** Sends the head of a request and the beginning of its body. */
function begin(agent, length, text) {
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.on("error", () => {});
  const path = `/agents/session-agent/${agent}/rpc/createSession`;
  const announced = length === undefined ? "transfer-encoding: chunked" : `content-length: ${length}`;
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\n${announced}\r\n\r\n`);
  if (text !== "") socket.write(length === undefined ? `${text.length.toString(16)}\r\n${text}\r\n` : text);
  return socket;
}

/** The server's response, with the status. */
async function answerOf(socket) {
  let text = "";
  for await (const bytes of socket) {
    text += bytes;
    if (text.endsWith("}}}")) break;
  }
  socket.destroy();
  return [Number(text.slice(9, 12)), JSON.parse(text.slice(text.indexOf("{"))).error];
}

test("a_body_that_never_ends_is_refused_after_a_minute", { timeout: 120_000 }, async () => {
  const started = Date.now();
  const half = '{"id":"';
  const sent = [
    ["short and nothing comes", begin("a", 20, "")],
    ["short", begin("a", 20, half)],
    ["longer than what is read at once", begin("a", 20_000, half)],
    ["of unknown length", begin("a", undefined, half)],
  ];
  const waiting = sent.map(async ([what, socket]) => {
    const [status, error] = await answerOf(socket);
    assert.deepEqual([status, error.code, error.details], [400, "invalid_request", { field: "body" }], what);
    assert.match(error.message, /did not arrive within a minute/, what);
    return Date.now() - started;
  });
  // Other requests are served at the same time.
  assert.equal((await server.call("a", "createSession", { id: "s" })).status, 200);
  for (const ms of await Promise.all(waiting)) assert.ok(ms > 59_000 && ms < 75_000, `${ms} ms`);
  assert.deepEqual(
    server.logs.filter(({ message }) => message.includes("Critical")),
    [],
  );
});

test("no_timer_remains_once_the_bodies_have_arrived", async () => {
  // An object with a timer stays awake until the timer has fired, a second later.
  const times = [];
  for (const agent of ["c", "d", "e"]) {
    await Promise.all(["one", "two", "three"].map((id) => server.call(agent, "createSession", { id })));
    const started = Date.now();
    await server.evict(agent);
    times.push(Date.now() - started);
    assert.equal((await server.call(agent, "getSession", { sessionId: "two" })).status, 200);
  }
  assert.ok(Math.min(...times) < 700, `the objects could be evicted after ${times.join(", ")} ms`);
});

test("pending_bodies_are_bounded_and_release_their_reservation", { timeout: 60_000 }, async () => {
  const half = '{"id":"';
  const few = Array.from({ length: 512 }, () => begin("b", undefined, half));
  const first = async () => {
    const last = begin("b", undefined, half);
    const none = new Promise((resolve) => setTimeout(resolve, 4_000, undefined));
    const answer = await Promise.race([answerOf(last).catch(() => undefined), none]);
    if (answer === undefined) few.push(last);
    return answer;
  };
  let answer;
  for (let tries = 0; answer === undefined && tries < 5; tries++) answer = await first();
  const [status, error] = answer;
  assert.deepEqual([status, error.code, error.details], [429, "rate_limited", { retryAfter: 5 }]);
  // A request whose body has arrived succeeds.
  assert.equal((await server.call("b", "createSession", { id: "s" })).status, 200);
  for (const socket of few) socket.destroy();
  for (let tries = 0; ; tries++) {
    const socket = begin("b", undefined, '{"id":"');
    socket.write('2\r\nx"\r\n1\r\n}\r\n0\r\n\r\n');
    let text = "";
    for await (const bytes of socket) {
      text += bytes;
      if (text.includes("}")) break;
    }
    socket.destroy();
    if (text.startsWith("HTTP/1.1 200")) break;
    assert.ok(tries < 50, text);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});
