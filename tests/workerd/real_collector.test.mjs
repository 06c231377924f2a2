// Validates the spans with OpenTelemetry's own protobuf messages and with Rotel, a third-party
// collector. It accepts OTLP in JSON and forwards what it read as protobuf.
//
// Both are installed once from PyPI (scripts/setup/python.mjs). If they can't be installed, the
// test prints the reason and is skipped; collector.mjs checks the format in any case.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { pythonPackages } from "../../scripts/setup/python.mjs";
import { call, startChatServer } from "./chat_server.mjs";
import { allOf } from "./chat_stream.mjs";
import { callTools, say } from "./model_server.mjs";
import { startTools } from "./tool_server.mjs";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPANS = ["chat", "invoke_agent real", "chat test", "chat test", "execute_tool walk", "execute_tool gone"];
const PROGRAM = fileURLToPath(new URL("servers/otlp.py", import.meta.url));

const found = await pythonPackages({
  title: "OpenTelemetry's messages and Rotel (some 35 MB on disk)",
  requirements: ["protobuf==7.36.2", "opentelemetry-proto==1.45.2", "rotel==0.0.1a15"],
});
const skip = found.because ? `${found.because}; to run it: ${found.help}` : false;
if (skip) console.error(`SKIPPED: what needs a real collector, because ${skip}.`);

const closing = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

/** A server that records what it receives and forwards it to `next`. */
async function startRelay(next) {
  const bodies = [];
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const sent = Buffer.concat(pieces);
    const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
    bodies.push({ type: request.headers["content-type"], body, status: undefined });
    const { status, text } = await next(request, body);
    bodies.at(-1).status = status;
    response.writeHead(status, { "content-type": request.headers["content-type"] }).end(text);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { bodies, port: server.address().port };
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts Rotel, which forwards spans to the port `to`. Returns the port on which it receives them. */
async function startRotel(to) {
  const [port, grpc] = [await freePort(), await freePort()];
  const args = [
    ["--otlp-http-endpoint", `127.0.0.1:${port}`],
    ["--otlp-grpc-endpoint", `127.0.0.1:${grpc}`],
    ["--exporter", "otlp"],
    ["--otlp-exporter-protocol", "http"],
    ["--otlp-exporter-compression", "none"],
    ["--otlp-exporter-endpoint", `http://127.0.0.1:${to}`],
  ].flat();
  const program = join(found.env.PYTHONPATH, "rotel", "rotel-agent");
  const rotel = spawn(program, ["start", ...args], { stdio: ["ignore", "ignore", "inherit"] });
  const ended = once(rotel, "close");
  closing.push(async () => {
    rotel.kill("SIGKILL");
    await ended;
  });
  for (const until = Date.now() + 20_000; Date.now() < until; await pause(50)) {
    const up = await fetch(`http://127.0.0.1:${port}/`).then(
      (response) => response.text().then(() => true),
      () => false,
    );
    if (up) return port;
  }
  throw new Error("Rotel does not start");
}

/** The spans of bodies, as OpenTelemetry's own messages parse them. */
async function readSpans(bodies) {
  const reader = spawn(found.python, [PROGRAM], { env: found.env, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: reader.stdout });
  const ended = once(reader, "close");
  for (const { type, body } of bodies) {
    const line = type === "application/json" ? { json: body.toString() } : { protobuf: body.toString("base64") };
    reader.stdin.write(`${JSON.stringify(line)}\n`);
  }
  reader.stdin.end();
  const spans = [];
  for await (const line of lines) spans.push(...JSON.parse(line));
  assert.deepEqual(await ended, [0, null], "the bodies are OpenTelemetry's own messages");
  return spans;
}

const byId = (spans) => Object.fromEntries(spans.map((span) => [span.spanId, span]));

test("a_real_collector_accepts_each_span_and_forwards_the_same", { skip, timeout: 120_000 }, async () => {
  const behind = await startRelay(() => ({ status: 200, text: "" }));
  const rotel = await startRotel(behind.port);
  const before = await startRelay(async (request, body) => {
    const headers = { "content-type": request.headers["content-type"] };
    const answer = await fetch(`http://127.0.0.1:${rotel}${request.url}`, { method: "POST", headers, body });
    return { status: answer.status, text: await answer.text() };
  });
  const tools = await startTools();
  closing.push(() => tools.stop());
  const { server, model, stop } = await startChatServer({
    vars: { TOOL_ORIGINS: tools.origin, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${before.port}` },
  });
  closing.push(stop);
  await call(server, "real", "defineTool", { name: "walk", description: "Walks.", url: `${tools.origin}/walk` });
  model.next(callTools(["walk", { to: "Rome" }, "a"], ["gone", {}, "b"]), say("Done."));
  const response = await server.fetch("/agents/session-agent/real/chat", {
    method: "POST",
    headers: { "content-type": "application/json", traceparent: `00-${TRACE}-00f067aa0ba902b7-01` },
    body: JSON.stringify({ id: "s", message: { id: "u", role: "user", parts: [{ type: "text", text: "Go." }] } }),
  });
  await allOf(response);
  const inTrace = (spans) => spans.filter(({ traceId }) => traceId === TRACE);
  const isOver = ({ body }) => body.includes("invoke_agent");
  for (const until = Date.now() + 30_000; Date.now() < until && !behind.bodies.some(isOver); ) await pause(50);
  const sent = inTrace(await readSpans(before.bodies));
  const forwarded = inTrace(await readSpans(behind.bodies));
  assert.ok(before.bodies.every(({ type, status }) => type === "application/json" && status === 200));
  assert.ok(behind.bodies.every(({ type }) => type === "application/x-protobuf"));
  const names = sent.map(({ name }) => name);
  for (const name of SPANS.slice(0, 5)) assert.ok(names.includes(name), `${name}: ${names}`);
  assert.deepEqual(byId(forwarded), byId(sent));
});
