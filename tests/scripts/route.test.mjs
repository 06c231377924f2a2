// The namespaces that `routeSessionAgent` reaches (packages/session-agent/src/worker/route.ts):
// only those that the program names. The URL is untrusted.

import assert from "node:assert/strict";
import { createCipheriv, createHmac, randomBytes } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { CLIENT } from "../../scripts/paths.mjs";

const { outputFiles } = await build({
  entryPoints: [join(CLIENT, "src/worker/route.ts")],
  bundle: true,
  write: false,
  format: "esm",
});
const { routeSessionAgent } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

/** A Worker's bindings. `reached` has the objects that were reached, as `binding/agent path`. */
function bindings(names) {
  const reached = [];
  const env = { SESSION_AGENT_TOKEN: "a secret", SERVICE: { fetch: () => assert.fail("a service") } };
  for (const name of names) {
    env[name] = {
      idFromName: (agent) => agent,
      get: (agent) => ({
        fetch: async (request) => {
          reached.push(`${name}/${agent} ${new URL(request.url).pathname}`);
          return new Response("reached");
        },
      }),
    };
  }
  return { env, reached };
}

const NAMES = ["SESSION_AGENT", "DIRECTORY", "COUNTER", "MyAgent", "SESSION_AGENTS", "session-agent-2", "ROOMS"];
const KINDS = [
  ...["session-agent", "directory", "counter", "my-agent", "session-agents", "rooms", "service", "MyAgent"],
  ...["SESSION_AGENT", "DIRECTORY", "session-agent-token", "__proto__", "constructor", "toString", "..", "%64irectory"],
];

const ask = (env, kind, options, rest = "ann/rpc/getSession") =>
  routeSessionAgent(new Request(`https://agent.example/agents/${kind}/${rest}`, { method: "POST" }), env, options);

test("a_url_reaches_agents_and_no_other_namespace", async () => {
  let tried = 0;
  for (let set = 0; set < 2 ** NAMES.length; set += 1) {
    const names = NAMES.filter((_, n) => set & (1 << n));
    for (const kind of KINDS) {
      const { env, reached } = bindings(names);
      const response = await ask(env, kind);
      const isTheirs = kind === "session-agent" && names.includes("SESSION_AGENT");
      assert.deepEqual(reached, isTheirs ? ["SESSION_AGENT/ann /agents/session-agent/ann/rpc/getSession"] : [], kind);
      // An agent's URL without the binding is a configuration error.
      const isUnbound = kind === "session-agent" && !isTheirs;
      assert.equal(response === null, !isTheirs && !isUnbound);
      if (isUnbound) assert.equal(response.status, 501);
      tried += 1;
    }
  }
  console.log(`${tried} addresses`);
});

test("without_the_binding_an_agents_url_explains_what_to_configure", async () => {
  const { env } = bindings(["MY_AGENT"]);
  const response = await ask(env, "session-agent");
  assert.equal(response.status, 501);
  const { error } = await response.json();
  assert.equal(error.code, "not_configured");
  assert.deepEqual(error.details, { binding: "SESSION_AGENT" });
  assert.match(error.message, /no binding `SESSION_AGENT`.*`\{ namespace: env\.…\}`/);
  assert.equal((await ask({}, "session-agent", { namespace: undefined })).status, 501);
});

test("namespaces_named_by_the_program_are_reached", async () => {
  const { env, reached } = bindings(NAMES);
  const options = { namespaces: { MyAgent: env.MyAgent, ROOMS: env.ROOMS } };
  for (const kind of KINDS) await ask(env, kind, options);
  assert.deepEqual(reached, [
    "MyAgent/ann /agents/session-agent/ann/rpc/getSession",
    "ROOMS/ann /agents/session-agent/ann/rpc/getSession",
  ]);
  reached.length = 0;
  for (const kind of ["session-agent", "anything"]) await ask(env, kind, { namespace: env.ROOMS });
  assert.deepEqual(reached, Array(2).fill("ROOMS/ann /agents/session-agent/ann/rpc/getSession"));
});

test("the_directory_is_never_reached", async () => {
  const { env, reached } = bindings(NAMES);
  for (const kind of KINDS) {
    for (const options of [
      { namespace: env.DIRECTORY },
      { namespaces: { DIRECTORY: env.DIRECTORY, SESSION_AGENT: env.DIRECTORY, COUNTER: env.DIRECTORY } },
    ]) {
      assert.equal(await ask(env, kind, options), null);
    }
  }
  assert.deepEqual(reached, []);
});

