// Providers of blocks in the format of the Agents SDK's documentation. The methods of a provider determine
// the kind of its block.

import type { BlockKind } from "../operations.js";
import { type Inside, insideOf } from "./inside.js";

/** A block's text. With only `get`, the block is readonly. */
export interface ContextProvider {
  get(): Promise<string | null>;
  /** Called first, with the block's label. */
  init?(label: string): void;
}

/** A writable block's text. */
export interface WritableContextProvider extends ContextProvider {
  set(content: string): Promise<void>;
}

/** Entries of a searchable block. `get` returns the text for the prompt. */
export interface SearchProvider extends ContextProvider {
  search(query: string): Promise<string | null>;
  set?(key: string, content: string): Promise<void>;
}

/** Documents of a loadable block. `get` lists them. */
export interface SkillProvider extends ContextProvider {
  load(key: string): Promise<string | null>;
  set?(key: string, content: string, description?: string): Promise<void>;
}

/** The methods of any provider. */
export interface AnyProvider {
  init?(label: string): void;
  get?(): unknown;
  set?(keyOrContent: string, content: string, description?: string): unknown;
  search?(query: string): unknown;
  load?(key: string): unknown;
}

/** The kind of a block, from the methods of its provider. */
export function kindOf({ search, load, set }: { search?: unknown; load?: unknown; set?: unknown }): BlockKind {
  if (typeof load === "function") return "loadable";
  if (typeof search === "function") return "searchable";
  return typeof set === "function" ? "writable" : "readonly";
}

/** A provider of the object's own blocks. */
abstract class OwnProvider {
  protected readonly inside: Inside;
  #label: string | undefined;

  constructor(object: object, label?: string) {
    this.inside = insideOf(object);
    this.#label = label;
  }

  /** The kind of the block. */
  abstract readonly kind: BlockKind;

  init(label: string): void {
    this.#label ??= label;
  }

  /** The label of the block, if it is known. */
  get label(): string {
    if (this.#label !== undefined) return this.#label;
    throw new TypeError("This provider has no label yet: pass it to `withContext`.");
  }

  /** Runs `work`. Defines a missing block first. */
  protected async defined<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    try {
      return await work();
    } catch (error) {
      if ((error as { code?: string }).code !== "block_not_found") throw error;
    }
    await this.inside.call("defineBlock", { label: this.label, kind: this.kind });
    return await work();
  }

  async get(): Promise<string | null> {
    const block = await this.inside.call("getBlock", { label: this.label });
    return block?.content || null;
  }
}

/** A writable block of the object. */
export class AgentContextProvider extends OwnProvider implements WritableContextProvider {
  readonly kind = "writable" as const;

  async set(content: string): Promise<void> {
    await this.defined(() => this.inside.call("setBlock", { label: this.label, content }));
  }
}

/** The entries per search. */
const FOUND = 10;

/** A searchable block of the object, found by words. */
export class AgentSearchProvider extends OwnProvider implements SearchProvider {
  readonly kind = "searchable" as const;

  async search(query: string): Promise<string | null> {
    const { results } = await this.defined(() =>
      this.inside.call("searchContext", { label: this.label, query, limit: FOUND }),
    );
    return results.length === 0 ? null : results.map(({ key, content }: any) => `[${key}]\n${content}`).join("\n\n");
  }

  async set(key: string, content: string): Promise<void> {
    await this.defined(() => this.inside.call("setEntry", { label: this.label, key, content }));
  }
}

/** Whether the provider's block is stored in the object itself. */
export const isOwn = (provider: unknown): provider is AgentContextProvider | AgentSearchProvider =>
  provider instanceof OwnProvider;

/** The documents that are listed. */
const MAX_LISTED = 1000;

/** Documents in a bucket, each an object with its description in its custom metadata. */
export class R2SkillProvider implements SkillProvider {
  #bucket: any;
  #prefix: string;

  constructor(bucket: object, { prefix = "" }: { prefix?: string } = {}) {
    this.#bucket = bucket;
    this.#prefix = prefix;
  }

  async get(): Promise<string | null> {
    const lines: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.#bucket.list({ prefix: this.#prefix, include: ["customMetadata"], cursor });
      for (const { key, customMetadata } of page.objects) {
        const description = customMetadata?.description;
        lines.push(`- ${key.slice(this.#prefix.length)}${description ? `: ${description}` : ""}`);
      }
      cursor = page.truncated ? page.cursor : undefined;
    } while (cursor !== undefined && lines.length < MAX_LISTED);
    return lines.length === 0 ? null : lines.slice(0, MAX_LISTED).join("\n");
  }

  async load(key: string): Promise<string | null> {
    const found = await this.#bucket.get(this.#prefix + key);
    return found === null ? null : await found.text();
  }

  async set(key: string, content: string, description?: string): Promise<void> {
    await this.#bucket.put(this.#prefix + key, content, {
      ...(description !== undefined && { customMetadata: { description } }),
    });
  }
}
