// Excessive turns: clients that don't read, endless model answers, huge tool results, and hundreds
// of turns and sockets. Each is bounded, reports an error, and does not affect the others.

import assert from "node:assert/strict";
import { connect as connectTcp } from "node:net";
import { after, afterEach, test } from "node:test";
import { AgentClient } from "agents/client";
import { call, history, startChatServer } from "./chat_server.mjs";
import { callTool, callTools, gate, say, sayWithoutEnd } from "./model_server.mjs";
import { startTools } from "./tool_server.mjs";

const MIB = 2 ** 20;
/** The memory of an isolate and of the runtime around it. */
const MOST_MEMORY = 400 * MIB;
const MOST_TURNS = 256;

const tools = await startTools();
const { server, model, stop } = await startChatServer({ vars: { TOOL_ORIGINS: tools.origin } });
const clients = [];
after(async () => {
  clients.forEach((client) => client.close());
  await stop();
  await tools.stop();
});
afterEach(() => {
  assert.equal(model.unusedAnswers, 0, "a scripted answer was never requested");
});

const pathOf = (agent) => `/agents/session-agent/${agent}/chat`;
const bodyOf = (id, text) =>
  JSON.stringify({ id, message: { id: text, role: "user", parts: [{ type: "text", text }] } });

/** The chunks of a turn. */
async function turn(agent, id = "s", text = "Go.") {
  return chunksIn(await server.fetch(pathOf(agent), { method: "POST", body: bodyOf(id, text) }));
}

async function chunksIn(response) {
  assert.equal(response.status, 200);
  const lines = (await response.text()).split("\n\n").filter((line) => line !== "");
  assert.equal(lines.pop(), "data: [DONE]");
  return lines.map((line) => JSON.parse(line.slice("data: ".length)));
}

const lastOf = (list) => list.at(-1);
const kindsOf = (chunks) => chunks.map(({ type }) => type);

/** Waits until the session's turn is over. */
async function isOver(agent, id = "s") {
  for (;;) {
    const response = await server.fetch(`${pathOf(agent)}/${id}/stream`);
    if (response.status === 204) return;
    await response.text();
  }
}

async function assertLittleMemory() {
  const peak = await server.peakMemory();
  if (peak !== null) assert.ok(peak < MOST_MEMORY, `${Math.round(peak / MIB)} MiB`);
  return peak;
}

async function define(agent) {
  const tool = { description: "Does it.", url: `${tools.origin}/tool` };
  await call(server, agent, "defineTool", { ...tool, name: "work" });
}

