// A session of OpenAI's Agents SDK that is stored in a session of an agent.
//
// The items are the events of the default branch. A transaction that replaces the end of the history
// starts a branch, so the log preserves the replaced items. Before its items, it appends a marker with
// the transaction's name as its id, so a retry finds the marker.

import type {
  AgentInputItem,
  Session,
  SessionHistoryRewriteArgs,
  SessionHistoryRewriteAwareSession,
  SessionHistoryTransactionArgs,
  SessionHistoryTransactionAwareSession,
} from "@openai/agents-core";
import { orNull, PAGE, type Path, readPath } from "./branch_path.js";
import { AlreadyExistsError, LeafMovedError, SessionNotFoundError } from "./errors.js";
import { canonical, eventOfItem, type Item, itemsOfEvent, snapshotOf } from "./openai_items.js";
import type { AppendEventsInput, AppendOutcome, SessionEvent } from "./operations.js";
import type { SessionClient } from "./session.js";

export interface SessionLogger {
  debug(message: string): void;
  dontLogModelData?: boolean;
  dontLogToolData?: boolean;
}

type Events = AppendEventsInput["events"];

/** An item and its position: the `n`th item of an event. */
interface LocatedItem {
  event: SessionEvent;
  item: Item;
  n: number;
}

interface Mutation {
  callId: string;
  expected?: Item;
  replacement: Item;
}

type Transaction = { items?: Item[]; expectedSuffix?: Item[]; replacement?: Item[] };

/** The number of conflicts after which a transaction fails. */
const TRIES = 10;
const MARK = "openaiOperation";