test("an_invalid_namespace_is_ignored", async () => {
  const { env } = bindings(["SESSION_AGENT"]);
  for (const namespace of [null, {}, "SESSION_AGENT", env.SERVICE]) {
    assert.equal(await ask(env, "session-agent", { namespace }), null);
    assert.equal(await ask(env, "session-agent", { namespaces: { SESSION_AGENT: namespace } }), null);
  }
  for (const path of [
    "",
    "/",
    "/agents",
    "/agents/session-agent",
    "/agents/session-agent/",
    "/agents/session-agent/%zz",
  ])
    assert.equal(await routeSessionAgent(new Request(`https://agent.example${path}`), env), null, path);
});

const KEY = "a key of at least 32 characters, for tests";

/** A state as an agent creates it (chat/tools/mcp/oauth/begin.rs, access/seal.rs). */
function stateOf(agent, server, { key = KEY, context = ["state", agent, server] } = {}) {
  const derived = createHmac("sha256", key).update("session-agent sealing key 1").digest();
  const iv = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", derived, iv).setAAD(Buffer.from(JSON.stringify(context)));
  const sealed = Buffer.concat([iv, cipher.update("random"), cipher.final(), cipher.getAuthTag()]);
  return textOf([agent, server, `1.${sealed.toString("base64url")}`]);
}

const textOf = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const partsOf = (state) => JSON.parse(Buffer.from(state, "base64url"));

test("an_oauth_redirect_reaches_the_agent_in_its_state", async () => {
  const { env, reached } = bindings(NAMES);
  env.TOOL_TOKEN_KEY = KEY;
  const back = (query, options) =>
    routeSessionAgent(new Request(`https://agent.example/oauth/callback?${query}`), env, options);
  const named = `code=x&state=${stateOf("añn/1", "wiki")}`;
  await back(named);
  await back(named, { namespaces: { MyAgent: env.MyAgent } });
  await back(named, { namespace: env.ROOMS });
  await routeSessionAgent(new Request("https://agent.example/oauth/client.json"), env);
  assert.deepEqual(reached, [
    "SESSION_AGENT/añn/1 /oauth/callback",
    "MyAgent/añn/1 /oauth/callback",
    "ROOMS/añn/1 /oauth/callback",
    "SESSION_AGENT/oauth /oauth/client.json",
  ]);
  reached.length = 0;
  // The state names no class.
  assert.equal(await back(named, { namespaces: { MyAgent: env.MyAgent, ROOMS: env.ROOMS } }), null);
  assert.equal(await back(named, { namespace: env.DIRECTORY }), null);
  assert.deepEqual(reached, []);
});

test("an_unknown_state_is_refused_without_waking_an_agent", async () => {
  const { env, reached } = bindings(["SESSION_AGENT"]);
  const back = (state) =>
    routeSessionAgent(new Request(`https://agent.example/oauth/callback?code=x&state=${state}`), env);
  const own = stateOf("ann", "wiki");
  // A deployment without the key has begun no authorization.
  for (const key of [undefined, "", "a short key", {}]) {
    env.TOOL_TOKEN_KEY = key;
    assert.equal(await back(own), null);
  }
  env.TOOL_TOKEN_KEY = KEY;
  const [agent, server, nonce] = partsOf(own);
  const foreign = [
    ...["", "x", "W10", "bnVsbA", textOf([7]), textOf([]), textOf({}), textOf(["ann"]), textOf(["ann", "wiki", 7])],
    textOf(["bob", server, nonce]),
    textOf([agent, "other", nonce]),
    ...["", "n", "1.", "1.AAAA", nonce.slice(1), nonce.slice(0, -2)].map((guessed) => textOf([agent, server, guessed])),
    stateOf("ann", "wiki", { key: `${KEY}!` }),
    stateOf("ann", "wiki", { context: ["ann", "wiki"] }),
    stateOf("", "wiki"),
  ];
  for (const state of foreign) assert.equal(await back(state), null, state);
  assert.deepEqual(reached, []);
  await back(own);
  assert.deepEqual(reached, ["SESSION_AGENT/ann /oauth/callback"]);
});
