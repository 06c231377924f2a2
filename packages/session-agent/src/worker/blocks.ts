// Functions as backends of blocks. The core calls them like a service.

import type { BlockKind, BlockRetention, BlockSource, Metadata, Tags } from "../operations.js";
import { isOwn, kindOf } from "./providers.js";

/** The backend of a block. Each function may be async. */
export interface BlockProvider {
  /** Called first, with the block's label. */
  init?(label: string): void;
  /** The block's text; for a loadable block, the keys and descriptions of its documents. */
  get?(request: BlockRequest): any;
  /**
   * Stores the new text of a writable block: `set(content, request)`. For an entry or a document, the
   * first argument is its key: `set(key, content, description, request)`.
   */
  set?(first: string, second?: any, description?: any, request?: any): any;
  /** Finds entries: texts, or objects with `content`, `key` and `title`. */
  search?(query: string, request: BlockRequest): any;
  /** A document by its key, or `null`. */
  load?(key: string, request: BlockRequest): any;
  /** Erases an entry or a document that is purged. `false`: it doesn't exist. If absent, nothing is erased here. */
  delete?(key: string, request: BlockRequest): any;
}

/** A block in the format of `defineBlock`, with its backend. */
export interface OwnBlock {
  label: string;
  /** Default: determined by the provider's functions; without a provider, `writable`. Required with a `source`. */
  kind?: BlockKind;
  description?: string;
  maxTokens?: number;
  defaultContent?: string;
  whenChanged?: "wait" | "remind";
  modelWrites?: boolean;
  metadata?: Metadata;
  tags?: Tags;
  retention?: BlockRetention;
  source?: BlockSource;
  /** If absent, the block is stored in the object. */
  provider?: BlockProvider;
}

/** A block of a method without a declared type: TypeScript infers `kind` as any text. */
export type InferredBlock = Omit<OwnBlock, "kind" | "whenChanged"> & { kind?: string; whenChanged?: string };

/** The facts that the core sends with each request. */
export interface BlockRequest {
  agent: string;
  sessionId: string | null;
  label: string;
  kind: string;
  content?: string;
  key?: string;
  title?: string;
  description?: string;
  query?: string;
  limit?: number;
  [field: string]: any;
}

export class OwnBlocks {
  #providers = new Map<string, BlockProvider>();

  /** The blocks in the format of `defineBlock`. Invalid ones are omitted and reported. */
  define(blocks: OwnBlock[], service: string, logFailure: (what: string, error: unknown) => void): object[] {
    return blocks.flatMap((given, n) => {
      if (typeof given?.label !== "string") {
        logFailure(`\`blocks\`: number ${n + 1} is left out`, new TypeError("it has no `label`"));
        return [];
      }
      return [this.add(given, service)];
    });
  }

  /** A block in the format of `defineBlock`. From now on, its provider is called. */
  add({ provider, ...block }: OwnBlock, service: string): object {
    if (provider === undefined || provider === null)
      return block.kind === undefined && block.source === undefined ? { ...block, kind: "writable" } : block;
    provider.init?.(block.label);
    const kind = block.kind ?? kindOf(provider);
    if (isOwn(provider)) return { ...block, kind };
    this.#providers.set(block.label.toLowerCase(), provider);
    const modelWrites = block.modelWrites ?? typeof provider.set === "function";
    return { ...block, kind, source: { service }, modelWrites };
  }

  /** Calls a block's function. If the function fails, the block shows the reason instead of its content. */
  async ask(path: string, request: BlockRequest): Promise<Response> {
    const provider = this.#providers.get(request.label.toLowerCase());
    if (provider === undefined) return new Response("There is no such block any more.", { status: 404 });
    try {
      switch (path) {
        case "get":
          return Response.json(contentOf(await provider.get?.(request), request.kind));
        case "set":
          if (provider.set === undefined) return new Response("This block is readonly.", { status: 405 });
          if (request.key === undefined) await provider.set(request.content ?? "", request);
          else
            await provider.set(
              request.key,
              request.content ?? "",
              request.description ?? request.title ?? undefined,
              request,
            );
          return new Response(null, { status: 204 });
        case "search":
          return Response.json(found(await provider.search?.(request.query ?? "", request)));
        case "load": {
          const document = loaded(await provider.load?.(request.key ?? "", request));
          return document === null
            ? new Response("There is no such document.", { status: 404 })
            : Response.json(document);
        }
        case "delete":
          if (provider.delete === undefined)
            return new Response("This block's provider has no `delete`.", { status: 405 });
          return new Response(null, {
            status: (await provider.delete(request.key ?? "", request)) === false ? 404 : 204,
          });
        default:
          return new Response("There is no such request.", { status: 501 });
      }
    } catch (error) {
      console.error(`session-agent: block \`${request.label}\` could not be reached`, error);
      return new Response(String((error as Error)?.message ?? error), { status: 500 });
    }
  }
}

function contentOf(given: any, kind: string): object {
  if (kind === "loadable" && given !== null && typeof given === "object") {
    const list = Array.isArray(given) ? given : given.skills;
    if (Array.isArray(list)) return { skills: list.map((one) => (typeof one === "string" ? { key: one } : one)) };
  }
  return given !== null && typeof given === "object" ? given : { content: given ?? "" };
}

function found(given: any): object {
  if (given === null || given === undefined) return { results: [] };
  if (typeof given === "string") return { content: given };
  const list = Array.isArray(given) ? given : given.results;
  if (!Array.isArray(list)) return given;
  return { results: list.map((one) => (typeof one === "string" ? { content: one } : one)) };
}

function loaded(given: any): object | null {
  if (given === null || given === undefined) return null;
  return typeof given === "string" ? { content: given } : given;
}
