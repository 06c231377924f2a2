// The Workers of the templates and of the chat example in their deployed form: who can log in, how,
// and what an outsider learns. Their agents are fakes that record the requests.

import assert from "node:assert/strict";
import { createHash, createHmac, randomUUID } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { CLIENT, ROOT } from "../../scripts/paths.mjs";

const TEMPLATES = join(ROOT, "packages/create-session-agent/templates");

/** The imports from the packages that a project installs. */
const PACKAGES = {
  "session-agent/worker": `export { routeSessionAgent } from "${join(CLIENT, "src/worker/route.ts")}";
    export class SessionAgent { constructor(ctx) { this.ctx = ctx; } }`,
  "session-agent": `export const sessionAgent = (namespace, name) => new Proxy({}, {
    get: (_, operation) => (input) => namespace.getByName(name)[operation](input) });`,
  "cloudflare:workers": "export class WorkerEntrypoint {}",
  ai: "export const tool = (tool) => tool;",
  zod: "const any = new Proxy(() => any, { get: () => any, apply: () => any }); export const z = any;",
};

async function workerOf(entry) {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    plugins: [
      {
        name: "packages",
        setup(build) {
          build.onResolve({ filter: /^[a-z][a-z0-9:/-]+$/ }, ({ path }) =>
            path in PACKAGES ? { path, namespace: "packages" } : undefined,
          );
          build.onLoad({ filter: /.*/, namespace: "packages" }, ({ path }) => ({
            contents: PACKAGES[path],
            resolveDir: ROOT,
          }));
        },
      },
    ],
  });
  return await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}

const HOST = "https://chat.example";

/** A Worker's bindings, and the names of the agents that were asked. */
function bindings() {
  const reached = [];
  const agent = (name) => ({
    fetch: async () => (reached.push(name), new Response("reached")),
    mintToken: async (rights) => (reached.push(name), { token: JSON.stringify(rights), expiresAt: 0 }),
    getBlock: async () => ({}),
  });
  const namespace = { getByName: agent, get: agent, idFromName: (name) => name };
  return { reached, env: { SESSION_AGENT: namespace, MEMORY: namespace, SESSION_AGENT_TOKEN: "the secret" } };
}

/** The Workers that recognize visitors by a cookie. */
const LOGINS = [
  { name: "react", entry: join(TEMPLATES, "react/src/worker.ts"), path: "/api/login" },
  { name: "example", entry: join(ROOT, "examples/session-agent/src/worker.ts"), path: "/api/token" },
];

