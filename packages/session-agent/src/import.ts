// Imports conversations from other systems: messages of the AI SDK, items of OpenAI, the tables of the
// Agents SDK, and exports of ChatGPT, Claude, LangChain, mem0 and Zep. Imports can be repeated: existing
// data is not written again. With `dryRun`, nothing is written, and the report lists the planned writes.

import type { AgentClient } from "./agent.js";
import { AlreadyExistsError } from "./errors.js";
import { entriesOfMem0, entriesOfZep, type FactsPlan } from "./import_facts.js";
import {
  completionsOfLangChain,
  conversationsOfChatGPT,
  conversationsOfClaude,
  described,
  isObject,
  knownShape,
  messagesOfZep,
} from "./import_others.js";
import { type BlockPlan, type Checked, messagesOfTables, type SessionPlan, type TableRow } from "./import_tables.js";
import { canonical, eventOfItem, type Item, type ItemEvent, snapshotOf } from "./openai_items.js";
import type { CallOptions } from "./options.js";
import type { SessionClient } from "./session.js";

export type { TableRow };

export interface ImportOptions extends CallOptions {
  /** Writes nothing, and reports the planned writes. Default: false. */
  dryRun?: boolean;
  /** Called as messages or items are written. */
  onProgress?: (progress: { done: number; total: number }) => void;
}

export interface ImportReport {
  dryRun: boolean;
  sessions: SessionReport[];
}

export interface SessionReport {
  id: string;
  /** Whether the session existed before. */
  exists: boolean;
  /** The number of messages or events written, or to be written. */
  write: number;
  /** The number that already existed. */
  known: number;
  /** The number of summaries written, or to be written. */
  compactions: number;
  /**
   * Set if the session has newer messages. They remain the current conversation, and the imported ones
   * are written as another branch.
   */
  isBranch?: boolean;
  /** The omitted items, or parts of items, with the reasons. */
  skipped: Array<{ id: string | null; reason: string }>;
}

export interface TablesReport extends ImportReport {
  blocks: BlockReport[];
  /** Tables of the export that contain no conversations. */
  ignoredTables: string[];
}

export interface BlockReport {
  label: string;
  kind: "writable" | "searchable";
  write: boolean;
  entries?: number;
  reason?: string;
}

export interface FactsOptions extends ImportOptions {
  /** The searchable block for the facts. It is defined if it is missing. Default: `facts`. */
  label?: string;
}

export interface FactsReport {
  dryRun: boolean;
  block: BlockReport;
  /** The omitted items, with the reasons. */
  skipped: Array<{ id: string | null; reason: string }>;
}

/** The messages to write into a session, each with its parent. */
interface MessagesPlan extends Omit<SessionPlan, "id"> {
  /** The end of the conversation, if it is not the last message. */
  leafId?: string;
}

const EVENTS_AT_ONCE = 200;
const TWICE = "An earlier message has the same id.";
const ROLES = new Set(["user", "assistant", "system"]);

/** Writes `UIMessage`s of the AI SDK into a session, in order. */
export async function importUIMessages(
  session: SessionClient,
  messages: Iterable<object>,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const plan: MessagesPlan = { messages: [], skipped: [], compactions: [] };
  const ids = new Set<string | undefined>();
  let parentId: string | null = null;
  for (const message of messages as Iterable<any>) {
    const { checked, reason = ids.has(checked?.id) ? TWICE : undefined } = check(message);
    ids.add(checked?.id);
    if (reason !== undefined || checked === undefined)
      plan.skipped.push({ id: message?.id ?? null, reason: reason ?? "" });
    else {
      plan.messages.push({ message: checked, parentId });
      parentId = checked.id;
    }
  }
  return report(options, [await writeSession(session, plan, options)]);
}

