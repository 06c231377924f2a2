import type {
  Action,
  AgentOperations,
  BuiltContext,
  Change,
  ContextFile,
  CreateSessionInput,
  Entry,
  ErrorCode,
  ForeignRow,
  GetHistoryInput,
  HistoryPage,
  Imported,
  ListEntriesInput,
  ListSkillsInput,
  LoadEventsInput,
  Operations,
  Session,
  SessionEvent,
  SessionOperations,
  Skill,
  ToolCall,
  UiMessage,
} from "./operations.js";

export type * from "./operations.js";

// What an agent is opened with.

/** A service binding of Session Agent's Worker, or an object's stub. */
export interface BindingTarget {
  fetch(input: string, init?: RequestInit): Promise<any>;
}

/** A namespace of Session Agent's objects. */
export interface NamespaceTarget {
  idFromName(name: string): any;
  get(id: any): any;
  getByName?(name: string): any;
}

export type Target = BindingTarget | NamespaceTarget | string | URL;

// What a binding gives by itself, over Workers RPC.

/** What a call says beside its operation and its input. */
export interface RpcOptions {
  /** The Worker's secret or a minted token. */
  token?: string;
}

export interface ObjectRpcOptions extends RpcOptions {
  /** The agent's name, for an object that was found by its id alone. Another's name is refused. */
  agent?: string;
}

/** An answer, or a refusal, as data. */
export type RpcAnswer =
  /** `value` is the JSON of the operation's output. */
  | { ok: true; value: string }
  | { ok: false; error: { code: ErrorCode; message: string; details: { [field: string]: any } }; status: number };

/** A service binding of Session Agent's Worker: `interface Env { MEMORY: SessionAgentService }`. */
export interface SessionAgentService {
  fetch(input: string, init?: RequestInit): Promise<Response>;
  /** `json` is the JSON of the input, and the answer that of the output. A refusal is thrown. */
  call(agent: string, operation: string, json?: string, options?: RpcOptions): Promise<string>;
  /** As `call`, and a refusal is data. */
  request(agent: string, operation: string, json?: string, options?: RpcOptions): Promise<RpcAnswer>;
}

/** Every operation as a method of an agent's object: plain values in and out. A refusal is thrown. */
export type ObjectOperations = {
  [Name in keyof Operations]: (
    ...given: {} extends Operations[Name]["input"]
      ? [input?: Operations[Name]["input"], options?: ObjectRpcOptions]
      : [input: Operations[Name]["input"], options?: ObjectRpcOptions]
  ) => Promise<Operations[Name]["output"]>;
};

/** An agent's object, by a binding with `script_name`. */
export interface SessionAgentObject extends ObjectOperations {
  fetch(input: string, init?: RequestInit): Promise<Response>;
  call(operation: string, json?: string, options?: ObjectRpcOptions): Promise<string>;
  request(operation: string, json?: string, options?: ObjectRpcOptions): Promise<RpcAnswer>;
}

/** A namespace of agents' objects: `interface Env { AGENTS: SessionAgentNamespace }`. */
export interface SessionAgentNamespace extends NamespaceTarget {
  getByName(name: string): SessionAgentObject;
  get(id: any): SessionAgentObject;
}

export interface AgentOptions {
  /** The Worker's secret or a minted token, or a function that gives one for each request. */
  token?: string | undefined | (() => string | undefined | Promise<string | undefined>);
  /** How often, and after which pauses, a failed call is sent again. `false`: never. */
  retry?: RetryOptions | false;
  /**
   * How operations go over a binding. `auto` and `call` use Workers RPC where the other end
   * has the method `request`, and `fetch` elsewhere. What streams always uses `fetch`.
   * Default: `auto`.
   */
  transport?: "auto" | "call" | "fetch";
  /** Used for a URL in place of the global `fetch`. */
  fetch?: (input: string, init?: RequestInit) => Promise<Response>;
}

