// The export of a whole agent over HTTP, with the client and on the command line: it is restored
// byte for byte, resumes after interruptions, and uses little memory. Native tests check the
// contents of the lines.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createReadStream, createWriteStream, existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout } from "node:timers/promises";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { sessionAgent } from "../../packages/session-agent/dist/index.js";
import { games } from "../game_counts.mjs";
import { startServer } from "./harness.mjs";

const MIB = 2 ** 20;
/** The maximum memory of a request, which may be 4 MiB long. */
const MOST_BYTES = 2_500_000;
const CLI = join(import.meta.dirname, "../../packages/session-agent/bin/session-agent.mjs");
const run = promisify(execFile);

const folder = await mkdtemp(join(tmpdir(), "session-agent-whole-"));
const server = await startServer();
after(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const at = (agent, what) => `/agents/session-agent/${agent}/${what}`;

async function ok(agent, operation, input, on = server) {
  const { status, body } = await on.call(agent, operation, input);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

async function appended(agent, sessionId, length, content, on = server) {
  await ok(agent, "createSession", { id: sessionId }, on);
  const most = Math.min(1000, Math.floor(MOST_BYTES / content.length));
  for (let left = length; left > 0; left -= most) {
    const events = Array.from({ length: Math.min(left, most) }, (_, n) => ({
      action: "user_message",
      content: `${left - n} ${content}`,
    }));
    await ok(agent, "appendEvents", { sessionId, events }, on);
  }
}

async function createAgent(agent, on = server) {
  await ok(agent, "configureAgent", { maxSteps: 7, systemInstructions: ["Be brief."] }, on);
  await ok(agent, "configureCompaction", { protectHead: 5 }, on);
  await ok(agent, "defineBlock", { label: "soul", kind: "writable", description: "Who I am" }, on);
  for (const content of ["one", "two"]) await ok(agent, "setBlock", { label: "soul", content }, on);
  await ok(agent, "defineBlock", { label: "facts", kind: "searchable" }, on);
  await ok(agent, "setEntry", { label: "facts", key: "k", content: "Bananas are yellow" }, on);
  await ok(agent, "defineBlock", { label: "skills", kind: "loadable" }, on);
  await ok(agent, "putSkill", { label: "skills", key: "s", content: "How to peel" }, on);
  await appended(agent, "first", 1500, "hello 😀", on);
  await appended(agent, "a/b ü", 2, "there", on);
}

async function exported(agent, after, on = server) {
  const query = after === undefined ? "" : `?after=${encodeURIComponent(after)}`;
  const response = await on.fetch(at(agent, `export${query}`));
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "application/x-ndjson");
  return await response.text();
}

async function importing(agent, body, on = server) {
  const init = { method: "POST", body, duplex: "half" };
  const response = await on.fetch(at(agent, "import?allowSources=true"), init);
  return { status: response.status, body: await response.json(), headers: response.headers };
}

test("an_agent_is_restored_byte_for_byte_and_its_memory_is_searchable", async () => {
  await createAgent("from");
  const file = await exported("from");
  const { status, body } = await importing("to", file);
  assert.deepEqual([status, body], [200, { sessions: 2, imported: 2, skipped: 0, events: 1502 }]);
  assert.equal(await exported("to"), file);
  for (const [operation, input] of [
    ["getBlocks", {}],
    ["getBlockVersions", { label: "soul" }],
    ["searchContext", { label: "facts", query: "banana" }],
    ["getConfig", {}],
    ["loadEvents", { sessionId: "first", limit: 1000 }],
  ]) {
    assert.deepEqual(await ok("to", operation, input), await ok("from", operation, input), operation);
  }
  const again = await importing("to", file);
  assert.deepEqual(again.body, { sessions: 2, imported: 0, skipped: 2, events: 1502 });
  assert.equal(again.headers.get("x-rows-written"), "0");

  await ok("to", "setBlock", { label: "soul", content: "three" });
  const other = await importing("to", file);
  assert.deepEqual([other.status, other.body.error.code], [409, "already_exists"]);
});

test("a_long_import_spans_several_cpu_allowances", async (t) => {
  const logging = await startServer({ vars: { AUTH: "open", REQUEST_LOG: "all" } });
  t.after(() => logging.stop());
  /** The agents that requested their own settings, according to the log since `before`. */
  const renewed = (before) =>
    logging.logs
      .slice(before)
      .flatMap(({ message }) => (message.startsWith("{") ? [JSON.parse(message)] : []))
      .filter(({ operation, status }) => operation === "getConfig" && status === 200)
      .map(({ agent }) => agent);
  const renews = async (before, expected) => {
    for (const until = Date.now() + 5_000; renewed(before).length < expected.length && Date.now() < until; )
      await setTimeout(20);
    assert.deepEqual(renewed(before), expected);
  };

  await ok("long", "createSession", { id: "s" }, logging);
  const event = { action: "user_message", content: "x".repeat(MIB) };
  for (let part = 0; part < 3; part += 1)
    await ok("long", "appendEvents", { sessionId: "s", events: [event, event, event] }, logging);
  for (const path of ["export", "sessions/s/export"]) {
    const before = logging.logs.length;
    const file = await (await logging.fetch(at("long", path))).text();
    assert.ok(file.length > 9 * MIB);
    const to = `of ${path.length}`;
    const response = await logging.fetch(at(to, path.replace("export", "import")), { method: "POST", body: file });
    assert.equal(response.status, 200, await response.text());
    await renews(before, ["long", "long", to, to]);
  }
  const before = logging.logs.length;
  await createAgent("short", logging);
  await (await logging.fetch(at("short", "export"))).text();
  await renews(before, []);
});

test("the_client_sends_a_long_file_in_parts", async () => {
  await createAgent("parted");
  const from = sessionAgent(server.url, "parted");
  const to = sessionAgent(server.url, "parted again");
  const steps = [];
  const outcome = await to.importAgent(await from.exportAgent(), {
    partBytes: 1,
    onProgress: (step) => steps.push(step),
  });
  assert.deepEqual(outcome, { sessions: 2, imported: 2, skipped: 0, events: 1502 });
  assert.ok(steps.at(-1).lines > 1502);
  assert.equal(await exported("parted again"), await exported("parted"));
  const cut = (await exported("parted")).split("\n").slice(0, -2).join("\n");
  await assert.rejects(sessionAgent(server.url, "cut").importAgent(cut), { code: "invalid_request" });
});

/** A server in front of the Worker that truncates the first responses after this many bytes. */
async function breaking(bytes, times) {
  let left = times;
  const front = createServer(async ({ url }, response) => {
    const answer = await server.fetch(url);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    const text = Buffer.from(await answer.arrayBuffer());
    if (left === 0 || !url.includes("/export")) return response.end(text);
    left -= 1;
    response.write(text.subarray(0, bytes), () => response.destroy());
  });
  await new Promise((resolve) => front.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${front.address().port}`, stop: () => front.close() };
}

test("the_command_line_exports_imports_and_resumes_an_agent", async () => {
  for (const session of ["one", "two", "three"]) await appended("cli", session, 1000, "y".repeat(2000));
  const whole = await exported("cli");
  const front = await breaking(3 * MIB, 2);
  try {
    const file = join(folder, "cli.ndjson");
    const { stderr } = await run(process.execPath, [CLI, "export", "cli", file, "--url", front.url]);
    assert.equal(stderr.match(/Retrying\./g)?.length, 2, stderr);
    assert.ok(readFileSync(file, "utf8") === whole);
    assert.ok(!existsSync(`${file}.part`));

    // A part that ends within a line is continued from its last cursor.
    const resumed = join(folder, "resumed.ndjson");
    await writeFile(`${resumed}.part`, whole.slice(0, Math.floor(whole.length * 0.7)));
    const refused = await run(process.execPath, [CLI, "export", "cli", resumed, "--url", server.url]).catch((e) => e);
    assert.match(refused.stderr, /--resume/);
    await run(process.execPath, [CLI, "export", "cli", resumed, "--url", server.url, "--resume"]);
    assert.ok(readFileSync(resumed, "utf8") === whole);

    const { stdout } = await run(process.execPath, [CLI, "import", "cli again", file, "--url", server.url]);
    assert.deepEqual(JSON.parse(stdout), { sessions: 3, imported: 3, skipped: 0, events: 3000 });
    const toStdout = await run(process.execPath, [CLI, "export", "cli again", "-", "--url", server.url], {
      maxBuffer: 100 * MIB,
    });
    assert.ok(toStdout.stdout === whole);
  } finally {
    front.stop();
  }
});

test("ctrl_c_leaves_a_partial_file_with_a_resumable_name", async () => {
  const hanging = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.write('{"type":"agent","format":1}\n');
  });
  await new Promise((resolve) => hanging.listen(0, "127.0.0.1", resolve));
  const file = join(folder, "stopped.ndjson");
  const child = spawn(process.execPath, [
    CLI,
    "export",
    "a",
    file,
    "--url",
    `http://127.0.0.1:${hanging.address().port}`,
  ]);
  let output = "";
  child.stderr.on("data", (text) => {
    output += text;
  });
  const part = `${file}.part`;
  while (!existsSync(part) || (await stat(part)).size === 0) await setTimeout(20);
  child.kill("SIGINT");
  const code = await new Promise((resolve) => child.on("close", resolve));
  hanging.closeAllConnections();
  hanging.close();
  assert.equal(code, 1);
  assert.match(output, /stopped\.ndjson\.part contains the data so far/);
  assert.ok(!existsSync(file));
});