for (const { name, entry, path } of LOGINS) {
  const { default: worker } = await workerOf(entry);

  async function login({ at = HOST, headers = {}, body } = {}) {
    const { env, reached } = bindings();
    const response = await worker.fetch(new Request(`${at}${path}`, { method: "POST", headers, body }), env);
    const cookie = response.headers.get("set-cookie");
    const answer = response.ok ? await response.json() : {};
    return { status: response.status, cookie, reached, ...answer };
  }

  test(`${name}: an_agent_name_does_not_reveal_the_cookie`, async () => {
    const seen = new Set();
    for (let n = 0; n < 200; n += 1) {
      const at = n % 2 === 0 ? HOST : "http://localhost:8787";
      const { agent, cookie, token } = await login({ at });
      const [pair] = cookie.split("; ");
      const secret = pair.split("=")[1];
      // Nor is it anything that could be looked up: only the secret leads to it.
      assert.match(agent, /^visitor:[0-9a-f]{64}$/);
      for (const text of [agent, token ?? ""]) {
        assert.ok(!text.includes(secret) && !text.includes(secret.replaceAll("-", "")));
        assert.ok(!secret.split("-").some((part) => part.length > 4 && text.includes(part)));
      }
      assert.notEqual(agent, `visitor:${createHash("sha256").update(secret).digest("hex")}`);
      const mac = createHmac("sha256", secret).update("the name of a visitor's agent").digest("hex");
      assert.equal(agent, `visitor:${mac}`);
      const again = await login({ at, headers: { cookie: pair } });
      assert.deepEqual([again.agent, again.reached.every((one) => one === agent)], [agent, true]);
      seen.add(agent);
    }
    assert.equal(seen.size, 200);
  });

  test(`${name}: a_cookie_is_sent_only_to_this_host_over_https`, async () => {
    const { cookie } = await login();
    const [pair, ...attributes] = cookie.split("; ");
    assert.match(pair, /^__Host-visitor=[0-9a-f-]{36}$/);
    assert.deepEqual(attributes, ["Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=31536000", "Secure"]);
    const local = await login({ at: "http://localhost:8787" });
    assert.match(local.cookie, /^visitor=[0-9a-f-]{36}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=31536000$/);
  });

  test(`${name}: a_forged_cookie_is_rejected`, async () => {
    const secret = randomUUID();
    const { agent } = await login({ headers: { cookie: `__Host-visitor=${secret}` } });
    const known = (cookie) => login({ headers: { cookie } }).then((answer) => answer.agent === agent);
    assert.ok(await known(`a=b; __Host-visitor=${secret}; c=d`));
    for (const cookie of [
      // A subdomain can set the first, and two of one name.
      `visitor=${secret}`,
      `__Host-visitor=${secret}; __Host-visitor=${randomUUID()}`,
      `__Host-visitor=${randomUUID()}; __Host-visitor=${secret}`,
      `x__Host-visitor=${secret}`,
      `__Host-visitor=${secret}x`,
      `__Host-visitor="${secret}"`,
      `__host-visitor=${secret}`,
      `__Host-visitor=${secret.toUpperCase()}`,
      `__Host-visitor=${"-".repeat(36)}`,
      `__Host-visitor=${agent}`,
      `__Host-visitor=${agent.slice("visitor:".length)}`,
      `a=__Host-visitor=${secret}`,
      "__Host-visitor",
      "=",
      "",
    ]) {
      assert.equal(await known(cookie), false, cookie);
    }
  });

  test(`${name}: a_cross_site_page_cannot_log_in`, async () => {
    const cookie = `__Host-visitor=${randomUUID()}`;
    const elsewhere = ["https://evil.example", "https://www.chat.example", "http://chat.example", "null", "", "*"];
    let tried = 0;
    for (const site of [undefined, "same-origin", "same-site", "cross-site", "none", "nonsense"]) {
      for (const origin of [undefined, HOST, ...elsewhere]) {
        const headers = { cookie, ...(site && { "sec-fetch-site": site }), ...(origin !== undefined && { origin }) };
        const isOurs = site === undefined ? origin === undefined || origin === HOST : site === "same-origin";
        const { status, cookie: set, reached } = await login({ headers });
        assert.deepEqual([status, set !== null, reached.length > 0], isOurs ? [200, true, true] : [403, false, false]);
        tried += 1;
      }
    }
    console.log(`${tried} requests`);
  });

  test(`${name}: a_url_reaches_only_agents`, async () => {
    for (const at of ["/agents/session-agent", "/agents/directory/x", "/agents/", "/api/other", `${path}/x`, "//"]) {
      const { env, reached } = bindings();
      env.DIRECTORY = env.SESSION_AGENT;
      const request = new Request(`${HOST}${at}`, { method: "POST", body: "{}" });
      // The example passes all of these on to Session Agent, which asks for the token.
      if (name === "example" && at.startsWith("/agents/")) continue;
      assert.equal((await worker.fetch(request, env)).status, 404, at);
      assert.deepEqual(reached, [], at);
    }
    const { env } = bindings();
    assert.equal((await worker.fetch(new Request(`${HOST}${path}`), env)).status, 404);
  });
}

