// A user's Worker with the client and its adapters, which a test controls. It reaches Session Agent
// through a service binding, through a namespace of its objects, and at a URL.
//
// second_worker.mjs bundles this file.

import * as client from "../../../packages/session-agent/dist/index.js";
import { memoryHandlers } from "../../../packages/session-agent/dist/anthropic-memory.js";
import { contextProvider } from "../../../packages/session-agent/dist/agents-context.js";
import { SessionAgentSaver } from "../../../packages/session-agent/dist/langgraph.js";
import { SessionAgentSession } from "../../../packages/session-agent/dist/openai-agents.js";
import { SessionAgentThreads } from "../../../packages/session-agent/dist/tanstack-ai.js";

const checkpoint = (id) => ({
  v: 4,
  id,
  ts: "2026-01-01T00:00:00.000Z",
  channel_values: {},
  channel_versions: {},
  versions_seen: {},
});

/** A program for each adapter: it first writes to an empty agent, and then reads. */
const ADAPTERS = {
  async openaiAgents(agent) {
    const session = new SessionAgentSession(agent.session("s"));
    await session.addItems([{ type: "message", role: "user", content: "Hello" }]);
    await session.applyHistoryTransaction({
      operationId: "1",
      transaction: { type: "append_items", items: [{ type: "message", role: "user", content: "again" }] },
    });
    return (await session.getItems()).map(({ content }) => content);
  },
  async langgraph(agent) {
    const saver = new SessionAgentSaver(agent);
    const config = await saver.put(
      { configurable: { thread_id: "t", checkpoint_ns: "" } },
      checkpoint("c1"),
      { source: "input", step: 0, parents: {} },
      {},
    );
    await saver.putWrites(config, [["channel", "value"]], "task");
    const { checkpoint: read, pendingWrites } = await saver.getTuple({ configurable: { thread_id: "t" } });
    return [read.id, pendingWrites];
  },
  async agentsContext(agent) {
    const provider = contextProvider(agent, { label: "memory", maxTokens: 20 });
    const before = await provider.get();
    await provider.set("Likes tea.");
    return [before, await provider.get()];
  },
  async anthropicMemory(agent) {
    const memory = memoryHandlers(agent);
    await memory.create({ command: "create", path: "/memories/a.md", file_text: "tea" });
    return await memory.view({ command: "view", path: "/memories/a.md" });
  },
  async tanstackAi(agent) {
    const threads = new SessionAgentThreads(agent);
    await threads.saveThread("t", [{ role: "user", content: "Hello" }]);
    return await threads.loadThread("t");
  },
};

const shown = ({ name, code, status, details, message, operation, constructor }) => ({
  name,
  code,
  status,
  details,
  message,
  operation,
  class: constructor.name,
  isOurs: true,
});

/**
 * A target that replaces every operation by one: an adapter's error then comes from the agent, over
 * the transport of the adapter's requests.
 */
function asking(kind, target, { method, input }) {
  const json = JSON.stringify(input);
  const request = (on, before, options) => on.request(...before, method, json, options);
  const go = (fetch) => (address, init) =>
    fetch(String(address).replace(/\/rpc\/\w+$/, `/rpc/${method}`), { ...init, method: "POST", body: json });
  if (kind === "url") return { target, fetch: go((...given) => fetch(...given)) };
  // A service binding seems to have every method.
  if (kind === "service")
    return {
      target: {
        fetch: go((...given) => target.fetch(...given)),
        request: (agent, _operation, _json, options) => request(target, [agent], options),
      },
    };
  const stubOf = (name) => {
    const stub = target.getByName(name);
    return {
      fetch: go((...given) => stub.fetch(...given)),
      request: (_operation, _json, options) => request(stub, [], options),
    };
  };
  return { target: { getByName: stubOf } };
}

async function answer({ target, agent: name, options, session, method, given, adapter, refused }, targets) {
  try {
    const found = refused === undefined ? { target: targets[target] } : asking(target, targets[target], refused);
    const agent = client.sessionAgent(found.target, name, { ...options, ...(found.fetch && { fetch: found.fetch }) });
    if (adapter !== undefined) return { answer: await ADAPTERS[adapter](agent) };
    const on = session === undefined ? agent : agent.session(session);
    return { answer: (await on[method](...given)) ?? null };
  } catch (error) {
    if (error instanceof client.SessionAgentError) return { error: shown(error) };
    return { error: { name: error?.name, message: error?.message, stack: error?.stack, isOurs: false } };
  }
}

/** The result of the binding itself, without the client. */
async function raw({ target, agent, method, given }, targets) {
  try {
    if (target === "url")
      return {
        answer: await (
          await fetch(`${targets.url}/agents/session-agent/${encodeURIComponent(agent)}/rpc/${method}`, given)
        ).json(),
      };
    const on = target === "service" ? targets.service : targets.namespace.getByName(agent);
    return { answer: await on[method](...given) };
  } catch (error) {
    return { error: { message: error.message, code: error.code } };
  }
}

export default {
  async fetch(request, env) {
    const order = await request.json();
    const targets = { service: env.SERVICE, namespace: env.OBJECT, url: order.url ?? env.URL };
    const work = order.raw ? raw : answer;
    return Response.json(await Promise.all(order.all.map((one) => work(one, targets))));
  },
};
