// Starts the Worker and the scripted model for the tests of chat clients.

import assert from "node:assert/strict";
import { startServer } from "./harness.mjs";
import { startModel } from "./model_server.mjs";

/** Limits how long a test waits. No passing test reaches the limit, even on a busy machine. */
const PATIENCE_MS = 60_000;

/** A Worker behind the binding `TOOLS` that runs the tools of `defineTool`. */
const TOOLS = `export default {
  async fetch(request) {
    const call = await request.json();
    return Response.json({ paid: call.arguments.amount });
  },
};`;

/**
 * Starts a model, and a server that calls it. The server has open auth unless a token is given.
 * `vars` are additional variables of the Worker.
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

/** The sessions of an agent whose turn runs or was cut off, read off its tables. */
export async function openTurns(server, agent) {
  const rows = await server.sql(
    agent,
    `SELECT t.session_id
       FROM cf_agents_last_turns AS t
      WHERE t.state IS NOT NULL
        AND NOT EXISTS (SELECT 1
                          FROM cf_agents_events AS e
                         WHERE e.session_id = t.session_id
                           AND e.seq = t.answer_seq
                           AND e.ends_turn IS NOT NULL)`,
  );
  return rows.map((row) => row.session_id);
}

/** The output of an operation, which must succeed. */
export async function call(server, agent, operation, input, headers = {}) {
  const { status, body } = await server.call(agent, operation, input, { headers });
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  return body;
}

/** The session's messages as `[role, text]`. */
export async function history(server, agent, sessionId, page = {}) {
  const { messages } = await call(server, agent, "getHistory", { sessionId, ...page });
  return messages.map(roleAndText);
}

/** A message as `[role, text]`. */
export function roleAndText(message) {
  return [message.role, textOf(message)];
}

export function textOf(message) {
  return message.parts
    .filter(({ type }) => type === "text")
    .map(({ text }) => text)
    .join("");
}

/** The tool calls of a message. */
export function callsIn(message) {
  return message.parts.filter(({ type }) => type.startsWith("tool-"));
}

/**
 * Waits until `holds()` is true. It checks again whenever `listen` calls back, never on a timer. If
 * the wait times out, `describe()` reports the current state.
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
