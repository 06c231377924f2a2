// The Worker's entry points: URLs, methods, bodies, and errors for invalid input.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { OPENAPI } from "../../scripts/paths.mjs";
import { startServer } from "./harness.mjs";
import { VERSIONS } from "../../client/dist/versions.js";

const server = await startServer();
/** With the static files in front, as wrangler deploys it. */
const deployed = await startServer({ site: true });
after(() => Promise.all([server.stop(), deployed.stop()]));

const RPC = "/agents/session-agent/doors/rpc";

async function refusal(path, init = {}, options) {
  const response = await server.fetch(path, { method: "POST", ...init }, options);
  const text = await response.text();
  assert.equal(response.headers.get("content-type"), "application/json", text.slice(0, 200));
  const { error } = JSON.parse(text);
  assert.match(error.message, /\w.*[.…?]$/su);
  return {
    status: response.status,
    code: error.code,
    field: error.details.field,
    details: error.details,
    headers: response.headers,
  };
}

async function assertServing() {
  const { status } = await server.call("doors", "listSessions");
  assert.equal(status, 200);
}

test("health_returns_the_build", async () => {
  const response = await server.fetch("/health");
  const { status, name, version, revision } = await response.json();
  assert.deepEqual([response.status, status, name], [200, "ok", "session-agent"]);
  assert.match(version, /^\d+\.\d+\.\d+$/);
  assert.match(revision, /^([0-9a-f]{12}|unknown)$/);
});

test("an_outdated_compatibility_date_is_explained_in_a_sentence", async () => {
  const { oldest, newest } = VERSIONS.compatibilityDate;
  const old = await startServer({ date: "2024-04-02", inspect: false });
  try {
    for (const options of [{}, { via: "service" }, { via: "object", agent: "doors" }]) {
      const response = await old.fetch(`${RPC}/listSessions`, { method: "POST", body: "{}" }, options);
      const { error } = await response.json();
      assert.deepEqual(
        [response.status, error.code, error.details],
        [501, "not_configured", { binding: "compatibility_date", field: "compatibility_date" }],
      );
      assert.match(error.message, new RegExp(`is older than ${oldest}, .* from ${oldest} to ${newest} `));
    }
  } finally {
    await old.stop();
  }
});

test("the_static_files_are_served_before_the_worker", async () => {
  const document = await readFile(OPENAPI, "utf8");
  for (const via of [undefined, "service"]) {
    const get = (path, init) => deployed.fetch(path, init, { via });
    const api = await get("/openapi.json");
    assert.deepEqual(
      [api.status, api.headers.get("content-type"), await api.text()],
      [200, "application/json", document],
    );
    const page = await get("/");
    assert.match(page.headers.get("content-type"), /^text\/html/);
    assert.match(page.headers.get("content-security-policy"), /^default-src 'none'/);
    assert.match(await page.text(), /<h1>Session Agent<\/h1>/);
    for (const path of ["/openapi.json", "/"]) {
      const head = await get(path, { method: "HEAD" });
      assert.deepEqual(
        [head.status, head.headers.get("x-content-type-options"), (await head.arrayBuffer()).byteLength],
        [200, "nosniff", 0],
      );
      const post = await get(path, { method: "POST", body: "{}" });
      assert.deepEqual([post.status, await post.text()], [405, ""]);
    }
    // The Worker serves the paths without a file.
    for (const path of ["/nowhere", "/_headers", "/openapi.json/", "/console/index.html"]) {
      const nothing = await get(path);
      assert.deepEqual([nothing.status, (await nothing.json()).error.code], [404, "unknown_operation"], path);
    }
    const health = await get("/health");
    assert.deepEqual([health.status, (await health.json()).name], [200, "session-agent"]);
    const { status, body } = await deployed.call("filed", "createSession", { name: "served" }, { via });
    assert.deepEqual([status, body.agentId], [200, "filed"]);
  }
  assert.deepEqual(
    JSON.parse(await deployed.rpc("filed", "listSessions", ["{}"])).sessions.map(({ name }) => name),
    ["served", "served"],
  );
});

test("the_object_serves_the_same_urls", async () => {
  const health = await server.fetch("/health", {}, { via: "object", agent: "doors" });
  assert.equal((await health.json()).status, "ok");
  for (const path of ["/openapi.json", "/"]) {
    const none = await refusal(path, { method: "GET" }, { via: "object", agent: "doors" });
    assert.deepEqual([none.status, none.code], [404, "unknown_operation"]);
  }
  const other = await refusal(`${RPC}/listSessions`, {}, { via: "object", agent: "another" });
  assert.deepEqual([other.status, other.code, other.field], [400, "invalid_request", "agent"]);
});