export interface RetryOptions {
  /** The first attempt included. Default: 4. */
  attempts?: number;
  /** The pause after the first failure; each later pause is twice as long. Default: 200. */
  pauseMs?: number;
  /** A longer pause than this is not made; the error is thrown instead. Default: 20,000. */
  longestPauseMs?: number;
}

export interface CallOptions {
  signal?: AbortSignal;
  retry?: RetryOptions | false;
}

/** Opens an agent. Nothing is sent before the first call. */
export declare function sessionAgent(target: Target, name: string, options?: AgentOptions): AgentClient;

// One agent.

export interface AgentClient extends AgentOperations {
  readonly name: string;
  /** One session of this agent. Nothing is sent, and the session need not be there yet. */
  session(id: string): SessionClient;
  /** Any operation by its name. */
  call<Name extends keyof Operations>(operation: Name, input: Operations[Name]["input"], options?: CallOptions): Promise<Operations[Name]["output"]>;
  call(operation: string, input?: object, options?: CallOptions): Promise<any>;
  /** Whether the Worker is up, and which build it is. */
  health(options?: CallOptions): Promise<Health>;
  /** All sessions, the newest activity first. `limit` is a page's. */
  sessions(options?: CallOptions & { limit?: number }): AsyncGenerator<Session, void, undefined>;
  /** All entries of a searchable block. */
  entries(input: Omit<ListEntriesInput, "cursor">, options?: CallOptions): AsyncGenerator<Entry, void, undefined>;
  /** All documents of a loadable block, without their contents. */
  skills(input: Omit<ListSkillsInput, "cursor">, options?: CallOptions): AsyncGenerator<Skill, void, undefined>;
  /** The rows that the Agents SDK left in this agent's object, for `importAgentsTables`. */
  foreignRows(options?: CallOptions): AsyncGenerator<ForeignRow, void, undefined>;
  getMessages(input: { sessionId: string }, options?: CallOptions): Promise<UiMessage[]>;
  exportSession(input: { sessionId: string }, options?: TransferOptions): Promise<ReadableStream<Uint8Array>>;
  exportLines(input: { sessionId: string }, options?: TransferOptions): AsyncGenerator<ExportLine, void, undefined>;
  importSession(input: { sessionId: string; file: ImportFile; allowSources?: boolean }, options?: TransferOptions): Promise<Imported>;
}

export interface Health {
  status: "ok";
  name: "session-agent";
  version: string;
  revision: string;
}

// One session.

