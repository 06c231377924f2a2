// AUTH=local, as `npm start` sets it: programs on this machine are admitted, and cross-site pages
// in the user's browser are refused at every entry point.

import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { after, test } from "node:test";
import { WebSocket } from "ws";
import { startServer } from "./harness.mjs";

const SECRET = "the secret of this test, long enough";
const server = await startServer({ vars: { AUTH: "local" } });
/** With the static files in front, as `npm start` serves them. */
const deployed = await startServer({ vars: { AUTH: "local" }, site: true });
const weak = await startServer({ vars: { AUTH: "open" }, secrets: { SESSION_AGENT_TOKEN: SECRET.slice(5) } });
const shared = await startServer({
  vars: { ALLOWED_ORIGINS: "https://app.example * null https://app.example/" },
  secrets: { SESSION_AGENT_TOKEN: SECRET },
});
after(() => Promise.all([server.stop(), deployed.stop(), weak.stop(), shared.stop()]));

const AGENT = "/agents/session-agent/a";

// [method, path, body]
const ENTRY_POINTS = [
  ["POST", `${AGENT}/rpc/listSessions`, "{}"],
  ["POST", `${AGENT}/rpc/destroy`, '{"confirm":"a"}'],
  ["POST", `${AGENT}/chat`, '{"id":"s","message":{"role":"user","parts":[]}}'],
  ["GET", `${AGENT}/chat/s/stream`],
  ["GET", `${AGENT}/get-messages?sessionId=s`],
  ["GET", `${AGENT}/sessions/s/export`],
  ["POST", `${AGENT}/sessions/s/import`, ""],
  ["GET", AGENT],
];

/** Sends a request without `fetch`, which sets some of these headers itself. */
async function ask(url, method, path, headers = {}, body) {
  const outgoing = httpRequest(new URL(path, url), { method, headers });
  outgoing.end(body);
  const [response] = await once(outgoing, "response");
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return { status: response.statusCode, headers: response.headers, text };
}

/** The code of the error; `undefined` if the request was admitted. */
async function refusal(headers, [method, path, body], url = server.url) {
  const { status, text } = await ask(url, method, path, headers, body);
  return status === 403 ? JSON.parse(text).error.code : undefined;
}

function openSocket(url, options = {}, protocols = []) {
  const socket = new WebSocket(new URL(`${AGENT}?sessionId=s`, url.href.replace("http", "ws")), protocols, options);
  return Promise.race([
    once(socket, "open").then(() => (socket.terminate(), 101)),
    once(socket, "unexpected-response").then(([, response]) => response.statusCode),
    once(socket, "error").then(([error]) => error),
  ]);
}

test("local_programs_and_pages_are_admitted", async () => {
  const { port } = server.url;
  for (const headers of [
    {},
    { origin: "http://localhost:5173" },
    { origin: `http://127.0.0.1:${port}`, "sec-fetch-site": "same-origin" },
    { origin: `http://127.0.0.1:3000`, "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "none" },
    { host: `localhost:${port}` },
    { host: `[::1]:${port}` },
  ]) {
    assert.equal(
      (await ask(server.url, "POST", `${AGENT}/rpc/listSessions`, headers, "{}")).status,
      200,
      JSON.stringify(headers),
    );
  }
  assert.equal(await openSocket(server.url), 101);
  assert.equal(await openSocket(server.url, { origin: "http://localhost:5173" }), 101);
});

test("no_cross_site_page_is_admitted_at_any_entry_point", async () => {
  await server.call("a", "createSession", { id: "s" });
  const { port } = server.url;
  const pages = [
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: `http://localhost.evil.example:${port}` },
    { "sec-fetch-site": "cross-site" },
    // An attacker's name that resolves to this machine, alone and with a page under that name.
    { host: `rebound.example:${port}` },
    { host: `rebound.example:${port}`, origin: `http://rebound.example:${port}`, "sec-fetch-site": "same-origin" },
  ];
  for (const entryPoint of ENTRY_POINTS) {
    for (const headers of pages) {
      assert.equal(await refusal(headers, entryPoint), "forbidden", `${entryPoint} ${JSON.stringify(headers)}`);
    }
  }
  for (const headers of pages.slice(1)) {
    const upgrade = {
      ...headers,
      upgrade: "websocket",
      connection: "Upgrade",
      "sec-websocket-version": "13",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    };
    assert.equal(await refusal(upgrade, ["GET", `${AGENT}?sessionId=s`]), "forbidden", JSON.stringify(headers));
  }
  assert.equal(await openSocket(server.url, { origin: "https://evil.example" }), 403);
  // The refused requests changed nothing.
  const { body } = await server.call("a", "listSessions", {});
  assert.deepEqual(
    body.sessions.map(({ id }) => id),
    ["s"],
  );
});

test("the_object_applies_the_same_rules_as_the_worker", async () => {
  for (const via of ["service", "object"]) {
    const { status, body } = await server.call(
      "a",
      "listSessions",
      {},
      { via, headers: { origin: "https://evil.example" } },
    );
    assert.deepEqual([status, body.error?.code], [403, "forbidden"], via);
    assert.equal((await server.call("a", "listSessions", {}, { via })).status, 200, via);
  }
});

test("urls_that_reveal_nothing_about_an_agent_are_public", async () => {
  for (const path of ["/health", "/openapi.json", "/"]) {
    assert.equal(
      (await ask(deployed.url, "GET", path, { origin: "https://evil.example", host: "rebound.example" })).status,
      200,
    );
  }
});