test("an_interrupted_import_is_completed_by_the_same_file", async () => {
  const own = await startServer();
  try {
    await createAgent("whole", own);
    for (let n = 0; n < 10; n += 1) await appended("whole", `more ${n}`, 1000, "z", own);
    const file = await exported("whole", undefined, own);
    const bytes = Buffer.from(file);
    // How much of the file is sent before the runtime is killed, and how long after that.
    const rounds = [
      [0.05, 0],
      [0.2, 150],
      [0.4, 30],
      [0.6, 400],
      [0.85, 80],
      [1, 250],
    ];
    for (const [round, [share, ms]] of rounds.entries()) {
      const agent = `killed ${round}`;
      const sent = Math.floor(bytes.length * share);
      const abort = new AbortController();
      const body = new ReadableStream({ start: (controller) => controller.enqueue(bytes.subarray(0, sent)) });
      const importingIt = own
        .fetch(at(agent, "import"), { method: "POST", body, duplex: "half", signal: abort.signal })
        .catch(() => {});
      await setTimeout(ms);
      await own.kill9();
      abort.abort();
      await importingIt;
      // Sessions exist completely, or not at all.
      const { sessions } = await ok(agent, "listSessions", { limit: 500 }, own);
      for (const { id } of sessions) {
        const [{ n }] = await own.sql(agent, `SELECT count(*) AS n FROM cf_agents_events WHERE session_id = '${id}'`);
        assert.equal(n, id === "first" ? 1500 : id.startsWith("more") ? 1000 : 2, id);
      }
      const { status, body: outcome } = await importing(agent, file, own);
      assert.equal(status, 200, `${sent} bytes: ${JSON.stringify(outcome)}`);
      assert.deepEqual([outcome.sessions, outcome.skipped], [12, sessions.length]);
      assert.ok((await exported(agent, undefined, own)) === file, `${sent} bytes`);
      assert.deepEqual(await own.sql(agent, "SELECT * FROM cf_agents_imports"), []);
    }
  } finally {
    await own.stop();
  }
});