/** Writes items of OpenAI's Responses API or Agents SDK, or messages of its chat completions, into a session. */
export async function importOpenAIItems(
  session: SessionClient,
  items: Iterable<object>,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const events: Array<ItemEvent & { id: string }> = [];
  const names = new Map<string, string>();
  let id = "";
  for (const item of checkItems(items)) {
    // Equal items are separate items, and a list that has grown has the same beginning.
    id = await digestOf(id + canonical(item));
    const event = eventOfAnyItem(item, names);
    for (const call of event.toolCalls ?? []) names.set(call.id, call.name);
    events.push({ id: `import-${id}`, ...event });
  }
  const known = await idsIn(session, options);
  const fresh = events.filter((event) => !known.ids.has(event.id));
  if (!options.dryRun) {
    await haveSession(session, {}, options);
    for (let at = 0; at < fresh.length; at += EVENTS_AT_ONCE) {
      await session.appendEvents({ events: fresh.slice(at, at + EVENTS_AT_ONCE) }, options);
      options.onProgress?.({ done: Math.min(at + EVENTS_AT_ONCE, fresh.length), total: fresh.length });
    }
  }
  const outcome = {
    id: session.id,
    exists: known.exists,
    write: fresh.length,
    known: events.length - fresh.length,
    compactions: 0,
    skipped: [],
  };
  return report(options, [outcome]);
}

const ITEM_ROLES = new Set(["user", "assistant", "system", "developer", "tool", "function"]);

/** The items, if all of them are valid. Otherwise nothing is written. */
function checkItems(items: any): Item[] {
  if (typeof items !== "object" || items === null || typeof items[Symbol.iterator] !== "function") {
    throw new TypeError(`importOpenAIItems takes a list of items, but got ${described(items)}.`);
  }
  return Array.from(items as Iterable<any>, (item, n) => {
    if (!isItem(item))
      throw new TypeError(
        `Item ${n + 1} is neither an item of OpenAI's API nor a message of its chat completions, which have a \`type\` or a \`role\`: it is ${described(item)}.`,
      );
    if (!hasContent(item))
      throw new TypeError(`Item ${n + 1} is empty: a message has a \`content\`, and it is ${described(item)}.`);
    try {
      return snapshotOf(item);
    } catch (error) {
      throw new TypeError(
        `Item ${n + 1} can't be stored: ${error instanceof TypeError ? error.message : "reading it failed."}`,
      );
    }
  });
}

function isItem(item: any): boolean {
  if (!isObject(item) || knownShape(item) !== undefined) return false;
  return ITEM_ROLES.has(item.role) || (typeof item.type === "string" && item.type !== "");
}

/** Whether a message has content. Items of other types have their own fields. */
function hasContent({ role, type, content, tool_calls: calls, function_call: call, refusal }: any): boolean {
  const isMessage = ITEM_ROLES.has(role) && (type === undefined || type === "message");
  return !isMessage || [content, calls, call, refusal].some((field) => field !== undefined && field !== null);
}

/**
 * Writes the conversations of ChatGPT's data export into an agent, each with its branches into its own
 * session. `file` is the text of `conversations.json`, its parsed content, or one of its conversations.
 */
export async function importChatGPT(
  agent: AgentClient,
  file: string | object,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const plans = conversationsOfChatGPT(file, check);
  const outcomes: SessionReport[] = [];
  for (const { id, ...plan } of plans) outcomes.push(await writeSession(agent.session(id), plan, options));
  return report(options, outcomes);
}

/**
 * Writes the conversations of Claude's data export into an agent, each into its own session. `file` is
 * the text of `conversations.json`, its parsed content, or one of its conversations.
 */
export async function importClaude(
  agent: AgentClient,
  file: string | object,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const plans = conversationsOfClaude(file, check);
  const outcomes: SessionReport[] = [];
  for (const { id, ...plan } of plans) outcomes.push(await writeSession(agent.session(id), plan, options));
  return report(options, outcomes);
}

/** Writes messages of LangChain into a session: its instances, its stored messages, or serialized ones. */
export async function importLangChainMessages(
  session: SessionClient,
  messages: Iterable<object> | string,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const { items, skipped } = completionsOfLangChain(messages);
  const done = await importOpenAIItems(session, items, options);
  return { ...done, sessions: done.sessions.map((one) => ({ ...one, skipped: [...one.skipped, ...skipped] })) };
}

