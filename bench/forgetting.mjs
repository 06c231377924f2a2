// The cost of retention, backups and erasure in the runtime: retention on a long history, the
// export of a large agent, and erasing a person from a long history. Then the runtime is killed in
// the middle of each, at random points, and the states found afterwards are counted.
//
//   npm run bench -- forgetting                 all of it
//   PARTS=retention,kills KILLS=100 npm run …   some of it
//
// EVENTS, MIB and KILLS set the sizes. A run updates its parts of bench/results/forgetting.md if
// they have their full size, and leaves the other parts unchanged.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { startServer } from "../tests/workerd/harness.mjs";
import { machine, report } from "./frame/report.mjs";

const PARTS = (process.env.PARTS ?? "retention,whole,mentions,kills").split(",");
const FULL_SIZE = { events: 1_000_000, mib: 300, kills: 100 };
const EVENTS = Number(process.env.EVENTS ?? FULL_SIZE.events);
const MIB = Number(process.env.MIB ?? FULL_SIZE.mib);
const KILLS = Number(process.env.KILLS ?? FULL_SIZE.kills);
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const DAY_MS = 86_400_000;
const MAX_WAITING_MS = 30 * 60_000;

const storage = await mkdtemp(join(tmpdir(), "session-agent-forgetting-"));
const server = await startServer({ storage });

/** The output lines of the current part. */
let printed = [];

function print(line) {
  console.log(line);
  printed.push(line);
}

