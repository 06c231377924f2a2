// LangGraph's store in a searchable block of an agent: an item is an entry. The entries' names and
// metadata are those of the Python package (python/src/session_agent/_items.py), so that programs
// of both languages share a store.

import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from "@langchain/langgraph-checkpoint";
import type { AgentClient } from "./agent.js";
import { BlockNotFoundError, ForbiddenError } from "./errors.js";
import type { Entry, EntryDetails, Metadata } from "./operations.js";

export interface StoreOptions {
  /** The block of the items. Default: `langgraph`. */
  label?: string;
}

/** An entry's key has at most 512 bytes, and its metadata 4 KiB. */
const KEY_BYTES = 512;
const METADATA_BYTES = 4096;

/** The number of best hits that a query reads, and of entries per page. */
const MOST_HITS = 100;
const PAGE = 200;

/** The default number of results of a search, as in LangGraph's own stores. */
const DEFAULT_LIMIT = 10;

/**
 * LangGraph's store over an agent. A query searches the words of values, and their meaning if the agent
 * has `vectors`; items without a hit are omitted. `index` with a list of fields searches the whole value.
 */
export class SessionAgentStore extends BaseStore {
  #agent: AgentClient;
  #label: string;

  constructor(agent: AgentClient, { label = "langgraph" }: StoreOptions = {}) {
    super();
    this.#agent = agent;
    this.#label = label;
  }

  /** Runs all reads, then all writes. If there are several writes of an item, the last one applies. */
  async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const results = await Promise.all(
      operations.map(async (op) => (isPut(op) ? undefined : await this.#read(op as Exclude<Operation, PutOperation>))),
    );
    const puts = new Map(operations.filter(isPut).map((op) => [nameOf(op.namespace, op.key), op]));
    // All operations are checked before the first write.
    const written = [...puts].map(([name, op]) => ({ name, op, text: textOf(op.value), metadata: metadataOf(op) }));
    await Promise.all(
      written.map(async ({ name, op, text, metadata }) => {
        const key = await keyOf(name);
        if (op.value === null) await this.#delete(key);
        else await this.#put({ label: this.#label, key, content: text, metadata });
      }),
    );
    return results as OperationResults<Op>;
  }

  async #read(op: Exclude<Operation, PutOperation>): Promise<Item | null | SearchItem[] | string[][]> {
    try {
      if ("namespacePrefix" in op) return await (op.query ? this.#find(op) : this.#list(op));
      if ("key" in op) return await this.#get(op);
      return await this.#namespaces(op);
    } catch (error) {
      if (!(error instanceof BlockNotFoundError)) throw error;
      // Nothing was written yet.
      return "key" in op ? null : [];
    }
  }

  async #get({ namespace, key }: GetOperation): Promise<Item | null> {
    const entry = await this.#agent.getEntry({ label: this.#label, key: await keyOf(nameOf(namespace, key)) });
    return entry === null ? null : itemOf(entry);
  }

  /** The best hits of a query. */
  async #find({
    namespacePrefix,
    query,
    filter,
    limit = DEFAULT_LIMIT,
    offset = 0,
  }: SearchOperation): Promise<SearchItem[]> {
    if (limit <= 0 || offset < 0) return [];
    const { results } = await this.#agent.searchContext({
      label: this.#label,
      query: query!,
      limit: filter ? MOST_HITS : Math.min(MOST_HITS, offset + limit),
      where: { metadata: { ...prefixOf(namespacePrefix), indexed: true } },
    });
    const hits = results.filter((hit) => isItem(hit) && passes(hit.content, filter)).slice(offset, offset + limit);
    // A hit doesn't contain the time when its entry was created.
    const found = await Promise.all(
      hits.map(async ({ key, score }) => {
        const entry = await this.#agent.getEntry({ label: this.#label, key: key ?? "" });
        return entry === null ? [] : [{ ...itemOf(entry), score: score ?? 0 }];
      }),
    );
    return found.flat();
  }

  async #list({ namespacePrefix, filter, limit = DEFAULT_LIMIT, offset = 0 }: SearchOperation): Promise<SearchItem[]> {
    const found: Entry[] = [];
    if (limit <= 0 || offset < 0) return [];
    const where = namespacePrefix.length === 0 ? {} : { where: { metadata: prefixOf(namespacePrefix) } };
    for await (const entry of this.#agent.entries({ label: this.#label, limit: PAGE, ...where })) {
      if (isItem(entry) && passes(entry.content, filter)) found.push(entry);
      if (found.length >= offset + limit) break;
    }
    return found.slice(offset).map(itemOf);
  }

  async #namespaces({ matchConditions = [], maxDepth, limit, offset }: ListNamespacesOperation): Promise<string[][]> {
    const found = new Map<string, string[]>();
    for await (const entry of this.#agent.entries({ label: this.#label, limit: PAGE })) {
      if (!isItem(entry)) continue;
      const { namespace } = named(entry);
      if (!matchConditions.every((condition) => matches(condition, namespace))) continue;
      const cut = namespace.slice(0, maxDepth);
      found.set(JSON.stringify(cut), cut);
    }
    const sorted = [...found.values()].sort((one, other) => one.join(":").localeCompare(other.join(":")));
    return sorted.slice(offset ?? 0, limit === undefined ? undefined : (offset ?? 0) + limit);
  }

  async #delete(key: string): Promise<void> {
    await this.#agent.deleteEntry({ label: this.#label, key }).catch(unless(BlockNotFoundError));
  }

  async #put(entry: { label: string; key: string; content: string; metadata: Metadata }): Promise<void> {
    try {
      await this.#set(entry);
    } catch (error) {
      if (!(error instanceof BlockNotFoundError)) throw error;
      await this.#agent.defineBlock({
        label: this.#label,
        kind: "searchable",
        description: "What a graph of LangGraph stores",
        modelWrites: false,
      });
      await this.#set(entry);
    }
  }

  /**
   * Writes with the source `agent`, because a graph also stores model output. A token without this
   * permission writes with its own source.
   */
  async #set(entry: { label: string; key: string; content: string; metadata: Metadata }): Promise<void> {
    try {
      await this.#agent.setEntry({ ...entry, source: "agent" });
    } catch (error) {
      if (!(error instanceof ForbiddenError) || error.details.field !== "source") throw error;
      await this.#agent.setEntry(entry);
    }
  }
}

