// A server of the Model Context Protocol that requires a user's authorization, on the real runtime:
// an authorization server, the MCP server over HTTP, the user's browser, and the Worker between
// them. The rules are tested in tests/native/chat/oauth.rs.

import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, afterEach, test } from "node:test";
import { call, startChatServer } from "./chat_server.mjs";
import { allOf, submit } from "./chat_stream.mjs";
import { startServer } from "./harness.mjs";
import { callTool, say } from "./model_server.mjs";

const PUBLIC_URL = "http://127.0.0.1:9";

async function listen(handle) {
  const server = createServer(async (request, response) => {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const answer = handle(request, Buffer.concat(pieces).toString());
    response.writeHead(answer.status ?? 200, { "content-type": "application/json", ...answer.headers });
    response.end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body ?? {}));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, origin: `http://127.0.0.1:${server.address().port}` };
}

/** The issued codes and tokens, by the values that a client must send for them. */
const codes = new Map();
const accessTokens = new Map();
const refreshTokens = new Set();
let lifetime = 3600;
const requests = { token: 0 };

const login = await listen((request, body) => {
  const url = new URL(request.url, login.origin);
  switch (url.pathname) {
    case "/.well-known/oauth-authorization-server":
      return {
        body: {
          issuer: login.origin,
          authorization_endpoint: `${login.origin}/authorize`,
          token_endpoint: `${login.origin}/token`,
          registration_endpoint: `${login.origin}/register`,
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
          authorization_response_iss_parameter_supported: true,
        },
      };
    case "/register":
      return { status: 201, body: { client_id: "client", redirect_uris: JSON.parse(body).redirect_uris } };
    case "/authorize": {
      // The user agrees.
      const grantRequest = Object.fromEntries(url.searchParams);
      const code = randomUUID();
      codes.set(code, grantRequest);
      const back = new URL(grantRequest.redirect_uri);
      back.search = new URLSearchParams({ code, state: grantRequest.state, iss: login.origin });
      return { status: 302, headers: { location: back.href } };
    }
    case "/token":
      requests.token += 1;
      return issue(new URLSearchParams(body));
    default:
      return { status: 404 };
  }
});

function issue(form) {
  if (form.get("grant_type") === "refresh_token") {
    if (!refreshTokens.delete(form.get("refresh_token"))) return { status: 400, body: { error: "invalid_grant" } };
    return grant("read write");
  }
  const grantRequest = codes.get(form.get("code"));
  codes.delete(form.get("code"));
  const challenge = createHash("sha256")
    .update(form.get("code_verifier") ?? "")
    .digest("base64url");
  const isRight =
    grantRequest?.code_challenge === challenge &&
    grantRequest.redirect_uri === form.get("redirect_uri") &&
    grantRequest.client_id === form.get("client_id") &&
    form.get("resource") === `${mcp.origin}/mcp`;
  return isRight ? grant(grantRequest.scope) : { status: 400, body: { error: "invalid_grant" } };
}

function grant(scope) {
  const [access_token, refresh_token] = [randomUUID(), randomUUID()];
  accessTokens.set(access_token, scope.split(" "));
  refreshTokens.add(refresh_token);
  return { body: { access_token, refresh_token, token_type: "Bearer", expires_in: lifetime, scope } };
}

const tool = (name) => ({ name, description: `The ${name}.`, inputSchema: { type: "object" } });
let toolCalls = 0;

const mcp = await listen((request, body) => {
  if (request.url === "/.well-known/oauth-protected-resource/mcp")
    return { body: { resource: `${mcp.origin}/mcp`, authorization_servers: [login.origin] } };
  if (request.url !== "/mcp") return { status: 404 };
  const scopes = accessTokens.get(request.headers.authorization?.replace("Bearer ", ""));
  const challenge = (more) => ({ "www-authenticate": `Bearer ${more}` });
  if (scopes === undefined) return { status: 401, headers: challenge('scope="read"') };
  const { id, method, params } = JSON.parse(body);
  const answer = (result) => ({ body: { jsonrpc: "2.0", id, result } });
  if (method === "server/discover") return answer({ supportedVersions: ["2026-07-28"], capabilities: { tools: {} } });
  if (method === "tools/list") return answer({ tools: [tool("read"), tool("write")] });
  if (!scopes.includes(params.name))
    return { status: 403, headers: challenge(`error="insufficient_scope", scope="${params.name}"`) };
  toolCalls += 1;
  return answer({ content: [{ type: "text", text: `${params.name}: ${request.headers.authorization}` }] });
});

