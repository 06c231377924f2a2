// A token for one session receives the same headers regardless of other sessions. Bodies are
// compared natively (tests/native/api/session_isolation.rs); the engine's own counts can only be
// compared here.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

const SECRET = "the secret of these tests, long enough";
const server = await startServer({ vars: {}, secrets: { SESSION_AGENT_TOKEN: SECRET } });
after(() => server.stop());

const bearer = (token) => ({ headers: { authorization: `Bearer ${token}` } });
const owner = bearer(SECRET);

async function ok(agent, operation, body, caller = owner) {
  const answer = await server.call(agent, operation, body, caller);
  assert.equal(answer.status, 200, `${operation} ${JSON.stringify(answer.body)}`);
  return answer;
}

const event = (id, content) => ({ id, action: "user_message", content });

async function addSession(agent, id) {
  await ok(agent, "createSession", { id });
  const events = Array.from({ length: 60 }, (_, n) =>
    event(`e${n}`, `${id} says parcel, otter and 4711 ${"x".repeat(n)}`),
  );
  await ok(agent, "appendEvents", { sessionId: id, events });
  await ok(agent, "defineBlock", { sessionId: id, label: "kb", kind: "searchable" });
  for (let n = 0; n < 8; n += 1) {
    await ok(agent, "setEntry", { sessionId: id, label: "kb", key: `k${n}`, content: `parcel otter ${n}` });
  }
}

/** A name whose entry among the ended sessions is in the same row as that of `s`. */
function nameBeside(taken) {
  const row = (name) => createHash("sha256").update(`${name}\0`).digest()[0];
  for (let n = 0; ; n += 1) if (row(`b${n}`) === row(taken)) return `b${n}`;
}

async function addOtherSessions(agent) {
  for (const id of ["a", "r", "ss", "z"]) {
    await addSession(agent, id);
    const { token } = (await ok(agent, "mintToken", { sessionId: id, expiresIn: 600 })).body;
    await ok(agent, "search", { query: "otter" }, bearer(token));
  }
  for (const id of ["r", nameBeside("s")]) {
    if (id !== "r") await addSession(agent, id);
    await ok(agent, "deleteSession", { sessionId: id });
  }
}

const message = (id, text) => ({ id, role: "user", parts: [{ type: "text", text }] });

const REQUESTS = [
  ["search", { query: "4711" }],
  ["search", { query: "parcel otter" }],
  ["search", { query: "nobody" }],
  ["search", { query: '"and 4711"', roles: ["user"] }],
  ["search", { query: "ott*" }],
  ["searchContext", { sessionId: "s", label: "kb", query: "otter" }],
  ["listEntries", { sessionId: "s", label: "kb" }],
  ["listSessions", {}],
  ["getSession", { sessionId: "s" }],
  ["getSession", { sessionId: "nobody" }],
  ["loadEvents", { sessionId: "s", limit: 1000 }],
  ["loadEvents", { sessionId: "s", tail: true, limit: 10 }],
  ["loadEvents", { sessionId: "s", actions: ["agent_message"] }],
  ["getHistory", { sessionId: "s" }],
  ["getLatestLeaf", { sessionId: "s" }],
  ["getPathLength", { sessionId: "s" }],
  ["getChanges", { sessionId: "s" }],
  ["getChanges", { sessionId: "s", since: 1 }],
  ["buildWorkingContext", { sessionId: "s" }],
  ["estimateTokens", { sessionId: "s" }],
  ["getBlocks", { sessionId: "s" }],
  ["renderPrompt", { sessionId: "s" }],
  ["getUsage", { sessionId: "s", by: "day" }],
  ["getCompactions", { sessionId: "s" }],
  ["appendEvents", { sessionId: "s", events: [event("new", "otter")] }],
  ["appendMessage", { sessionId: "s", message: message("m", "otter parcel") }],
  ["updateMessage", { sessionId: "s", message: message("m", "4711") }],
  ["addUsage", { sessionId: "s", inputTokens: 5, cost: 1, id: "call" }],
  ["deleteMessages", { sessionId: "s", messageIds: ["m"] }],
  ["deleteEvents", { sessionId: "s", eventIds: ["e3", "e7"] }],
  ["clearMessages", { sessionId: "s" }],
  ["deleteSession", { sessionId: "s" }],
  ["createSession", { id: "s" }],
  ["getChanges", { sessionId: "s" }],
  ["deleteSession", { sessionId: "s" }],
];

async function answersOf(agent, isBeside) {
  if (isBeside) await addOtherSessions(agent);
  await addSession(agent, "s");
  if (isBeside) await addSession(agent, "zz");
  const { token } = (await ok(agent, "mintToken", { sessionId: "s", expiresIn: 600 })).body;
  const answers = [];
  for (const [operation, body] of REQUESTS) {
    if (answers.length % 5 === 0) await server.evict(agent);
    const answer = await server.call(agent, operation, body, bearer(token));
    const scores = (answer.body.results ?? []).map((found) => found.score);
    answers.push({
      operation,
      body,
      status: answer.status,
      read: answer.rowsRead,
      written: answer.rowsWritten,
      scores,
    });
  }
  return answers;
}

test("headers_and_scores_of_a_session_do_not_depend_on_others", async () => {
  const [alone, beside] = [await answersOf("alone", false), await answersOf("beside", true)];
  for (const [at, answers] of beside.entries()) assert.deepEqual(answers, alone[at]);
  assert.ok(alone.filter(({ status }) => status === 200).length > 20);
  assert.ok(alone.some(({ read }) => read > 10) && alone.some(({ written }) => written > 10));
});

test("a_session_search_reads_no_rows_of_other_sessions", async () => {
  const agent = "long";
  await addSession(agent, "s");
  await ok(agent, "search", { query: "otter" });
  const costOf = async (query) => (await ok(agent, "search", { query, sessionId: "s" })).rowsRead;
  const before = [await costOf("otter"), await costOf("elsewhere")];
  for (let n = 0; n < 5; n += 1) {
    await ok(agent, "createSession", { id: `other ${n}` });
    const events = Array.from({ length: 1000 }, () => ({ action: "user_message", content: "an otter elsewhere" }));
    await ok(agent, "appendEvents", { sessionId: `other ${n}`, events });
  }
  const after = [await costOf("otter"), await costOf("elsewhere")];
  // The row where a range ends now belongs to another session.
  for (const [at, read] of after.entries()) assert.ok(Math.abs(read - before[at]) <= 4, `${before} ${after}`);
});

test("an_append_reads_the_same_rows_whether_or_not_others_write_in_between", async () => {
  const agent = "in between";
  for (const id of ["s", "other"]) await ok(agent, "createSession", { id });
  const { token } = (await ok(agent, "mintToken", { sessionId: "s", expiresIn: 600 })).body;
  const append = (sessionId, caller) =>
    ok(agent, "appendEvents", { sessionId, events: [{ action: "user_message", content: "x" }] }, caller);
  await append("s", bearer(token));
  const alone = (await append("s", bearer(token))).rowsRead;
  await append("other", owner);
  assert.equal((await append("s", bearer(token))).rowsRead, alone);
  // The owner's next append needs no read, because nothing was written since the last one.
  await append("s", owner);
  assert.equal((await append("s", owner)).rowsRead, 0);
});