async function ok(agent, operation, input) {
  const { status, body, ...costs } = await server.call(agent, operation, input);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body).slice(0, 300)}`);
  return { ...costs, body };
}

const at = (agent, what) => `/agents/session-agent/${encodeURIComponent(agent)}/${what}`;

/** A file of one session, as a stream: `count` events that are this many days old. */
function fileOf({ id, count, days, text }) {
  const time = Date.now() - days * DAY_MS;
  const head = {
    ...{ type: "session", format: 1, id, agentId: "a", name: null, parentSessionId: null, metadata: null },
    ...{ createdAt: time, updatedAt: time, usage: { inputTokens: 0, outputTokens: 0, cost: 0 }, seqFloor: count },
  };
  const event = (n) => ({
    ...{ type: "event", seq: n, id: `e${n}`, parentId: n === 1 ? null : `e${n - 1}`, action: "user_message" },
    ...{ content: text(n), createdAt: time, writtenAt: time },
  });
  let next = 0;
  const pull = (controller) => {
    const lines = [];
    if (next === 0) lines.push(head);
    for (let n = 0; n < 500 && next < count; n += 1) lines.push(event((next += 1)));
    if (next === count) lines.push({ type: "end", events: count, leafId: null });
    controller.enqueue(Buffer.from(`${lines.map((line) => JSON.stringify(line)).join("\n")}\n`));
    if (next === count) controller.close();
  };
  return new ReadableStream({ pull });
}

async function importSession(agent, file) {
  const path = at(agent, `sessions/${file.id}/import`);
  const response = await server.fetch(path, { method: "POST", body: fileOf(file), duplex: "half" });
  assert.equal(response.status, 200, await response.clone().text());
}

const count = async (agent, where = "1") =>
  (await server.sql(agent, `SELECT count(*) AS n FROM cf_agents_events WHERE ${where}`))[0].n;

/** The duration of the work in seconds. */
async function timed(work) {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}

/**
 * Sends requests periodically while the work continues. Returns their number and the longest
 * response time.
 */
async function requestDuring(agent, isOver) {
  let [requests, longest] = [0, 0];
  for (const began = performance.now(); performance.now() - began < MAX_WAITING_MS; await pause(20)) {
    const took = await timed(() => ok(agent, "getSession", { sessionId: "young" }));
    longest = Math.max(longest, took * 1000);
    requests += 1;
    if (requests % 10 === 0 && (await isOver())) return { requests, longest };
  }
  throw new Error("it did not end");
}

async function retention() {
  const agent = "retention";
  const written = await timed(() =>
    importSession(agent, { id: "old", count: EVENTS, days: 40, text: (n) => `What was said as number ${n}.` }),
  );
  await ok(agent, "createSession", { id: "young" });
  await ok(agent, "appendEvents", { sessionId: "young", events: [{ action: "user_message", content: "young" }] });
  print(`- ${EVENTS} events of one session, imported in ${written.toFixed(0)} s`);
  const dry = await ok(agent, "applyRetention", { dryRun: true, retention: { eventsDays: 30 } });
  print(
    `- dry run: at least ${dry.body.gone.events.count} events, ${dry.rowsRead} rows read, ${dry.rowsWritten} written`,
  );
  let seen;
  const cost = await server.metered(agent, async () => {
    await ok(agent, "configureAgent", { retention: { eventsDays: 30 } });
    const took = await timed(async () => {
      seen = await requestDuring(
        agent,
        async () => (await ok(agent, "applyRetention", { dryRun: true })).body.lastRun !== null,
      );
    });
    print(
      `- the run: ${took.toFixed(0)} s; ${seen.requests} requests meanwhile, the longest ${seen.longest.toFixed(0)} ms`,
    );
  });
  const { lastRun } = (await ok(agent, "applyRetention", { dryRun: true })).body;
  print(`- ${lastRun.steps} steps, ${lastRun.gone.events.count} events gone, ${await count(agent)} left`);
  print(`- rows of the run and of the requests: ${cost.read} read, ${cost.written} written`);
  await ok(agent, "destroy", { confirm: agent });
}

async function whole() {
  const agent = "large";
  const each = 1000;
  const sessions = Math.ceil((MIB * 2 ** 20) / (each * 1050));
  for (let n = 0; n < sessions; n += 1) {
    const text = (m) => `${n} ${m} ${"All that was said, and more of it. ".repeat(27)}`;
    await importSession(agent, { id: `s${n}`, count: each, days: 1, text });
  }
  await ok(agent, "defineBlock", { label: "facts", kind: "searchable" });
  await ok(agent, "setEntry", { label: "facts", key: "k", content: "A fact." });
  const { databaseBytes } = (await ok(agent, "getStats", {})).body;
  print(`- ${sessions} sessions of ${each} events, a database of ${mib(databaseBytes)} MiB`);
  const hash = async (name) => {
    const { createHash } = await import("node:crypto");
    const digest = createHash("sha256");
    let bytes = 0;
    const response = await server.fetch(at(name, "export"));
    for await (const piece of response.body) {
      digest.update(piece);
      bytes += piece.length;
    }
    return { bytes, digest: digest.digest("hex") };
  };
  let [first, body, took] = [];
  let memory = await withMemory(async () => (took = await timed(async () => (first = await hash(agent)))));
  print(`- export: ${mib(first.bytes)} MiB in ${took.toFixed(1)} s; ${memory}`);
  memory = await withMemory(async () => (took = await timed(async () => ({ body } = await ok(agent, "backup", {})))));
  print(`- backup: ${mib(body.bytes)} MiB in ${took.toFixed(1)} s; ${memory}`);
  const restore = { key: body.key, allowSources: true };
  memory = await withMemory(async () => (took = await timed(() => ok("large again", "restoreBackup", restore))));
  print(`- restore: ${took.toFixed(1)} s; ${memory}`);
  const again = await hash("large again");
  assert.deepEqual(again, first);
  print("- exported again, it is the same to the byte");
  for (const name of [agent, "large again"]) await ok(name, "destroy", { confirm: name });
}

const mib = (bytes) => (bytes / 2 ** 20).toFixed(0);

/** The runtime's memory during the work, all isolates together. */
async function withMemory(work) {
  await server.peakMemory();
  const before = await server.memory();
  await work();
  const peak = await server.peakMemory();
  return peak === null ? "memory not reported" : `memory ${mib(before)} MiB before, ${mib(peak)} MiB at most`;
}

async function mentions() {
  const agent = "person";
  const length = Math.min(EVENTS, 100_000);
  const text = (n) => (n % 500 === 0 ? `Anna Smith called about number ${n}.` : `Somebody called about number ${n}.`);
  await importSession(agent, { id: "calls", count: length, days: 1, text });
  const places = [];
  let [requests, longest, rows] = [0, 0, 0];
  const find = async () => {
    for (let cursor = null; ; ) {
      const began = performance.now();
      const page = await ok(agent, "findMentions", { query: "anna smith", limit: 100, ...(cursor && { cursor }) });
      longest = Math.max(longest, performance.now() - began);
      rows = Math.max(rows, page.rowsRead);
      requests += 1;
      places.push(...page.body.places);
      ({ cursor } = page.body);
      if (cursor === null) return;
    }
  };
  let took;
  const memory = await withMemory(async () => (took = await timed(find)));
  print(`- ${places.length} places in ${length} events`);
  print(
    `- found by ${requests} requests in ${took.toFixed(1)} s, the longest ${longest.toFixed(0)} ms and ${rows} rows; ${memory}`,
  );
  let erased = 0;
  longest = 0;
  const erase = async () => {
    for (let from = 0; from < places.length; from += 100) {
      const part = places.slice(from, from + 100).map(({ snippet: _, ...place }) => place);
      const began = performance.now();
      const { body } = await ok(agent, "erase", { places: part });
      longest = Math.max(longest, performance.now() - began);
      erased += body.erased.events;
    }
  };
  const memoryOfErase = await withMemory(erase);
  print(`- erased ${erased} events, the longest request ${longest.toFixed(0)} ms; ${memoryOfErase}`);
  assert.deepEqual((await ok(agent, "findMentions", { query: "anna smith" })).body.places, []);
  await ok(agent, "destroy", { confirm: agent });
}

/** Random numbers determined by the seed. */
let state = SEED * 2_654_435_761;
function roll(sides) {
  state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
  return Math.floor((state / 2_147_483_648) * sides);
}

const NEEDLE = "zanzibarquux";

/** Whether any file of the database contains the text. */
async function isInFiles() {
  for (const entry of await readdir(storage, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.sqlite(-wal)?$/.test(entry.name)) continue;
    if ((await readFile(join(entry.parentPath, entry.name))).includes(NEEDLE)) return true;
  }
  return false;
}

const textOf = (n) => `They said ${NEEDLE} as number ${n}. ${"And so on. ".repeat(n % 9)}`;

/**
 * Each scenario of a kill: the initial state, the operation that is killed, and what must hold
 * afterwards.
 */
const WAYS = {
  async purge(agent) {
    await importSession(agent, { id: "s", count: 400, days: 1, text: textOf });
    const { body } = await ok(agent, "loadEvents", { sessionId: "s", limit: 400 });
    const input = { sessionId: "s", eventIds: body.map(({ id }) => id), purge: true };
    return {
      work: () => server.call(agent, "deleteEvents", input),
      async check() {
        const left = await count(agent);
        assert.ok(left === 0 || left === 400, `${left} of 400 events are left`);
        await ok(agent, "deleteEvents", input);
        assert.equal(await isInFiles(), false, "bytes of the text are left");
        return left === 0 ? "done" : "not begun";
      },
    };
  },
  async erase(agent) {
    await importSession(agent, { id: "s", count: 90, days: 1, text: textOf });
    await ok(agent, "defineBlock", { label: "kb", kind: "searchable" });
    for (let n = 0; n < 9; n += 1) await ok(agent, "setEntry", { label: "kb", key: `k${n}`, content: textOf(n) });
    const find = async () => (await ok(agent, "findMentions", { query: NEEDLE, limit: 100 })).body.places;
    const places = (await find()).map(({ snippet: _, ...place }) => place);
    return {
      work: () => server.call(agent, "erase", { places }),
      async check() {
        const left = await find();
        assert.ok(left.length === 0 || left.length === places.length, `${left.length} of ${places.length} are left`);
        await ok(agent, "erase", { places });
        assert.deepEqual(await find(), []);
        assert.equal(await isInFiles(), false, "bytes of the text are left");
        return left.length === 0 ? "done" : "not begun";
      },
    };
  },
  async retention(agent) {
    await importSession(agent, { id: "s", count: 4_000, days: 40, text: (n) => `old ${n}` });
    await ok(agent, "appendEvents", { sessionId: "s", events: [{ action: "user_message", content: "young" }] });
    return {
      work: () => server.call(agent, "configureAgent", { retention: { eventsDays: 30 } }),
      lasts: 600,
      async check() {
        const left = (await count(agent)) - 1;
        assert.equal(await count(agent, "content = 'young'"), 1);
        await ok(agent, "configureAgent", { retention: { eventsDays: 30 } });
        for (const began = Date.now(); (await count(agent)) !== 1; await pause(50))
          assert.ok(Date.now() - began < 60_000, "the alarm does not go on");
        return left === 4_000 ? "not begun" : left === 0 ? "done" : "in between, and went on";
      },
    };
  },
  async backup(agent) {
    await importSession(agent, { id: "s", count: 8_000, days: 1, text: (n) => `${n} ${"kept ".repeat(200)}` });
    return {
      work: () => server.call(agent, "backup", {}),
      async check() {
        const { backups } = (await ok(agent, "listBackups", {})).body;
        const file = await (await server.fetch(at(agent, "export"))).text();
        for (const { bytes } of backups) assert.equal(bytes, Buffer.byteLength(file), "half a backup is in the bucket");
        const { key } = (await ok(agent, "backup", {})).body;
        await ok(`${agent} again`, "restoreBackup", { key });
        assert.equal(await (await server.fetch(at(`${agent} again`, "export"))).text(), file);
        await ok(`${agent} again`, "destroy", { confirm: `${agent} again` });
        return backups.length === 0 ? "not begun" : "done";
      },
    };
  },
  async restore(agent) {
    for (const id of ["s", "t"])
      await importSession(agent, { id, count: 3_000, days: 1, text: (n) => `${n} ${"kept ".repeat(100)}` });
    const { key } = (await ok(agent, "backup", {})).body;
    const file = await (await server.fetch(at(agent, "export"))).text();
    const to = `${agent} again`;
    return {
      work: () => server.call(to, "restoreBackup", { key }),
      async check() {
        const { sessions } = (await ok(to, "listSessions", {})).body;
        for (const { id } of sessions) {
          const { length } = (await ok(to, "getPathLength", { sessionId: id })).body;
          assert.equal(length, 3_000, "half a session is seen");
        }
        await ok(to, "restoreBackup", { key });
        assert.equal(await (await server.fetch(at(to, "export"))).text(), file);
        await ok(to, "destroy", { confirm: to });
        return ["not begun", "in between, and went on", "done"][sessions.length];
      },
    };
  },
};

/** The duration of this scenario's work, so that kills are spread over all of it. */
async function durationOf(way) {
  const agent = `${way} measured`;
  const { work } = await WAYS[way](agent);
  const took = await timed(work);
  for (const name of [agent, `${agent} again`]) await ok(name, "destroy", { confirm: name });
  return took * 1000 * 1.1;
}

async function kills() {
  const found = {};
  const lasting = {};
  const names = Object.keys(WAYS);
  for (let n = 0; n < KILLS; n += 1) {
    const way = names[n % names.length];
    const agent = `${way} ${n}`;
    lasting[way] ??= await durationOf(way);
    const { work, check, lasts = lasting[way] } = await WAYS[way](agent);
    const interrupted = work().catch(() => null);
    await pause(roll(lasts));
    await server.kill9();
    await interrupted;
    let outcome;
    try {
      outcome = await check();
    } catch (error) {
      outcome = `WRONG: ${error.message}`;
    }
    found[way] ??= {};
    found[way][outcome] = (found[way][outcome] ?? 0) + 1;
    if ((n + 1) % 10 === 0) console.error(`${n + 1} of ${KILLS}: ${JSON.stringify(found)}`);
    await ok(agent, "destroy", { confirm: agent });
  }
  print(`- ${KILLS} of kill -9 at random points, seed ${SEED}`);
  for (const [way, outcomes] of Object.entries(found))
    print(
      `- ${way}: ${Object.entries(outcomes)
        .map(([outcome, times]) => `${outcome} ${times}`)
        .join(", ")}`,
    );
  assert.doesNotMatch(JSON.stringify(found), /WRONG/);
}

const RESULTS = new URL("results/forgetting.md", import.meta.url);
const BENCHES = {
  retention: [retention, "Retention", EVENTS >= FULL_SIZE.events],
  whole: [whole, "A whole agent out and in", MIB >= FULL_SIZE.mib],
  mentions: [mentions, "A person found and erased", EVENTS >= 100_000],
  kills: [kills, "Killed on the way", KILLS >= FULL_SIZE.kills],
};

/** The parts of the file that earlier runs wrote: their lines by heading. */
function writtenBefore() {
  if (!existsSync(RESULTS)) return new Map();
  const [, ...parts] = readFileSync(RESULTS, "utf8").split("\n## ");
  return new Map(parts.map((part) => part.split("\n\n")).map(([heading, lines]) => [heading, lines.trim()]));
}

try {
  for (const part of PARTS) {
    const [run, heading, isFullSize] = BENCHES[part];
    printed = [];
    await run();
    if (!isFullSize) continue;
    const parts = writtenBefore().set(heading, printed.join("\n"));
    const lines = Object.values(BENCHES).flatMap(([, name]) =>
      parts.has(name) ? ["", `## ${name}`, "", parts.get(name)] : [],
    );
    await report("forgetting", ["# Forgetting, keeping, moving", "", machine(), ...lines]);
  }
} finally {
  await server.stop();
  await rm(storage, { recursive: true, force: true });
}
