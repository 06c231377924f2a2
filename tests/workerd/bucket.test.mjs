// A text that lives in the bucket, written by several requests at once: each
// waits for the bucket, and the others run meanwhile.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

const server = await startServer();
after(() => server.stop());

test("of_appends_at_once_none_is_lost_and_each_is_a_version", async () => {
  const define = { label: "notes", kind: "writable", source: { r2: "notes.md" } };
  assert.equal((await server.call("alice", "defineBlock", define)).status, 200);
  const expected = [];
  for (let round = 0; round < 5; round += 1) {
    const lines = ["a", "b", "c"].map((name) => `${name}${round}`);
    expected.push(...lines);
    const append = (line) => server.call("alice", "appendToBlock", { label: "notes", content: `${line}\n` });
    const answers = await Promise.all(lines.map(append));
    for (const { status, body } of answers) assert.equal(status, 200, JSON.stringify(body));
  }
  const stored = await (await (await server.env()).SKILLS_BUCKET.get("notes.md")).text();
  assert.deepEqual(stored.trim().split("\n").sort(), expected.sort());
  const { body } = await server.call("alice", "getBlockVersions", { label: "notes" });
  assert.equal(body.versions.length, expected.length);
});
