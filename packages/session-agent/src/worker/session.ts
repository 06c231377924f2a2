// `Session` and `SessionManager`, as in the Agents SDK's documentation. Their methods are operations on the
// object that creates them.
//
// In the documentation, reads are synchronous (`session.getHistory()`), so such methods return values. A
// write is complete when its method returns; its promise reports failures.

import { Connection } from "../connection.js";
import { type MemoryTool, toolsOf } from "../ai_sdk.js";
import { COMPACTION_PREFIX, type CompactFunction, type CompactResult, isCompactionMessage } from "../compact.js";
import {
  type AppendedMessage,
  type Block,
  type Compaction,
  type ListedTool,
  OPERATIONS,
  type Session as StoredSession,
  type UiMessage,
} from "../operations.js";
import { SessionClient } from "../session.js";
import type { OwnBlock } from "./blocks.js";
import { type Inside, insideOf } from "./inside.js";
import { type AnyProvider, kindOf, type WritableContextProvider } from "./providers.js";

/** The default session of a `Session`. */
const DEFAULT = "default";

/** The type of the frames that report a session's state to a page. */
export const CF_AGENT_SESSION = "cf_agent_session";
export const CF_AGENT_SESSION_ERROR = "cf_agent_session_error";

/** The maximum length of a socket's tag, a prefix of its session's id, as in edge/sockets.rs. */
const MAX_TAG_BYTES = 250;

/** The messages per read. */
const MAX_MESSAGES = 1000;

/** A memory block of the session. */
export interface SessionContextOptions {
  description?: string;
  maxTokens?: number;
  defaultContent?: string;
  /** The block's provider, whose methods determine the block's kind. Default: a writable block of the object. */
  provider?: AnyProvider;
}

/** A message in the AI SDK's format. */
export interface SessionMessage {
  id: string;
  role: string;
  parts: object[];
  [field: string]: any;
}

/** A message that a search found. */
export interface FoundMessage {
  id: string;
  role: string;
  content: string;
  createdAt: string;
  sessionId: string;
}

/** An agent's own client, which needs no token. `object`: the agent's object. */
export function sessionOf(object: object, id: string): SessionClient {
  const inside = insideOf(object);
  const stub = {
    // A stub is known by its id.
    id: {},
    fetch: (url: string, init: RequestInit = {}) => inside.fetch(id, url, init),
    request: async (operation: string, json: string) => {
      try {
        return { ok: true, value: JSON.stringify(await inside.call(operation, JSON.parse(json))) };
      } catch (error) {
        const { code, message, details, status } = error as any;
        if (typeof code !== "string") throw error;
        return { ok: false, error: { code, message, details }, status };
      }
    },
  };
  const name = inside.state.id.name ?? String(inside.state.id);
  return new SessionClient(new Connection(stub, name, { retry: false }), id, (connection, operation, input, options) =>
    connection.operate(
      operation,
      input,
      { reads: OPERATIONS[operation]?.reads ?? false, isRepeatable: false },
      options,
    ),
  );
}

/** Opens a session of an object by its id. */
type Open = (id: string) => SessionClient;

/** Callable, so that a class may have a field named `session`: calling it opens other sessions. */
const Opening = class {
  constructor(opens: Open) {
    // biome-ignore lint/correctness/noConstructorReturn: the instance is the function.
    return Object.setPrototypeOf(opens, new.target.prototype);
  }
} as unknown as new (
  opens: Open,
) => Open;

/** One conversation of an object, with its memory: `Session.create(this)`. */
export class Session extends Opening {
  #inside: Inside;
  #id: string;
  /** Where the frozen prompt is stored. `undefined`: in this `Session` alone. */
  #prompts: WritableContextProvider | "object" | undefined;
  #frozen: string | undefined;
  #compacts: CompactFunction | undefined;
  #threshold: number | undefined;
  /** The documents that this `Session`'s tools loaded, and unloaded. */
  #loaded = new Map<string, boolean>();
  /** The blocks that are still being defined. */
  #defining: Array<Promise<unknown>> = [];

  constructor(object: object, id: string = DEFAULT) {
    super((other) => sessionOf(object, other));
    this.#inside = insideOf(object);
    this.#id = id;
  }

  static create(object: object): Session {
    return new Session(object);
  }

  /** The session's id. */
  get id(): string {
    return this.#id;
  }

  /** Names the session. */
  forSession(id: string): this {
    this.#id = id;
    return this;
  }