test("a_short_secret_rejects_everything_even_with_open_auth", async () => {
  for (const [method, path, body] of ENTRY_POINTS) {
    for (const headers of [{}, { authorization: `Bearer ${SECRET.slice(5)}` }]) {
      const { status, text } = await ask(weak.url, method, path, headers, body);
      assert.deepEqual([status, JSON.parse(text).error.code], [401, "unauthorized"], path);
      assert.match(text, /openssl rand -hex 32/);
      assert.ok(!text.includes(SECRET.slice(5)));
    }
  }
  assert.equal((await weak.call("a", "listSessions", {}, { via: "object" })).status, 401);
  assert.equal((await ask(weak.url, "GET", "/health")).status, 200);
});

const APP = { origin: "https://app.example" };
const owner = { authorization: `Bearer ${SECRET}` };
const ALLOWED = ["access-control-allow-origin", "vary", "access-control-expose-headers"];

test("a_page_of_an_allowed_origin_preflights_and_reads_errors_too", async () => {
  const preflight = {
    ...APP,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
  };
  for (const [method, path] of ENTRY_POINTS) {
    const { status, headers } = await ask(shared.url, "OPTIONS", path, {
      ...preflight,
      "access-control-request-method": method,
    });
    assert.equal(status, 204, path);
    assert.equal(headers["access-control-allow-origin"], APP.origin);
    assert.match(headers["access-control-allow-methods"], /\bPOST\b/);
    for (const name of ["authorization", "content-type", "user-agent"]) {
      assert.ok(headers["access-control-allow-headers"].split(", ").includes(name), name);
    }
    assert.equal(headers["access-control-allow-credentials"], undefined);
    assert.equal(headers.vary, "Origin");
  }
  const path = `${AGENT}/rpc/listSessions`;
  const answers = [
    [200, await ask(shared.url, "POST", path, { ...APP, ...owner }, "{}")],
    [400, await ask(shared.url, "POST", path, { ...APP, ...owner }, "{")],
    [401, await ask(shared.url, "POST", path, APP, "{}")],
    [404, await ask(shared.url, "GET", "/nowhere", { ...APP, ...owner })],
    [200, await ask(shared.url, "GET", `${AGENT}/get-messages`, { ...APP, ...owner })],
    [204, await ask(shared.url, "GET", `${AGENT}/chat/s/stream`, { ...APP, ...owner })],
    [
      200,
      await ask(
        shared.url,
        "POST",
        `${AGENT}/chat`,
        { ...APP, ...owner },
        '{"id":"c","message":{"id":"m","role":"user","parts":[{"type":"text","text":"Hello."}]}}',
      ),
    ],
  ];
  for (const [expected, { status, headers }] of answers) {
    assert.equal(status, expected);
    assert.equal(headers["access-control-allow-origin"], APP.origin);
    assert.equal(headers.vary, "Origin");
    assert.match(
      headers["access-control-expose-headers"],
      /x-rows-read, x-rows-written, x-session-id, x-vercel-ai-ui-message-stream/,
    );
  }
});

test("a_page_of_another_origin_gets_no_permission", async () => {
  for (const origin of [
    "https://app.example.evil.example",
    "http://app.example",
    "null",
    "*",
    "https://app.example/",
  ]) {
    const preflight = await ask(shared.url, "OPTIONS", `${AGENT}/rpc/listSessions`, {
      origin,
      "access-control-request-method": "POST",
    });
    assert.equal(preflight.status, 403);
    const answer = await ask(shared.url, "POST", `${AGENT}/rpc/listSessions`, { origin, ...owner }, "{}");
    for (const { headers } of [preflight, answer]) {
      assert.equal(headers["access-control-allow-origin"], undefined, origin);
      assert.equal(headers.vary, "Origin");
    }
  }
  // Without a preflight's headers, OPTIONS is a method that this URL doesn't accept.
  assert.equal((await ask(shared.url, "OPTIONS", `${AGENT}/rpc/listSessions`, APP)).status, 405);
  assert.equal(
    (await ask(server.url, "OPTIONS", `${AGENT}/rpc/listSessions`, { ...APP, "access-control-request-method": "POST" }))
      .status,
    405,
  );
});

test("an_object_reached_by_a_binding_sends_the_same_cors_headers", async () => {
  const { status, headers } = await shared.call(
    "a",
    "listSessions",
    {},
    { via: "object", headers: { ...APP, ...owner } },
  );
  assert.deepEqual([status, ...ALLOWED.slice(0, 2).map((name) => headers.get(name))], [200, APP.origin, "Origin"]);
});

test("a_socket_needs_a_token_but_no_allowed_origin", async () => {
  const { body } = await shared.call(
    "a",
    "mintToken",
    { preset: "chat", sessionId: "s", expiresIn: 60 },
    { headers: owner },
  );
  for (const origin of [APP.origin, "https://elsewhere.example", undefined]) {
    assert.equal(await openSocket(shared.url, { origin }, [body.token]), 101);
    assert.equal(await openSocket(shared.url, { origin }), 401);
  }
});

test("an_invalid_origin_is_logged_once", async () => {
  await shared.call("a", "listSessions", {}, { headers: owner });
  const warnings = shared.logs.filter((log) => JSON.stringify(log).includes("ALLOWED_ORIGINS"));
  assert.equal(warnings.length, 1, JSON.stringify(shared.logs));
  assert.match(JSON.stringify(warnings), /entry 2/);
});