/** Writes messages of a Zep thread into a session. */
export async function importZepMessages(
  session: SessionClient,
  messages: object | string,
  options: ImportOptions = {},
): Promise<ImportReport> {
  return await importUIMessages(session, messagesOfZep(messages), options);
}

/** Writes facts of Zep's graph into a searchable block, with the times between which they are valid. */
export async function importZepFacts(
  agent: AgentClient,
  facts: object | string,
  options: FactsOptions = {},
): Promise<FactsReport> {
  return await writeFacts(agent, entriesOfZep(facts), options);
}

/** Writes memories of mem0 into a searchable block. */
export async function importMem0(
  agent: AgentClient,
  memories: object | string,
  options: FactsOptions = {},
): Promise<FactsReport> {
  return await writeFacts(agent, entriesOfMem0(memories), options);
}

async function writeFacts(
  agent: AgentClient,
  { entries, skipped }: FactsPlan,
  { label = "facts", ...options }: FactsOptions,
): Promise<FactsReport> {
  const block = await writeBlock(agent, { label, kind: "searchable", entries }, options);
  return { dryRun: options.dryRun ?? false, block, skipped };
}

/**
 * Writes the conversations and blocks of an agent of the Agents SDK into an agent. `file` is an
 * export, or `agent.foreignRows()` if the SDK's object became the agent. The whole file is read into memory.
 */
export async function importAgentsTables(
  agent: AgentClient,
  file: string | Blob | Response | ReadableStream<Uint8Array> | Iterable<TableRow> | AsyncIterable<TableRow>,
  options: ImportOptions = {},
): Promise<TablesReport> {
  const { sessions, blocks, ignored } = await messagesOfTables(file, check);
  const outcomes: SessionReport[] = [];
  for (const { id, name, ...plan } of sessions)
    outcomes.push(await writeSession(agent.session(id), { name, ...plan }, options));
  const written: BlockReport[] = [];
  for (const block of blocks) written.push(await writeBlock(agent, block, options));
  return { ...report(options, outcomes), blocks: written, ignoredTables: ignored };
}

const report = ({ dryRun = false }: ImportOptions, sessions: SessionReport[]): ImportReport => ({ dryRun, sessions });

/** A message in the format of `appendMessage`, or the reason why it can't be converted. */
function check(message: any): Checked {
  if (typeof message !== "object" || message === null) return { reason: "It is not a message." };
  const { content, ...rest } = message;
  if (!ROLES.has(rest.role))
    return { reason: `Its role is ${JSON.stringify(rest.role ?? null)}, not user, assistant or system.` };
  if (typeof rest.id !== "string" || rest.id === "") return { reason: "It has no id." };
  if (rest.createdAt instanceof Date) rest.createdAt = rest.createdAt.getTime();
  // Before version 5 of the AI SDK, a message was its content.
  const isOlder = !Array.isArray(rest.parts) && typeof content === "string";
  const parts = isOlder ? [{ type: "text", text: content }] : rest.parts;
  if (!Array.isArray(parts)) return { reason: "It has no parts." };
  if (rest.role === "user" && !parts.some(isReadable)) return { reason: "It is empty." };
  return { checked: isOlder || content === undefined ? { ...rest, parts } : { ...rest, content } };
}

/** Whether a model can read the part. A user's message without such a part is refused. */
function isReadable(part: any): boolean {
  if (typeof part?.type !== "string") return false;
  return part.type === "text" ? typeof part.text === "string" && part.text.trim() !== "" : part.type !== "step-start";
}

