// The base URL from a second Worker in its own runtime, over a service binding and a Durable Object
// namespace: the official clients use the binding's `fetch`, as docs/base-url.md shows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";
import { documents } from "../workerd/documents.mjs";
import { startWithSecond } from "../workerd/second_worker.mjs";
import { startComparison } from "./compare_with_provider.mjs";

const [printed, ...others] = documents
  .flatMap(({ blocks }) => blocks)
  .filter(({ language }) => language === "ts service");
const [, imports, program] = /^(import .*\n)\n(.*)$/s.exec(printed.text);

/** A Worker with the printed program and Anthropic's client. It returns the result of a call. */
const SECOND = `
  ${imports}
  import Anthropic from "@anthropic-ai/sdk";

  const CREATE = {
    openai: (env, token) => { ${program}; return client; },
    anthropic: (env, apiKey) => new Anthropic({
      baseURL: "https://session-agent/agents/session-agent/alice/anthropic",
      apiKey,
      fetch: (input, init) => env.MEMORY.fetch(input, init),
    }),
  };

  async function answerOf({ api, token, path, body, headers, namespace }, { SERVICE, OBJECT }) {
    const env = { MEMORY: namespace ? OBJECT.getByName("alice") : SERVICE };
    const client = CREATE[api](env, token).withOptions({ maxRetries: 0 });
    const resource = path.reduce((at, name) => at[name], client);
    const answer = await resource.create(body, { headers });
    if (!body.stream) return { answer };
    const events = [];
    for await (const event of answer) events.push(event);
    return { answer: events };
  }

  export default {
    async fetch(request, env) {
      const answer = await answerOf(await request.json(), env).catch(({ status, message }) => ({ status, message }));
      return Response.json(answer);
    },
  };
`;

const bundled = await build({
  stdin: { contents: SECOND, resolveDir: import.meta.dirname, loader: "ts" },
  bundle: true,
  format: "esm",
  write: false,
  conditions: ["workerd", "worker"],
  external: ["cloudflare:*", "node:*"],
});

const { provider, run, tokenOf, worker } = await startComparison((settings) =>
  startWithSecond(settings, bundled.outputFiles[0].text),
);

const ask = async (request) => {
  const response = await fetch(worker, { method: "POST", body: JSON.stringify(request) });
  return response.json();
};

const messages = [{ role: "user", content: "hi" }];
const CHAT = { api: "openai", path: ["chat", "completions"], body: { model: "gpt-test", messages } };
const RESPONSES = { api: "openai", path: ["responses"], body: { model: "gpt-test", input: "hi" } };
const MESSAGES = { api: "anthropic", path: ["messages"], body: { model: "claude-test", max_tokens: 9, messages } };

test("the_documents_print_the_program_once", () => assert.equal(others.length, 0));

for (const namespace of [false, true]) {
  const way = namespace ? "namespace" : "service";

  test(`a_second_worker_calls_by_${way}_with_and_without_streaming`, async () => {
    const token = await tokenOf("alice");
    for (const request of [CHAT, RESPONSES, MESSAGES]) {
      const { answer } = await ask({ ...request, token, namespace });
      assert.match(JSON.stringify(answer), /Hello, dear friend\./);
      const streamed = { ...request.body, stream: true };
      const { answer: events } = await ask({ ...request, body: streamed, token, namespace });
      assert.ok(events.length > 3, JSON.stringify(events));
      assert.match(JSON.stringify(events.map((event) => event.choices ?? event.delta)), /friend\./);
    }
    assert.equal(provider.requests.at(-1).headers["x-api-key"], "anthropic's key");
  });

  test(`a_session_token_is_confined_to_its_session_by_${way}`, async () => {
    const sessionId = `mine-${way}`;
    const token = await tokenOf("alice", { sessionId });
    const stranger = await tokenOf("alice", { sessionId: `other-${way}` });
    for (const request of [CHAT, RESPONSES, MESSAGES]) {
      const { answer } = await ask({ ...request, token, namespace });
      assert.match(JSON.stringify(answer), /Hello, dear friend\./);
    }
    const { messages: stored } = await run("alice", "getHistory", { sessionId });
    assert.ok(stored.length >= 2);
    const before = provider.requests.length;
    const headers = { "x-session-id": sessionId };
    for (const request of [CHAT, RESPONSES, MESSAGES]) {
      const refused = await ask({ ...request, token: stranger, headers, namespace });
      assert.equal(refused.status, 403, JSON.stringify(refused));
      assert.equal((await ask({ ...request, token: "nobody's", namespace })).status, 401);
    }
    const bob = await tokenOf("bob");
    assert.equal((await ask({ ...CHAT, token: bob, namespace })).status, 401);
    const { answer: first } = await ask({ ...RESPONSES, token, namespace });
    const next = { ...RESPONSES.body, previous_response_id: first.id };
    assert.equal((await ask({ ...RESPONSES, body: next, token: stranger, namespace })).status, 400);
    const named = { ...RESPONSES.body, conversation: sessionId };
    assert.equal((await ask({ ...RESPONSES, body: named, token: stranger, namespace })).status, 403);
    assert.equal(provider.requests.length, before + 1);
    const { messages: after } = await run("alice", "getHistory", { sessionId });
    assert.ok(after.length >= stored.length);
  });
}