const isPut = (op: Operation): op is PutOperation => "value" in op;

const unless = (known: new (...given: any[]) => Error) => (error: unknown) => {
  if (!(error instanceof known)) throw error;
};

/** A unique text for several names, in the format of Python's `json.dumps`. */
const nameOf = (namespace: string[], key: string): string =>
  JSON.stringify([...namespace, key]).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

async function keyOf(name: string): Promise<string> {
  if (name.length <= KEY_BYTES && !/[\\/]/.test(name)) return name;
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(name));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function textOf(value: PutOperation["value"]): string {
  if (value === null) return "";
  const text: string | undefined = JSON.stringify(value);
  if (text?.startsWith("{")) return text;
  throw new TypeError("The value of an item must be an object that contains only JSON values.");
}

function metadataOf({ namespace, key, index }: PutOperation): Metadata {
  const metadata = { namespace, key, indexed: index !== false, ...prefixOf(namespace) };
  if (new TextEncoder().encode(JSON.stringify(metadata)).length > METADATA_BYTES)
    throw new RangeError("The namespace and the key of an item can have at most 2 KB in total.");
  return metadata;
}

const prefixOf = (namespace: string[]): { [level: string]: string } =>
  Object.fromEntries(namespace.map((label, n) => [`ns${n}`, label]));

const named = ({ metadata }: { metadata?: unknown }): { namespace: string[]; key: string } => metadata as any;

/** Whether the store wrote an entry. It ignores other entries of the block. */
const isItem = (entry: { metadata?: unknown }): boolean => Array.isArray(named(entry)?.namespace);

function itemOf(entry: Entry | EntryDetails): Item {
  const { namespace, key } = named(entry);
  return {
    value: JSON.parse(entry.content),
    key,
    namespace,
    createdAt: new Date(entry.createdAt),
    updatedAt: new Date(entry.updatedAt),
  };
}

function passes(content: string, filter: SearchOperation["filter"]): boolean {
  if (filter === undefined) return true;
  const value = JSON.parse(content);
  return Object.entries(filter).every(([name, wanted]) => compares(value[name], wanted));
}

const OPERATORS: { [operator: string]: (value: any, than: any) => boolean } = {
  $eq: (value, than) => value === than,
  $ne: (value, than) => value !== than,
  $gt: (value, than) => Number(value) > Number(than),
  $gte: (value, than) => Number(value) >= Number(than),
  $lt: (value, than) => Number(value) < Number(than),
  $lte: (value, than) => Number(value) <= Number(than),
  $in: (value, than) => Array.isArray(than) && than.includes(value),
  $nin: (value, than) => !Array.isArray(than) || !than.includes(value),
};

/** The comparison of LangGraph's own store. */
function compares(value: unknown, wanted: any): boolean {
  const isTests =
    typeof wanted === "object" &&
    wanted !== null &&
    Object.keys(wanted).every((name) => Object.hasOwn(OPERATORS, name));
  if (!isTests) return value === wanted;
  return Object.entries(wanted).every(([operator, than]) => OPERATORS[operator]!(value, than));
}

function matches({ matchType, path }: MatchCondition, namespace: string[]): boolean {
  if (path.length > namespace.length) return false;
  const part = matchType === "prefix" ? namespace : namespace.slice(namespace.length - path.length);
  return path.every((wanted, n) => wanted === "*" || wanted === part[n]);
}