async function writeSession(
  session: SessionClient,
  { name, messages, compactions, skipped, leafId }: MessagesPlan,
  options: ImportOptions,
): Promise<SessionReport> {
  const known = await idsIn(session, options);
  const seen = new Set<string>();
  const fresh: MessagesPlan["messages"] = [];
  for (const one of messages) {
    if (seen.has(one.message.id)) skipped.push({ id: one.message.id, reason: TWICE });
    else if (!known.ids.has(one.message.id)) fresh.push(one);
    seen.add(one.message.id);
  }
  // Later messages of the session remain the current conversation.
  const newer = known.exists && fresh.length > 0 ? await findOtherLeaf(session, seen, options) : undefined;
  const overlays = known.exists ? (await session.getCompactions({}, options)).compactions : [];
  const missing = compactions.filter(
    (one) =>
      !overlays.some(
        (overlay) => overlay.fromId === one.fromId && overlay.toId === one.toId && overlay.summary === one.summary,
      ),
  );
  if (!options.dryRun) {
    await haveSession(session, name === undefined ? {} : { name }, options);
    for (const [n, { message, parentId }] of fresh.entries()) {
      await session.appendMessage({ message, ...(parentId !== undefined && { parentId }) }, options);
      options.onProgress?.({ done: n + 1, total: fresh.length });
    }
    for (const compaction of missing) await session.addCompaction(compaction, options);
    if (newer !== undefined) await session.setLeaf({ id: newer }, options);
    else if (leafId !== undefined && fresh.length > 0) await session.setLeaf({ id: leafId }, options);
  }
  return {
    id: session.id,
    exists: known.exists,
    write: fresh.length,
    known: seen.size - fresh.length,
    compactions: missing.length,
    ...(newer !== undefined && { isBranch: true }),
    skipped,
  };
}

async function writeBlock(
  agent: AgentClient,
  { label, kind, content = "", entries = [] }: BlockPlan,
  options: ImportOptions,
): Promise<BlockReport> {
  const block = await agent.getBlock({ label }, options);
  if (block !== null && block.kind !== kind)
    return { label, kind, write: false, reason: `There is a block of this label, and it is ${block.kind}.` };
  if (kind === "writable" && block?.content === content)
    return { label, kind, write: false, reason: "The block already has this text." };
  if (!options.dryRun) {
    if (block === null) await agent.defineBlock({ label, kind }, options);
    if (kind === "writable") await agent.setBlock({ label, content }, options);
    for (const [n, entry] of entries.entries()) {
      await agent.setEntry({ label, ...entry, source: "import" }, options);
      options.onProgress?.({ done: n + 1, total: entries.length });
    }
  }
  return { label, kind, write: true, ...(kind === "searchable" && { entries: entries.length }) };
}

/** The existing ids of a session, on all branches. */
async function idsIn(
  session: SessionClient,
  { signal, retry, trace }: CallOptions,
): Promise<{ exists: boolean; ids: Set<string> }> {
  const ids = new Set<string>();
  if ((await session.getSession({}, { signal, retry, trace })) === null) return { exists: false, ids };
  for await (const { id } of session.events({ signal, retry, trace })) ids.add(id);
  return { exists: true, ids };
}

/** The end of the conversation, if it is not an imported message. */
async function findOtherLeaf(
  session: SessionClient,
  imported: ReadonlySet<string>,
  { signal, retry, trace }: CallOptions,
): Promise<string | undefined> {
  const { leafId } = await session.buildWorkingContext({ limit: 1 }, { signal, retry, trace });
  return leafId === null || imported.has(leafId) ? undefined : leafId;
}

async function haveSession(session: SessionClient, input: { name?: string }, options: CallOptions): Promise<void> {
  await session.create(input, options).catch((error) => {
    if (!(error instanceof AlreadyExistsError)) throw error;
  });
}

/** A tool's result contains only its call's id; the call contains the tool's name. */
function eventOfAnyItem(item: Item, names: Map<string, string>): ItemEvent {
  const called = names.get(item.call_id ?? item.tool_call_id);
  if (item.role === "tool")
    return {
      action: "tool_result",
      content: textOf(item.content),
      toolCallId: item.tool_call_id,
      toolName: called ?? "function",
    };
  if (!Array.isArray(item.tool_calls) || item.tool_calls.length === 0) return eventOfItem(item, called);
  const toolCalls = item.tool_calls.map(
    (call: any) =>
      eventOfItem({
        type: "function_call",
        callId: call.id,
        name: call.function?.name,
        arguments: call.function?.arguments,
      }).toolCalls![0]!,
  );
  return { action: "tool_call_request", content: textOf(item.content), toolCalls };
}

const textOf = (content: any): string =>
  typeof content === "string"
    ? content
    : [content ?? []]
        .flat()
        .map(({ text = "" }) => text)
        .join("\n");

async function digestOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
