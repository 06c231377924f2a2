// What a custom class offers over the Model Context Protocol, and the streams that announce changed
// resources: the front Worker holds them open while the object may be evicted.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { call } from "./chat_server.mjs";
import { startServer } from "./harness.mjs";

const TOKEN = "the secret of this test, long enough";
const owner = { authorization: `Bearer ${TOKEN}` };
const NEWEST = "2026-07-28";
const MEMORY = "memory://block/memory";

const CLASS = `
import worker, { prompt, resource, routeSessionAgent, SessionAgent as Base } from "session-agent/worker";
export default class extends worker {
  fetch(request) {
    if (!new URL(request.url).pathname.startsWith("/routed/")) return super.fetch(request);
    return routeSessionAgent(new Request(request.url.replace("/routed/", "/"), request), this.env);
  }
}
const echo = (name, uriTemplate, more = {}) =>
  resource({ name, uriTemplate, read: (variables) => JSON.stringify(variables), ...more });
export class SessionAgent extends Base {
  tools() {
    const asks = { who: { method: "elicitation/create", params: { message: "Who?" } } };
    const execute = (_, { inputResponses, requestState }) => inputResponses === undefined
      ? { resultType: "input_required", inputRequests: asks, requestState: "mine" }
      : JSON.stringify({ inputResponses, requestState });
    return { greet: { description: "Greets", inputSchema: { type: "object", properties: {} }, execute } };
  }
  mcp() {
    return {
      resources: [
        resource({ uri: "own://memory", name: "memory", description: "The memory", size: 3,
          read: async (_, { agent, sessionId, uri }) =>
            JSON.stringify({ agent, sessionId, uri, text: (await this.getBlock({ label: "memory" })).content }) }),
        resource({ uri: "own://bytes", name: "bytes", read: () => new Uint8Array([1, 2, 3]) }),
        resource({ uri: "own://several", name: "several", mimeType: "text/html", read: () => ({ contents: [
          "<p>", { uri: "own://part", text: "x", mimeType: "text/plain" }, { blob: new Uint8Array([1]).buffer }] }) }),
        resource({ uri: "own://none", name: "none", read: () => null }),
        resource({ uri: "own://throws", name: "throws", read: () => { throw new Error("a secret cause"); } }),
        resource({ uri: "own://wrong", name: "wrong", read: () => 7 }),
        resource({ uri: "own://long", name: "long", read: () => "x".repeat(5 << 20) }),
        echo("ticket", "tickets://{id}", { complete: { id: async (typed, { arguments: others }) =>
          [typed + "1", typed + "2", ...Object.keys(others)] } }),
        echo("file", "files://{+path}.{kind}"),
        echo("pair", "pairs://{a}/{b}"),
        // None of these can be.
        echo("of memory", "memory://{id}"), echo("no scheme", "x{id}"), echo("joined", "a://{b}{c}"),
        echo("twice", "a://{b}/{b}"), echo("none", "a://b"), echo("brace", "a://{b"), echo("", "a://{b}"),
        echo("ticket", "tickets://{id}"), { name: "no read", uri: "own://x" }, null,
      ],
      prompts: [
        prompt({ name: "review", title: "Review", description: "Reviews", arguments: [
          { name: "code", required: true }, { name: "tone", complete: ["kind", "curt"] }],
          get: ({ code, tone }, { agent }) => ({ messages: [
            { role: "user", content: code + " " + tone + " " + agent },
            { role: "assistant", content: { type: "image", data: new Uint8Array([1]), mimeType: "image/png" } },
            { role: "user", content: { type: "resource", resource: { uri: "own://bytes", blob: new Uint8Array([2]) } } },
          ] }) }),
        prompt({ name: "throws", get: () => { throw new Error("a secret cause"); } }),
        prompt({ name: "wrong", get: () => [{ role: "system", content: "x" }] }),
        prompt({ name: "system", get: () => "not the agent's" }),
      ],
    };
  }
}`;

const server = await startServer({ secrets: { SESSION_AGENT_TOKEN: TOKEN }, own: CLASS });
after(() => server.stop());

async function sdk() {
  const require = createRequire(new URL("../conformance/package.json", import.meta.url));
  const load = async (name) => await import(pathToFileURL(require.resolve(name)).href);
  return {
    ...(await load("@modelcontextprotocol/sdk/client/index.js")),
    ...(await load("@modelcontextprotocol/sdk/client/streamableHttp.js")),
    ...(await load("@modelcontextprotocol/sdk/types.js")),
  };
}

async function connected(agent, at = "") {
  const { Client, StreamableHTTPClientTransport, ...types } = await sdk();
  const client = new Client({ name: "a test", version: "1.0.0" });
  const url = new URL(`${at}/agents/session-agent/${agent}/mcp`, server.url);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: owner } }));
  return { client, ...types };
}

const define = (agent) => call(server, agent, "defineBlock", { label: "memory", kind: "writable" }, owner);
const write = (agent, content) => call(server, agent, "setBlock", { label: "memory", content }, owner);

