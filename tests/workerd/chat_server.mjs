// What the chat's client tests start from: the Worker and the model that it asks.

import assert from "node:assert/strict";
import { startServer } from "./harness.mjs";
import { startModel } from "./model_server.mjs";

/** How long a client may take to get where a test waits for it. */
const PATIENCE_MS = 15_000;

/** A Worker behind the binding `TOOLS` that runs the tools of `defineTool`. */
const TOOLS = `export default {
  async fetch(request) {
    const call = await request.json();
    return Response.json({ paid: call.arguments.amount });
  },
};`;

/**
 * `{ server, model, stop }`, the server asking the model; open, unless it is given
 * a token. `vars` are more of the Worker's variables.
 */
export async function startChatServer({ token, vars = {}, workers = {} } = {}) {
  const model = await startModel();
  const server = await startServer({
    vars: { MODEL: "openai:test", OPENAI_BASE_URL: model.url, ...(token ? {} : { AUTH: "open" }), ...vars },
    secrets: { OPENAI_API_KEY: "a test's key", ...(token ? { SESSION_AGENT_TOKEN: token } : {}) },
    workers: { tools: TOOLS, ...workers },
  });
  return {
    server,
    model,
    stop: async () => {
      await server.stop();
      await model.stop();
    },
  };
}

/** An operation that must succeed; its output. */
export async function call(server, agent, operation, input, headers = {}) {
  const { status, body } = await server.call(agent, operation, input, { headers });
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

/** The session's messages as `[role, text]`. */
export async function history(server, agent, sessionId, page = {}) {
  const { messages } = await call(server, agent, "getHistory", { sessionId, ...page });
  return messages.map(told);
}

/** A message as `[role, text]`. */
export function told(message) {
  return [message.role, textOf(message)];
}

export function textOf(message) {
  return message.parts
    .filter(({ type }) => type === "text")
    .map(({ text }) => text)
    .join("");
}

/** The parts of a message that are calls. */
export function callsIn(message) {
  return message.parts.filter(({ type }) => type.startsWith("tool-"));
}

/**
 * Waits until `holds()` is true, asked again whenever `listen` calls back and
 * never by the clock; `describe()` says in the error how far it got.
 */
export async function until(holds, listen, describe) {
  let timer;
  let silence = () => {};
  try {
    await new Promise((resolve, reject) => {
      const check = () => {
        try {
          if (holds()) resolve();
        } catch (error) {
          reject(error);
        }
      };
      silence = listen(check) ?? silence;
      timer = setTimeout(() => reject(new Error(`still waiting: ${describe()}`)), PATIENCE_MS);
      check();
    });
  } finally {
    clearTimeout(timer);
    silence();
  }
}
