// One session: the operations on sessions with its id, its history, events and changes as async
// iterators, chat, and turns of the AI SDK.

import { type AiMessage, type MemoryTool, promptOf, toolsOf } from "./ai_sdk.js";
import {
  type AiTurn,
  itemsOfMessages,
  nameItems,
  type Persisted,
  type AppendPosition,
  readTurn,
  usageOf,
  writeItems,
} from "./ai_sdk_turn.js";
import { type ChatChunk, type ChatInput, chat, resumeChat } from "./chat.js";
import type { Connection } from "./connection.js";
import type { WorkingContext } from "./context.js";
import type { SessionAgentError } from "./errors.js";
import {
  type AppendedMessages,
  type AddUsageInput,
  type AppendOutcome,
  type Block,
  type Change,
  type CreateSessionInput,
  type Entry,
  type HistoryPage,
  type Imported,
  type ListEntriesInput,
  type ListedTool,
  type ListSkillsInput,
  type NewerName,
  type Operations,
  OPERATIONS,
  type PersistWorkingContextInput,
  type Session,
  type SessionEvent,
  type SessionOperations,
  type Skill,
  type UiMessage,
  type WithoutSession,
} from "./operations.js";
import type { CallOptions } from "./options.js";
import {
  type ChangesOptions,
  changesOf,
  type EventsOptions,
  eventsOf,
  type HistoryOptions,
  historyOf,
  historyPagesOf,
  pagesOf,
} from "./pages.js";
import {
  type ExportLine,
  exportLines,
  exportSession,
  type ImportFile,
  importSession,
  type TransferOptions,
} from "./transfer.js";
import {
  type AppendMessages,
  appendMessages,
  persistWorkingContext,
  type SetBlock,
  type SetEntry,
  setBlock,
  setEntry,
} from "./writes.js";

/** The most events of a context. */
const MOST_EVENTS = 1000;

export interface ModelInputOptions extends CallOptions {
  /** Added after the agent's own instructions. */
  systemInstructions?: string[];
  /** The most tokens of the whole input. Omitted messages are mentioned in `system`. Default: no limit. */
  maxTokens?: number;
  /** The most events that the context is built from. Default: 50, or 1,000 with `maxTokens`. */
  limit?: number;
  /** The number of newest messages whose files are sent. Default: the agent's `keepMedia`. */
  keepMedia?: number;
  /** The leaf of the branch. Default: the session's leaf. */
  leafId?: string;
}

/** Spread it into `streamText` or `generateText`, and pass it to `persist` with the result. */
export interface ModelInput extends AppendPosition {
  /** The frozen prompt, followed by the instructions. */
  system: string;
  messages: AiMessage[];
  tools: { [name: string]: MemoryTool };
  /** The last event of the messages. `null`: the session is empty. */
  leafId: string | null;
  /** The estimate of the whole input, in tokens. */
  tokensEstimate: number;
}

/** The `ModelInput` of the turn, or an explicit position. */
export interface PersistOptions extends CallOptions, AppendPosition {
  /** The estimated tokens of the model's input, which calibrates the session's later estimates. */
  tokensEstimate?: number;
}

type Operate = (connection: Connection, operation: string, input: object, options?: CallOptions) => Promise<any>;

/** One session, with the operations on sessions as methods. `agent.session(id)` names it. */
export interface SessionClient extends SessionOperations {}

// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the methods of the operations are made from their table.
export class SessionClient {
  readonly id: string;
  #connection: Connection;
  #operate: Operate;
  /** The position and the estimated tokens of the last `modelInput`. */
  #position: (AppendPosition & { tokensEstimate: number }) | undefined;

  constructor(connection: Connection, id: string, operate: Operate) {
    if (typeof id !== "string" || id === "") throw new TypeError("A session's id must be a string that is not empty.");
    this.#connection = connection;
    this.#operate = operate;
    this.id = id;
  }

  /** Any operation by its name, with this session's id. */
  call<Name extends keyof SessionOperations>(
    operation: Name,
    input: WithoutSession<Operations[Name]["input"]>,
    options?: CallOptions,
  ): Promise<Operations[Name]["output"]>;
  call<Name extends string>(operation: NewerName<Name>, input?: object, options?: CallOptions): Promise<any>;
  call(operation: string, input: object = {}, options?: CallOptions): Promise<any> {
    return this.#operate(this.#connection, operation, { ...input, sessionId: this.id }, options);
  }