/** Stores the history of OpenAI's Agents SDK in a session of an agent. */
export class SessionAgentSession
  implements Session, SessionHistoryRewriteAwareSession, SessionHistoryTransactionAwareSession
{
  #session: SessionClient;
  #logger: SessionLogger | undefined;

  /**
   * `session`: `agent.session(id)`. It is created with the first item. `logger`: one of the
   * SDK's, which logs items unless it is set to log no such data.
   */
  constructor(session: SessionClient, { logger }: { logger?: SessionLogger } = {}) {
    this.#session = session;
    this.#logger = logger;
  }

  async getSessionId(): Promise<string> {
    return this.#session.id;
  }

  /** The newest `limit` items, or all of them, oldest first. */
  async getItems(limit: number = Infinity): Promise<AgentInputItem[]> {
    if (limit <= 0) return [];
    const { events } = await this.#path(limit);
    const all = events.flatMap(itemsOfEvent);
    const items = limit === Infinity ? all : all.slice(-limit);
    this.#log("Getting items from", items);
    return items;
  }

  /** Items are values of JSON and `Uint8Array`s. Anything else is refused before an item is written. */
  async addItems(items: AgentInputItem[]): Promise<void> {
    const copies = Array.from(items, copyOf);
    this.#log("Adding items to", copies);
    const events = copies.map((item) => ({ id: crypto.randomUUID(), ...eventOfItem(item) }));
    while (events.length > 0) await this.#append({ events: events.splice(0, PAGE) });
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    const item = await this.#pop();
    if (item !== undefined) this.#log("Popping item from", item);
    return item;
  }

  async #pop(): Promise<Item> {
    for (;;) {
      const { events } = await this.#path(1);
      const event = events[0];
      if (event === undefined) return undefined;
      const items = itemsOfEvent(event);
      if (items.length > 1) {
        // An event of another framework: its other content is preserved.
        if (await this.#replaceEnd(event, items.slice(0, -1))) return items.at(-1);
      } else if ((await this.#session.deleteEvents({ eventIds: [event.id] })).deleted > 0) {
        return items[0];
      }
    }
  }

  async clearSession(): Promise<void> {
    try {
      await this.#session.clearMessages();
    } catch (error) {
      if (!(error instanceof SessionNotFoundError)) throw error;
    }
  }

  /** Replaces function calls of the history atomically. The log preserves the replaced ones. */
  async applyHistoryMutations({ mutations }: SessionHistoryRewriteArgs): Promise<void> {
    const wanted = Array.from(mutations, readMutation);
    if (wanted.length === 0) return;
    for (let attempt = 1; ; attempt += 1) {
      const { events, leafId } = await this.#path(Infinity);
      const located = locatedItems(events);
      const before = located.map(({ item }) => item);
      const after = mutated(before, wanted);
      const at = before.findIndex((item, n) => item !== after[n]);
      if (at < 0) return;
      // The items after the first change are written again, on a branch.
      const { event, n } = located[at]!;
      const items = [...itemsOfEvent(event).slice(0, n), ...after.slice(at)];
      const rewritten = items.map((item) => ({ id: crypto.randomUUID(), ...eventOfItem(item) }));
      if (await this.#branch(rewritten, event.parentId, leafId, attempt)) return;
    }
  }

  /** Appends items, or replaces the newest ones: atomically, and once per `operationId`. */
  async applyHistoryTransaction(args: SessionHistoryTransactionArgs): Promise<void> {
    const { operationId, transaction } = readTransaction(args);
    const name = `op-${await digestOf(operationId)}`;
    const digest = await digestOf(canonical(transaction));
    for (let attempt = 1; ; attempt += 1) {
      if (await this.#isApplied(name, digest)) return;
      const { expectedSuffix = [], replacement = transaction.items ?? [] } = transaction;
      const end = await this.#cut(expectedSuffix);
      const items = [...end.kept, ...replacement].map((item, n) => ({ id: `${name}-${n + 1}`, ...eventOfItem(item) }));
      const mark: Events[number] = {
        id: name,
        action: "system_instruction",
        content: "",
        metadata: { [MARK]: digest },
      };
      if (await this.#branch([mark, ...items], end.parentId, end.leafId, attempt)) return;
    }
  }

  /** Appends events after `parentId`. `false`: the branch has advanced, and nothing was written. */
  async #branch(
    events: Events,
    parentId: string | null,
    expectedLeafId: string | null,
    attempt: number,
  ): Promise<boolean> {
    try {
      await this.#append({ events, parentId, expectedLeafId });
      return true;
    } catch (error) {
      if (!(error instanceof LeafMovedError) || attempt >= TRIES) throw error;
      return false;
    }
  }

  #log(what: string, items: Item): void {
    const logger = this.#logger;
    if (logger === undefined || logger.dontLogModelData || logger.dontLogToolData) return;
    logger.debug(`${what} session (${this.#session.id}): ${JSON.stringify(items)}`);
  }

  async #isApplied(name: string, digest: string): Promise<boolean> {
    const mark = await orNull(() => this.#session.getMessage({ messageId: name }));
    if (!mark) return false;
    if (mark.metadata?.[MARK] === digest) return true;
    throw new Error(
      "Session history operation was already applied with a different transaction. Use a new `operationId` for each transaction.",
    );
  }

  /** The end of the history without `suffix`. `kept`: the preserved items of an event that is cut. */
  async #cut(suffix: Item[]): Promise<{ leafId: string | null; parentId: string | null; kept: Item[] }> {
    const { events, leafId } = await this.#path(suffix.length);
    if (suffix.length === 0) return { leafId, parentId: leafId, kept: [] };
    const end = locatedItems(events).slice(-suffix.length);
    if (end.length < suffix.length || end.some(({ item }, n) => canonical(item) !== canonical(suffix[n]))) {
      throw new Error("Session history suffix no longer matches the items that the transaction expects.");
    }
    const { event, n } = end[0]!;
    return { leafId, parentId: event.parentId, kept: itemsOfEvent(event).slice(0, n) };
  }

  /** Replaces the last event of the branch with `items`. `false`: another writer was faster. */
  async #replaceEnd(event: SessionEvent, items: Item[]): Promise<boolean> {
    const events = items.map((item) => ({ id: crypto.randomUUID(), ...eventOfItem(item) }));
    try {
      await this.#session.appendEvents({ events, parentId: event.parentId, expectedLeafId: event.id });
      return true;
    } catch (error) {
      if (error instanceof LeafMovedError) return false;
      throw error;
    }
  }

  #path(count: number): Promise<Path> {
    return readPath(this.#session, count, (event) => itemsOfEvent(event).length);
  }

  async #append(input: Omit<AppendEventsInput, "sessionId">): Promise<AppendOutcome> {
    try {
      return await this.#session.appendEvents(input);
    } catch (error) {
      if (!(error instanceof SessionNotFoundError)) throw error;
    }
    await this.#session.create().catch((error) => {
      if (!(error instanceof AlreadyExistsError)) throw error;
    });
    return await this.#session.appendEvents(input);
  }
}

