// A request's way to the object's storage and back, which native tests do not cover.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import Ajv from "ajv/dist/2020.js";
import { OPENAPI } from "../../scripts/paths.mjs";
import { startServer } from "./harness.mjs";

const server = await startServer();
after(() => server.stop());

const user = (content, more = {}) => ({ action: "user_message", content, ...more });

async function agentWithSession(agent) {
  await ok(agent, "createSession", { id: "s" });
  return {
    call: (operation, input) => server.call(agent, operation, { sessionId: "s", ...input }),
    ok: (operation, input) => ok(agent, operation, { sessionId: "s", ...input }),
  };
}

async function ok(agent, operation, input) {
  const { status, body } = await server.call(agent, operation, input);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

test("appended_events_read_back_exactly", async () => {
  const alice = await agentWithSession("exact");
  const text = 'a\u0000b \u2028 😀 "\\ \u0001 ␤ '.repeat(3);
  const toolCalls = [{ id: "c1", name: "echo", arguments: { n: [1, null, { a: "ü" }] } }];
  const { events } = await alice.ok("appendEvents", {
    events: [
      user(text, { metadata: { text, "a b": [1.5, true] }, createdAt: 42 }),
      { action: "tool_call_request", content: "", toolCalls },
      { action: "tool_result", content: text, toolCallId: "c1", toolName: "echo", isError: true },
    ],
  });
  const read = await alice.ok("loadEvents");
  const [first, second, third] = events.map(({ id }) => id);
  const common = { sessionId: "s" };
  assert.deepEqual(read, [
    {
      ...common,
      id: first,
      seq: 1,
      parentId: null,
      ...user(text),
      metadata: { text, "a b": [1.5, true] },
      createdAt: 42,
    },
    {
      ...common,
      id: second,
      seq: 2,
      parentId: first,
      action: "tool_call_request",
      content: "",
      toolCalls,
      createdAt: read[1].createdAt,
    },
    {
      ...common,
      id: third,
      seq: 3,
      parentId: second,
      action: "tool_result",
      content: text,
      toolCallId: "c1",
      toolName: "echo",
      isError: true,
      createdAt: read[2].createdAt,
    },
  ]);
});

test("reading_an_unused_agent_writes_nothing", async () => {
  const reads = [
    "listSessions",
    "getBlocks",
    "getConfig",
    "getStats",
    "verify",
    "listTools",
    "getTools",
    "renderPrompt",
    "getUsage",
    "getCompactions",
    "getSession",
    "search",
  ];
  const inputs = {
    getSession: { sessionId: "s" },
    getCompactions: { sessionId: "s" },
    getUsage: { by: "day" },
    search: { query: "anything" },
  };
  const tables = (agent) => server.sql(agent, "SELECT name FROM sqlite_master WHERE name GLOB 'cf_agents_*'");
  for (const operation of reads) {
    const response = await server.fetch(`/agents/session-agent/mistyped/rpc/${operation}`, {
      method: "POST",
      body: JSON.stringify(inputs[operation] ?? {}),
    });
    assert.equal(response.headers.get("x-rows-written"), "0", operation);
    assert.ok(response.status === 200 || response.status === 404, operation);
    await response.text();
  }
  // The same over the other read-only entry points: a stream, files, messages, a socket.
  for (const path of ["chat/s/stream", "sessions/s/export", "export", "get-messages?sessionId=s"]) {
    const response = await server.fetch(`/agents/session-agent/mistyped/${path}`);
    assert.ok([200, 204, 404].includes(response.status), `${path}: ${response.status}`);
    const text = await response.text();
    if (path === "export") assert.match(text, /"done"/);
  }
  const socket = new WebSocket(`${server.url.href.replace(/^http/, "ws")}agents/session-agent/mistyped?sessionId=s`);
  await once(socket, "message");
  socket.close();
  assert.deepEqual(await tables("mistyped"), []);
  // The first write creates the tables, even during concurrent reads and after `destroy`.
  for (let round = 0; round < 2; round++) {
    const answers = await Promise.all(
      [1, 2, 3].flatMap((n) => [ok("mistyped", "createSession", { id: `s${n}` }), ok("mistyped", "getBlocks", {})]),
    );
    assert.equal(answers.length, 6);
    assert.equal((await ok("mistyped", "listSessions", {})).sessions.length, 3);
    await ok("mistyped", "destroy", { confirm: "mistyped" });
    assert.deepEqual((await ok("mistyped", "listSessions", {})).sessions, []);
  }
  assert.deepEqual(await tables("mistyped"), []);
});

test("data_of_a_newer_version_is_refused_and_unchanged", async () => {
  const own = await startServer();
  try {
    await own.call("newer", "createSession", { id: "s" });
    await own.sql("newer", "INSERT INTO cf_agents_migrations (number, name, applied_at) VALUES (9999, 'later', 1)");
    await own.evict("newer");
    for (const [operation, input] of [
      ["getSession", { sessionId: "s" }],
      ["createSession", { id: "t" }],
    ]) {
      const { status, body } = await own.call("newer", operation, input);
      assert.equal(status, 500);
      assert.equal(body.error.code, "storage_failed");
      assert.match(body.error.message, /^This agent's data was written by a newer version of Session Agent/);
    }
    assert.equal((await own.sql("newer", "SELECT * FROM cf_agents_sessions")).length, 1);
  } finally {
    await own.stop();
  }
});

test("numbers_keep_their_notation", async () => {
  const metadata = '{"z":12345678901234567890,"a":1.0,"n":-0.0,"z":1e400}';
  await ok("spelling", "createSession", { id: "s" });
  const sent = await server.call(
    "spelling",
    "appendEvents",
    `{"sessionId":"s","events":[{"action":"user_message","content":"x","metadata":${metadata}}]}`,
  );
  assert.equal(sent.status, 200);
  const response = await server.fetch("/agents/session-agent/spelling/rpc/loadEvents", {
    method: "POST",
    body: '{"sessionId":"s"}',
  });
  assert.match(await response.text(), new RegExp(metadata.replaceAll(/[.+{}]/g, "\\$&")));
});

test("acknowledged_writes_survive_eviction_and_a_crash", async () => {
  const own = await startServer();
  try {
    await own.call("durable", "createSession", { id: "s" });
    await own.call("durable", "appendEvents", { sessionId: "s", events: [user("one")] });
    await own.evict("durable");
    await own.call("durable", "appendEvents", { sessionId: "s", events: [user("two")] });
    await own.kill9();
    const { body } = await own.call("durable", "loadEvents", { sessionId: "s" });
    assert.deepEqual(
      body.map(({ content, seq }) => [content, seq]),
      [
        ["one", 1],
        ["two", 2],
      ],
    );
  } finally {
    await own.stop();
  }
});

test("a_page_is_validated_with_special_characters_at_any_position", async () => {
  const agent = "marks";
  const alice = await agentWithSession(agent);
  const texts = [];
  for (const mark of ['"', "\\", "\n", "\u001f", " ", "é", "東", "😀"]) {
    for (let at = 0; at < 36; at += 1) texts.push("x".repeat(at) + mark + "y".repeat(35 - (at % 7)));
  }
  const messages = texts.map((text, at) => ({ id: `m${at}`, role: "user", parts: [{ type: "text", text }] }));
  for (const message of messages) await alice.ok("appendMessage", { message });
  const page = await alice.ok("getHistory", { limit: 500 });
  assert.deepEqual(
    page.messages.map(({ createdAt, ...message }) => message),
    messages,
  );
  const list = await server.fetch(`/agents/session-agent/${agent}/get-messages?sessionId=s`);
  assert.deepEqual(await list.json(), page.messages);
  for (const [at, bad] of ['"', "\u0001", "\\q"].flatMap((bad) =>
    [0, 1, 7, 15, 16, 17, 31, 33].map((at) => [at, bad]),
  )) {
    const message = JSON.stringify({ role: "user", parts: [{ type: "text", text: "@" }] })
      .slice(1, -1)
      .replace("@", "x".repeat(at) + bad + "y".repeat(20));
    await server.sql(agent, "UPDATE cf_agents_events SET message = ? WHERE id = 'm9'", message);
    const failed = await alice.call("getHistory", { limit: 500 });
    assert.deepEqual(
      [failed.body.error.code, failed.body.error.details.id],
      ["corrupt_row", "m9"],
      `${at} ${JSON.stringify(bad)}`,
    );
  }
});

test("a_transaction_that_throws_midway_rolls_back", async () => {
  const agent = "half-way";
  const alice = await agentWithSession(agent);
  await alice.ok("appendEvents", { events: [user("1"), user("2"), user("3")] });
  const before = await server.sql(agent, "SELECT * FROM cf_agents_events");
  // The operation's DELETE succeeds. The UPDATE after the DELETE throws.
  await server.sql(
    agent,
    "CREATE TRIGGER broken BEFORE UPDATE ON cf_agents_sessions BEGIN SELECT RAISE(ABORT, 'disk on fire'); END",
  );
  const failed = await alice.call("deleteEvents", { eventIds: [before[1].id] });
  assert.equal(failed.status, 500);
  assert.equal(failed.body.error.code, "storage_failed");
  assert.doesNotMatch(JSON.stringify(failed.body), /fire|cf_agents|UPDATE/);
  assert.deepEqual(await server.sql(agent, "SELECT * FROM cf_agents_events"), before);
  await server.sql(agent, "DROP TRIGGER broken");
  assert.deepEqual(await alice.ok("deleteEvents", { eventIds: [before[1].id] }), { deleted: 1 });
});

test("a_batch_of_several_statements_is_one_transaction", async () => {
  const agent = "batches";
  const alice = await agentWithSession(agent);
  const big = "x".repeat(400_000);
  await server.sql(
    agent,
    "CREATE TRIGGER broken BEFORE INSERT ON cf_agents_events WHEN new.content = 'last' BEGIN SELECT RAISE(ABORT, 'no'); END",
  );
  const failed = await alice.call("appendEvents", { events: [user(big), user(big), user(big), user("last")] });
  assert.equal(failed.body.error.code, "storage_failed");
  assert.deepEqual(await alice.ok("loadEvents"), []);
  await server.sql(agent, "DROP TRIGGER broken");
  const { events } = await alice.ok("appendEvents", { events: [user(big), user(big), user(big), user("last")] });
  assert.deepEqual(
    events.map(({ seq }) => seq),
    [1, 2, 3, 4],
  );
  assert.deepEqual(
    (await alice.ok("loadEvents")).map(({ content }) => content.length),
    [400_000, 400_000, 400_000, 4],
  );
});

test("destroy_leaves_a_usable_empty_object", async () => {
  const agent = "phoenix";
  await agentWithSession(agent);
  const refused = await server.call(agent, "destroy", { confirm: "another" });
  assert.deepEqual([refused.status, refused.body.error.details.field], [400, "confirm"]);
  assert.deepEqual(await ok(agent, "destroy", { confirm: agent }), { destroyed: true });
  assert.deepEqual(await ok(agent, "listSessions"), { sessions: [], cursor: null });
  await ok(agent, "createSession", { id: "s" });
  await server.evict(agent);
  assert.equal((await ok(agent, "getSession", { sessionId: "s" })).id, "s");
});

test("a_corrupt_row_is_reported_only_to_its_reader", async () => {
  const agent = "damaged";
  const alice = await agentWithSession(agent);
  const { events } = await alice.ok("appendEvents", { events: [user("1"), user("2"), user("3")] });
  await server.sql(agent, "UPDATE cf_agents_events SET metadata = '{oops' WHERE seq = 2");
  const { status, body } = await alice.call("loadEvents");
  assert.deepEqual([status, body.error.code, body.error.details.id], [500, "corrupt_row", events[1].id]);
  assert.deepEqual(
    (await alice.ok("loadEvents", { limit: 1 })).map(({ id }) => id),
    [events[0].id],
  );
  assert.deepEqual(
    (await alice.ok("loadEvents", { afterSeq: 2 })).map(({ id }) => id),
    [events[2].id],
  );
});

test("an_object_in_the_documented_schema_is_migrated", async () => {
  const agent = "documents";
  await server.sql(
    agent,
    `CREATE TABLE IF NOT EXISTS cf_agents_sessions (
    id TEXT PRIMARY KEY NOT NULL, agent_id TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, metadata TEXT)`,
  );
  await server.sql(
    agent,
    `CREATE TABLE IF NOT EXISTS cf_agents_events (
    id TEXT PRIMARY KEY NOT NULL, session_id TEXT NOT NULL, seq INTEGER NOT NULL, action TEXT NOT NULL, content TEXT, metadata TEXT, created_at INTEGER NOT NULL)`,
  );
  await server.sql(agent, "CREATE INDEX IF NOT EXISTS idx_events_session_seq ON cf_agents_events(session_id, seq)");
  await server.sql(agent, "INSERT INTO cf_agents_sessions VALUES ('s', 'documents', 100, 200, ?)", '{"title":"old"}');
  const insert = "INSERT INTO cf_agents_events VALUES (?, 's', ?, ?, ?, ?, ?)";
  await server.sql(agent, insert, "a", 1, "user_message", "hello", null, 110);
  await server.sql(
    agent,
    insert,
    "b",
    2,
    "tool_call_request",
    null,
    '{"toolCalls":[{"id":"c1","name":"echo","arguments":{"a":1}}],"trace":7}',
    120,
  );
  await server.sql(agent, insert, "c", 3, "tool_result", "hi", '{"toolCallId":"c1","toolName":"echo"}', 130);
  const session = await ok(agent, "getSession", { sessionId: "s" });
  assert.deepEqual([session.metadata, session.createdAt, session.updatedAt], [{ title: "old" }, 100, 200]);
  assert.deepEqual(await ok(agent, "loadEvents", { sessionId: "s" }), [
    { id: "a", sessionId: "s", seq: 1, parentId: null, action: "user_message", content: "hello", createdAt: 110 },
    {
      id: "b",
      sessionId: "s",
      seq: 2,
      parentId: "a",
      action: "tool_call_request",
      content: "",
      toolCalls: [{ id: "c1", name: "echo", arguments: { a: 1 } }],
      metadata: { trace: 7 },
      createdAt: 120,
    },
    {
      id: "c",
      sessionId: "s",
      seq: 3,
      parentId: "b",
      action: "tool_result",
      content: "hi",
      toolCallId: "c1",
      toolName: "echo",
      createdAt: 130,
    },
  ]);
  const { events } = await ok(agent, "appendEvents", { sessionId: "s", expectedLeafId: "c", events: [user("on")] });
  assert.equal(events[0].seq, 4);
});

test("two_hundred_concurrent_appends_are_each_written_once", async () => {
  const alice = await agentWithSession("crowd");
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, n) => alice.ok("appendEvents", { events: [user(`${n}`)] })),
  );
  const seqs = answers.map(({ events }) => events[0].seq).sort((a, b) => a - b);
  assert.deepEqual(
    seqs,
    Array.from({ length: 200 }, (_, n) => n + 1),
  );
  const read = await alice.ok("loadEvents", { limit: 1000 });
  assert.equal(new Set(read.map(({ content }) => content)).size, 200);
  assert.ok(read.every(({ parentId }, n) => parentId === (n === 0 ? null : read[n - 1].id)));
});

