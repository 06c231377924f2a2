// One agent: every operation as a method, its sessions, and its streams.

import type { Target } from "./bindings.js";
import { Connection } from "./connection.js";
import { errorFrom } from "./error_codes.js";
import type { AgentOptions, CallOptions } from "./options.js";
import {
  type AgentOperations,
  type Block,
  type Entry,
  type ForeignRow,
  type Imported,
  type ImportedAgent,
  type ListEntriesInput,
  type ListSessionsInput,
  type ListSkillsInput,
  type NewerName,
  type Operations,
  OPERATIONS,
  type Session,
  type Skill,
  type UiMessage,
} from "./operations.js";
import { pagesOf } from "./pages.js";
import { rightsText } from "./rights.js";
import { SessionClient } from "./session.js";
import {
  type ExportLine,
  exportLines,
  exportSession,
  type ImportFile,
  importSession,
  type TransferOptions,
} from "./transfer.js";
import { type ExportAgentOptions, exportAgent, type ImportAgentOptions, importAgent } from "./whole.js";
import { type SetBlock, type SetEntry, setBlock, setEntry } from "./writes.js";

/**
 * Opens an agent. `target` is a service binding, a Durable Object namespace, or a URL.
 * Nothing is sent before the first call.
 */
export function sessionAgent(target: Target, name: string, options: AgentOptions = {}): AgentClient {
  return new AgentClient(new Connection(target, name, options), name);
}

export interface Health {
  status: "ok";
  name: "session-agent";
  version: string;
  revision: string;
}

/** One agent, with every operation as a method. `sessionAgent` opens it. */
export interface AgentClient extends AgentOperations {}

// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the methods of the operations are made from their table.
export class AgentClient {
  readonly name: string;
  #connection: Connection;

  constructor(connection: Connection, name: string) {
    this.name = name;
    this.#connection = connection;
  }

  /** Calls an operation by its name, even one that is newer than this client. */
  call<Name extends keyof Operations>(
    operation: Name,
    input: Operations[Name]["input"],
    options?: CallOptions,
  ): Promise<Operations[Name]["output"]>;
  call<Name extends string>(operation: NewerName<Name>, input?: object, options?: CallOptions): Promise<any>;
  call(operation: string, input: object = {}, options?: CallOptions): Promise<any> {
    return operate(this.#connection, operation, input, options);
  }

  /** One session of this agent. Sends nothing; the session may not exist yet. */
  session(id: string): SessionClient {
    return new SessionClient(this.#connection, id, operate);
  }

  /** Whether the Worker is available, and its build. */
  async health(options?: CallOptions): Promise<Health> {
    const response = await this.#connection.requestRoot("health", "/health", options);
    return (await response.json()) as Health;
  }

  /** Replaces the text of a writable block. With a `kind`, a missing block is defined first. */
  setBlock(input: SetBlock, options?: CallOptions): Promise<Block> {
    return setBlock(this.call.bind(this), input, options);
  }

  /** Writes an entry of a searchable block. Without a `key`, the client generates one. */
  setEntry(input: SetEntry, options?: CallOptions): Promise<Entry> {
    return setEntry(this.call.bind(this), input, options);
  }

  async getMessages({ sessionId }: { sessionId: string }, options?: CallOptions): Promise<UiMessage[]> {
    return await this.session(sessionId).getMessages(options);
  }

  exportSession({ sessionId }: { sessionId: string }, options?: TransferOptions): Promise<ReadableStream<Uint8Array>> {
    return exportSession(this.#connection, sessionId, options);
  }

  exportLines(
    { sessionId }: { sessionId: string },
    options?: TransferOptions,
  ): AsyncGenerator<ExportLine, void, undefined> {
    return exportLines(this.#connection, sessionId, options);
  }

  importSession(
    { sessionId, file, allowSources }: { sessionId: string; file: ImportFile; allowSources?: boolean },
    options?: TransferOptions,
  ): Promise<Imported> {
    return importSession(this.#connection, sessionId, file, { ...options, allowSources });
  }

  /** The whole agent as a file: its settings, tools, memory and sessions. Needs the Worker's secret. */
  exportAgent(options?: ExportAgentOptions): Promise<ReadableStream<Uint8Array>> {
    return exportAgent(this.#connection, options);
  }

  /**
   * Imports such a file into this agent, which must be empty. To continue an interrupted import,
   * repeat it with the same file.
   */
  importAgent(file: ImportFile, options?: ImportAgentOptions): Promise<ImportedAgent> {
    return importAgent(this.#connection, file, options);
  }

  /** All sessions, the most recently active first. `limit` applies to each page. */
  sessions(options: CallOptions & Omit<ListSessionsInput, "cursor"> = {}): AsyncGenerator<Session, void, undefined> {
    const { limit, where, ...more } = options;
    return pagesOf(
      (cursor) => this.listSessions({ limit, cursor, where }, more),
      ({ sessions }) => sessions,
    );
  }

  /** All entries of a searchable block. */
  entries(input: Omit<ListEntriesInput, "cursor">, options?: CallOptions): AsyncGenerator<Entry, void, undefined> {
    return pagesOf(
      (cursor) => this.listEntries({ ...input, cursor }, options),
      ({ entries }) => entries,
    );
  }

  /** All documents of a loadable block, without their contents. */
  skills(input: Omit<ListSkillsInput, "cursor">, options?: CallOptions): AsyncGenerator<Skill, void, undefined> {
    return pagesOf(
      (cursor) => this.listSkills({ ...input, cursor }, options),
      ({ skills }) => skills,
    );
  }

  /** The rows that the Agents SDK left in this agent's object, for `importAgentsTables`. */
  foreignRows(options?: CallOptions): AsyncGenerator<ForeignRow, void, undefined> {
    return pagesOf(
      (cursor) => this.loadForeignRows({ cursor }, options),
      ({ rows }) => rows,
    );
  }
}

const methods = AgentClient.prototype as unknown as { [operation: string]: unknown };

for (const operation of Object.keys(OPERATIONS)) {
  methods[operation] ??= function (this: AgentClient, input?: object, options?: CallOptions) {
    return this.call(operation, input, options);
  };
}

async function operate(connection: Connection, operation: string, input: object, options?: CallOptions): Promise<any> {
  const reads = OPERATIONS[operation]?.reads ?? false;
  return await connection.operate(
    operation,
    operation === "mintToken" ? rightsIn(input) : input,
    { reads, isRepeatable: reads || bringsItsIds(operation, input) },
    options,
  );
}

/** Whether the agent recognizes a retry by the caller's ids. */
function bringsItsIds(
  operation: string,
  { events, messages, message, id }: { events?: any; messages?: any; message?: any; id?: unknown },
): boolean {
  const haveIds = (list: any) => Array.isArray(list) && list.every((item) => typeof item?.id === "string");
  if (operation === "appendEvents") return haveIds(events);
  if (operation === "appendMessages") return haveIds(messages);
  if (operation === "appendMessage" || operation === "runTurn") return typeof message?.id === "string";
  return operation === "addUsage" && typeof id === "string";
}

/** The rights of a new token. Rejects values that JSON would drop. */
function rightsIn(input: object): object {
  try {
    return JSON.parse(rightsText(input, "input"));
  } catch (error) {
    throw errorFrom(error as any, { status: 400, operation: "mintToken" });
  }
}