test("a_client_that_does_not_read_blocks_nothing", async () => {
  await server.peakMemory();
  const piece = "All work and no play. ".repeat(3_000);
  model.next(say(...Array.from({ length: 50 }, () => piece)));
  const { hostname, port } = new URL(server.url);
  const client = connectTcp(Number(port), hostname);
  client.pause();
  const body = bodyOf("s", "Go.");
  client.write(
    `POST ${pathOf("deaf")} HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  await model.untilRequests(1);
  await isOver("deaf");
  assert.deepEqual(await history(server, "deaf", "s", { maxBytes: 16 * MIB }), [
    ["user", "Go."],
    ["assistant", piece.repeat(50)],
  ]);
  client.destroy();
  await assertLittleMemory();
});

test("a_client_that_disconnects_at_once_finds_its_answer_later", async () => {
  const rest = gate();
  model.next(say("Here ", rest, "it is."));
  const aborted = new AbortController();
  const response = await server.fetch(pathOf("gone"), {
    method: "POST",
    body: bodyOf("s", "Go."),
    signal: aborted.signal,
  });
  aborted.abort();
  await assert.rejects(response.text());
  rest.open();
  await isOver("gone");
  assert.deepEqual(await history(server, "gone", "s"), [
    ["user", "Go."],
    ["assistant", "Here it is."],
  ]);
});

test("an_endless_model_answer_is_stopped_and_its_text_kept", async () => {
  await server.peakMemory();
  model.next(sayWithoutEnd("and on ".repeat(1_000)));
  const { type, errorText } = lastOf(await turn("endless"));
  assert.equal(type, "error");
  assert.match(errorText, /exceeded the limit of one turn/);
  const { messages } = await call(server, "endless", "getHistory", { sessionId: "s", maxBytes: 32 * MIB });
  assert.equal(messages.length, 2);
  assert.ok(messages[1].parts[0].text.length > MIB);
  await assertLittleMemory();
  model.next(say("Shorter."));
  assert.equal(lastOf(await turn("endless", "s", "And now?")).type, "finish");
});

test("a_long_text_before_a_call_is_reported_and_the_call_not_made", async () => {
  await define("wordy");
  const callsBefore = tools.calls.length;
  const text = say(...Array.from({ length: 25 }, () => "word ".repeat(20_000)));
  const answer = callTool("work", {}, "a");
  model.next({ ...answer, pieces: [...text.pieces, ...answer.pieces] });
  const { type, errorText } = lastOf(await turn("wordy"));
  assert.equal(type, "error");
  assert.match(errorText, /limit/);
  assert.equal(tools.calls.length, callsBefore);
  const events = await call(server, "wordy", "loadEvents", { sessionId: "s" });
  assert.deepEqual(
    events.map(({ action }) => action),
    ["user_message", "tool_call_request", "tool_result"],
  );
});

test("a_tool_result_of_10_mb_is_reported_to_the_model_as_too_large", async () => {
  await define("large");
  tools.run = async () => new Response("x".repeat(10 * MIB));
  model.next(callTool("work", {}, "a"), say("Too large."));
  const chunks = await turn("large");
  assert.equal(lastOf(chunks).type, "finish");
  const { content } = lastOf(lastOf(model.requests).messages);
  assert.match(content, /larger than 1048576 bytes/);
});

test("a_tool_result_of_600_kb_is_stored_whole_and_truncated_for_the_model", async () => {
  await define("long");
  const output = `${"x".repeat(600_000)} the end`;
  tools.run = async () => new Response(output);
  model.next(callTool("work", {}, "a"), say("Long."));
  const chunks = await turn("long");
  assert.equal(chunks.find(({ type }) => type === "tool-output-available").output, output);
  const { content } = lastOf(lastOf(model.requests).messages);
  assert.match(content, /^x+\n\[… \d+ characters, omitted here and stored in the log …\]\nx+ the end$/);
  assert.ok(content.length < 5_000);
  const { messages } = await call(server, "long", "getHistory", { sessionId: "s" });
  assert.equal(messages[1].parts.find(({ type }) => type === "tool-work").output, output);
  assert.deepEqual(await server.sql("long", "SELECT * FROM cf_agents_early_answers"), []);
});

test("fifty_one_calls_of_one_step_run_three_at_a_time", async () => {
  await define("fifty");
  const disconnected = [];
  // A session has three of the slots. No call answers before two others have arrived.
  tools.run = async ({ arguments: { n } }) => {
    const three = lastOf(disconnected)?.count < 3 ? lastOf(disconnected) : { ...gate(), count: 0 };
    if (three.count === 0) disconnected.push(three);
    three.count += 1;
    if (three.count === 3) three.open();
    await three.gate;
    return { n };
  };
  model.next(callTools(...Array.from({ length: 51 }, (_, n) => ["work", { n }, `c${n}`])), say("Done."));
  const chunks = await turn("fifty");
  assert.equal(lastOf(chunks).type, "finish");
  assert.equal(disconnected.length, 17);
  assert.equal(kindsOf(chunks).filter((type) => type === "tool-output-available").length, 51);
  const results = lastOf(model.requests).messages.filter(({ role }) => role === "tool");
  assert.deepEqual(
    results.map(({ content }) => JSON.parse(content).n),
    Array.from({ length: 51 }, (_, n) => n),
  );
});

test("calls_beyond_64_of_one_step_are_refused_and_the_others_run", async () => {
  await define("many");
  tools.run = async () => ({ ok: true });
  model.next(callTools(...Array.from({ length: 65 }, (_, n) => ["work", { n }, `c${n}`])), say("Done."));
  const chunks = await turn("many");
  assert.equal(kindsOf(chunks).filter((type) => type === "tool-output-available").length, 64);
  assert.match(chunks.find(({ type }) => type === "tool-output-error").errorText, /too many calls/);
});

test("256_turns_run_concurrently_and_one_more_is_refused", async () => {
  await server.peakMemory();
  const idle = await server.peakMemory();
  const rest = gate();
  const before = model.requests.length;
  model.next(...Array.from({ length: MOST_TURNS }, () => say("Still ", rest, "here.")));
  const turns = Array.from({ length: MOST_TURNS }, (_, n) => turn("crowd", `s${n}`, "Go."));
  await model.untilRequests(before + MOST_TURNS);
  const refused = await server.fetch(pathOf("crowd"), { method: "POST", body: bodyOf("one more", "Go.") });
  assert.equal(refused.status, 429);
  const { error } = await refused.json();
  assert.deepEqual([error.code, error.details], ["rate_limited", { retryAfter: 5 }]);
  rest.open();
  for (const chunks of await Promise.all(turns)) assert.equal(lastOf(chunks).type, "finish");
  for (const n of [0, MOST_TURNS - 1]) {
    assert.deepEqual(await history(server, "crowd", `s${n}`), [
      ["user", "Go."],
      ["assistant", "Still here."],
    ]);
  }
  const peak = await assertLittleMemory();
  console.log(
    `${MOST_TURNS} turns at once: ${Math.round((peak - idle) / MIB)} MiB more than before, ${Math.round(peak / MIB)} MiB in all`,
  );
  model.next(say("Now."));
  assert.equal(lastOf(await turn("crowd", "one more")).type, "finish");
});

test("fifty_sockets_of_a_session_all_receive_the_answer", async () => {
  const sockets = await Promise.all(Array.from({ length: 50 }, () => openSocket("hall")));
  const received = sockets.map((socket) =>
    receive(socket, ({ type, done }) => type === "cf_agent_use_chat_response" && done),
  );
  model.next(say("Hello ", "all."));
  sockets[0].send(
    JSON.stringify({ type: "cf_agent_use_chat_request", id: "r", init: { method: "POST", body: bodyOf("s", "Go.") } }),
  );
  for (const frames of await Promise.all(received)) {
    const texts = frames
      .filter(({ type, body }) => type === "cf_agent_use_chat_response" && body)
      .map(({ body }) => JSON.parse(body));
    assert.equal(
      texts
        .filter(({ type }) => type === "text-delta")
        .map(({ delta }) => delta)
        .join(""),
      "Hello all.",
    );
  }
});

test("a_huge_frame_and_a_malformed_one_affect_no_other_socket", async () => {
  const [broken, working] = await Promise.all([openSocket("frames"), openSocket("frames")]);
  broken.send(`{"type":"cf_agent_use_chat_request","id":"r","init":{"method":"POST","body":"{`);
  broken.send("x".repeat(20 * MIB));
  broken.send(new Uint8Array(MIB));
  const failed = receive(broken, ({ type, error, done }) => type === "cf_agent_use_chat_response" && error && done);
  broken.send(JSON.stringify({ type: "cf_agent_use_chat_request", id: "r2", init: { method: "POST", body: "{" } }));
  await failed;
  assert.deepEqual((await working.call("listSessions")).sessions, []);
  assert.deepEqual((await broken.call("listSessions")).sessions, []);
});

async function openSocket(name) {
  const client = new AgentClient({ agent: "SessionAgent", name, host: new URL(server.url).host, protocol: "ws" });
  clients.push(client);
  await client.ready;
  return client;
}

/** The frames up to the first one that `holds` accepts. */
async function receive(socket, holds) {
  const frames = [];
  await new Promise((resolve) => {
    socket.addEventListener("message", ({ data }) => {
      frames.push(JSON.parse(data));
      if (holds(lastOf(frames))) resolve();
    });
  });
  return frames;
}