const open = (agent, init, at = "") =>
  fetch(new URL(`${at}/agents/session-agent/${agent}/mcp`, server.url), {
    ...init,
    headers: { accept: "text/event-stream, application/json", ...owner, ...init.headers },
  });

/** The stream of a client with a handshake. */
const follow = (agent, session, headers = {}) =>
  open(agent, { headers: { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25", ...headers } });

const meta = {
  _meta: {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {},
  },
};

const listen = (agent, notifications, at) =>
  open(
    agent,
    {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "mcp-protocol-version": NEWEST,
        "mcp-method": "subscriptions/listen",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: "l1",
        method: "subscriptions/listen",
        params: { notifications, ...meta },
      }),
    },
    at,
  );

/** The events of a stream, one after the other: `{ id, data }`. Comments are left out. */
async function* events(response) {
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  let text = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const of = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      if (of("id") !== undefined || of("data")) yield { id: of("id"), data: of("data") && JSON.parse(of("data")) };
    }
  }
}

test("a_client_lists_reads_and_gets_what_the_class_offers", async () => {
  const agent = "offers";
  await define(agent);
  await write(agent, "Likes tea.");
  const { client } = await connected(agent);
  try {
    const { resources } = await client.listResources();
    const own = resources.filter(({ uri }) => uri.startsWith("own:"));
    assert.deepEqual(
      own.map(({ name }) => name),
      ["memory", "bytes", "several", "none", "throws", "wrong", "long"],
    );
    assert.deepEqual(own[0], { uri: "own://memory", name: "memory", description: "The memory", size: 3 });
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.deepEqual(
      resourceTemplates.map(({ uriTemplate }) => uriTemplate).filter((template) => !template.startsWith("memory:")),
      ["tickets://{id}", "files://{+path}.{kind}", "pairs://{a}/{b}"],
    );
    const read = async (uri) => (await client.readResource({ uri })).contents;
    assert.deepEqual(JSON.parse((await read("own://memory"))[0].text), {
      agent,
      uri: "own://memory",
      text: "Likes tea.",
    });
    assert.deepEqual(await read("own://bytes"), [
      { uri: "own://bytes", mimeType: "application/octet-stream", blob: "AQID" },
    ]);
    assert.deepEqual(await read("own://several"), [
      { uri: "own://several", mimeType: "text/html", text: "<p>" },
      { uri: "own://part", mimeType: "text/plain", text: "x" },
      { uri: "own://several", mimeType: "text/html", blob: "AQ==" },
    ]);
    for (const [uri, variables] of [
      ["tickets://a%20b", { id: "a b" }],
      ["files://a/b.c/d.txt", null],
      ["files://a/b.txt", { path: "a/b", kind: "txt" }],
      ["pairs://x/y", { a: "x", b: "y" }],
      ["tickets://a/b", null],
      ["tickets://", null],
      ["tickets://%zz", null],
      ["pairs://x/y/z", null],
      ["own://none", null],
    ]) {
      if (variables === null) await assert.rejects(read(uri), /There is no such resource/, uri);
      else assert.deepEqual(JSON.parse((await read(uri))[0].text), variables, uri);
    }
    for (const name of ["throws", "wrong", "long"]) {
      await assert.rejects(read(`own://${name}`), ({ message }) => {
        assert.match(message, /The agent's class could not give `own:\/\/\w+`\. The Worker's log contains the error\./);
        return !message.includes("secret");
      });
    }
    const { prompts } = await client.listPrompts();
    assert.deepEqual(
      prompts.map(({ name }) => name),
      ["system", "review", "throws", "wrong"],
    );
    const { messages } = await client.getPrompt({ name: "review", arguments: { code: "1 + 1", more: "x" } });
    assert.deepEqual(messages, [
      { role: "user", content: { type: "text", text: `1 + 1 undefined ${agent}` } },
      { role: "assistant", content: { type: "image", data: "AQ==", mimeType: "image/png" } },
      { role: "user", content: { type: "resource", resource: { uri: "own://bytes", blob: "Ag==" } } },
    ]);
    await assert.rejects(client.getPrompt({ name: "review", arguments: {} }), /The argument `code` is missing/);
    await assert.rejects(client.getPrompt({ name: "throws" }), /could not give `throws`/);
    await assert.rejects(client.getPrompt({ name: "wrong" }), /can't be passed on/);
    const complete = async (ref, name, value, others) => {
      const context = others && { arguments: others };
      return (await client.complete({ ref, argument: { name, value }, ...(context && { context }) })).completion.values;
    };
    assert.deepEqual(await complete({ type: "ref/prompt", name: "review" }, "tone", "k"), ["kind"]);
    const ticket = { type: "ref/resource", uri: "tickets://{id}" };
    assert.deepEqual(await complete(ticket, "id", "7", { 78: "x" }), ["71", "72", "78"]);
  } finally {
    await client.close();
  }
  const logged = server.logs.map(({ message }) => message).join("\n");
  assert.match(logged, /`mcp`: the resource `joined` is left out/);
  assert.match(logged, /a secret cause/);
});

for (const at of ["", "/routed"]) {
  test(`a_client_is_notified_of_a_changed_resource${at.replace("/", "_")}`, async () => {
    const agent = `follows${at.length}`;
    await define(agent);
    const { client, ResourceUpdatedNotificationSchema } = await connected(agent, at);
    try {
      assert.equal(client.getServerCapabilities().resources.subscribe, true);
      const notified = [];
      let notify;
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
        notified.push(params.uri);
        notify?.();
      });
      const received = async (count) => {
        while (notified.length < count) await new Promise((resolve) => (notify = resolve));
      };
      await client.subscribeResource({ uri: MEMORY });
      await write(agent, "Likes tea.");
      await received(1);
      // The stream outlives the object.
      await server.evict(agent);
      await write(agent, "Likes coffee.");
      await received(2);
      await client.subscribeResource({ uri: "own://memory" });
      await client.unsubscribeResource({ uri: MEMORY });
      await write(agent, "Likes water.");
      await received(3);
      assert.deepEqual(notified, [MEMORY, MEMORY, "own://memory"]);
    } finally {
      await client.close();
    }
  });
}