  /** Adds a block to the agent's memory. In a field of the class, it costs no row. */
  withContext(label: string, options: SessionContextOptions = {}): this {
    const block = this.#inside.hooked.addBlock(blockOf(label, options));
    if (block !== null) this.#later(this.#inside.call("defineBlock", block));
    return this;
  }

  /** Stores the frozen prompt, so that it survives an eviction: in the object, or by a provider. */
  withCachedPrompt(provider?: WritableContextProvider): this {
    provider?.init?.("_system_prompt");
    this.#prompts = provider ?? "object";
    return this;
  }

  /** Sets the function that `compact` summarizes with. */
  onCompaction(compacts: CompactFunction): this {
    this.#compacts = compacts;
    return this;
  }

  /** Compacts after an append if the history has more tokens than this. */
  compactAfter(tokens: number): this {
    this.#threshold = tokens;
    return this;
  }

  // The conversation.

  /** Appends a message. Creates the session if it doesn't exist. */
  async appendMessage(message: SessionMessage, parentId?: string | null): Promise<AppendedMessage> {
    const input = { message, ...(parentId != null && { parentId }) };
    const appended = await this.#made(() => this.#call("appendMessage", input));
    const tokens = await this.#broadcastIdle();
    if (this.#compacts && this.#threshold !== undefined && tokens > this.#threshold) {
      // The message is stored. Later failures are reported to pages and in the log.
      await this.compact().catch((error) => console.error("session-agent: a compaction failed", error));
    }
    return appended;
  }

  async updateMessage(message: SessionMessage): Promise<UiMessage | null> {
    const updated = await this.#call("updateMessage", { message });
    await this.#broadcastIdle();
    return updated;
  }

  async deleteMessages(messageIds: string[]): Promise<{ deleted: number }> {
    const deleted = await this.#call("deleteMessages", { messageIds });
    await this.#broadcastIdle();
    return deleted;
  }

  async clearMessages(): Promise<{ deleted: number }> {
    const deleted = await this.#call("clearMessages", {});
    await this.#broadcastIdle();
    return deleted;
  }

  /** The newest messages, oldest first: at most 1,000. */
  getHistory(leafId?: string | null): UiMessage[] {
    const input = { limit: MAX_MESSAGES, ...(leafId != null && { leafId }) };
    return this.#read("getHistory", input, { messages: [] }).messages;
  }

  getMessage(id: string): UiMessage | null {
    return this.#read("getMessage", { messageId: id }, null);
  }

  getLatestLeaf(): UiMessage | null {
    return this.#read("getLatestLeaf", {}, null);
  }

  getBranches(messageId: string): UiMessage[] {
    return this.#read("getBranches", { messageId }, { messages: [] }).messages;
  }

  getPathLength(leafId?: string | null): number {
    return this.#read("getPathLength", leafId == null ? {} : { leafId }, { length: 0 }).length;
  }

  /** The matching messages of this session, best first. */
  search(query: string, { limit = 20 }: { limit?: number } = {}): FoundMessage[] {
    return this.#read("search", { query, limit }, { results: [] }).results.map(foundOf);
  }

  // Compaction.