test("memory_is_constant_for_an_agent_of_100_mib", async (context) => {
  const own = await startServer();
  try {
    const events = games(30_000, 100_000);
    const content = "lorem ipsum dolor sit amet ".repeat(4_000_000 / events);
    await appended("short", "s", 2_000, content, own);
    const path = join(folder, "long");
    const exportTo = async (agent, path) => {
      const response = await own.fetch(at(agent, "export"));
      await pipeline(Readable.fromWeb(response.body), createWriteStream(path));
    };
    await exportTo("short", path);
    await importing("short again", Readable.toWeb(createReadStream(path)), own);
    for (let n = 0; n < 4; n += 1) await appended("long", `s${n}`, events / 4, content, own);
    const before = await own.peakMemory();
    const started = Date.now();
    await exportTo("long", path);
    const exporting = { ms: Date.now() - started, peak: await own.peakMemory() };
    const { status, body } = await importing("copy", Readable.toWeb(createReadStream(path)), own);
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual([body.sessions, body.events], [4, events]);
    const importingIt = { ms: Date.now() - started - exporting.ms, peak: await own.peakMemory() };
    const copy = join(folder, "copy");
    await exportTo("copy", copy);
    assert.ok(readFileSync(copy).equals(readFileSync(path)));
    const { size } = await stat(path);
    assert.ok(size > 100 * MIB, `${size}`);
    const mib = (bytes) => `${Math.round(bytes / MIB)} MiB`;
    context.diagnostic(`a file of ${mib(size)}; exported in ${exporting.ms} ms, imported in ${importingIt.ms} ms`);
    context.diagnostic(
      `peak of the process: ${mib(before)} while appending, ${mib(exporting.peak)} exporting, ${mib(importingIt.peak)} importing`,
    );
    if (before !== null) {
      assert.ok(exporting.peak < before + 128 * MIB, mib(exporting.peak));
      assert.ok(importingIt.peak < before + 128 * MIB, mib(importingIt.peak));
    }
  } finally {
    await own.stop();
  }
});