/**
 * For each rule that the types do not express: a value that violates it, and one that satisfies it.
 */
const RULES = [
  ["upsertMessage", { sessionId: "s", message: {} }, { sessionId: "s", message: { role: "assistant", parts: [] } }],
  ["upsertMessage", { sessionId: "s", message: { role: "user", parts: [] } }],
  ["updateMessage", { sessionId: "s", message: { role: "user", parts: [] } }],
  ["appendMessages", { sessionId: "s", messages: [{}] }],
  ["appendEvents", { sessionId: "s", events: [{ action: "compaction" }] }],
  ["appendEvents", { sessionId: "s", events: [{ action: "tool_call_request", content: "" }] }],
  [
    "appendEvents",
    { sessionId: "s", events: [{ action: "tool_result", content: "1", toolName: "t" }] },
    { sessionId: "s", events: [{ action: "tool_result", content: "1", toolName: "t", toolCallId: "c" }] },
  ],
  ["persistWorkingContext", { sessionId: "s", messages: [{ role: "tool", content: "1" }] }],
  ["decideProposal", { id: "p" }, { id: "p", approve: true }],
  ["decideProposal", { id: "p", approve: true, reject: true }, { id: "p", reject: true }],
  ["searchContext", { query: "tea" }, { query: "tea", labels: ["facts"] }],
  ["addCompaction", { sessionId: "s", summary: "", fromId: "a", toId: "b" }],
  ["createSession", { tags: ["a\nb"] }, { tags: ["a b"] }],
  ["createSession", { tags: [" "] }],
  ["eraseAgents", { prefix: "", confirm: "" }, { prefix: "user:", confirm: "user:" }],
  ["defineTool", { name: "t", description: "", mcp: "tools" }],
  ...["", "/a", "a\\b", "a\u0000", "..", "a/../b", "a/.", "./a"].map((key) => [
    "setEntry",
    { label: "facts", key, content: "x" },
    { label: "facts", key: "a.b/..c//d", content: "x" },
  ]),
];

