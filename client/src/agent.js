// One agent: every operation as a method, its sessions, and what streams.

import { Connection } from "./connection.js";
import { OPERATIONS } from "./operations.js";
import { pagesOf } from "./pages.js";
import { SessionClient } from "./session.js";
import { exportLines, exportSession, importSession } from "./transfer.js";

/**
 * Opens an agent. `target` is a service binding, a namespace of objects, or a URL.
 * Nothing is sent before the first call.
 */
export function sessionAgent(target, name, options = {}) {
  return new AgentClient(new Connection(target, name, options), name);
}

class AgentClient {
  #connection;

  constructor(connection, name) {
    this.#connection = connection;
    this.name = name;
  }

  /** Any operation by its name, also one that is newer than this client. */
  call(operation, input = {}, options) {
    return operate(this.#connection, operation, input, options);
  }

  /** One session of this agent. Nothing is sent, and the session need not be there yet. */
  session(id) {
    return new SessionClient(this.#connection, id, operate);
  }

  async health(options) {
    const response = await this.#connection.requestRoot("health", "/health", options);
    return await response.json();
  }

  async getMessages({ sessionId }, options) {
    return await this.session(sessionId).getMessages(options);
  }

  exportSession({ sessionId }, options) {
    return exportSession(this.#connection, sessionId, options);
  }

  exportLines({ sessionId }, options) {
    return exportLines(this.#connection, sessionId, options);
  }

  importSession({ sessionId, file, allowSources }, options) {
    return importSession(this.#connection, sessionId, file, { ...options, allowSources });
  }

  /** All sessions, the newest activity first. */
  sessions(options = {}) {
    const { limit, ...more } = options;
    return pagesOf((cursor) => this.listSessions({ limit, cursor }, more), ({ sessions }) => sessions);
  }

  /** All entries of a searchable block. */
  entries(input, options) {
    return pagesOf((cursor) => this.listEntries({ ...input, cursor }, options), ({ entries }) => entries);
  }

  /** All documents of a loadable block, without their contents. */
  skills(input, options) {
    return pagesOf((cursor) => this.listSkills({ ...input, cursor }, options), ({ skills }) => skills);
  }

  /** The rows that the Agents SDK left in this agent's object, for `importAgentsTables`. */
  foreignRows(options) {
    return pagesOf((cursor) => this.loadForeignRows({ cursor }, options), ({ rows }) => rows);
  }
}

for (const operation of Object.keys(OPERATIONS)) {
  AgentClient.prototype[operation] ??= function (input, options) {
    return this.call(operation, input, options);
  };
}

function operate(connection, operation, input, options) {
  const reads = OPERATIONS[operation]?.reads ?? false;
  return connection.operate(operation, input, { reads, isRepeatable: reads || bringsItsIds(operation, input) }, options);
}

/** Whether the agent knows a repetition by the ids that the caller gave. */
function bringsItsIds(operation, { events, message, id }) {
  if (operation === "appendEvents") return Array.isArray(events) && events.every((event) => typeof event?.id === "string");
  if (operation === "appendMessage" || operation === "runTurn") return typeof message?.id === "string";
  return operation === "addUsage" && typeof id === "string";
}
