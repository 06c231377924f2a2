// Concurrent writes of texts and documents stored in the bucket or in a service: each request waits
// for the backend while the others run.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

// A service that stores texts by label. It is slow, so that two requests read the same text.
const serviceSource = (hasVersions) => `const texts = new Map();
export default { async fetch(request) {
  const { label, content, expectedVersion } = await request.json();
  const kept = texts.get(label) ?? { content: null, version: 0 };
  await scheduler.wait(20);
  if (request.url.endsWith("/get")) return Response.json(${hasVersions} ? kept : { content: kept.content });
  const now = texts.get(label) ?? { content: null, version: 0 };
  if (${hasVersions} && expectedVersion !== now.version) return new Response("another version", { status: 409 });
  texts.set(label, { content, version: now.version + 1 });
  return Response.json({});
} };`;

const server = await startServer({ workers: { plain: serviceSource(false), versioned: serviceSource(true) } });
after(() => server.stop());

/** Appends as a model does. The append must succeed. */
async function appendByTool(agent, sessionId, label, content) {
  const metadata = { title: "howto" };
  const input = { sessionId, name: "set_context", arguments: { label, content, action: "append", metadata } };
  const { status, body } = await server.call(agent, "callTool", input);
  assert.deepEqual([status, body.isError], [200, false], JSON.stringify(body));
}

async function define(agent, block) {
  assert.equal((await server.call(agent, "defineBlock", { ...block, modelWrites: true })).status, 200);
  for (const id of ["s1", "s2"]) await server.call(agent, "createSession", { id });
}

test("concurrent_appends_are_all_kept_as_versions", async () => {
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

for (const [who, writers] of [
  [
    "two_sessions",
    [
      ["dora", "s1"],
      ["dora", "s2"],
    ],
  ],
  [
    "two_agents",
    [
      ["emil", "s1"],
      ["fred", "s1"],
    ],
  ],
]) {
  test(`concurrent_appends_by_${who}_to_one_document_are_all_kept`, async () => {
    const source = { r2Prefix: `${who}/` };
    for (const agent of new Set(writers.map(([agent]) => agent))) {
      await define(agent, { label: "skills", kind: "loadable", source });
    }
    const expected = [];
    for (let round = 0; round < 5; round += 1) {
      const lines = writers.map((_, n) => `round ${round} line ${n}`);
      expected.push(...lines);
      await Promise.all(writers.map(([agent, id], n) => appendByTool(agent, id, "skills", lines[n])));
    }
    const stored = await (await (await server.env()).SKILLS_BUCKET.get(`${who}/howto`)).text();
    assert.deepEqual(stored.split("\n").sort(), expected.sort());
  });
}

for (const [service, who, writers] of [
  ["PLAIN", "two_requests", [["gina"], ["gina"]]],
  ["VERSIONED", "two_requests", [["hans"], ["hans"]]],
  ["VERSIONED", "two_agents", [["iris"], ["jack"]]],
]) {
  test(`concurrent_appends_by_${who}_to_a_text_of_the_service_${service}_are_all_kept`, async () => {
    const label = `notes-${who}`;
    const append = async (agent, content) => {
      const { status, body } = await server.call(agent, "appendToBlock", { label, content: `${content}\n` });
      assert.equal(status, 200, JSON.stringify(body));
    };
    for (const agent of new Set(writers.map(([agent]) => agent))) {
      await define(agent, { label, kind: "writable", source: { service } });
    }
    const expected = [];
    for (let round = 0; round < 5; round += 1) {
      const lines = writers.map((_, n) => `round ${round} line ${n}`);
      expected.push(...lines);
      await Promise.all(writers.map(([agent], n) => append(agent, lines[n])));
    }
    const { body } = await server.call(writers[0][0], "getBlock", { label });
    assert.deepEqual(body.content.trim().split("\n").sort(), expected.sort());
  });
}
