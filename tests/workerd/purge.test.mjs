// A purge leaves no byte of the text in the database files, neither in freed pages nor in the
// write-ahead log, and it is all or nothing when the runtime is killed.

import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startServer } from "./harness.mjs";

const NEEDLE = "zanzibarquux";
/** A word index omits the prefix that a word shares with the previous word. */
const END = "nzibarquux";
/** `KILLS=100` runs longer. */
const KILLS = Number(process.env.KILLS ?? 6);

const storage = await mkdtemp(join(tmpdir(), "session-agent-purge-"));
const options = { storage, secrets: { SESSION_AGENT_TOKEN: "the secret of these tests, long enough" }, vars: {} };
let server = await startServer(options);
after(async () => {
  await server.stop();
  await rm(storage, { recursive: true, force: true });
});

const headers = { authorization: `Bearer ${options.secrets.SESSION_AGENT_TOKEN}` };

async function ok(agent, operation, input) {
  const { status, body } = await server.call(agent, operation, input, { headers });
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

/** The texts that were searched for so far. */
const searched = { searches: 0, files: 0, bytes: 0, logBytes: 0 };

after(() => {
  const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
  console.log(
    `purge: ${searched.searches} searches of ${searched.files} files, ${mib(searched.bytes)} in all, of them ${mib(searched.logBytes)} of write-ahead logs`,
  );
});

function missing(error) {
  if (error.code !== "ENOENT") throw error;
  return null;
}

/** The files of all objects that contain one of the texts, with its offset. */
async function filesWith(...texts) {
  const found = [];
  searched.searches += 1;
  for (const entry of await readdir(storage, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.sqlite(-wal)?$/.test(entry.name)) continue;
    // SQLite may remove a log between the listing and this read; then there is none to search.
    const bytes = await readFile(join(entry.parentPath, entry.name)).catch(missing);
    if (bytes === null) continue;
    searched.files += 1;
    searched.bytes += bytes.length;
    if (entry.name.endsWith("-wal")) searched.logBytes += bytes.length;
    for (const form of texts.flatMap((text) => [text, text.toUpperCase()])) {
      const at = bytes.indexOf(form);
      if (at >= 0) found.push(`${entry.name} at ${at}: ${bytes.subarray(at - 40, at + 40).toString("latin1")}`);
    }
  }
  return found;
}

/** The tables and columns that contain the text. The contents of a word index are in its shadow tables. */
async function columnsWith(agent, text) {
  const sql = (statement) => server.sql(agent, statement);
  const tables = await sql(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name",
  );
  const found = [];
  for (const { name: table } of tables.filter(({ name }) => !name.startsWith("_cf_"))) {
    for (const { name: column } of await sql(`SELECT name FROM pragma_table_info('${table}')`)) {
      const [{ n }] = await sql(
        `SELECT count(*) AS n FROM "${table}" WHERE instr(lower(CAST("${column}" AS TEXT)), '${text}')`,
      );
      if (n > 0) found.push(`${table}.${column}`);
    }
  }
  return found;
}

const text = (of) => `They said ${NEEDLE} of ${of}, and more of it. ${"and so on ".repeat(of.length)}`;

/** Writes the needle by every operation that stores text. Returns the requests that purge it. */
async function fill(agent) {
  await ok(agent, "createSession", { id: "s" });
  await ok(agent, "appendEvents", {
    sessionId: "s",
    events: Array.from({ length: 60 }, (_, n) => ({ action: "user_message", content: `nothing ${n} `.repeat(n) })),
  });
  await ok(agent, "search", { query: "nothing" });
  const appended = await ok(agent, "appendEvents", {
    sessionId: "s",
    events: [
      { action: "user_message", content: text("an event"), metadata: { about: NEEDLE } },
      { action: "tool_call_request", toolCalls: [{ id: "c", name: "t", arguments: { q: NEEDLE } }] },
      { action: "tool_result", toolCallId: "c", toolName: "t", content: text("a result") },
      { action: "agent_message", content: `${"long ".repeat(300_000)}${text("a long event")}` },
    ],
  });
  const ids = appended.events.map(({ id }) => id);
  const url = `data:image/png;base64,${NEEDLE.repeat(3_000)}`;
  for (const variant of ["a message", "a longer message, which takes the place of the first"])
    await ok(agent, "upsertMessage", {
      sessionId: "s",
      message: {
        id: "m",
        role: "user",
        parts: [
          { type: "text", text: text(variant) },
          { type: "file", mediaType: "image/png", url },
        ],
      },
    });
  await ok(agent, "addCompaction", { sessionId: "s", summary: text("a summary"), fromId: ids[0], toId: ids[3] });
  for (const [label, kind] of [
    ["memory", "writable"],
    ["kb", "searchable"],
    ["skills", "loadable"],
  ])
    await ok(agent, "defineBlock", { label, kind, description: text("a block") });
  for (const variant of ["the first", "the second, which is longer"]) {
    await ok(agent, "setBlock", { label: "memory", content: text(variant), reason: NEEDLE });
    for (let n = 0; n < 20; n += 1) {
      await ok(agent, "setEntry", {
        label: "kb",
        key: `other-${n}`,
        content: `something ${n} ${variant}`.repeat(n + 1),
      });
      if (n === 10) await ok(agent, "setEntry", { label: "kb", key: "k", title: NEEDLE, content: text(variant) });
    }
    await ok(agent, "putSkill", { label: "skills", key: "k", description: NEEDLE, content: text(variant) });
    await ok(agent, "loadSkill", { sessionId: "s", label: "skills", key: "k" });
  }
  await ok(agent, "freezePrompt", { sessionId: "s" });
  await ok(agent, "createSession", { id: "named", name: text("a name"), metadata: { about: NEEDLE } });
  await ok(agent, "forkSession", { sessionId: "s" });
  const file = await server.fetch(`/agents/session-agent/${agent}/sessions/s/export`, { headers });
  const imported = await server.fetch(`/agents/session-agent/${agent}/sessions/imported/import`, {
    method: "POST",
    headers,
    body: await file.text(),
  });
  assert.equal(imported.status, 200, await imported.text());
  return ids;
}

test("the_platform_refuses_settings_that_would_clear_pages_automatically", async () => {
  await ok("settings", "createSession", { id: "s" });
  for (const sql of ["PRAGMA secure_delete = ON", "PRAGMA secure_delete", "VACUUM"])
    await assert.rejects(server.sql("settings", sql), /not authorized|SQLITE_AUTH|VACUUM|prohibited/, sql);
});

test("purged_text_leaves_no_byte_in_the_files", async () => {
  const agent = "bytes";
  const ids = await fill(agent);
  assert.notDeepEqual(await filesWith(END), [], "the text was written");
  const columns = await columnsWith(agent, END);
  console.log(`purge: the text stands in ${columns.length} columns: ${columns.join(", ")}`);
  assert.ok(columns.length > 12, columns.join());
  const { sessions } = await ok(agent, "listSessions", {});
  for (const purge of [
    ["deleteEvents", { sessionId: "s", eventIds: ids }],
    ["deleteMessages", { sessionId: "s", messageIds: ["m"] }],
    ["deleteEntry", { label: "kb", key: "k" }],
    ["deleteSkill", { label: "skills", key: "k" }],
    ...["memory", "kb", "skills"].map((label) => ["removeBlock", { label }]),
    ...sessions.filter(({ id }) => id !== "s").map(({ id }) => ["deleteSession", { sessionId: id }]),
  ]) {
    const [operation, input] = purge;
    const purged = await ok(agent, operation, { ...input, purge: true });
    assert.deepEqual(await ok(agent, "verifyReceipt", { receipt: purged }), { valid: true, signed: true }, operation);
  }
  const left = await ok(agent, "findMentions", { query: NEEDLE });
  assert.deepEqual(left, { places: [], cursor: null });
  assert.deepEqual(await columnsWith(agent, END), []);
  await server.kill9();
  assert.deepEqual(await filesWith(END), []);
  await ok(agent, "getStats", {});
  await server.stop();
  assert.deepEqual(await filesWith(END), []);
  server = await startServer(options);
  // Text that was not purged still exists and is found.
  const { body } = await server.call(agent, "search", { query: "nothing 42" }, { headers });
  assert.ok(body.results.length > 0);
  assert.equal((await ok(agent, "loadEvents", { sessionId: "s", limit: 1000 })).length, 60);
});

test("text_erased_by_mentions_leaves_no_byte_in_the_files", async () => {
  const agent = "erased";
  await fill(agent);
  let cursor = null;
  let places = [];
  do {
    const page = await ok(agent, "findMentions", { query: NEEDLE, limit: 100, ...(cursor && { cursor }) });
    places = places.concat(page.places);
    cursor = page.cursor;
  } while (cursor !== null);
  assert.ok(places.length > 12, `${places.length}`);
  await ok(agent, "erase", { places });
  await server.kill9();
  assert.deepEqual(await filesWith(END), []);
});

/** A file of one session with this many events that contain the needle. */
function fileOf(count) {
  const time = Date.now();
  const head = {
    ...{ type: "session", format: 1, id: "s", agentId: "a", name: null, parentSessionId: null, metadata: null },
    ...{ createdAt: time, updatedAt: time, usage: { inputTokens: 0, outputTokens: 0, cost: 0 }, seqFloor: count },
  };
  const event = (n) => ({
    ...{ type: "event", seq: n, id: `e${n}`, parentId: n === 1 ? null : `e${n - 1}`, action: "user_message" },
    ...{ content: `${NEEDLE} ${n} ${"and so on ".repeat(n % 9)}`, createdAt: time, writtenAt: time },
  });
  const lines = [head, ...Array.from({ length: count }, (_, n) => event(n + 1))];
  lines.push({ type: "end", events: count, leafId: null });
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

// The feed reports each event as deleted. Its rows use pages that the purge had just freed.
test("a_purges_own_writes_reuse_no_page_with_the_text", async () => {
  const agent = "imported";
  const path = `/agents/session-agent/${agent}/sessions/s/import`;
  const imported = await server.fetch(path, { method: "POST", headers, body: fileOf(400) });
  assert.equal(imported.status, 200, await imported.text());
  const eventIds = Array.from({ length: 400 }, (_, n) => `e${n + 1}`);
  const { deleted } = await ok(agent, "deleteEvents", { sessionId: "s", eventIds, purge: true });
  assert.equal(deleted, 400);
  assert.deepEqual(await filesWith(END), []);
});

test("receipts_are_correct_after_ordinary_deletions_and_beside_other_purges", async () => {
  const agent = "beside";
  await ok(agent, "defineBlock", { label: "kb", kind: "searchable" });
  const names = [];
  const forget = async (name, isFirstDeleted) => {
    names.push(name);
    const entry = { label: "kb", key: name };
    await ok(agent, "setEntry", { ...entry, title: name, content: `It is ${name}. ${"and so on ".repeat(20)}` });
    if (isFirstDeleted) await ok(agent, "deleteEntry", entry);
    await ok(agent, "deleteEntry", { ...entry, purge: true });
  };
  // One by one: a purge that finds nothing but versions, and one that finds the entry.
  for (let n = 0; n < 6; n += 1) {
    await forget(`alone${n}zyzx`, n % 2 === 0);
    assert.deepEqual(await filesWith(names.at(-1).slice(2)), [], names.at(-1));
  }
  // Four clients at once, after one that finds nothing.
  await ok(agent, "deleteEntry", { label: "kb", key: "none", purge: true });
  const client = async (of) => {
    for (let n = 0; n < 5; n += 1) await forget(`beside${of}zy${n}zx`, (of + n) % 2 === 0);
  };
  await Promise.all([0, 1, 2, 3].map(client));
  assert.deepEqual(await filesWith(...names.map((name) => name.slice(2))), []);
});

test("concurrent_purges_share_a_clearing_and_its_runner_reports_the_rows", async () => {
  const agent = "shared";
  await ok(agent, "createSession", { id: "s" });
  const event = (n) => ({ id: `e${n}`, action: "user_message", content: `What was said as number ${n}.` });
  const events = Array.from({ length: 500 }, (_, n) => event(n));
  await ok(agent, "appendEvents", { sessionId: "s", events });
  const purge = (n) =>
    server.call(agent, "deleteEvents", { sessionId: "s", eventIds: [`e${n}`], purge: true }, { headers });
  const began = performance.now();
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => purge(n)));
  const elapsedMs = performance.now() - began;
  const written = answers.map(({ rowsWritten }) => rowsWritten).sort((a, b) => b - a);
  console.log(`purge: 20 at once in ${elapsedMs.toFixed(0)} ms, rows written: ${written.join(" ")}`);
  for (const { status, body } of answers) assert.deepEqual([status, body.deleted], [200, 1]);
  assert.ok(written[0] > 480, `${written[0]} rows for one clearing`);
  assert.ok(written[4] < 100, "the others pay for their own rows");
});