test("react: a_token_has_the_pages_rights_whatever_is_requested", async () => {
  const { default: worker } = await workerOf(LOGINS[0].entry);
  const ask = async (body) => {
    const { env } = bindings();
    const response = await worker.fetch(new Request(`${HOST}/api/login`, { method: "POST", body }), env);
    return JSON.parse((await response.json()).token);
  };
  const { operations, ...rights } = await ask();
  // One agent is one visitor.
  assert.deepEqual(rights, { expiresIn: 900, allow: { agentMemory: true } });
  assert.deepEqual(operations.toSorted(), [
    ...["cancelTurn", "chat", "decideProposal", "deleteEntry", "getBlocks", "getBranches", "getHistory"],
    ...["getProposals", "getTurns", "listEntries", "listSessions", "loadEvents", "runTurn", "setBlock", "setLeaf"],
    "updateSession",
  ]);
  const greedy = { sessionId: "a", operations: ["destroy"], allow: { models: ["x"] }, expiresIn: 86400, agent: "bob" };
  for (const body of ["", "{}", "null", "[]", "no JSON", JSON.stringify(greedy)])
    assert.deepEqual(await ask(body), { operations, ...rights }, body);
});

test("class: the_placeholder_login_works_only_locally", async () => {
  const { default: worker, Assistant } = await workerOf(join(TEMPLATES, "class/src/index.ts"));
  const headers = { cookie: "user=ann" };
  const here = ["http://localhost:8787", "http://127.0.0.1:8787", "http://[::1]:8787", "https://localhost"];
  const elsewhere = [
    ...["https://my-agent.example.workers.dev", "https://chat.example", "http://192.168.0.2:8787", "http://0.0.0.0"],
    ...["https://localhost.evil.example", "https://127.0.0.1.nip.io", "http://127.0.0.2", "https://agent"],
    ...["https://xlocalhost", "http://[::2]", "http://localhost@chat.example".replace("localhost@", "")],
  ];
  let tried = 0;
  for (const at of [...here, ...elsewhere]) {
    const isHere = here.includes(at);
    const object = new Assistant({ id: { name: "ann" } });
    for (const [method, rest] of [
      ["POST", "ann/chat"],
      ["POST", "ann/rpc/getHistory"],
      ["POST", "ann/mcp"],
      ["GET", "ann"],
      ["GET", "ann/export"],
      ["POST", "bob/rpc/runTurn"],
    ]) {
      for (const more of [
        {},
        { host: "localhost" },
        { "x-forwarded-host": "localhost" },
        { origin: "http://localhost" },
      ]) {
        const { env, reached } = bindings();
        const request = new Request(`${at}/agents/session-agent/${rest}`, { method, headers: { ...headers, ...more } });
        const response = await worker.fetch(request, env);
        assert.equal(reached.length, isHere ? 1 : 0, `${at} ${rest}`);
        if (!isHere) {
          assert.equal(response.status, 501);
          assert.match((await response.json()).error.message, /Write your own login in `userOf` in src\/index\.ts/);
        }
        // A Worker that binds the object calls it directly.
        const granted = await object.authorize(request).catch(() => null);
        const rights = { preset: "chat", sessionId: "chat", allow: { agentMemory: true } };
        assert.deepEqual(granted, isHere ? rights : null);
        tried += 1;
      }
    }
  }
  console.log(`${tried} requests`);
});

test("class: a_user_has_exactly_the_agent_of_their_name", async () => {
  const { Assistant } = await workerOf(join(TEMPLATES, "class/src/index.ts"));
  const grantOf = async (name, cookie) => {
    const headers = cookie === undefined ? {} : { cookie };
    return await new Assistant({ id: { name } }).authorize(new Request("http://localhost:8787/", { headers }));
  };
  assert.ok(await grantOf("ann", "a=b; user=ann; c=d"));
  // Nobody is logged in: `undefined` leaves the request to the Worker's rules.
  for (const cookie of [undefined, "", "user=", "xuser=ann", "user=ann.b", "a=user=ann", "user=%61nn"]) {
    assert.equal(await grantOf("ann", cookie), undefined, `ann ${cookie}`);
  }
  for (const cookie of ["user=bob", "user=Ann", "user=annn"]) assert.equal(await grantOf("ann", cookie), null, cookie);
  for (const name of ["ann b", "ann:1", "", undefined, null]) {
    assert.equal((await grantOf(name, `user=${name}`)) ?? null, null, `${name}`);
  }
});
