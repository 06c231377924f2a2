// Runs a client of a provider's API against the test provider directly and through an agent.
//
//   const { provider, compare, remember, tokenOf, baseOf, run } = await startCompared();
//   const answer = await compare(make, program);
//
// `make(urls, apiKey)` makes the client, with `urls.openai` or `urls.anthropic` as its base URL.
// `program(client)` returns what the two runs must have in common. `alike` removes from it what can
// only differ: ids that the agent makes, times and headers.

import assert from "node:assert/strict";
import { after } from "node:test";
import { startServer } from "../workerd/harness.mjs";
import { startProvider } from "./provider_server.mjs";

export const SECRET = "the secret of these tests, long enough";

async function startAlone(settings) {
  const server = await startServer(settings);
  return { server, stop: () => server.stop() };
}

/**
 * `start(settings)` starts the built Worker in another way: `{ server, stop }`, and perhaps more.
 * `openaiApi`: the API in which requests of Responses reach the provider.
 */
export async function startCompared(start = startAlone, openaiApi = "responses") {
  const provider = await startProvider();
  after(() => provider.stop());
  const { server, stop, ...more } = await start({
    vars: {
      AUTH: "secret",
      MODEL: "openai:gpt-test",
      OPENAI_BASE_URL: provider.openai,
      OPENAI_API: openaiApi,
      ANTHROPIC_BASE_URL: provider.openai,
      ALLOWED_ORIGINS: "https://app.example",
    },
    secrets: { SESSION_AGENT_TOKEN: SECRET, OPENAI_API_KEY: "openai's key", ANTHROPIC_API_KEY: "anthropic's key" },
  });
  after(stop);

  const owner = { headers: { authorization: `Bearer ${SECRET}` } };

  async function run(agent, operation, input) {
    const { status, body } = await server.call(agent, operation, input, owner);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  }

  /** A token for a client of a provider's API. */
  async function tokenOf(agent, scope = {}) {
    const allow = { models: ["anthropic:claude-test"], systemInstructions: true, clientTools: true };
    const minted = await run(agent, "mintToken", { preset: "model", allow, expiresIn: 600, ...scope });
    return minted.token;
  }

  const baseOf = (agent) => new URL(`/agents/session-agent/${agent}`, server.url).href;

  /** The base URLs of an agent, by the API. */
  const urlsOf = (agent) => ({ openai: `${baseOf(agent)}/openai/v1`, anthropic: `${baseOf(agent)}/anthropic` });

  let agents = 0;

  /** The same program with a client of the provider, and with one of a new agent. `scope`: of its token. */
  async function compare(make, program, scope = {}) {
    const direct = await program(await make(provider, "a key"));
    agents += 1;
    const agent = `compared-${agents}`;
    assert.deepEqual(await program(await make(urlsOf(agent), await tokenOf(agent, scope))), direct);
    return direct;
  }

  /**
   * Has the model write the memory of a new agent. `ask(client, text)` returns all that the client got:
   * the answer after the memory's tool, and nothing of the tool. The next conversation has the memory.
   */
  async function remember(make, ask) {
    agents += 1;
    const agent = `remembers-${agents}`;
    await run(agent, "defineBlock", { label: "memory", kind: "writable", description: "Facts" });
    const client = await make(urlsOf(agent), await tokenOf(agent));
    const said = JSON.stringify(await ask(client, "remember tea."));
    assert.match(said, /Written/);
    assert.doesNotMatch(said, /set_context/);
    assert.equal((await run(agent, "getBlock", { label: "memory" })).content, "tea.");
    await ask(client, "hi");
    assert.match(JSON.stringify(provider.requests.at(-1).body), /MEMORY \(Facts\)[^"]*tea\./);
  }

  return { provider, run, tokenOf, baseOf, urlsOf, compare, remember, ...more };
}

export const plain = (value) => JSON.parse(JSON.stringify(value));

export async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(plain(event));
  return events;
}

/** Ids that the agent or the client makes: each is replaced by its number in the order of appearance. */
const MADE =
  /\b(?:(?:resp|msg|fc|rs|ws|ctc)_[\w-]+|(?:call|toolu)_[abct]\d+|(?:call|aitxt|run|chatcmpl)-[\w-]{6,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/g;

/** Fields that differ from run to run. */
const PASSING = ["headers", "performance", "url", "created", "created_at", "createdAt", "timestamp"];

/** A value without what can only differ: ids that are made anew, times and headers. */
export function alike(value) {
  const ids = new Map();
  const numbered = (id) => {
    if (!ids.has(id)) ids.set(id, `<id ${ids.size + 1}>`);
    return ids.get(id);
  };
  return JSON.parse(JSON.stringify(ordered(plain(value))).replaceAll(MADE, numbered));
}

/** A value whose fields are in the order of their names, in which ids are numbered. */
function ordered(value) {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.keys(value).filter((name) => !PASSING.includes(name));
  return Object.fromEntries(fields.sort().map((name) => [name, ordered(value[name])]));
}

export const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city.",
    strict: true,
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
  },
};