  /** Replaces the messages that the function of `onCompaction` names with a summary. `null`: it named none. */
  async compact(): Promise<CompactResult | null> {
    if (this.#compacts === undefined)
      throw new TypeError("`compact` requires a function: set it with `onCompaction` first.");
    await this.#broadcastPhase("compacting");
    this.#inside.hooked.notifyStatus(this.#id, "compacting");
    try {
      const tokensBefore = await this.#tokens();
      const result = await this.#compacts(this.getHistory());
      if (result == null) return null;
      // The next summary also covers the messages of the earlier one.
      const earlier = this.getHistory().find(isCompactionMessage);
      const older = this.getCompactions().find(({ id }) => `${COMPACTION_PREFIX}${id}` === earlier?.id);
      const fromMessageId = older?.fromId ?? result.fromMessageId;
      await this.addCompaction(result.summary, fromMessageId, result.toMessageId);
      await this.refreshSystemPrompt();
      await this.#broadcastPhase("idle", { compacted: { tokensBefore } });
      return { ...result, fromMessageId };
    } catch (error) {
      this.#send({ type: CF_AGENT_SESSION_ERROR, error: String((error as Error)?.message ?? error) });
      throw error;
    } finally {
      await this.#broadcastIdle();
      this.#inside.hooked.notifyStatus(this.#id, "idle");
    }
  }

  addCompaction(summary: string, fromMessageId: string, toMessageId: string): Promise<Compaction> {
    return this.#call("addCompaction", { summary, fromId: fromMessageId, toId: toMessageId });
  }

  getCompactions(): Array<Compaction & { fromMessageId: string; toMessageId: string }> {
    return this.#read("getCompactions", {}, { compactions: [] }).compactions.map((one: Compaction) => ({
      ...one,
      fromMessageId: one.fromId,
      toMessageId: one.toId,
    }));
  }

  /** Creates a session that continues from a summary of this one. */
  async compactAndSplit(summary: string, name?: string): Promise<StoredSession> {
    return await splitOff(this.#inside, this.#id, summary, name);
  }

  // Memory.

  getContextBlock(label: string): Block | null {
    return this.#inside.now("getBlock", { label });
  }

  getContextBlocks(): Block[] {
    return this.#inside.now("getBlocks", {});
  }

  async replaceContextBlock(label: string, content: string): Promise<Block> {
    await this.#defined();
    return await this.#inside.call("setBlock", { label, content });
  }

  async appendContextBlock(label: string, content: string): Promise<Block> {
    await this.#defined();
    return await this.#inside.call("appendToBlock", { label, content });
  }

  /** Adds a block now. `refreshSystemPrompt` shows it to the model. */
  async addContext(label: string, options: SessionContextOptions = {}): Promise<Block> {
    this.withContext(label, options);
    await this.#defined();
    return await this.#inside.call("getBlock", { label });
  }

  async removeContext(label: string): Promise<boolean> {
    return (await this.#inside.call("removeBlock", { label })).removed;
  }

  /** The documents that are loaded, as `label:key`. */
  getLoadedSkillKeys(): Set<string> {
    const loaded = new Map<string, boolean>();
    for (const { parts } of this.getHistory())
      for (const { type, state, input, output } of parts) {
        const change = state === "output-available" && type.startsWith("tool-") && changeOf(type.slice(5), input);
        if (change) loaded.set(change.document, change.isLoaded && !isMarker(output));
      }
    const all = new Map([...loaded, ...this.#loaded]);
    return new Set([...all.keys()].filter((document) => all.get(document)));
  }

  async unloadSkill(label: string, key: string): Promise<boolean> {
    const { unloaded } = await this.#call("unloadSkill", { label, key });
    this.#loaded.set(`${label}:${key}`, false);
    return unloaded;
  }

  /** The frozen prompt of the blocks, which is unchanged until it is refreshed. */
  async freezeSystemPrompt(): Promise<string> {
    await this.#defined();
    if (this.#prompts === "object") return await this.#render("freezePrompt");
    this.#frozen ??= (await this.#prompts?.get()) ?? undefined;
    return this.#frozen ?? (await this.refreshSystemPrompt());
  }

  /** Renders the prompt from the current blocks. */
  async refreshSystemPrompt(): Promise<string> {
    await this.#defined();
    if (this.#prompts === "object") return await this.#render("refreshPrompt");
    const prompt = await this.#render("renderPrompt");
    await this.#prompts?.set(prompt);
    this.#frozen = prompt;
    return prompt;
  }

  async #render(operation: string): Promise<string> {
    return (await this.#made(() => this.#call(operation, {}))).prompt;
  }

  /** The tools on the memory, as tools of the AI SDK. */
  async tools(): Promise<{ [name: string]: MemoryTool }> {
    await this.#defined();
    const { tools } = await this.#made(() => this.#call("getTools", {}));
    return this.#toolsOf(tools);
  }

  #toolsOf(listed: ListedTool[]): { [name: string]: MemoryTool } {
    return toolsOf(listed, async (name, input) => {
      const outcome = await this.#call("callTool", { name, arguments: input });
      const change = outcome.isError ? undefined : changeOf(name, input);
      if (change) this.#loaded.set(change.document, change.isLoaded);
      return outcome;
    });
  }

  // Within.

  #call(operation: string, input: object): Promise<any> {
    return this.#inside.call(operation, { ...input, sessionId: this.#id });
  }

  /** Creates the session if it doesn't exist. */
  async #made<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    try {
      return await work();
    } catch (error) {
      if (!isNoSession(error)) throw error;
    }
    await this.#inside.call("createSession", { id: this.#id });
    return await work();
  }

  /** A session that doesn't exist is empty. */
  #read(operation: string, input: object, empty: any): any {
    try {
      return this.#inside.now(operation, { ...input, sessionId: this.#id });
    } catch (error) {
      if (isNoSession(error)) return empty;
      throw error;
    }
  }

  #later(work: Promise<unknown>): void {
    // A failure is thrown where the block is used.
    work.catch(() => {});
    this.#defining.push(work);
  }

  async #defined(): Promise<void> {
    await Promise.all(this.#defining.splice(0));
  }

  /** Asynchronous: the estimate renders the prompt, which may call a provider. */
  async #tokens(): Promise<number> {
    try {
      return (await this.#call("estimateTokens", {})).messages;
    } catch (error) {
      if (isNoSession(error)) return 0;
      throw error;
    }
  }

  async #broadcastIdle(): Promise<number> {
    const isOpen = this.#sockets().length > 0;
    if (!isOpen && this.#threshold === undefined) return 0;
    const tokenEstimate = await this.#tokens();
    if (isOpen) await this.#broadcastPhase("idle", { tokenEstimate });
    return tokenEstimate;
  }

  async #broadcastPhase(
    phase: "idle" | "compacting",
    more: { tokenEstimate?: number; compacted?: object } = {},
  ): Promise<void> {
    if (this.#sockets().length === 0) return;
    const { tokenEstimate = await this.#tokens(), ...other } = more;
    this.#send({ type: CF_AGENT_SESSION, phase, tokenEstimate, tokenThreshold: this.#threshold ?? null, ...other });
  }

  #sockets(): any[] {
    return this.#inside.state.getWebSockets(tagOf(this.#id));
  }

  #send(frame: object): void {
    const text = JSON.stringify(frame);
    for (const socket of this.#sockets())
      try {
        socket.send(text);
      } catch {
        // The socket is closed. Its close event follows.
      }
  }
}

