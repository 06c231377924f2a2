// Export and import over HTTP: both stream, use little memory, and are all or nothing. Native tests
// check the contents of the lines.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, test } from "node:test";
import { games } from "../game_counts.mjs";
import { startServer } from "./harness.mjs";

const MIB = 2 ** 20;
/** The maximum memory of a request, which may be 4 MiB long. */
const MOST_BYTES = 2_500_000;

const folder = await mkdtemp(join(tmpdir(), "session-agent-transfer-"));
const server = await startServer();
after(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const user = (content, more = {}) => ({ action: "user_message", content, ...more });
const at = (agent, what, session = "s") => `/agents/session-agent/${agent}/sessions/${session}/${what}`;

async function ok(agent, operation, input, on = server) {
  const { status, body } = await on.call(agent, operation, { sessionId: "s", ...input });
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

async function agentOf(agent, length, content = "hello", on = server) {
  await on.call(agent, "createSession", { id: "s", name: agent });
  const most = Math.min(1000, Math.floor(MOST_BYTES / content.length));
  for (let left = length; left > 0; left -= most) {
    const events = Array.from({ length: Math.min(left, most) }, (_, n) => user(`${left - n} ${content}`));
    await ok(agent, "appendEvents", { events }, on);
  }
}

async function exported(agent, session) {
  const response = await server.fetch(at(agent, "export", session));
  assert.equal(response.status, 200);
  return await response.text();
}

/** Streams an export into a file. Returns the file's hash, computed without the agent's name. */
async function exportTo(path, agent, on = server) {
  const response = await on.fetch(at(agent, "export"));
  assert.equal(response.status, 200);
  const hash = createHash("sha256");
  let isFirst = true;
  const hashed = new Transform({
    transform(chunk, _, done) {
      hash.update(
        isFirst ? Buffer.from(chunk.toString("latin1").replace(`"agentId":"${agent}"`, ""), "latin1") : chunk,
      );
      isFirst = false;
      done(null, chunk);
    },
  });
  await pipeline(Readable.fromWeb(response.body), hashed, createWriteStream(path));
  return hash.digest("hex");
}

async function importing(agent, body, session, on = server) {
  const response = await on.fetch(at(agent, "import", session), { method: "POST", body, duplex: "half" });
  return { status: response.status, body: await response.json(), headers: response.headers };
}

test("a_session_moves_to_another_agent_unchanged", async () => {
  await agentOf("from", 3, 'a\u0000b \u2028 😀 "\\ \u0001\n');
  await ok("from", "appendMessage", {
    parentId: null,
    message: { id: "m", role: "assistant", parts: [{ type: "text", text: "ü" }] },
  });
  const response = await server.fetch(at("from", "export"));
  assert.equal(response.headers.get("content-type"), "application/x-ndjson");
  assert.ok(Number(response.headers.get("x-rows-read")) > 0);
  const file = await response.text();
  const lines = file
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ type }) => type),
    ["session", "event", "event", "event", "event", "end"],
  );

  const { status, body, headers } = await importing("to", file, "s");
  assert.deepEqual([status, body], [200, { sessionId: "s", events: 4, imported: 4, skipped: 0 }]);
  assert.ok(Number(headers.get("x-rows-written")) >= 5);
  for (const operation of ["loadEvents", "getHistory", "getChanges"]) {
    assert.deepEqual(await ok("to", operation), await ok("from", operation));
  }
  const again = await importing("to", file, "s");
  assert.deepEqual(again.body, { sessionId: "s", events: 4, imported: 0, skipped: 4 });
  assert.equal(again.headers.get("x-rows-written"), "0");

  const other = await importing("to", file, encodeURIComponent("a/b ü"));
  assert.equal(other.body.sessionId, "a/b ü");
  assert.equal((await exported("to", encodeURIComponent("a/b ü"))).split("\n").length, file.split("\n").length);
});

