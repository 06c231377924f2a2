// The directory of agents in a Worker that binds it: what it lists, who may read it, and what it
// contains after the runtime was killed between an agent and its directory shard.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { startServer } from "./harness.mjs";

const CLI = join(import.meta.dirname, "../../packages/session-agent/bin/session-agent.mjs");
const execute = promisify(execFile);

const SECRET = "the secret of this directory, long enough";
const AUTHORIZED = { authorization: `Bearer ${SECRET}` };

/** After 10 s, an agent's alarm checks whether the directory lists the agent. */
const RELISTED_MS = 40_000;

let server;
before(async () => {
  server = await startServer({ directory: true, vars: {}, secrets: { SESSION_AGENT_TOKEN: SECRET } });
});
after(() => server.stop());

async function list(query = "", headers = AUTHORIZED) {
  const response = await server.fetch(`/agents/session-agent${query}`, { headers });
  return { status: response.status, body: await response.json() };
}

async function names(prefix) {
  const { status, body } = await list(`?prefix=${encodeURIComponent(prefix)}&limit=1000`);
  assert.equal(status, 200, JSON.stringify(body));
  return body.agents.map(({ name }) => name);
}

async function ok(agent, operation, input) {
  const { status, body } = await server.call(agent, operation, input, { headers: AUTHORIZED });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

test("an_agent_is_listed_from_first_use_to_destruction", async () => {
  // Reading the list creates no agent.
  await ok("life:nobody", "listSessions", {});
  for (const name of ["life:b", "life:a", "life"]) await ok(name, "createSession", { id: "s" });
  assert.deepEqual(await names("life"), ["life", "life:a", "life:b"]);
  assert.deepEqual(await names("life:"), ["life:a", "life:b"]);
  const first = await list("?prefix=life&limit=2");
  assert.equal(first.body.agents.length, 2);
  const second = await list(`?prefix=life&limit=2&cursor=${encodeURIComponent(first.body.cursor)}`);
  assert.deepEqual(
    second.body.agents.map(({ name }) => name),
    ["life:b"],
  );
  assert.equal(second.body.cursor, null);
  const { agents } = await ok("life:a", "listAgents", { prefix: "life:" });
  assert.deepEqual(
    agents.map(({ name }) => name),
    ["life:a", "life:b"],
  );
  assert.deepEqual(await ok("life:a", "destroy", { confirm: "life:a" }), { destroyed: true });
  assert.deepEqual(await names("life"), ["life", "life:b"]);
  // After it is recreated, it is listed again.
  await ok("life:a", "createSession", { id: "s" });
  assert.deepEqual(await names("life:"), ["life:a", "life:b"]);
});

test("a_prefix_without_agents_has_an_empty_result", async () => {
  const long = "x".repeat(200);
  const odd = ["none", "none:", ":", "..:", "%2F:", "a/b:", "?:", "#", "ä:", "👧:", "\u0000:", long, `${long}:`];
  for (const prefix of odd) {
    assert.deepEqual(await names(prefix), [], prefix);
    assert.deepEqual(await ok("asked", "listAgents", { prefix }), { agents: [], cursor: null }, prefix);
    const found = await ok("asked", "searchAgents", { prefix, query: "x" });
    assert.deepEqual([found.results, found.agents, found.failed], [[], [], []], prefix);
    const erased = await ok("asked", "eraseAgents", { prefix, confirm: prefix });
    assert.deepEqual([erased.agents, erased.failed, erased.more], [[], [], false], prefix);
  }
});

test("a_second_write_writes_no_directory_row", async () => {
  await ok("rows:a", "createSession", { id: "s" });
  const event = { action: "user_message", content: "One row." };
  const input = { sessionId: "s", events: [event] };
  const { rowsWritten } = await server.call("rows:a", "appendEvents", input, { headers: AUTHORIZED });
  assert.equal(rowsWritten, 1);
});

test("only_the_secret_lists_agents", async () => {
  await ok("who:a", "createSession", { id: "s" });
  const { token } = await ok("who:a", "mintToken", { expiresIn: 60 });
  const scoped = { authorization: `Bearer ${token}` };
  assert.equal((await list("?prefix=who:", {})).status, 401);
  const refused = await list("?prefix=who:", scoped);
  assert.deepEqual([refused.status, refused.body.error.code], [403, "forbidden"]);
  for (const [operation, input] of Object.entries({
    listAgents: {},
    searchAgents: { prefix: "who:", query: "x" },
    eraseAgents: { prefix: "who:", confirm: "who:" },
  })) {
    const { status, body } = await server.call("who:a", operation, input, { headers: scoped });
    assert.deepEqual([status, body.error.code], [403, "forbidden"], operation);
  }
  assert.deepEqual(await names("who:"), ["who:a"]);
});

test("only_the_agents_of_one_user_are_searched_and_erased", async () => {
  for (const name of ["u:42", "u:42:a", "u:42:b", "u:420", "u:43:a"]) {
    await ok(name, "createSession", { id: "s" });
    const event = { action: "user_message", content: `I like window seats, says ${name}.` };
    await ok(name, "appendEvents", { sessionId: "s", events: [event] });
  }
  const found = await ok("u:43:a", "searchAgents", { prefix: "u:42:", query: "window seats" });
  assert.deepEqual(found.results.map(({ agent }) => agent).sort(), ["u:42:a", "u:42:b"]);
  assert.deepEqual([found.agents, found.failed, found.more], [["u:42:a", "u:42:b"], [], false]);
  const erased = await ok("u:42:a", "eraseAgents", { prefix: "u:42:", confirm: "u:42:" });
  assert.deepEqual(
    erased.agents.map(({ agent, erased }) => [agent, erased.sessions, erased.events]),
    [
      ["u:42:b", 1, 1],
      ["u:42", 1, 1],
      ["u:42:a", 1, 1],
    ],
  );
  const { valid, signed } = await ok("u:43:a", "verifyReceipt", {
    receipt: Object.fromEntries(Object.entries(erased.agents[0]).filter(([name]) => name !== "destroyed")),
  });
  assert.deepEqual([valid, signed], [true, true]);
  assert.deepEqual(await names("u:"), ["u:420", "u:43:a"]);
  for (const name of ["u:42", "u:42:a", "u:42:b"]) {
    assert.deepEqual((await ok(name, "listSessions", {})).sessions, []);
  }
  assert.equal((await ok("u:420", "getSession", { sessionId: "s" })).id, "s");
});

test("the_command_line_lists_agents_and_erases_them_with_receipts", async () => {
  const session = { env: { ...process.env, SESSION_AGENT_TOKEN: SECRET } };
  const run = async (...args) => {
    const ended = await execute(process.execPath, [CLI, ...args, "--url", server.url], session).catch((error) => error);
    const lines = ended.stdout.split("\n").filter((line) => line !== "");
    return { lines: lines.map((line) => JSON.parse(line)), stderr: ended.stderr, code: ended.code ?? 0 };
  };
  for (const name of ["cli:1:a", "cli:1:b", "cli:2:a"]) await ok(name, "createSession", { id: "s" });
  const listed = await run("agents", "cli:1:");
  assert.deepEqual(
    listed.lines.map(({ name }) => name),
    ["cli:1:a", "cli:1:b"],
  );
  const refused = await run("erase", "cli:1:");
  assert.deepEqual([refused.code, refused.lines], [1, []]);
  assert.match(refused.stderr, /Nothing was destroyed\..*--confirm cli:1:/);
  const erased = await run("erase", "cli:1:", "--confirm", "cli:1:");
  assert.equal(erased.code, 0, erased.stderr);
  const [{ receipt }, ...each] = erased.lines.reverse();
  assert.deepEqual(each.map(({ agent }) => agent).sort(), ["cli:1:a", "cli:1:b"]);
  assert.ok([receipt, ...each].every(({ signature }) => typeof signature === "string"));
  assert.deepEqual([receipt.agents, receipt.erased.sessions], [{ prefix: "cli:1:", count: 2 }, 2]);
  assert.deepEqual(await ok("operator", "verifyReceipt", { receipt }), { valid: true, signed: true });
  assert.deepEqual(await names("cli:"), ["cli:2:a"]);
  // The agent that receives the request stays unused.
  assert.deepEqual(await names("operator"), []);
  const backup = await run("backup", "cli:2:a", "--keep", "2");
  assert.equal(backup.code, 0, backup.stderr);
  assert.equal(backup.lines.length, 1);
  const restored = await run("restore", "cli:4", "--from", backup.lines[0].key);
  assert.deepEqual([restored.code, restored.lines[0]?.sessions], [0, 1], restored.stderr);
  assert.deepEqual(await names("cli:4"), ["cli:4"]);
  const again = await run("restore", "cli:2:a");
  assert.deepEqual([again.code, again.lines[0]?.imported], [0, 0], again.stderr);
  assert.match((await run("restore", "cli:5")).stderr, /has no backup/);
  assert.match((await run("backup", "cli:2:a", "--from", "x")).stderr, /Usage/);
  assert.match((await run("erase")).stderr, /Usage/);
});

test("a_crash_leaves_the_list_stale_no_longer_than_an_alarm", { timeout: 180_000 }, async () => {
  const created = new Set();
  const deleted = new Set();
  let sent = 0;
  for (let kill = 0; kill < 4; kill += 1) {
    let alive = true;
    const createAgents = async () => {
      while (alive) {
        const name = `k:${(sent += 1)}`;
        try {
          await ok(name, "createSession", { id: "s" });
          created.add(name);
          if (sent % 3 > 0) continue;
          created.delete(name);
          await ok(name, "destroy", { confirm: name });
          deleted.add(name);
        } catch {
          return;
        }
      }
    };
    const creators = Array.from({ length: 4 }, createAgents);
    const before = created.size;
    await pause(60 + 40 * kill);
    while (created.size < before + 3) await pause(1);
    const killed = server.kill9();
    alive = false;
    await Promise.all([killed, ...creators]);
  }
  assert.ok(created.size > 10 && deleted.size > 3, `${created.size} created, ${deleted.size} deleted`);
  // No request reaches the agents; their alarms do it.
  const began = Date.now();
  let missing;
  do {
    await pause(500);
    const listed = new Set(await names("k:"));
    missing = [...created].filter((name) => !listed.has(name));
    assert.deepEqual(
      [...deleted].filter((name) => listed.has(name)),
      [],
      "destroyed, and listed",
    );
  } while (missing.length > 0 && Date.now() - began < RELISTED_MS);
  assert.deepEqual(missing, []);
});

test("without_the_binding_there_is_no_list", async () => {
  const bare = await startServer();
  try {
    const response = await bare.fetch("/agents/session-agent?prefix=a");
    assert.equal(response.status, 501);
    const { error } = await response.json();
    assert.deepEqual([error.code, error.details], ["not_configured", { binding: "DIRECTORY" }]);
  } finally {
    await bare.stop();
  }
});