test("requests_that_the_document_forbids_are_refused", async () => {
  const { paths, components } = JSON.parse(await readFile(OPENAPI, "utf8"));
  const ajv = new Ajv({ strict: false, validateFormats: false });
  const checkOf = (operation) => {
    const { requestBody, parameters } = paths[`/agents/session-agent/{agent}/rpc/${operation}`].post;
    const { schema } = requestBody.content["application/json"];
    assert.equal(requestBody.required, operation !== "createSession", operation);
    assert.ok(!new RegExp(parameters[0].schema.pattern, "u").test("a\u0007"));
    return ajv.compile({ allOf: [schema], components });
  };
  await ok("rules", "createSession", { id: "s" });
  await ok("rules", "defineBlock", { label: "facts", kind: "searchable" });
  for (const [operation, wrong, right] of RULES) {
    const check = checkOf(operation);
    const what = `${operation} ${JSON.stringify(wrong)}`;
    assert.equal(check(wrong), false, what);
    const { body } = await server.call("rules", operation, wrong);
    assert.equal(body.error?.code, "invalid_request", what);
    if (right !== undefined) assert.ok(check(right), JSON.stringify([right, check.errors]));
  }
  for (const name of ["a\u0007", "\u0085"])
    assert.equal((await server.call(name, "getStats")).body.error.details.field, "agent");
});