test("exports_and_imports_work_over_a_binding", async () => {
  await agentOf("bound", 2);
  for (const via of ["service", "object"]) {
    const response = await server.fetch(at("bound", "export"), {}, { via, agent: "bound" });
    const file = await response.text();
    assert.equal(file.trimEnd().split("\n").length, 4);
    const init = { method: "POST", body: file };
    const imported = await server.fetch(at("bound", "import", via), init, { via, agent: "bound" });
    assert.equal((await imported.json()).imported, 2);
  }
});

test("missing_sessions_and_malformed_files_are_reported", async () => {
  const missing = await server.fetch(at("nobody", "export"));
  assert.deepEqual([missing.status, (await missing.json()).error.code], [404, "session_not_found"]);
  await agentOf("told", 5);
  const lines = (await exported("told")).split("\n");
  lines[3] = "{oops";
  // The invalid line is early in the file. A lot is sent after it.
  const more = Readable.from([lines.join("\n"), ...Array.from({ length: 40 }, () => "x".repeat(MIB))]);
  const { status, body } = await importing("broken", Readable.toWeb(more), "s");
  assert.deepEqual([status, body.error.code, body.error.details.line], [400, "invalid_request", 4]);
  assert.equal(await ok("broken", "getSession"), null);
  assert.deepEqual(await server.sql("broken", "SELECT * FROM cf_agents_events"), []);
});

test("a_4_mib_message_is_transferred", async () => {
  await server.call("large", "createSession", { id: "s" });
  const text = "é\n".repeat(MIB - 100_000) + "x".repeat(100_000);
  await ok("large", "appendMessage", { message: { id: "m", role: "user", parts: [{ type: "text", text }] } });
  await ok("large", "appendEvents", { events: [user("after")] });
  const [from, to] = [join(folder, "large"), join(folder, "large again")];
  const hash = await exportTo(from, "large");
  const { status, body } = await importing("larger", Readable.toWeb(createReadStream(from)), "s");
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(await exportTo(to, "larger"), hash);
  const message = await ok("larger", "getMessage", { messageId: "m" });
  assert.equal(message.parts[0].text, text);
});

test("memory_is_constant_for_a_200_mib_file", async (context) => {
  const own = await startServer();
  try {
    const path = join(folder, "long");
    const messages = games(30_000, 100_000);
    const content = "lorem ipsum dolor sit amet ".repeat(8_000_000 / messages);
    await agentOf("short", 2_000, content, own);
    await exportTo(path, "short", own);
    await importing("short again", Readable.toWeb(createReadStream(path)), "s", own);
    await agentOf("long", messages, content, own);
    const before = await own.peakMemory();
    await own.peakMemory();

    const started = Date.now();
    const hash = await exportTo(path, "long", own);
    const exporting = { ms: Date.now() - started, peak: await own.peakMemory() };
    const { size } = await stat(path);

    const { status, body, headers } = await importing("copy", Readable.toWeb(createReadStream(path)), "s", own);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.imported, messages);
    const importingIt = { ms: Date.now() - started - exporting.ms, peak: await own.peakMemory() };
    assert.ok(Number(headers.get("x-rows-written")) < messages * 1.01, headers.get("x-rows-written"));

    assert.equal(await exportTo(join(folder, "copy"), "copy", own), hash);
    assert.ok(size > 200 * MIB);
    const mib = (bytes) => `${Math.round(bytes / MIB)} MiB`;
    context.diagnostic(`a file of ${mib(size)}; exported in ${exporting.ms} ms, imported in ${importingIt.ms} ms`);
    context.diagnostic(
      `peak of the process: ${mib(before)} while appending, ${mib(exporting.peak)} exporting, ${mib(importingIt.peak)} importing`,
    );
    if (before !== null) {
      // A file of twice the length takes no more memory. The margin is for garbage that the runtime
      // collects late.
      assert.ok(exporting.peak < before + 128 * MIB, mib(exporting.peak));
      assert.ok(importingIt.peak < before + 128 * MIB, mib(importingIt.peak));
    }
  } finally {
    await own.stop();
  }
});

