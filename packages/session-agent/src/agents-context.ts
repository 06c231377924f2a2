// Providers for the context blocks of the Agents SDK (`agents/context`). Each stores its content in
// a block of an agent or a session.

import type { ContextProvider, SearchProvider, WritableContextProvider } from "agents/context";
import type { AgentClient } from "./agent.js";
import { BlockNotFoundError } from "./errors.js";
import type { Operations } from "./operations.js";
import type { SessionClient } from "./session.js";
import { asAgent } from "./writer.js";

export interface ContextProviderOptions<Kind extends "readonly" | "writable" | "searchable"> {
  /** The model's use of the block. Default: `writable`. */
  kind?: Kind;
  /** The block's label. Default: the label that the Agents SDK gives the provider. */
  label?: string;
  /** The description with which the first write defines a missing block. */
  description?: string;
  maxTokens?: number;
}

type Found = Operations["searchContext"]["output"]["results"][number];

/** The owner of a block: an agent or a session. Both have the same methods for it. */
type Owner = Pick<AgentClient, "getBlock" | "searchContext" | "defineBlock" | "setBlock" | "setEntry">;

type Definition = {
  kind: "readonly" | "writable" | "searchable";
  label: string | undefined;
  description: string | undefined;
  maxTokens: number | undefined;
};

/** The entries per search. */
const RESULTS = 10;

/**
 * A provider. `owner`: an agent, or `agent.session(id)`. The block has the label that
 * the Agents SDK gives the provider, unless there is a `label`.
 */
export function contextProvider(
  owner: AgentClient | SessionClient,
  options: ContextProviderOptions<"searchable"> & { kind: "searchable" },
): SearchProvider;
export function contextProvider(
  owner: AgentClient | SessionClient,
  options: ContextProviderOptions<"readonly"> & { kind: "readonly" },
): ContextProvider;
export function contextProvider(
  owner: AgentClient | SessionClient,
  options?: ContextProviderOptions<"writable">,
): WritableContextProvider;
export function contextProvider(
  owner: AgentClient | SessionClient,
  {
    kind = "writable",
    label,
    description,
    maxTokens,
  }: ContextProviderOptions<"readonly" | "writable" | "searchable"> = {},
): ContextProvider | WritableContextProvider | SearchProvider {
  const block = new Block(owner as Owner, { kind, label, description, maxTokens });
  const reads = { init: (given: string) => block.call(given), get: () => block.read() };
  switch (kind) {
    case "readonly":
      return reads;
    case "writable":
      return { ...reads, set: (content: string) => block.setContent(content) } satisfies WritableContextProvider;
    case "searchable":
      return {
        ...reads,
        search: (query: string) => block.search(query),
        set: (key: string, content: string) => block.setEntry(key, content),
      } satisfies SearchProvider;
    default:
      throw new TypeError(`A context block's kind is readonly, writable or searchable, not \`${kind}\`.`);
  }
}

class Block {
  #owner: Owner;
  #definition: Definition;

  constructor(owner: Owner, definition: Definition) {
    this.#owner = owner;
    this.#definition = definition;
  }

  /** The Agents SDK passes the block's label here. */
  call(label: string): void {
    this.#definition.label ??= label;
  }

  get #label(): string {
    return this.#definition.label ?? fail();
  }

  async read(): Promise<string | null> {
    const block = await this.#owner.getBlock({ label: this.#label });
    if (block?.unavailable) throw new Error(`Block \`${this.#label}\` is unavailable: ${block.unavailable}`);
    if (!block?.content) return null;
    const { textSource: source, updatedAt, content } = block;
    return shown({ source, updatedAt, content });
  }

  async search(query: string): Promise<string | null> {
    if (query.trim() === "") return null;
    const { results } = await this.#defined(() =>
      this.#owner.searchContext({ label: this.#label, query, limit: RESULTS }),
    );
    return results.length === 0 ? null : results.map((found) => `[${found.key}]\n${shown(found)}`).join("\n\n");
  }

  async setContent(content: string): Promise<void> {
    await this.#defined(() => this.#owner.setBlock({ label: this.#label, content }));
  }

  async setEntry(key: string, content: string): Promise<void> {
    const entry = { label: this.#label, key, content };
    await this.#defined(() => asAgent((source) => this.#owner.setEntry({ ...entry, ...source })));
  }

  /** Runs `work`. Defines a missing block first. */
  async #defined<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof BlockNotFoundError)) throw error;
    }
    await this.#owner.defineBlock({ ...this.#definition, label: this.#label });
    return await work();
  }
}

/** A text from a tool or a file is untrusted: it is quoted, with its source and its date. */
function shown({
  source,
  updatedAt,
  content,
}: Pick<Found, "content" | "source"> & { updatedAt?: number | null }): string {
  if (source !== "tool" && source !== "import") return content;
  const day = updatedAt == null ? "at an unknown time" : new Date(updatedAt).toISOString().slice(0, 10);
  const lines = content.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/);
  return [`(source: ${source}; written ${day})`, ...lines.map((line) => `> ${line}`.trimEnd())].join("\n");
}

function fail(): never {
  throw new TypeError('This provider has no label yet. Give it one: contextProvider(agent, { label: "memory" }).');
}