const locatedItems = (events: SessionEvent[]): LocatedItem[] =>
  events.flatMap((event) => itemsOfEvent(event).map((item, n) => ({ event, item, n })));

function copyOf(item: Item, n: number): Item {
  try {
    return snapshotOf(item);
  } catch (error) {
    throw new TypeError(
      `Item ${n + 1} can't be stored: ${error instanceof TypeError ? error.message : "reading it failed."}`,
    );
  }
}

/** A snapshot of a transaction: it is read once, and errors never contain its content. */
function readTransaction(args: SessionHistoryTransactionArgs): { operationId: string; transaction: Transaction } {
  let [operationId, transaction]: [any, any] = [undefined, undefined];
  try {
    ({ operationId, transaction } = args);
  } catch {
    throw new TypeError("Session history transaction arguments are invalid.");
  }
  if (typeof operationId !== "string" || operationId.trim() === "")
    throw new TypeError("Session history transaction operationId must be a non-empty string.");
  if (typeof transaction !== "object" || transaction === null)
    throw new TypeError("Session history transaction must be an object.");
  let copy: any;
  try {
    copy = snapshotOf(transaction);
    // Fails for a proxy, which can't be detected by its properties.
    structuredClone(transaction);
    for (const items of [copy.items, copy.expectedSuffix, copy.replacement])
      if (Array.isArray(items)) items.forEach(snapshotOf);
  } catch {
    throw new TypeError("Session history transaction items contain invalid or unsupported data.");
  }
  const lists: { [type: string]: string[] } = {
    append_items: ["items"],
    replace_suffix: ["expectedSuffix", "replacement"],
  };
  if (!Object.hasOwn(lists, String(copy.type)))
    throw new TypeError("Unsupported session history transaction type: it is `append_items` or `replace_suffix`.");
  const fields = lists[copy.type]!;
  if (Object.keys(copy).length !== fields.length + 1 || !fields.every((field) => Array.isArray(copy[field]))) {
    throw new TypeError(
      `Session history ${copy.type === "append_items" ? "append" : "suffix"} transaction fields are invalid.`,
    );
  }
  return { operationId, transaction: copy };
}

function readMutation(given: any, n: number): Mutation {
  const mutation = copyOf(given, n);
  const { type, callId, replacement } = mutation;
  if (type !== "replace_function_call")
    throw new TypeError(`A mutation of the history is \`replace_function_call\`, not \`${type}\`.`);
  if (typeof callId !== "string" || typeof replacement !== "object" || replacement === null)
    throw new TypeError("A `replace_function_call` has a `callId` and a `replacement`.");
  return mutation;
}

/**
 * The items with the mutations applied. Unchanged items are the same objects. A mutation with
 * `expected` replaces only that item; each is checked against the original history.
 */
function mutated(items: Item[], mutations: Mutation[]): Item[] {
  let after = items;
  const replaced = new Set<Item>();
  for (const { callId, expected, replacement } of mutations) {
    const isCall = (item: Item): boolean => item.type === "function_call" && item.callId === callId;
    if (expected === undefined) {
      const first = after.findIndex(isCall);
      after = after.flatMap((item, n) => (n === first ? [replacement] : isCall(item) ? [] : [item]));
      continue;
    }
    const open = items.filter((item) => isCall(item) && !replaced.has(item));
    if (open.length === 0)
      throw new Error("Session history mutation could not find the function call that it expects.");
    const found = open.find((item) => canonical(item) === canonical(expected));
    if (found === undefined)
      throw new Error(
        "Session history items could not be compared safely: no function call is the one that the mutation expects.",
      );
    replaced.add(found);
    after = after.map((item) => (item === found ? replacement : item));
  }
  return after;
}

async function digestOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