test("an_export_waits_for_its_reader_and_stops_with_it", async () => {
  await agentOf("slow", 20_000, "y".repeat(1000));
  const abort = new AbortController();
  const response = await server.fetch(at("slow", "export"), { signal: abort.signal });
  const reader = response.body.getReader();
  await reader.read();
  // Other requests are served at the same time. Their writes are not in the file.
  await ok("slow", "appendEvents", { events: [user("meanwhile")] });
  let text = "";
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read())
    text = Buffer.from(chunk.value).toString();
  assert.match(text, /"type":"end","events":20000,/);

  const cancelled = await server.fetch(at("slow", "export"));
  await cancelled.body.cancel();
  assert.equal((await ok("slow", "loadEvents", { tail: true, limit: 1 }))[0].content, "meanwhile");
});

/** Begins an import and stops sending after the first thousands of lines. Returns the response's head. */
async function halfSent(agent, own, file) {
  const lines = file.split("\n");
  const abort = new AbortController();
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(lines.slice(0, 3_000).join("\n"))),
  });
  const sent = own
    .fetch(at(agent, "import"), { method: "POST", body, duplex: "half", signal: abort.signal })
    .catch(() => {});
  while (
    Number((await own.sql(agent, "SELECT count(*) AS n FROM sqlite_master WHERE name = 'cf_agents_events'"))[0].n) === 0
  );
  while ((await own.sql(agent, "SELECT count(*) AS n FROM cf_agents_events"))[0].n < 1_000);
  return { sent, abort };
}

test("an_import_killed_midway_creates_no_session_and_can_be_repeated", async () => {
  const own = await startServer();
  try {
    await agentOf("whole", 5_000, "z", own);
    const file = await (await own.fetch(at("whole", "export"))).text();
    for (const end of ["abort", "evicted", "killed"]) {
      const { sent, abort } = await halfSent(end, own, file);
      assert.equal(await ok(end, "getSession", {}, own), null);
      if (end === "abort") abort.abort();
      if (end === "evicted") await own.abort(end);
      if (end === "killed") await own.kill9();
      abort.abort();
      await sent;
      assert.equal(await ok(end, "getSession", {}, own), null);
      const { status, body } = await importing(end, file, "s", own);
      assert.deepEqual([status, body.imported], [200, 5_000], JSON.stringify(body));
      const [{ n }] = await own.sql(end, "SELECT count(*) AS n FROM cf_agents_events");
      assert.equal(n, 5_000);
      assert.deepEqual(await own.sql(end, "SELECT * FROM cf_agents_imports"), []);
    }
  } finally {
    await own.stop();
  }
});

test("a_session_token_exports_only_its_session", async () => {
  const secret = "the secret of this test, long enough";
  const own = await startServer({ vars: {}, secrets: { SESSION_AGENT_TOKEN: secret } });
  try {
    const headers = { authorization: `Bearer ${secret}` };
    for (const id of ["s", "t"]) await own.call("a", "createSession", { id }, { headers });
    const { body } = await own.call("a", "mintToken", { sessionId: "s", expiresIn: 60 }, { headers });
    const scoped = { authorization: `Bearer ${body.token}` };
    const status = async (session, headers) => (await own.fetch(at("a", "export", session), { headers })).status;
    assert.deepEqual(
      [await status("s"), await status("s", scoped), await status("t", scoped), await status("t", headers)],
      [401, 200, 403, 200],
    );
    const file = await (await own.fetch(at("a", "export", "s"), { headers: scoped })).text();
    const send = async (session, headers) =>
      (await own.fetch(at("a", "import", session), { method: "POST", body: file, headers })).status;
    assert.deepEqual(
      [await send("s"), await send("s", scoped), await send("t", scoped), await send("u", headers)],
      [401, 200, 403, 200],
    );
  } finally {
    await own.stop();
  }
});