test("mcp_is_served_over_every_entry_point", async () => {
  const path = "/agents/session-agent/doors/mcp";
  await server.call("doors", "defineBlock", { label: "memory", kind: "writable", defaultContent: "Likes tea." });
  const ask = async (message, options, headers = { "content-type": "application/json" }) => {
    const response = await server.fetch(
      path,
      { method: "POST", headers, body: JSON.stringify(message) },
      { agent: "doors", ...options },
    );
    return [response.status, await response.json()];
  };
  for (const via of [undefined, "service", "object"]) {
    const read = { jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri: "memory://block/memory" } };
    const [status, { result }] = await ask(read, { via });
    assert.deepEqual([status, result.contents[0].text], [200, "Likes tea."], via);
    const [unknown, { error }] = await ask({ jsonrpc: "2.0", id: "a", method: "nothing" }, { via });
    assert.deepEqual([unknown, error.code], [200, -32601]);
    const [unread, refused] = await ask([], { via });
    assert.deepEqual([unread, refused.id, refused.error.code], [400, null, -32600]);
    const [untyped, answered] = await ask(read, { via }, { "content-type": "text/plain" });
    assert.deepEqual([untyped, answered.error.code], [415, -32600]);
  }
  // A request that is refused before the message is read gets the error of any other request.
  const refused = await refusal(path, { method: "GET" });
  assert.deepEqual([refused.status, refused.code], [405, "method_not_allowed"]);
});

test("an_unknown_operation_or_url_is_404_and_a_wrong_method_405", async () => {
  assert.deepEqual(pick(await refusal(`${RPC}/createSesion`)), [404, "unknown_operation"]);
  assert.deepEqual(pick(await refusal("/nowhere")), [404, "unknown_operation"]);
  const wrong = await refusal(`${RPC}/listSessions`, { method: "GET" });
  assert.deepEqual([...pick(wrong), wrong.headers.get("allow")], [405, "method_not_allowed", "POST"]);
  await assertServing();
});

test("an_empty_body_is_an_empty_object", async () => {
  for (const body of [undefined, "", " "]) {
    const { status } = await server.call("doors", "listSessions", body);
    assert.equal(status, 200);
  }
});

test("get_messages_returns_a_sessions_history_as_an_array", async () => {
  const url = "/agents/session-agent/shown/get-messages";
  assert.deepEqual(await (await server.fetch(url)).json(), []);
  await server.call("shown", "createSession", { id: "default" });
  const message = { id: "m", role: "user", parts: [{ type: "text", text: "hi" }] };
  await server.call("shown", "appendMessage", { sessionId: "default", message });
  const [{ createdAt, ...shown }] = await (await server.fetch(url)).json();
  assert.deepEqual([shown, typeof createdAt], [message, "number"]);
  assert.deepEqual(await (await server.fetch(`${url}?sessionId=other`)).json(), []);
});

test("an_invalid_body_is_400_and_names_the_field", async () => {
  const bytes = (...parts) => Buffer.concat(parts.map((part) => Buffer.from(part)));
  const table = [
    ["listSessions", "{", "body"],
    ["listSessions", "[]", "body"],
    ["listSessions", '{"limit":"5"}', "limit"],
    ["listSessions", '{"limit":9007199254740993}', "limit"],
    ["createSession", bytes('{"name":"', [0xff, 0xfe], '"}'), "body"],
    ["createSession", '{"name":"\\ud800"}', "name"],
    ["createSession", `{"metadata":{"a":${"[".repeat(5000)}${"]".repeat(5000)}}}`, "metadata"],
    ["createSession", JSON.stringify({ id: "x".repeat(201) }), "id"],
    ["createSession", '{"nmae":"x"}', "nmae"],
  ];
  for (const [operation, body, field] of table) {
    const refused = await refusal(`${RPC}/${operation}`, { body });
    assert.deepEqual(
      [refused.status, refused.code, refused.field],
      [400, "invalid_request", field],
      String(body).slice(0, 60),
    );
    assert.equal(refused.headers.get("x-rows-written"), "0");
  }
  const { body } = await server.call("doors", "listSessions");
  assert.deepEqual(body.sessions, []);
});

