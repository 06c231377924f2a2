// Access tokens of an OAuth issuer over HTTP, through the front Worker and directly at the object.
// The rules for a token are tested in tests/scripts/oauth.test.mjs.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

const SECRET = "a secret of at least 32 characters";
const EC = { name: "ECDSA", namedCurve: "P-256" };
const { publicKey, privateKey } = await crypto.subtle.generateKey(EC, true, ["sign", "verify"]);
const jwk = { ...(await crypto.subtle.exportKey("jwk", publicKey)), kid: "k" };

const issuerServer = createServer((request, response) => {
  const documents = {
    "/.well-known/oauth-authorization-server": { issuer: ISSUER, jwks_uri: `${ISSUER}/keys` },
    "/keys": { keys: [jwk] },
  };
  response.writeHead(request.url in documents ? 200 : 404, { "content-type": "application/json" });
  response.end(JSON.stringify(documents[request.url]));
});
issuerServer.listen(0, "127.0.0.1");
await once(issuerServer, "listening");
const ISSUER = `http://127.0.0.1:${issuerServer.address().port}`;
const AUDIENCE = "https://memory.example.com";

const server = await startServer({
  vars: { OAUTH_ISSUER: ISSUER, OAUTH_AUDIENCE: AUDIENCE, OAUTH_AGENTS: "user:{sub}" },
  secrets: { SESSION_AGENT_TOKEN: SECRET },
});
after(async () => {
  issuerServer.close();
  await server.stop();
});

const base64 = (text) => Buffer.from(text).toString("base64url");

async function tokenOf(claims) {
  const usual = { iss: ISSUER, aud: AUDIENCE, sub: "robin", exp: Math.floor(Date.now() / 1000) + 600 };
  const head = `${base64('{"alg":"ES256","kid":"k","typ":"at+jwt"}')}.${base64(JSON.stringify({ ...usual, ...claims }))}`;
  const seal = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, Buffer.from(head));
  return `${head}.${Buffer.from(seal).toString("base64url")}`;
}

const ADDRESS = "/agents/session-agent/user%3Arobin";

async function ask(token, method, params = {}, { path = `${ADDRESS}/mcp`, ...options } = {}) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await server.fetch(path, { method: "POST", headers, body }, { agent: "user:robin", ...options });
  return { status: answer.status, challenge: answer.headers.get("www-authenticate"), body: await answer.json() };
}

test("an_access_token_gives_access_to_its_subjects_agent_by_scope", async () => {
  const owner = { headers: { authorization: `Bearer ${SECRET}` } };
  await server.call("user:robin", "defineBlock", { label: "memory", kind: "writable" }, owner);
  const read = await tokenOf({ scope: "memory:read" });
  const write = await tokenOf({ scope: "memory:read memory:write" });
  const note = { name: "set_context", arguments: { label: "memory", content: "Likes tea." } };
  for (const via of [undefined, "service", "object"]) {
    const refused = await ask(read, "tools/call", note, { via });
    assert.equal(refused.status, 403, via);
    assert.match(refused.challenge, /error="insufficient_scope", scope="memory:read memory:write"/);
    const done = await ask(write, "tools/call", note, { via });
    assert.equal(done.body.result.isError, false, via);
    const answer = await ask(read, "resources/read", { uri: "memory://block/memory" }, { via });
    assert.equal(answer.body.result.contents[0].text, "Likes tea.");
    // The secret still has access to everything.
    assert.equal((await ask(SECRET, "tools/list", {}, { via })).status, 200);
  }
});

test("a_client_without_a_valid_token_learns_where_to_get_one", async () => {
  const metadata = `resource_metadata="${AUDIENCE}/.well-known/oauth-protected-resource${ADDRESS}/mcp"`;
  const eve = await tokenOf({ sub: "eve", scope: "memory:read" });
  for (const via of [undefined, "service", "object"]) {
    const nobody = await ask(undefined, "tools/list", {}, { via });
    assert.deepEqual([nobody.status, nobody.challenge], [401, `Bearer ${metadata}`], via);
    for (const token of [eve, "nonsense", await tokenOf({ exp: 1 })]) {
      const refused = await ask(token, "tools/list", {}, { via });
      assert.deepEqual([refused.status, refused.challenge], [401, `Bearer ${metadata}, error="invalid_token"`], via);
      assert.equal(refused.body.error.code, "unauthorized");
    }
  }
  const answer = await server.fetch(`/.well-known/oauth-protected-resource${ADDRESS}/mcp`);
  assert.deepEqual((await answer.json()).authorization_servers, [ISSUER]);
});

test("an_access_token_is_valid_at_no_other_url", async () => {
  const token = await tokenOf({ scope: "memory:read memory:write" });
  for (const path of [
    `${ADDRESS}/rpc/getBlocks`,
    `${ADDRESS}/chat`,
    `${ADDRESS}/rpc/x/mcp`,
    "/agents/session-agent?prefix=/mcp",
  ]) {
    const headers = { authorization: `Bearer ${token}` };
    const method = path.includes("?") ? "GET" : "POST";
    const answer = await server.fetch(path, { method, headers, ...(method === "POST" && { body: "{}" }) });
    await answer.text();
    assert.ok([401, 404].includes(answer.status), `${path} ${answer.status}`);
  }
});