export interface SessionClient extends SessionOperations {
  readonly id: string;
  /** Any operation by its name, with this session's id. */
  call<Name extends keyof Operations>(operation: Name, input: Omit<Operations[Name]["input"], "sessionId">, options?: CallOptions): Promise<Operations[Name]["output"]>;
  call(operation: string, input?: object, options?: CallOptions): Promise<any>;
  /** Creates the session under this id. */
  create(input?: Omit<CreateSessionInput, "id">, options?: CallOptions): Promise<Session>;
  /** The newest messages of the conversation, as chat clients load them. */
  getMessages(options?: CallOptions): Promise<UiMessage[]>;
  /** The messages of a branch from the newest to the oldest. `limit` and `maxBytes` are a page's. */
  history(options?: CallOptions & Omit<GetHistoryInput, "sessionId">): AsyncGenerator<UiMessage, void, undefined>;
  /** The same in pages, upwards. Each page reads from the older message to the newer. */
  historyPages(options?: CallOptions & Omit<GetHistoryInput, "sessionId">): AsyncGenerator<HistoryPage, void, undefined>;
  /** The events of the log in the order of their numbers. `limit` is a page's. */
  events(options?: CallOptions & Omit<LoadEventsInput, "sessionId" | "tail" | "beforeSeq">): AsyncGenerator<SessionEvent, void, undefined>;
  /** The changes since a cursor, then those that follow, until the signal is aborted. */
  changes(options?: ChangesOptions): AsyncGenerator<Change, void, undefined>;
  /** All entries of a searchable block of this session. */
  entries(input: Omit<ListEntriesInput, "cursor" | "sessionId">, options?: CallOptions): AsyncGenerator<Entry, void, undefined>;
  /** All documents of a loadable block of this session, without their contents. */
  skills(input: Omit<ListSkillsInput, "cursor" | "sessionId">, options?: CallOptions): AsyncGenerator<Skill, void, undefined>;
  /** Runs a chat turn when it is iterated. A text stands for a new message of the user. */
  chat(input: string | ChatInput, options?: CallOptions): AsyncGenerator<ChatChunk, void, undefined>;
  /** The chunks of the turn that runs, from its beginning. None, if no turn runs. */
  resumeChat(options?: CallOptions): AsyncGenerator<ChatChunk, void, undefined>;
  /** What the AI SDK's `streamText` and `generateText` need of this session. */
  modelInput(options?: ModelInputOptions): Promise<ModelInput>;
  /** The tools on the agent's memory and on this session's, as tools of the AI SDK. A tool that fails throws. */
  tools(options?: CallOptions): Promise<{ [name: string]: MemoryTool }>;
  /**
   * Writes a turn of the AI SDK, and what it spent. The turn follows the leaf that the last
   * `modelInput` of this object read, or nothing is written and `LeafMovedError` is thrown.
   * If that call was given a `leafId`, the turn is a branch after it. A turn with reasoning or
   * files is one message; another turn is events. Both have ids that a repetition gives again.
   */
  persist(turn: AiTurn, options?: PersistOptions): Promise<Persisted>;
  /** The session as a file of JSON lines. The stream fails where the file is not whole. */
  exportSession(options?: TransferOptions): Promise<ReadableStream<Uint8Array>>;
  /** The same, as values: one for each line. The last one is the `end`. */
  exportLines(options?: TransferOptions): AsyncGenerator<ExportLine, void, undefined>;
  /** Reads an exported session in, under this id. */
  importSession(file: ImportFile, options?: TransferOptions & { allowSources?: boolean }): Promise<Imported>;
}

export interface ChangesOptions extends CallOptions {
  /** The cursor of the last change that was seen. Default: 0. */
  since?: number;
  /** Of a page. Default: 100. */
  limit?: number;
  /** `false`: ends with the newest change. Default: true. */
  follow?: boolean;
  /** The pause between two looks where nothing was new. Default: 1000. */
  pauseMs?: number;
}

export interface ChatInput {
  /** The newest message. A text stands for a new message of the user. */
  message?: string | { [field: string]: any };
  /** The whole conversation, in place of `message`. */
  messages?: Array<{ [field: string]: any }>;
  trigger?: "submit-message" | "regenerate-message";
  messageId?: string;
  /** What becomes of the message while the session answers another. Default: the agent's `whenBusy`. */
  whenBusy?: "reject" | "queue" | "replace";
  model?: string;
  systemInstructions?: string[];
  tools?: any;
}

/** A chunk of the AI SDK's UI message stream. */
export interface ChatChunk {
  type: string;
  [field: string]: any;
}

// The AI SDK.

export interface ModelInputOptions extends CallOptions {
  /** Added after the agent's own instructions. */
  systemInstructions?: string[];
  /** The most tokens of all of it. What does not fit is named in `system`. Default: no limit. */
  maxTokens?: number;
  /** The most events that the context is built from. Default: 50, or 1,000 with `maxTokens`. */
  limit?: number;
  /** In how many of the newest messages files are sent. Default: the agent's `keepMedia`. */
  keepMedia?: number;
  /** The end of the branch. Default: the session's leaf. */
  leafId?: string;
}

/** Spread it into `streamText` or `generateText`. */
export interface ModelInput {
  /** The frozen prompt, then the instructions. */
  system: string;
  messages: AiMessage[];
  tools: { [name: string]: MemoryTool };
  /** The last event that the messages contain. `null`: the session is empty. */
  leafId: string | null;
}