test("a_compressed_body_is_415", async () => {
  const compressed = await new Response(
    new Blob(["{}"]).stream().pipeThrough(new CompressionStream("gzip")),
  ).arrayBuffer();
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  const refused = await refusal(`${RPC}/listSessions`, { body: compressed, headers });
  assert.deepEqual([refused.status, refused.code], [415, "unsupported_media_type"]);
  const plain = { body: "{}", headers: { ...headers, "content-encoding": "identity" } };
  assert.equal((await server.fetch(`${RPC}/listSessions`, { method: "POST", ...plain })).status, 200);
});

test("every_response_disables_content_sniffing", async () => {
  const answers = await Promise.all([
    server.fetch("/health"),
    server.fetch(`${RPC}/listSessions`, { method: "POST", body: "{}" }),
    server.fetch(`${RPC}/none`, { method: "POST", body: "{}" }),
    server.fetch("/agents/session-agent/doors/export"),
    server.fetch("/agents/session-agent/doors/get-messages"),
    server.fetch("/agents/session-agent/doors/sessions/none/export"),
    server.fetch("/agents/session-agent/doors/chat", {
      method: "POST",
      body: JSON.stringify({ message: { role: "user", parts: [{ type: "text", text: "Hi" }] } }),
    }),
    server.fetch("/agents/session-agent/doors/chat", { method: "POST", body: "{}" }),
    server.fetch("/agents/session-agent/doors/chat/none/stream"),
    server.fetch("/agents/session-agent/doors/mcp", {
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    }),
    server.fetch("/agents/session-agent/doors/mcp", { method: "POST", body: "nonsense" }),
    server.fetch(`${RPC}/listSessions`, { method: "OPTIONS" }),
    server.fetch(`${RPC}/listSessions`),
    server.fetch(`${RPC}/listSessions`, { method: "POST", body: "{}", headers: { "content-encoding": "gzip" } }),
    server.fetch("/nothing/here"),
    deployed.fetch("/"),
    deployed.fetch("/nothing/here"),
    deployed.fetch("/openapi.json", { method: "POST", body: "{}" }),
    deployed.fetch(`${RPC}/listSessions`, { method: "POST", body: "{}", headers: { authorization: "Bearer wrong" } }),
  ]);
  assert.deepEqual(
    answers.map(({ headers }) => headers.get("x-content-type-options")),
    answers.map(() => "nosniff"),
  );
  await Promise.all(answers.map((answer) => answer.arrayBuffer()));
});

test("an_invalid_agent_name_is_400", async () => {
  for (const name of ["%", "%zz", "%C3%28", "%00", "a%0Ab", "%7F", "x".repeat(201)]) {
    const refused = await refusal(`/agents/session-agent/${name}/rpc/listSessions`);
    assert.deepEqual([refused.status, refused.code, refused.field], [400, "invalid_request", "agent"], name);
  }
});

test("a_body_over_the_limit_is_413_with_or_without_a_length", async () => {
  const limit = 1024 * 1024;
  const tooLong = Buffer.alloc(limit + 1, 0x20);
  const announced = await refusal(`${RPC}/createSession`, { body: tooLong });
  assert.deepEqual(
    [...pick(announced), announced.details.limit, announced.details.actual],
    [413, "payload_too_large", limit, limit + 1],
  );
  const chunks = async function* () {
    for (let sent = 0; sent <= limit; sent += 1 << 16) yield tooLong.subarray(0, 1 << 16);
  };
  const streamed = await refusal(`${RPC}/createSession`, { body: ReadableStream.from(chunks()), duplex: "half" });
  assert.deepEqual(pick(streamed), [413, "payload_too_large"]);
  const { status } = await server.call("doors-big", "createSession", `{"id":"s"${" ".repeat(limit - 10)}}`);
  assert.equal(status, 200);
  await assertServing();
});

test("a_body_with_a_wrong_announced_length_is_read_whole_or_refused", async () => {
  const limit = 1024 * 1024;
  for (const via of ["service", "object"]) {
    const send = async (announced, input) => {
      const { status, body } = await server.call(`announced ${via}`, "createSession", input, {
        via,
        headers: { "x-announced": `${announced}` },
      });
      return [status, body.id ?? body.error.code];
    };
    assert.deepEqual(await send(5, { id: "longer" }), [200, "longer"]);
    assert.deepEqual(await send(5, `{"id":"long"${" ".repeat(100_000)}}`), [200, "long"]);
    assert.deepEqual(await send(5, `{"id":"too long"${" ".repeat(limit)}}`), [413, "payload_too_large"]);
    assert.deepEqual(await send(50, { id: "shorter" }), [400, "invalid_request"]);
  }
  await assertServing();
});

function pick({ status, code }) {
  return [status, code];
}