/** The sessions of an object, all with the same memory. */
export class SessionManager {
  #inside: Inside;
  #object: object;
  #sessions = new Map<string, Session>();
  #onCreate: Array<(session: Session) => void> = [];
  #memory: Session;

  constructor(object: object) {
    this.#object = object;
    this.#inside = insideOf(object);
    this.#memory = new Session(object);
  }

  static create(object: object): SessionManager {
    return new SessionManager(object);
  }

  withContext(label: string, options?: SessionContextOptions): this {
    this.#memory.withContext(label, options);
    return this;
  }

  withCachedPrompt(provider?: WritableContextProvider): this {
    return this.#each((session) => session.withCachedPrompt(provider));
  }

  onCompaction(compacts: CompactFunction): this {
    return this.#each((session) => session.onCompaction(compacts));
  }

  compactAfter(tokens: number): this {
    return this.#each((session) => session.compactAfter(tokens));
  }

  /** Adds a block that searches the messages of all sessions. */
  withSearchableHistory(label: string): this {
    const get = async () => `${this.list().length} sessions to search.`;
    const search = async (query: string) =>
      this.search(query, { limit: 10 })
        .map(({ role, content }) => `[${role}] ${content}`)
        .join("\n---\n") || null;
    return this.withContext(label, { description: "Earlier conversations", provider: { get, search } });
  }