const KEY = "a key of at least 32 characters, for tests";
const { server, model, stop } = await startChatServer({
  vars: { TOOL_ORIGINS: `${mcp.origin} ${login.origin}`, PUBLIC_URL, TOOL_TOKEN_KEY: KEY },
});
after(async () => {
  await stop();
  login.server.close();
  mcp.server.close();
});
afterEach(() => model.forget());

const define = (agent) =>
  call(server, agent, "defineTool", { name: "wiki", mcp: `${mcp.origin}/mcp`, needsApproval: false });

/** Opens the address in the user's browser, and returns to the Worker. */
async function open(address, agent) {
  const answer = await fetch(address, { redirect: "manual" });
  const back = new URL(answer.headers.get("location"));
  assert.equal(`${back.origin}${back.pathname}`, `${PUBLIC_URL}/oauth/callback`);
  return server.fetch(`${back.pathname}${back.search}`, {}, { agent });
}

let turns = 0;

async function use(agent, name) {
  model.next(callTool(`wiki_${name}`, {}, "c1"), say("Done."));
  turns += 1;
  const { chunks } = await allOf(await submit(server, agent, "s", "Go.", { id: `u-${turns}` }));
  const { output, errorText } = chunks.find(({ type }) => type.startsWith("tool-output-"));
  return output ?? errorText;
}

const serverOf = async (agent) => (await call(server, agent, "listTools", {})).servers[0];

test("a_user_authorizes_an_agent_which_uses_the_server_and_requests_more_scopes", async () => {
  const defined = await define("used");
  assert.equal(defined.needsAuthorization, true);
  assert.deepEqual(defined.tools, []);
  const page = await open(defined.authorizationUrl, "used");
  assert.equal(page.status, 200, await page.clone().text());
  assert.match(page.headers.get("content-type"), /^text\/html/);
  assert.equal(page.headers.get("referrer-policy"), "no-referrer");
  assert.match(await page.text(), /can use the server now/);
  await server.evict("used");
  assert.equal(await use("used", "read"), "read: Bearer [secret]");
  assert.equal((await serverOf("used")).needsAuthorization, undefined);

  assert.match(await use("used", "write"), /must be authorized/);
  assert.equal((await serverOf("used")).needsAuthorization, true);
  const more = await define("used");
  assert.equal(new URL(more.authorizationUrl).searchParams.get("scope"), "read write");
  assert.equal((await open(more.authorizationUrl, "used")).status, 200);
  assert.equal(await use("used", "write"), "write: Bearer [secret]");

  // The rows are encrypted.
  const rows = JSON.stringify(await server.sql("used", "SELECT * FROM cf_agents_tool_authorizations"));
  for (const token of [...accessTokens.keys(), ...refreshTokens]) assert.ok(!rows.includes(token));
  await call(server, "used", "removeTool", { name: "wiki" });
  assert.deepEqual(await server.sql("used", "SELECT * FROM cf_agents_tool_authorizations"), []);
});

test("an_authorization_url_works_once_and_cannot_be_forged", async () => {
  const { authorizationUrl } = await define("once");
  assert.equal((await open(authorizationUrl, "once")).status, 200);
  assert.equal((await open(authorizationUrl, "once")).status, 400);
  const state = Buffer.from(JSON.stringify(["once", "wiki", "guessed"])).toString("base64url");
  for (const query of ["", "?state=x", `?state=${state}&code=x`]) {
    const refused = await server.fetch(`/oauth/callback${query}`, {}, { agent: "once" });
    assert.equal(refused.status, 400, query);
  }
});