  /** Creates the session with this id. */
  create(input: Omit<CreateSessionInput, "id"> = {}, options?: CallOptions): Promise<Session> {
    return this.#operate(this.#connection, "createSession", { ...input, id: this.id }, options);
  }

  /**
   * Appends messages of the AI SDK in order: all of them or none. If the messages have ids, existing ones
   * are not written again, so an interrupted call can be repeated.
   */
  appendMessages(input: AppendMessages, options?: CallOptions): Promise<AppendedMessages> {
    return appendMessages(this.call.bind(this), input, options);
  }

  /** Appends the messages that a turn added to its context: all or none. Pass the messages, or the `WorkingContext`. */
  persistWorkingContext(context: WorkingContext, options?: CallOptions): Promise<AppendOutcome>;
  persistWorkingContext(
    input: WithoutSession<PersistWorkingContextInput>,
    options?: CallOptions,
  ): Promise<AppendOutcome>;
  persistWorkingContext(
    input: WithoutSession<PersistWorkingContextInput> | WorkingContext,
    options?: CallOptions,
  ): Promise<AppendOutcome> {
    return persistWorkingContext(this.call.bind(this), input, options);
  }

  /** Replaces the text of a writable block of this session. With a `kind`, a missing block is defined first. */
  setBlock(input: Omit<SetBlock, "sessionId">, options?: CallOptions): Promise<Block> {
    return setBlock(this.call.bind(this), input, options);
  }

  /** Writes an entry of a searchable block of this session. Without a `key`, the client generates one. */
  setEntry(input: Omit<SetEntry, "sessionId">, options?: CallOptions): Promise<Entry> {
    return setEntry(this.call.bind(this), input, options);
  }

  /** The newest messages of the conversation, as chat clients load them. */
  async getMessages(options: CallOptions = {}): Promise<UiMessage[]> {
    const path = `/get-messages?sessionId=${encodeURIComponent(this.id)}`;
    const response = await this.#connection.request("getMessages", path, {}, { ...options, isRepeatable: true });
    return (await response.json()) as UiMessage[];
  }

  /** The messages of a branch from the newest to the oldest. `limit` and `maxBytes` apply to each page. */
  history(options?: HistoryOptions): AsyncGenerator<UiMessage, void, undefined> {
    return historyOf(this, options);
  }

  /** The same in pages, from the newest page. The messages of a page are in ascending order. */
  historyPages(options?: HistoryOptions): AsyncGenerator<HistoryPage, void, undefined> {
    return historyPagesOf(this, options);
  }

  /** The events of the log in the order of `seq`. `limit` applies to each page. */
  events(options?: EventsOptions): AsyncGenerator<SessionEvent, void, undefined> {
    return eventsOf(this, options);
  }

  /** The changes since a cursor, followed by new ones, until the signal is aborted. */
  changes(options?: ChangesOptions): AsyncGenerator<Change, void, undefined> {
    return changesOf(this, options);
  }

  /** All entries of a searchable block of this session. */
  entries(
    input: Omit<ListEntriesInput, "cursor" | "sessionId">,
    options?: CallOptions,
  ): AsyncGenerator<Entry, void, undefined> {
    return pagesOf(
      (cursor) => this.listEntries({ ...input, cursor }, options),
      ({ entries }) => entries,
    );
  }

  /** All documents of a loadable block of this session, without their contents. */
  skills(
    input: Omit<ListSkillsInput, "cursor" | "sessionId">,
    options?: CallOptions,
  ): AsyncGenerator<Skill, void, undefined> {
    return pagesOf(
      (cursor) => this.listSkills({ ...input, cursor }, options),
      ({ skills }) => skills,
    );
  }