test("a_token_purges_if_it_has_the_right_and_names_the_operation", async () => {
  const agent = "tokens";
  await ok(agent, "defineBlock", { label: "kb", kind: "searchable" });
  await ok(agent, "setEntry", { label: "kb", key: "k", content: "A fact." });
  const places = [{ kind: "entry", label: "kb", key: "k" }];
  const purges = [
    ["deleteEntry", { label: "kb", key: "k", purge: true }],
    ["erase", { places }],
  ];
  const operations = ["deleteEntry", "erase"];
  for (const [grant, status] of [
    [{ operations }, 403],
    [{ allow: { purge: true } }, 403],
    [{ operations, allow: { purge: true } }, 200],
  ]) {
    const { token } = await ok(agent, "mintToken", { ...grant, expiresIn: 600 });
    for (const [operation, input] of purges) {
      const answer = await server.call(agent, operation, input, { headers: { authorization: `Bearer ${token}` } });
      assert.equal(answer.status, status, `${operation} ${JSON.stringify(grant)} ${JSON.stringify(answer.body)}`);
    }
  }
});

test("a_crash_during_a_purge_leaves_it_complete_or_not_started", async () => {
  const agent = "killed";
  await ok(agent, "createSession", { id: "s" });
  await ok(agent, "search", { query: "anything" });
  await ok(agent, "defineBlock", { label: "kb", kind: "searchable" });
  const acknowledged = new Set();
  /** The requested purges, by their texts' names. */
  const requested = new Map();
  let number = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    let alive = true;
    const worker = async () => {
      while (alive) {
        const name = `needle${(number += 1)}x`;
        const ids = [0, 1, 2].map((n) => `${name}-${n}`);
        try {
          const events = ids.map((id) => ({ id, action: "user_message", content: `It is ${name}.` }));
          await server.call(agent, "appendEvents", { sessionId: "s", events }, { headers });
          for (const version of [1, 2]) {
            const entry = { label: "kb", key: name, content: `Version ${version} of ${name}.` };
            await server.call(agent, "setEntry", entry, { headers });
          }
          const purges =
            number % 2 === 0
              ? [
                  ["deleteEvents", { sessionId: "s", eventIds: ids, purge: true }],
                  ["deleteEntry", { label: "kb", key: name, purge: true }],
                ]
              : [
                  [
                    "erase",
                    {
                      places: [
                        ...ids.map((id) => ({ kind: "event", sessionId: "s", id })),
                        { kind: "entry", label: "kb", key: name },
                      ],
                    },
                  ],
                ];
          requested.set(name, purges);
          let status = 200;
          for (const [operation, input] of purges)
            status = Math.max(status, (await server.call(agent, operation, input, { headers })).status);
          if (status === 200) acknowledged.add(name);
        } catch {
          return;
        }
      }
    };
    const workers = Array.from({ length: 3 }, worker);
    const before = acknowledged.size;
    await pause(30 + 41 * kill);
    while (acknowledged.size < before + 2) await pause(1);
    const killed = server.kill9();
    alive = false;
    await Promise.all([killed, ...workers]);
  }
  assert.ok(acknowledged.size >= 2 * KILLS, `${acknowledged.size} purges were acknowledged`);

  const events = await ok(agent, "loadEvents", { sessionId: "s", limit: 1000 });
  const entries = await ok(agent, "listEntries", { label: "kb", limit: 200 });
  for (const name of requested.keys()) {
    const left = events.filter(({ content }) => content.includes(name)).length;
    const entry = entries.entries.find(({ key }) => key === name);
    const { versions } = await ok(agent, "getBlockVersions", { label: "kb", key: name });
    const found = await ok(agent, "findMentions", { query: name });
    if (acknowledged.has(name)) {
      assert.deepEqual([left, entry, versions, found.places], [0, undefined, [], []], name);
    } else {
      assert.ok(left === 0 || left === 3, `${name}: ${left} events`);
      assert.equal(versions.length, entry === undefined ? 0 : 2, name);
    }
  }
  // The index is unchanged, and no table of zeros remains after another purge.
  const name = [...acknowledged].at(-1);
  const { body } = await server.call(agent, "search", { query: name }, { headers });
  assert.deepEqual(body.results, []);
  await ok(agent, "deleteEntry", { label: "kb", key: "none", purge: true });
  const tables = await server.sql(agent, "SELECT name FROM sqlite_master WHERE name GLOB 'cf_agents_zeros*'");
  assert.deepEqual(tables, []);
  // Purges without an answer are requested again. A purge that was interrupted after its
  // transaction finds no rows, and clears their bytes.
  for (const [name, purges] of requested)
    if (!acknowledged.has(name)) for (const [operation, input] of purges) await ok(agent, operation, input);
  const texts = [...requested.keys()].flatMap((name) => [`It is ${name}.`, ` of ${name}.`]);
  assert.deepEqual(await filesWith(...texts), []);
});