  #each(work: (session: Session) => void): this {
    this.#onCreate.push(work);
    return this;
  }

  getSession(sessionId: string): Session {
    const known = this.#sessions.get(sessionId);
    if (known !== undefined) return known;
    const session = new Session(this.#object, sessionId);
    for (const begin of this.#onCreate) begin(session);
    this.#sessions.set(sessionId, session);
    return session;
  }

  async create(name: string, { parentSessionId }: { parentSessionId?: string } = {}): Promise<StoredSession> {
    return await this.#inside.call("createSession", { name, ...(parentSessionId && { parentSessionId }) });
  }

  get(sessionId: string): StoredSession | null {
    return this.#inside.now("getSession", { sessionId });
  }

  /** The newest 500 sessions. */
  list(): StoredSession[] {
    return this.#inside.now("listSessions", { limit: 500 }).sessions;
  }

  async delete(sessionId: string): Promise<void> {
    this.#sessions.delete(sessionId);
    await this.#inside.call("deleteSession", { sessionId });
  }

  async rename(sessionId: string, name: string): Promise<StoredSession> {
    return await this.#inside.call("updateSession", { sessionId, name });
  }

  async append(sessionId: string, message: SessionMessage, parentId?: string): Promise<string> {
    return (await this.getSession(sessionId).appendMessage(message, parentId)).message.id;
  }

  async upsert(sessionId: string, message: SessionMessage, parentId?: string): Promise<string> {
    const session = this.getSession(sessionId);
    if (session.getMessage(message.id) === null) return await this.append(sessionId, message, parentId);
    await session.updateMessage(message);
    return message.id;
  }

  async appendAll(sessionId: string, messages: SessionMessage[], parentId?: string): Promise<string | null> {
    let last = parentId ?? null;
    for (const message of messages) last = await this.append(sessionId, message, last ?? undefined);
    return last;
  }

  getHistory(sessionId: string, leafId?: string): UiMessage[] {
    return this.getSession(sessionId).getHistory(leafId);
  }

  getMessageCount(sessionId: string): number {
    return this.getSession(sessionId).getPathLength();
  }

  async clearMessages(sessionId: string): Promise<void> {
    await this.getSession(sessionId).clearMessages();
  }

  async deleteMessages(sessionId: string, messageIds: string[]): Promise<void> {
    await this.getSession(sessionId).deleteMessages(messageIds);
  }

  getBranches(sessionId: string, messageId: string): UiMessage[] {
    return this.getSession(sessionId).getBranches(messageId);
  }

  async fork(sessionId: string, atMessageId: string, name: string): Promise<StoredSession> {
    return await this.#inside.call("forkSession", { sessionId, atId: atMessageId, name });
  }

  addCompaction(sessionId: string, summary: string, fromId: string, toId: string): Promise<Compaction> {
    return this.getSession(sessionId).addCompaction(summary, fromId, toId);
  }

  getCompactions(sessionId: string): ReturnType<Session["getCompactions"]> {
    return this.getSession(sessionId).getCompactions();
  }

  /** Creates a session that continues from a summary of another one. */
  async compactAndSplit(sessionId: string, summary: string, name?: string): Promise<StoredSession> {
    return await splitOff(this.#inside, sessionId, summary, name);
  }

  async addUsage(sessionId: string, inputTokens: number, outputTokens: number, cost: number): Promise<StoredSession> {
    return await this.#inside.call("addUsage", { sessionId, inputTokens, outputTokens, cost });
  }

  /** The matching messages of all sessions, best first. */
  search(query: string, { limit = 20 }: { limit?: number } = {}): FoundMessage[] {
    return this.#inside.now("search", { query, limit }).results.map(foundOf);
  }

  /** The tool that searches all sessions. */
  tools(): { [name: string]: MemoryTool } {
    const listed: ListedTool = {
      name: "session_search",
      description: "Search the messages of all conversations.",
      parameters: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
    };
    return toolsOf([listed], async (_, { query }) => {
      const found = this.search(query, { limit: 10 });
      const shown = found.map(({ role, content }) => `[${role}] ${content}`).join("\n---\n");
      return { output: shown || "Nothing was found.", isError: false };
    });
  }
}

async function splitOff(inside: Inside, id: string, summary: string, name: string | undefined): Promise<StoredSession> {
  const old = await inside.call("getSession", { sessionId: id });
  if (old === null) throw new Error(`There is no session \`${id}\`.`);
  const created = await inside.call("createSession", { name: name ?? old.name, parentSessionId: id });
  const text = `[Context from the previous session]\n\n${summary}`;
  await inside.call("appendMessage", {
    sessionId: created.id,
    message: { role: "assistant", parts: [{ type: "text", text }] },
  });
  return created;
}

function blockOf(label: string, { provider, ...options }: SessionContextOptions): OwnBlock {
  const kind = provider === undefined ? "writable" : kindOf(provider);
  return { label, kind, ...options, ...(provider && { provider: provider as NonNullable<OwnBlock["provider"]> }) };
}

/** The effect of a tool call on the loaded documents. */
function changeOf(tool: string, input: any): { document: string; isLoaded: boolean } | undefined {
  if (tool !== "load_context" && tool !== "unload_context") return undefined;
  if (typeof input?.label !== "string" || typeof input.key !== "string") return undefined;
  return { document: `${input.label}:${input.key}`, isLoaded: tool === "load_context" };
}

/** Whether a document in the log was replaced by a marker. */
const isMarker = (output: unknown): boolean => typeof output === "string" && /^\[.*unloaded/i.test(output);

const foundOf = ({ id, role, snippet, createdAt, sessionId }: any): FoundMessage => ({
  id,
  role,
  content: snippet,
  createdAt: new Date(createdAt).toISOString(),
  sessionId,
});

const isNoSession = (error: unknown): boolean => (error as { code?: string })?.code === "session_not_found";

/** As many whole characters of the id as fit in a tag. */
function tagOf(id: string): string {
  const bytes = new TextEncoder().encode(id);
  if (bytes.length <= MAX_TAG_BYTES) return id;
  let end = MAX_TAG_BYTES;
  while ((bytes[end]! & 0xc0) === 0x80) end -= 1;
  return new TextDecoder().decode(bytes.subarray(0, end));
}