test("a_client_of_the_newest_revision_subscribes", async () => {
  const agent = "listens";
  await define(agent);
  const filter = { toolsListChanged: true, resourceSubscriptions: [MEMORY, "own://memory"] };
  for (const at of ["", "/routed"]) {
    const stream = events(await listen(agent, filter, at));
    const tag = { "io.modelcontextprotocol/subscriptionId": "l1" };
    assert.deepEqual((await stream.next()).value.data, {
      jsonrpc: "2.0",
      method: "notifications/subscriptions/acknowledged",
      params: { _meta: tag, notifications: { resourceSubscriptions: [MEMORY, "own://memory"] } },
    });
    await write(agent, `Likes tea${at}.`);
    const updates = [(await stream.next()).value.data, (await stream.next()).value.data];
    assert.deepEqual(
      updates.map(({ method, params }) => [method, params]),
      [MEMORY, "own://memory"].map((uri) => ["notifications/resources/updated", { _meta: tag, uri }]),
    );
    await stream.return();
  }
  const many = await listen(agent, { resourceSubscriptions: Array(33).fill(MEMORY) });
  assert.equal(many.status, 400);
  const { id, error } = await many.json();
  assert.deepEqual([id, error.code], ["l1", -32602]);
});

test("a_class_tool_asks_the_user_of_its_client", async () => {
  const who = { action: "accept", content: { name: "Ann" } };
  const ask = async (more) => {
    const capabilities = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
    const answer = await open("asks", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "mcp-protocol-version": NEWEST,
        "mcp-method": "tools/call",
        "mcp-name": "greet",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "greet", _meta: { ...meta._meta, ...capabilities }, ...more },
      }),
    });
    return (await answer.json()).result;
  };
  const { resultType, inputRequests, requestState } = await ask({});
  assert.deepEqual([resultType, Object.keys(inputRequests)], ["input_required", ["who"]]);
  for (const [more, state] of [
    [{ requestState }, "mine"],
    [{}, undefined],
  ]) {
    const { content } = await ask({ inputResponses: { who }, ...more });
    assert.deepEqual(JSON.parse(content[0].text), { inputResponses: { who }, ...(state && { requestState: state }) });
  }
});

test("a_broken_stream_continues_where_it_stopped", async () => {
  const agent = "resumes";
  await define(agent);
  const post = (method, params, session) =>
    open(agent, {
      method: "POST",
      headers: { "content-type": "application/json", ...(session && { "mcp-session-id": session }) },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
  const hello = await post("initialize", { protocolVersion: "2025-11-25", capabilities: {} });
  await hello.text();
  const session = hello.headers.get("mcp-session-id");
  await (await post("resources/subscribe", { uri: MEMORY }, session)).text();
  const broken = events(await follow(agent, session));
  const { id, data } = (await broken.next()).value;
  assert.ok(id.length > 0);
  assert.equal(data, "");
  await broken.return();
  await write(agent, "Likes tea.");
  await server.evict(agent);
  const resumed = events(await follow(agent, session, { "last-event-id": id }));
  const notified = [];
  for await (const event of resumed) {
    if (event.data) notified.push(event.data);
    if (notified.length > 0) break;
  }
  assert.deepEqual(notified, [{ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri: MEMORY } }]);
  // An id of any other type is invalid.
  const other = events(await follow(agent, session, { "last-event-id": "%zz" }));
  assert.equal((await other.next()).done, false);
  await other.return();
});

test("a_stream_needs_the_rights_for_its_resources", async () => {
  const agent = "refused";
  await define(agent);
  const nobody = { authorization: "Bearer nobody" };
  assert.equal((await follow(agent, "x", nobody)).status, 401);
  const { token } = await call(server, agent, "mintToken", { operations: ["search"], expiresIn: 60 }, owner);
  assert.equal((await follow(agent, "x", { authorization: `Bearer ${token}` })).status, 403);
});
