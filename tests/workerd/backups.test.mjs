// Backups of an agent on the real runtime: the scheduled backup by alarm, a restore from the
// bucket, and the error where the platform has no point-in-time recovery.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startServer } from "./harness.mjs";

const server = await startServer();
after(() => server.stop());

const at = (agent, what) => `/agents/session-agent/${encodeURIComponent(agent)}/${what}`;

async function ok(agent, operation, input = {}) {
  const { status, body } = await server.call(agent, operation, input);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

async function until(ask, isRight) {
  for (let left = 400; left > 0; left -= 1) {
    const answer = await ask();
    if (isRight(answer)) return answer;
    await pause(50);
  }
  assert.fail("it did not come");
}

const fileOf = async (agent) => await (await server.fetch(at(agent, "export"))).text();

async function createAgent(agent, sessionId = "s") {
  await ok(agent, "createSession", { id: sessionId });
  const events = Array.from({ length: 1000 }, (_, n) => ({
    action: "user_message",
    content: `${n} ${"said ".repeat(300)}`,
  }));
  for (let n = 0; n < 6; n += 1) await ok(agent, "appendEvents", { sessionId, events });
}

test("a_schedule_backs_up_by_alarm_even_after_an_eviction", async () => {
  await createAgent("planned");
  await ok("planned", "configureAgent", { backups: { everyHours: 24, keep: 2 } });
  const list = () => ok("planned", "listBackups");
  const { nextAt } = await until(list, ({ backups, nextAt }) => backups.length === 1 && nextAt > Date.now());
  assert.ok(nextAt > Date.now() + 23 * 3_600_000);
  // The next one is due while the object sleeps: a request wakes it.
  for (const count of [2, 2]) {
    await server.sql(
      "planned",
      "UPDATE cf_agents_config SET value = json_set(value, '$.nextAt', 1) WHERE key = 'backups'",
    );
    await server.evict("planned");
    await ok("planned", "getSession", { sessionId: "s" });
    await until(list, ({ backups, nextAt }) => backups.length === count && nextAt > Date.now());
  }
});

test("a_multipart_backup_is_restored_byte_for_byte_into_an_empty_agent_only", async () => {
  await createAgent("large");
  const { key, bytes } = await ok("large", "backup");
  assert.ok(bytes > 8 * 2 ** 20, `${bytes}`);
  assert.deepEqual(await ok("large again", "restoreBackup", { key }), {
    ...{ sessions: 1, imported: 1, skipped: 0, events: 6000 },
  });
  assert.equal(await fileOf("large again"), await fileOf("large"));
  await ok("full", "configureAgent", { maxSteps: 3 });
  const refused = await server.call("full", "restoreBackup", { key });
  assert.deepEqual([refused.status, refused.body.error?.code], [409, "already_exists"]);
  const unknown = await server.call("nobody", "restoreBackup", { key: "nobody/000000000000001.ndjson" });
  assert.deepEqual([unknown.status, unknown.body.error.details], [400, { field: "key" }]);
});

test("two_restores_of_one_backup_are_one_that_outlives_its_caller", async () => {
  for (const sessionId of ["s", "t", "u"]) await createAgent("long", sessionId);
  const { key } = await ok("long", "backup");
  const restored = { sessions: 3, imported: 3, skipped: 0, events: 18_000 };
  const begin = (agent, signal) =>
    server.fetch(at(agent, "rpc/restoreBackup"), { method: "POST", body: JSON.stringify({ key }), signal });
  // Neither restore deletes the session that the other one writes. On a busy machine, one may start
  // after the other has finished, and finds all sessions restored. Concurrent ones get the same
  // answer, so a few tries suffice for all to do so.
  const late = { ...restored, imported: 0, skipped: 3 };
  const tries = ["both", "both-2", "both-3", "both-4"];
  for (const [at, agent] of tries.entries()) {
    const answers = await Promise.all([1, 2, 3].map(async () => (await begin(agent)).json()));
    assert.equal(await fileOf(agent), await fileOf("long"));
    for (const answer of answers) assert.deepEqual(answer, answer.imported === 3 ? restored : late);
    if (answers.every(({ imported }) => imported === 3)) break;
    assert.ok(at < tries.length - 1, "in no try did all get one answer");
  }
  const given = new AbortController();
  const started = begin("alone", given.signal).catch(({ name }) => name);
  await pause(300);
  given.abort();
  console.log(`copies: the caller gave up: ${(await started) === "AbortError"}`);
  const since = Date.now();
  await until(
    () => ok("alone", "listSessions"),
    ({ sessions }) => sessions.length === 3,
  );
  console.log(`copies: the rest took ${Date.now() - since} ms`);
  assert.deepEqual(await ok("alone", "restoreBackup", { key }), late);
});

test("a_local_runtime_reports_that_it_has_no_point_in_time_recovery", async () => {
  await ok("local", "createSession", { id: "s" });
  for (const [operation, input] of [
    ["getBookmark", {}],
    ["getBookmark", { at: Date.now() - 60_000 }],
    ["restoreBookmark", { bookmark: "0000007b-0000b26e", confirm: "local" }],
  ]) {
    const { status, body } = await server.call("local", operation, input);
    assert.deepEqual([status, body.error?.code], [501, "not_configured"], JSON.stringify(body));
    assert.match(body.error.message, /no point-in-time recovery/);
  }
  assert.equal((await ok("local", "getSession", { sessionId: "s" })).id, "s");
});
