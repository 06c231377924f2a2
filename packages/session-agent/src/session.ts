// One session: the operations on sessions with its id given, its history, events and
// changes as async iterators, chat, and the AI SDK's turn.

import { type AiMessage, type MemoryTool, promptOf, toolsOf } from "./ai_sdk.js";
import {
  type AiTurn,
  itemsOfMessages,
  nameItems,
  type Persisted,
  type Place,
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

/** The most events that one context is built from. */
const MOST_EVENTS = 1000;

export interface ModelInputOptions extends CallOptions {
  /** Added after the agent's own instructions. */
  systemInstructions?: string[];
  /** The most tokens of all of it. Messages that do not fit are named in `system`. Default: no limit. */
  maxTokens?: number;
  /** The most events that the context is built from. Default: 50, or 1,000 with `maxTokens`. */
  limit?: number;
  /** In how many of the newest messages files are sent. Default: the agent's `keepMedia`. */
  keepMedia?: number;
  /** The end of the branch. Default: the session's leaf. */
  leafId?: string;
}

/** Spread it into `streamText` or `generateText`, and give it to `persist` with what was said. */
export interface ModelInput extends Place {
  /** The frozen prompt, then the instructions. */
  system: string;
  messages: AiMessage[];
  tools: { [name: string]: MemoryTool };
  /** The last event that the messages contain. `null`: the session is empty. */
  leafId: string | null;
  /** The estimate of the whole input, in tokens. */
  tokensEstimate: number;
}

/** The `ModelInput` that the turn answers, or a place of the caller's own. */
export interface PersistOptions extends CallOptions, Place {
  /** The estimate of what the model was sent: the session's later estimates learn of it. */
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
  /** The place of the turn of the last `modelInput`, and the estimate of its input. */
  #place: (Place & { tokensEstimate: number }) | undefined;

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

  /** Creates the session under this id. */
  create(input: Omit<CreateSessionInput, "id"> = {}, options?: CallOptions): Promise<Session> {
    return this.#operate(this.#connection, "createSession", { ...input, id: this.id }, options);
  }

  /**
   * Appends messages of the AI SDK, each after the one before it: all of them or none. With
   * ids of their own, messages that are there already are left alone, so a call that broke
   * off can be repeated.
   */
  appendMessages(input: AppendMessages, options?: CallOptions): Promise<AppendedMessages> {
    return appendMessages(this.call.bind(this), input, options);
  }

  /** Appends what a turn added to its context: all of it or nothing. Takes the messages, or the `WorkingContext`. */
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

  /** Replaces the text of a writable block of this session. With a `kind`, a block that is not there is defined first. */
  setBlock(input: Omit<SetBlock, "sessionId">, options?: CallOptions): Promise<Block> {
    return setBlock(this.call.bind(this), input, options);
  }

  /** Writes an entry of a searchable block of this session. Without a `key`, the client makes one. */
  setEntry(input: Omit<SetEntry, "sessionId">, options?: CallOptions): Promise<Entry> {
    return setEntry(this.call.bind(this), input, options);
  }

  /** The newest messages of the conversation, as chat clients load them. */
  async getMessages(options: CallOptions = {}): Promise<UiMessage[]> {
    const path = `/get-messages?sessionId=${encodeURIComponent(this.id)}`;
    const response = await this.#connection.request("getMessages", path, {}, { ...options, isRepeatable: true });
    return (await response.json()) as UiMessage[];
  }

  /** The messages of a branch from the newest to the oldest. `limit` and `maxBytes` are a page's. */
  history(options?: HistoryOptions): AsyncGenerator<UiMessage, void, undefined> {
    return historyOf(this, options);
  }

  /** The same in pages, upwards. Each page reads from the older message to the newer. */
  historyPages(options?: HistoryOptions): AsyncGenerator<HistoryPage, void, undefined> {
    return historyPagesOf(this, options);
  }

  /** The events of the log in the order of their numbers. `limit` is a page's. */
  events(options?: EventsOptions): AsyncGenerator<SessionEvent, void, undefined> {
    return eventsOf(this, options);
  }

  /** The changes since a cursor, then those that follow, until the signal is aborted. */
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

  /** Runs a chat turn when it is iterated. A text stands for a new message of the user. */
  chat(input: string | ChatInput, options?: CallOptions): AsyncGenerator<ChatChunk, void, undefined> {
    return chat(this.#connection, this.id, input, options);
  }

  /** The chunks of the turn that runs, from its beginning. None, if no turn runs. */
  resumeChat(options?: CallOptions): AsyncGenerator<ChatChunk, void, undefined> {
    return resumeChat(this.#connection, this.id, options);
  }

  /**
   * The input that the AI SDK's `streamText` and `generateText` need of this session, and the place
   * where `persist` writes the turn.
   */
  async modelInput({
    systemInstructions,
    maxTokens,
    limit,
    keepMedia,
    leafId,
    ...options
  }: ModelInputOptions = {}): Promise<ModelInput> {
    // A caller who says how much fits means the tokens, and not a number of events.
    const most = limit ?? (maxTokens === undefined ? undefined : MOST_EVENTS);
    const context = await this.buildWorkingContext(
      { systemInstructions, maxTokens, limit: most, keepMedia, leafId, memory: true },
      options,
    );
    // A turn after an older message is a branch, and no other write is in its way.
    const place = leafId === undefined ? { expectedLeafId: context.leafId } : { parentId: leafId };
    this.#place = { ...place, tokensEstimate: context.tokensEstimate };
    return {
      ...promptOf(context),
      tools: this.#toolsOf(context.tools ?? [], options),
      leafId: context.leafId,
      ...this.#place,
    };
  }

  /** The tools on the agent's memory and on this session's, as tools of the AI SDK. A tool that fails throws. */
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
   * Writes a turn of the AI SDK, and what it spent. `from` is what `modelInput` gave, or a
   * place: the turn follows `expectedLeafId`, or nothing is written and `LeafMovedError` is
   * thrown; after a `parentId` it is a branch. Without `from`, the place is that of this
   * object's own newest `modelInput`; an object that has none refuses. A turn with reasoning
   * or files is one message; another turn is events. Both have ids that a repetition gives
   * again.
   */
  async persist(turn: AiTurn, from: PersistOptions = {}): Promise<Persisted> {
    const { signal, retry, trace } = from;
    const options = { signal, retry, trace };
    const { messages, usage } = await readTurn(turn);
    const items = itemsOfMessages(messages);
    const read = placeOf(from) === undefined ? this.#place : from;
    const place = read && placeOf(read);
    if (place === undefined)
      throw new TypeError(
        "`persist` needs the input of the turn: pass what `modelInput` returned, as in `persist(result, input)`.",
      );
    const after = place.parentId ?? place.expectedLeafId ?? null;
    if (items.length === 0) return { events: [], leafId: after };
    const name = await nameItems(items, after);
    const outcome = await writeItems(this, items, place, options);
    if (usage !== undefined) await this.#report({ id: name, ...usageOf(usage, read?.tokensEstimate) }, options);
    return outcome;
  }

  async #report({ contextTokens, ...usage }: Omit<AddUsageInput, "sessionId">, options: CallOptions): Promise<void> {
    try {
      await this.addUsage({ ...usage, ...(contextTokens !== undefined && { contextTokens }) }, options);
    } catch (error) {
      // The other end is older than this client, and learns nothing from usage.
      if (contextTokens === undefined || (error as SessionAgentError).details?.field !== "contextTokens") throw error;
      await this.addUsage(usage, options);
    }
  }

  /** The session as a file of JSON lines. The stream fails where the file is not whole. */
  exportSession(options?: TransferOptions): Promise<ReadableStream<Uint8Array>> {
    return exportSession(this.#connection, this.id, options);
  }

  /** The same, as values: one for each line. The last one is the `end`. */
  exportLines(options?: TransferOptions): AsyncGenerator<ExportLine, void, undefined> {
    return exportLines(this.#connection, this.id, options);
  }

  /** Reads an exported session in, under this id. */
  importSession(file: ImportFile, options?: TransferOptions & { allowSources?: boolean }): Promise<Imported> {
    return importSession(this.#connection, this.id, file, options);
  }
}

/** The place that a caller names, if it names one. */
function placeOf({ parentId, expectedLeafId }: Place): Place | undefined {
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