  /** Runs a chat turn when it is iterated. A string is a new message of the user. */
  chat(input: string | ChatInput, options?: CallOptions): AsyncGenerator<ChatChunk, void, undefined> {
    return chat(this.#connection, this.id, input, options);
  }

  /** The chunks of the running turn, from its beginning. Empty if no turn is running. */
  resumeChat(options?: CallOptions): AsyncGenerator<ChatChunk, void, undefined> {
    return resumeChat(this.#connection, this.id, options);
  }

  /**
   * The input for the AI SDK's `streamText` and `generateText`, and the position at which `persist` writes
   * the turn.
   */
  async modelInput({
    systemInstructions,
    maxTokens,
    limit,
    keepMedia,
    leafId,
    ...options
  }: ModelInputOptions = {}): Promise<ModelInput> {
    // With `maxTokens`, tokens limit the context instead of the number of events.
    const most = limit ?? (maxTokens === undefined ? undefined : MOST_EVENTS);
    const context = await this.buildWorkingContext(
      { systemInstructions, maxTokens, limit: most, keepMedia, leafId, memory: true },
      options,
    );
    // A turn after an older message is a branch, so it can't conflict with other writes.
    const position = leafId === undefined ? { expectedLeafId: context.leafId } : { parentId: leafId };
    this.#position = { ...position, tokensEstimate: context.tokensEstimate };
    return {
      ...promptOf(context),
      tools: this.#toolsOf(context.tools ?? [], options),
      leafId: context.leafId,
      ...this.#position,
    };
  }

  /** The memory tools of the agent and this session, as tools of the AI SDK. A failing tool throws. */
  async tools(options?: CallOptions): Promise<{ [name: string]: MemoryTool }> {
    const { tools } = await this.getTools({}, options);
    return this.#toolsOf(tools, options);
  }

  #toolsOf(listed: ListedTool[], options?: CallOptions): { [name: string]: MemoryTool } {
    return toolsOf(listed, (name, input, signal) =>
      this.callTool({ name, arguments: input }, { ...options, signal: signal ?? options?.signal }),
    );
  }

  /**
   * Writes a turn of the AI SDK and its usage. `from` is the result of `modelInput`, or a position: the turn
   * follows `expectedLeafId` (if that is not the leaf, nothing is written and `LeafMovedError` is thrown), or
   * `parentId` as a new branch. Without `from`, the position of this object's newest `modelInput` is used; if
   * there is none, the call fails. A turn with reasoning or files becomes one message; another turn becomes
   * events. Retries use the same ids.
   */
  async persist(turn: AiTurn, from: PersistOptions = {}): Promise<Persisted> {
    const { signal, retry, trace } = from;
    const options = { signal, retry, trace };
    const { messages, usage } = await readTurn(turn);
    const items = itemsOfMessages(messages);
    const read = positionOf(from) === undefined ? this.#position : from;
    const position = read && positionOf(read);
    if (position === undefined)
      throw new TypeError(
        "`persist` needs the input of the turn: pass what `modelInput` returned, as in `persist(result, input)`.",
      );
    const after = position.parentId ?? position.expectedLeafId ?? null;
    if (items.length === 0) return { events: [], leafId: after };
    const name = await nameItems(items, after);
    const outcome = await writeItems(this, items, position, options);
    if (usage !== undefined) await this.#report({ id: name, ...usageOf(usage, read?.tokensEstimate) }, options);
    return outcome;
  }

  async #report({ contextTokens, ...usage }: Omit<AddUsageInput, "sessionId">, options: CallOptions): Promise<void> {
    try {
      await this.addUsage({ ...usage, ...(contextTokens !== undefined && { contextTokens }) }, options);
    } catch (error) {
      // An older Worker doesn't calibrate its estimates with usage.
      if (contextTokens === undefined || (error as SessionAgentError).details?.field !== "contextTokens") throw error;
      await this.addUsage(usage, options);
    }
  }

  /** The session as a file of JSON lines. The stream fails if the file is incomplete. */
  exportSession(options?: TransferOptions): Promise<ReadableStream<Uint8Array>> {
    return exportSession(this.#connection, this.id, options);
  }

  /** The same as values, one for each line. The last one is the `end`. */
  exportLines(options?: TransferOptions): AsyncGenerator<ExportLine, void, undefined> {
    return exportLines(this.#connection, this.id, options);
  }

  /** Imports an exported session with this id. */
  importSession(file: ImportFile, options?: TransferOptions & { allowSources?: boolean }): Promise<Imported> {
    return importSession(this.#connection, this.id, file, options);
  }
}

/** The position that a caller names, if any. */
function positionOf({ parentId, expectedLeafId }: AppendPosition): AppendPosition | undefined {
  if (parentId !== undefined) return { parentId };
  return expectedLeafId === undefined ? undefined : { expectedLeafId };
}

const methods = SessionClient.prototype as unknown as { [operation: string]: unknown };

for (const [operation, { ofSession }] of Object.entries(OPERATIONS)) {
  if (!ofSession) continue;
  methods[operation] ??= function (this: SessionClient, input?: object, options?: CallOptions) {
    return this.call(operation, input, options);
  };
}
