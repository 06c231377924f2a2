import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { withLock } from "../../scripts/lock.mjs";

const folder = mkdtempSync(join(tmpdir(), "session-agent-lock-"));
after(() => rmSync(folder, { recursive: true }));
const never = () => assert.fail("nobody else holds it");

test("two_processes_take_turns", async () => {
  const file = join(folder, "turns");
  const inside = [];
  const work = (name) => async () => {
    inside.push(`${name} in`);
    await new Promise((resolve) => setImmediate(resolve));
    inside.push(`${name} out`);
  };
  await Promise.all([withLock(file, () => {}, work("a")), withLock(file, () => {}, work("b"))]);
  const [first, second] = inside[0] === "a in" ? ["a", "b"] : ["b", "a"];
  assert.deepEqual(inside, [`${first} in`, `${first} out`, `${second} in`, `${second} out`]);
});

test("a_lock_of_a_killed_process_is_taken_over", async () => {
  const file = join(folder, "abandoned");
  writeFileSync(file, "somebody");
  const longAgo = new Date(Date.now() - 60_000);
  utimesSync(file, longAgo, longAgo);
  assert.equal(await withLock(file, never, async () => "done"), "done");
});

test("a_lock_is_released_when_the_work_fails", async () => {
  const file = join(folder, "failed");
  await assert.rejects(
    withLock(file, never, () => Promise.reject(new Error("broken"))),
    /broken/,
  );
  assert.equal(existsSync(file), false);
});