/** A message for a model, as the AI SDK has it. */
export type AiMessage =
  | { role: "user"; content: string | Array<{ type: "text"; text: string } | { type: "file"; data: string; mediaType: string; filename?: string }> }
  | { role: "assistant"; content: string | Array<{ type: "text"; text: string } | { type: "tool-call"; toolCallId: string; toolName: string; input: unknown }> }
  | { role: "tool"; content: Array<{ type: "tool-result"; toolCallId: string; toolName: string; output: { type: "text" | "error-text"; value: string } }> };

/** A tool of the AI SDK. */
export interface MemoryTool {
  description: string;
  /** A schema of the AI SDK, made of JSON Schema. */
  inputSchema: any;
  execute(input: any, options?: { abortSignal?: AbortSignal }): Promise<string>;
}

/** A result of `streamText` or `generateText`, what their callbacks get, a list of steps, or a list of messages. */
export type AiTurn = { readonly steps: PromiseLike<readonly AiStep[]> | readonly AiStep[] } | readonly AiStep[] | readonly AiSaid[];

export interface AiStep {
  readonly content: readonly any[];
  readonly usage: any;
}

export interface AiSaid {
  readonly role: "user" | "assistant" | "tool" | "system";
  readonly content: string | readonly any[];
}

export interface Persisted {
  /** What was written, in order. `inserted: false`: it was there already. */
  events: Array<{ id: string; inserted: boolean; seq?: number }>;
  leafId: string | null;
}

export interface PersistOptions extends CallOptions {
  /** The leaf that the turn follows. `null`: the session is empty. Default: the leaf of the last `modelInput`. */
  expectedLeafId?: string | null;
  /** The event that the turn follows as a branch. Default: the `leafId` that the last `modelInput` was given. */
  parentId?: string | null;
}

// Files.

export interface TransferOptions extends CallOptions {
  /** Called after each piece of the file. */
  onProgress?: (progress: Progress) => void;
}

export interface Progress {
  bytes: number;
  lines: number;
}

export interface ExportLine {
  type: string;
  [field: string]: any;
}

export type ImportFile =
  | string
  | ArrayBuffer
  | ArrayBufferView
  | Blob
  | Response
  | ReadableStream<Uint8Array>
  | Iterable<string | Uint8Array>
  | AsyncIterable<string | Uint8Array>;

// Errors.

/** Anything that went wrong with a call. The agent's own sentence is the message. */
export declare class SessionAgentError extends Error {
  constructor(message: string, more?: { code?: string; status?: number; details?: object; operation?: string; cause?: unknown });
  /** `network_failed` is of this client; the others are the API's. */
  readonly code: ErrorCode | "network_failed";
  /** The status of the HTTP answer. `undefined`: there was none. */
  readonly status: number | undefined;
  readonly details: { [field: string]: any };
  /** The operation that was called. */
  readonly operation: string | undefined;
}
/** The agent gave no answer: the connection failed, or what answered was no Session Agent. */
export declare class NetworkError extends SessionAgentError {}
export declare class InvalidRequestError extends SessionAgentError {
  readonly field: string;
}
export declare class UnauthorizedError extends SessionAgentError {}
export declare class ForbiddenError extends SessionAgentError {}
export declare class BlockReadOnlyError extends SessionAgentError {}
export declare class UnknownOperationError extends SessionAgentError {}
export declare class SessionNotFoundError extends SessionAgentError {}
export declare class MessageNotFoundError extends SessionAgentError {}
export declare class BlockNotFoundError extends SessionAgentError {}
export declare class SkillNotFoundError extends SessionAgentError {}
export declare class MethodNotAllowedError extends SessionAgentError {}
export declare class LeafMovedError extends SessionAgentError {}
export declare class VersionConflictError extends SessionAgentError {}
export declare class AlreadyExistsError extends SessionAgentError {}
export declare class TurnInProgressError extends SessionAgentError {}
export declare class PayloadTooLargeError extends SessionAgentError {
  readonly limit: number;
  readonly actual: number | undefined;
}
export declare class StepLimitReachedError extends SessionAgentError {}
export declare class RateLimitedError extends SessionAgentError {
  /** Seconds until the next try may pass. */
  readonly retryAfter: number;
}
export declare class BlockOverBudgetError extends SessionAgentError {
  readonly tokens: number;
  readonly maxTokens: number;
}
export declare class NotConfiguredError extends SessionAgentError {
  readonly binding: string;
}
export declare class ModelFailedError extends SessionAgentError {}
export declare class ModelOverloadedError extends SessionAgentError {}
export declare class StorageFailedError extends SessionAgentError {}
export declare class CorruptRowError extends SessionAgentError {}

