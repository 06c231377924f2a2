// Access tokens of an issuer (packages/session-agent/src/worker/oauth.ts), tested with an issuer on
// this machine that has its own keys. An invalid token grants nothing.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { build } from "esbuild";
import { CLIENT } from "../../scripts/paths.mjs";

const { outputFiles } = await build({
  entryPoints: [join(CLIENT, "src/worker/oauth.ts")],
  bundle: true,
  write: false,
  format: "esm",
});
let times = 0;

/** A new instance of the module, which knows no keys yet. */
async function fresh() {
  times += 1;
  return await import(`data:text/javascript,${encodeURIComponent(`${outputFiles[0].text}\n// ${times}`)}`);
}

const RSA = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
const EC = { name: "ECDSA", namedCurve: "P-256" };
const pairOf = async (algorithm, bits = 2048) => {
  const more = algorithm === RSA ? { modulusLength: bits, publicExponent: new Uint8Array([1, 0, 1]) } : {};
  const pair = await crypto.subtle.generateKey({ ...algorithm, ...more }, true, ["sign", "verify"]);
  return { ...pair, jwk: await crypto.subtle.exportKey("jwk", pair.publicKey) };
};
const [rsa, ec, short, stranger] = await Promise.all([pairOf(RSA), pairOf(EC), pairOf(RSA, 1024), pairOf(RSA)]);

/** The issuer's documents by path, and the requested paths. */
let documents = {};
let requested = [];
const issuerServer = createServer((request, response) => {
  requested.push(request.url);
  const document = documents[request.url];
  if (document === undefined) return response.writeHead(404).end();
  if (typeof document === "number") return response.writeHead(document, { location: "/keys" }).end();
  response.writeHead(200, { "content-type": "application/json" });
  response.end(typeof document === "string" ? document : JSON.stringify(document));
});
issuerServer.listen(0, "127.0.0.1");
await once(issuerServer, "listening");
after(() => issuerServer.close());
const ISSUER = `http://127.0.0.1:${issuerServer.address().port}`;
const AUDIENCE = "https://memory.example.com";
const AT = `${AUDIENCE}/agents/session-agent/robin/mcp`;
const ENV = { OAUTH_ISSUER: ISSUER, OAUTH_AUDIENCE: AUDIENCE, SESSION_AGENT_TOKEN: "x".repeat(32) };

const base64 = (bytes) => Buffer.from(bytes).toString("base64url");

function issue(
  keys = [
    { ...rsa.jwk, kid: "r" },
    { ...ec.jwk, kid: "e" },
  ],
) {
  requested = [];
  documents = {
    "/.well-known/oauth-authorization-server": { issuer: ISSUER, jwks_uri: `${ISSUER}/keys` },
    "/keys": { keys },
  };
}

const now = () => Math.floor(Date.now() / 1000);
const usual = () => ({ iss: ISSUER, aud: AT, sub: "robin", exp: now() + 600, scope: "memory:read" });

async function tokenOf(claims, header = { alg: "RS256", kid: "r", typ: "at+jwt" }, pair = rsa) {
  const signed = `${base64(JSON.stringify(header))}.${base64(JSON.stringify(claims))}`;
  const how = pair === ec ? { name: "ECDSA", hash: "SHA-256" } : RSA;
  return `${signed}.${base64(await crypto.subtle.sign(how, pair.privateKey, Buffer.from(signed)))}`;
}

const requestWith = (token, url = AT) =>
  new Request(url, { method: "POST", headers: { authorization: `Bearer ${token}` } });

async function rights(oauth, token, { url, env = ENV } = {}) {
  const answer = await oauth.rightsOfToken(requestWith(token, url), env);
  return answer === undefined ? undefined : JSON.parse(answer);
}

test("a_token_gives_exactly_the_rights_of_its_scopes", async () => {
  issue();
  const oauth = await fresh();
  for (const [scope, expected] of [
    ["memory:read", { preset: "read", operations: ["loadSkill"] }],
    ["memory:write", { operations: ["callTool"] }],
    [
      "memory:read memory:write tool:weather tool:",
      { preset: "read", operations: ["loadSkill", "callTool"], allow: { tools: ["weather"] } },
    ],
    ["", { operations: [] }],
    ["openid admin * MEMORY:READ mintToken", { operations: [] }],
    [undefined, { operations: [] }],
    [7, { operations: [] }],
  ]) {
    const { expiresIn, ...answer } = await rights(oauth, await tokenOf({ ...usual(), scope }));
    assert.deepEqual(answer, expected, String(scope));
    assert.ok(expiresIn > 600 && expiresIn <= 631, expiresIn);
  }
  assert.equal(
    (await rights(oauth, await tokenOf({ ...usual(), scp: ["memory:write"], scope: undefined }))).operations.length,
    1,
  );
  const many = Array.from({ length: 40 }, (_, n) => `tool:t${n}`).join(" ");
  assert.equal((await rights(oauth, await tokenOf({ ...usual(), scope: many }))).allow.tools.length, 32);
  const long = await rights(oauth, await tokenOf({ ...usual(), exp: now() + 10 ** 7 }));
  assert.equal(long.expiresIn, 86_400);
  assert.ok(await rights(oauth, await tokenOf(usual(), { alg: "ES256", kid: "e" }, ec)));
  assert.ok(await rights(oauth, await tokenOf(usual(), { alg: "RS256" })), "without the name of a key");
  assert.equal(requested.filter((path) => path === "/keys").length, 1, "the keys are cached");
});

test("an_invalid_token_gives_no_rights", async () => {
  issue([
    { ...rsa.jwk, kid: "r" },
    { ...ec.jwk, kid: "e" },
    { ...short.jwk, kid: "short" },
    { ...rsa.jwk, kid: "enc", use: "enc" },
    { kid: "oct", kty: "oct", k: "AAAA" },
    null,
  ]);
  const oauth = await fresh();
  const good = await tokenOf(usual());
  assert.ok(await rights(oauth, good));
  const wrong = {
    "another issuer": await tokenOf({ ...usual(), iss: `${ISSUER}/` }),
    "another audience": await tokenOf({ ...usual(), aud: `${AUDIENCE}/agents/session-agent/eve/mcp` }),
    "the whole Worker, without a rule for agents": await tokenOf({ ...usual(), aud: AUDIENCE }),
    "no audience": await tokenOf({ ...usual(), aud: undefined }),
    "a beginning of the audience": await tokenOf({ ...usual(), aud: [AT.slice(0, -1), `${AT}/`] }),
    expired: await tokenOf({ ...usual(), exp: now() - 31 }),
    "without end": await tokenOf({ ...usual(), exp: undefined }),
    "an end that is text": await tokenOf({ ...usual(), exp: String(now() + 600) }),
    "not yet": await tokenOf({ ...usual(), nbf: now() + 60 }),
    "a nonsense beginning": await tokenOf({ ...usual(), nbf: "0" }),
    "an ID token": await tokenOf(usual(), { alg: "RS256", kid: "r", typ: "id+jwt" }),
    "a critical extension": await tokenOf(usual(), { alg: "RS256", kid: "r", crit: ["b64"], b64: false }),
    "another's key": await tokenOf(usual(), undefined, stranger),
    "a short key": await tokenOf(usual(), { alg: "RS256", kid: "short" }, short),
    "a key for another use": await tokenOf(usual(), { alg: "RS256", kid: "enc" }),
    "an unknown key": await tokenOf(usual(), { alg: "RS256", kid: "none" }),
    "a key of the wrong kind": await tokenOf(usual(), { alg: "ES256", kid: "r" }, ec),
    "a kid that is no text": await tokenOf(usual(), { alg: "RS256", kid: ["r"] }),
  };
  for (const [name, token] of Object.entries(wrong)) assert.equal(await rights(oauth, token), undefined, name);
  const [header, claims, signature] = good.split(".");
  for (const alg of ["none", "HS256", "RS512", "__proto__", "constructor", undefined]) {
    const changed = base64(JSON.stringify({ alg, kid: "r" }));
    assert.equal(await rights(oauth, `${changed}.${claims}.${signature}`), undefined, alg);
    assert.equal(await rights(oauth, `${changed}.${claims}.`), undefined, alg);
  }
  const more = base64(JSON.stringify({ ...usual(), scope: "memory:write" }));
  for (const token of [
    `${header}.${more}.${signature}`,
    `${header}.${claims}`,
    `${header}.${claims}.${signature}.x`,
    `${header}.${claims}.${signature.slice(1)}`,
    `${header}.${base64("[]")}.${signature}`,
    `${base64("null")}.${claims}.${signature}`,
    "a.b.c",
    "..",
    `${header}.${claims}.${"A".repeat(20_000)}`,
  ])
    assert.equal(await rights(oauth, token), undefined, token.slice(0, 80));
});

test("a_token_is_valid_only_at_an_agents_mcp_url", async () => {
  issue();
  const oauth = await fresh();
  const token = await tokenOf(usual());
  for (const url of [
    `${AUDIENCE}/agents/session-agent/robin/rpc/getSession`,
    `${AUDIENCE}/agents/session-agent/eve/mcp`,
    `${AUDIENCE}/agents/session-agent/robin/mcp/`,
    `${AUDIENCE}/agents/session-agent/robin/chat`,
    `${AUDIENCE}/agents/session-agent/%zz/mcp`,
    `${AUDIENCE}/mcp`,
  ])
    assert.equal(await rights(oauth, token, { url }), undefined, url);
  // The URL that a client requested, whatever host the Worker sees.
  assert.ok(await rights(oauth, token, { url: "http://internal/agents/session-agent/robin/mcp?sessionId=s" }));
  for (const env of [
    {},
    { ...ENV, OAUTH_AUDIENCE: undefined },
    { ...ENV, OAUTH_AUDIENCE: `${AUDIENCE}/` },
    { ...ENV, OAUTH_ISSUER: "http://login.example.com" },
    { ...ENV, OAUTH_ISSUER: "login" },
    { ...ENV, SESSION_AGENT_TOKEN: undefined },
  ]) {
    assert.equal(await rights(oauth, token, { env }), undefined, JSON.stringify(env));
    assert.equal(
      oauth.describe(
        new Request(`${AUDIENCE}/.well-known/oauth-protected-resource/agents/session-agent/robin/mcp`),
        env,
      ),
      null,
    );
  }
});

test("the_agent_template_maps_a_subject_to_its_agents", async () => {
  issue();
  const oauth = await fresh();
  for (const [template, claims, agent, isNamed] of [
    ["user:{sub}", { sub: "robin" }, "user:robin", true],
    ["user:{sub}", { sub: "robin" }, "user:robin2", false],
    ["user:{sub}", { sub: "robin" }, "user:robin:x", false],
    ["{org}:{sub}:*", { org: "acme", sub: "robin" }, "acme:robin:coder", true],
    ["{org}:{sub}:*", { org: "acme", sub: "robin" }, "acme:robin", false],
    ["{org}:{sub}:*", { org: "acme", sub: "rob" }, "acme:robin:coder", false],
    ["{sub}", { sub: "a:b" }, "a:b", false],
    ["{sub}", { sub: "*" }, "anything", false],
    ["{sub}*", { sub: "" }, "anything", false],
    ["{sub}", { sub: 7 }, "7", false],
    ["{sub}", {}, "undefined", false],
    ["{__proto__}", {}, "[object Object]", false],
    ["{sub}", { sub: "{aud}", aud: "x" }, "x", false],
    ["{sub}", { sub: "x".repeat(201) }, "x".repeat(201), false],
    ["everybody", { sub: "robin" }, "everybody", false],
    ["*", { sub: "robin" }, "anything", false],
    ["", { sub: "robin" }, "", false],
  ])
    assert.equal(oauth.isNamedBy(template, claims, agent), isNamed, `${template} ${JSON.stringify(claims)} ${agent}`);
  const env = { ...ENV, OAUTH_AGENTS: "user:{sub}" };
  const at = (agent) => `${AUDIENCE}/agents/session-agent/${encodeURIComponent(agent)}/mcp`;
  const whole = await tokenOf({ ...usual(), aud: ["other", AUDIENCE] });
  assert.ok(await rights(oauth, whole, { env, url: at("user:robin") }));
  assert.equal(await rights(oauth, whole, { env, url: at("user:eve") }), undefined);
  // The rule also applies to a token of one URL.
  const eves = await tokenOf({ ...usual(), aud: at("user:eve") });
  assert.equal(await rights(oauth, eves, { env, url: at("user:eve") }), undefined);
});

test("an_unavailable_or_invalid_issuer_rejects_everyone", async () => {
  const token = await tokenOf(usual());
  const right = { issuer: ISSUER, jwks_uri: `${ISSUER}/keys` };
  const key = { ...rsa.jwk, kid: "r" };
  for (const [metadata, keys, isGood] of [
    [right, { keys: [key] }, true],
    [undefined, { keys: [key] }, false],
    [{ ...right, issuer: "https://else.example.com" }, { keys: [key] }, false],
    [{ ...right, jwks_uri: "http://else.example.com/keys" }, { keys: [key] }, false],
    [{ ...right, jwks_uri: undefined }, { keys: [key] }, false],
    [right, undefined, false],
    [right, 302, false],
    [right, 500, false],
    [right, "{", false],
    [right, "[]", false],
    [right, { keys: {} }, false],
    [right, { keys: [] }, false],
    [right, { keys: Array(64).fill({}).concat(key) }, false],
    [right, { keys: [key], more: "x".repeat(70_000) }, false],
    [right, { keys: [{ ...key, n: undefined }] }, false],
    [right, { keys: [{ ...key, d: "AQAB", key_ops: ["sign"] }] }, true],
  ]) {
    issue();
    documents = { "/.well-known/oauth-authorization-server": metadata, "/keys": keys };
    const answer = await rights(await fresh(), token);
    assert.equal(answer !== undefined, isGood, JSON.stringify([metadata, keys]).slice(0, 200));
  }
  // OpenID's address, if the other one does not exist.
  documents = { "/.well-known/openid-configuration": right, "/keys": { keys: [key] } };
  assert.ok(await rights(await fresh(), token));
});

test("invented_tokens_do_not_trigger_a_request_each", async () => {
  issue();
  const oauth = await fresh();
  for (let n = 0; n < 20; n += 1) await rights(oauth, await tokenOf(usual(), { alg: "RS256", kid: `k${n}` }));
  assert.equal(requested.filter((path) => path === "/keys").length, 1);
  assert.ok(await rights(oauth, await tokenOf(usual())));
  // Tokens of other issuers and expired tokens trigger none, either.
  const before = requested.length;
  const other = await fresh();
  await rights(other, await tokenOf({ ...usual(), iss: "https://else.example.com" }));
  await rights(other, await tokenOf({ ...usual(), exp: 1 }));
  assert.equal(requested.length, before);
  // Each of several concurrent requests is answered.
  const together = await fresh();
  const token = await tokenOf(usual());
  const answer = await Promise.all(Array.from({ length: 8 }, () => rights(together, token)));
  assert.ok(answer.every((rights) => rights !== undefined));
});

test("a_client_discovers_the_issuer", async () => {
  const oauth = await fresh();
  const path = "/agents/session-agent/robin/mcp";
  const url = `http://internal/.well-known/oauth-protected-resource${path}`;
  const answer = await oauth.describe(new Request(url), ENV).json();
  assert.deepEqual(answer, {
    resource: AT,
    authorization_servers: [ISSUER],
    scopes_supported: ["memory:read", "memory:write"],
    bearer_methods_supported: ["header"],
    resource_name: "Session Agent",
  });
  for (const other of ["", "/", "/agents", `${path}/x`, "/agents/session-agent/robin/chat"])
    assert.equal(
      oauth.describe(new Request(`${AUDIENCE}/.well-known/oauth-protected-resource${other}`), ENV),
      null,
      other,
    );
  assert.equal(oauth.describe(new Request(url, { method: "POST" }), ENV), null);
  const challengeOf = (status, headers = {}, at = AT) =>
    oauth.challenge(new Request(at, { headers }), ENV, new Response(null, { status })).headers.get("www-authenticate");
  const metadata = `resource_metadata="${AUDIENCE}/.well-known/oauth-protected-resource${path}"`;
  assert.equal(challengeOf(401), `Bearer ${metadata}`);
  assert.equal(challengeOf(401, { authorization: "Bearer x" }), `Bearer ${metadata}, error="invalid_token"`);
  assert.equal(challengeOf(403), `Bearer ${metadata}, error="insufficient_scope", scope="memory:read memory:write"`);
  assert.equal(challengeOf(200), null);
  assert.equal(challengeOf(401, {}, `${AUDIENCE}/agents/session-agent/robin/chat`), null);
});