test("routeSessionAgent_handles_oauth_redirects_and_wakes_no_object_for_others", async () => {
  const other = await startServer({
    own: `
import worker, { routeSessionAgent, SessionAgent } from "session-agent/worker";
export { SessionAgent };
export default class extends worker {
  async fetch(request) {
    if (request.method !== "GET") return super.fetch(request);
    let woken = 0;
    const get = (id) => (woken += 1, this.env.SESSION_AGENT.get(id));
    const namespace = { idFromName: (name) => this.env.SESSION_AGENT.idFromName(name), get };
    const answer = await routeSessionAgent(request, this.env, { namespace });
    return new Response(answer?.body, { status: answer?.status ?? 404, headers: { woken } });
  }
}`,
    vars: { AUTH: "open", TOOL_ORIGINS: `${mcp.origin} ${login.origin}`, PUBLIC_URL, TOOL_TOKEN_KEY: KEY },
  });
  try {
    const back = async (path) => {
      const answer = await other.fetch(path);
      return [answer.status, Number(answer.headers.get("woken")), await answer.text()];
    };
    const definition = { name: "wiki", mcp: `${mcp.origin}/mcp`, needsApproval: false };
    const { authorizationUrl } = await call(other, 'a "quoted" né', "defineTool", definition);
    const opened = await fetch(authorizationUrl, { redirect: "manual" });
    const { pathname, search, searchParams } = new URL(opened.headers.get("location"));
    const [, server, nonce] = JSON.parse(Buffer.from(searchParams.get("state"), "base64url"));
    const foreign = new URLSearchParams(search);
    foreign.set("state", Buffer.from(JSON.stringify(["eve", server, nonce])).toString("base64url"));
    assert.deepEqual(await back(`${pathname}?${foreign}`), [404, 0, ""]);
    assert.deepEqual(await back(pathname), [404, 0, ""]);
    const [status, woken, page] = await back(`${pathname}${search}`);
    assert.deepEqual([status, woken], [200, 1], page);
    assert.match(page, /can use the server now/);
  } finally {
    await other.stop();
  }
});

test("a_token_is_refreshed_by_one_request_at_a_time", async () => {
  lifetime = 30;
  try {
    const { authorizationUrl } = await define("renewed");
    // This token is renewed for the first list already: it expires in less than a minute.
    assert.equal((await open(authorizationUrl, "renewed")).status, 200);
    lifetime = 3600;
    const before = requests.token;
    const ask = async (id) => {
      const body = { jsonrpc: "2.0", id, method: "tools/call", params: { name: "wiki_read", arguments: {} } };
      const headers = { "content-type": "application/json", accept: "application/json" };
      const path = "/agents/session-agent/renewed/mcp";
      const answer = await server.fetch(
        path,
        { method: "POST", headers, body: JSON.stringify(body) },
        { agent: "renewed" },
      );
      return (await answer.json()).result.content[0].text;
    };
    const answers = await Promise.all([1, 2, 3, 4].map(ask));
    assert.deepEqual([...new Set(answers)], ["read: Bearer [secret]"]);
    assert.equal(requests.token, before + 1);
    assert.ok(toolCalls > 0);
  } finally {
    lifetime = 3600;
  }
});

test("the_worker_publishes_its_client_metadata_if_its_url_is_public", async () => {
  const hidden = await server.fetch("/oauth/client.json");
  assert.equal(hidden.status, 404);
  await hidden.body?.cancel();
  const vars = { AUTH: "open", PUBLIC_URL: "https://memory.example.com", TOOL_TOKEN_KEY: KEY };
  const other = await startServer({ vars });
  try {
    const described = await (await other.fetch("/oauth/client.json")).json();
    assert.equal(described.client_id, "https://memory.example.com/oauth/client.json");
    assert.deepEqual(described.redirect_uris, ["https://memory.example.com/oauth/callback"]);
  } finally {
    await other.stop();
  }
});
