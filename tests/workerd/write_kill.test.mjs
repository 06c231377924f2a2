// Kills the runtime repeatedly while it writes. Every acknowledged write must exist afterwards, and
// every other write completely or not at all.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startServer } from "./harness.mjs";

const KILLS = 6;
const BATCH = 10;

const server = await startServer();
after(() => server.stop());

test("a_crash_loses_no_acknowledged_write_and_leaves_no_partial_one", async () => {
  await server.call("killed", "createSession", { id: "s" });
  // After a first search, an append of a batch is several statements in one transaction.
  await server.call("killed", "search", { query: "anything" });
  const acknowledged = new Set();
  let sent = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    let alive = true;
    const writer = async () => {
      while (alive) {
        const name = `b${(sent += 1)}`;
        const events = Array.from({ length: BATCH }, (_, n) => ({
          id: `${name}-${n}`,
          action: "user_message",
          content: name,
        }));
        try {
          const { status } = await server.call("killed", "appendEvents", { sessionId: "s", events });
          if (status === 200) acknowledged.add(name);
        } catch {
          return;
        }
      }
    };
    const writers = Array.from({ length: 4 }, writer);
    const before = acknowledged.size;
    await pause(40 + 35 * kill);
    // However slow the machine is, the runtime is killed in the middle of writing.
    while (acknowledged.size < before + 2) await pause(1);
    const killed = server.kill9();
    alive = false;
    await Promise.all([killed, ...writers]);
  }
  assert.ok(acknowledged.size > KILLS, `${acknowledged.size} batches were acknowledged`);

  const found = new Map();
  let afterSeq = 0;
  for (;;) {
    const { body } = await server.call("killed", "loadEvents", { sessionId: "s", limit: 1000, afterSeq });
    if (body.length === 0) break;
    for (const { content, seq } of body) {
      found.set(content, (found.get(content) ?? 0) + 1);
      assert.equal(seq, afterSeq + 1, "no number is missing");
      afterSeq = seq;
    }
  }
  for (const name of acknowledged) assert.equal(found.get(name), BATCH, name);
  for (const [name, count] of found) assert.equal(count, BATCH, `${name} is complete`);

  // The index has the same events as the log.
  const newest = [...acknowledged].at(-1);
  const { body } = await server.call("killed", "search", { query: newest, limit: 100 });
  assert.equal(body.results.filter(({ id }) => id.startsWith(`${newest}-`)).length, BATCH);
});