// Events, rows and messages.

export declare const EventAction: {
  readonly USER_MESSAGE: "user_message";
  readonly AGENT_MESSAGE: "agent_message";
  readonly TOOL_CALL_REQUEST: "tool_call_request";
  readonly TOOL_RESULT: "tool_result";
  readonly SYSTEM_INSTRUCTION: "system_instruction";
  readonly COMPACTION: "compaction";
};

/** A row of the table `cf_agents_events`. */
export interface StoredEvent {
  id: string;
  session_id: string;
  seq: number;
  action: Action;
  content: string | null;
  /** JSON. */
  metadata: string | null;
  created_at: number;
}

/** An event without its place in the tree, which a row does not have. */
export interface PlainEvent {
  id: string;
  sessionId: string;
  seq: number;
  action: Action;
  content: string;
  createdAt: number;
  toolCalls?: ToolCall[] | null;
  toolCallId?: string | null;
  toolName?: string | null;
  isError?: boolean | null;
  metadata?: { [field: string]: any } | null;
}

/** A message as a model gets it. */
export interface ModelMessage {
  role: "user" | "assistant" | "tool" | "system";
  content: string;
  toolCalls?: ToolCall[] | null;
  toolCallId?: string | null;
  toolName?: string | null;
  isError?: boolean | null;
  files?: ContextFile[];
}

/** A row of `cf_agents_events` as an event. Throws if the row's metadata is not JSON. */
export declare function hydrateEvent(row: StoredEvent): PlainEvent;
/** An event as a row of `cf_agents_events`. */
export declare function dehydrateEvent(event: PlainEvent | SessionEvent): StoredEvent;
/** What a model is told of an event, or `null`: nothing. */
export declare function eventToMessage(event: PlainEvent | SessionEvent): ModelMessage | null;
/** A message as an event for `appendEvents`, with an id of its own, so that a retry is stored once. */
export declare function messageToEvent(sessionId: string, message: ModelMessage): PlainEvent;

// The working context.

/** What one turn sends to a model, in memory. */
export declare class WorkingContext {
  constructor(systemInstructions?: string[], messages?: ModelMessage[], metadata?: { [field: string]: any });
  systemInstructions: string[];
  messages: ModelMessage[];
  metadata: { [field: string]: any };
  addMessage(message: ModelMessage): void;
  /** The messages that were added since the context was built. */
  getNewMessages(): ModelMessage[];
}

export interface ContextBuilderOptions<Event = SessionEvent> {
  systemInstructions?: string[];
  /** What a model is told of an event; `null` leaves the event out. */
  eventToMessage?: (event: Event) => ModelMessage | null;
}

/** A context of these events. */
export declare function buildWorkingContext<Event extends PlainEvent = SessionEvent>(events: Event[], options?: ContextBuilderOptions<Event>): WorkingContext;

/** Turns a context into the input of one provider. It keeps no state. */
export interface ModelFormatAdapter<Input = unknown> {
  readonly name: string;
  toModelMessages(systemInstructions: string[], messages: ModelMessage[]): Input;
}

export interface WorkersAIChatMessage {
  role: "user" | "assistant" | "tool" | "system";
  content: string;
  name?: string;
  tool_call_id?: string;
  tool_calls?: Array<{ id: string; type: "function"; function: { name: string; arguments: string } }>;
}

/** The input of `env.AI.run(model, input)`. */
export declare const workersAIAdapter: ModelFormatAdapter<{ messages: WorkersAIChatMessage[] }>;
