// The core's access to the methods of a class that extends SessionAgent: a service that is bound only in the object,
// and the class's deployed parts.

import { rightsText } from "../rights.js";
import { type BlockRequest, type InferredBlock, type OwnBlock, OwnBlocks } from "./blocks.js";
import { OwnCounter } from "./counter.js";
import { within } from "./deadline.js";
import { problemOfModel } from "./fitting.js";
import { type ModelRequest, isLanguageModel, type LanguageModelLike, lateAnswer, OwnModel, promptIn } from "./model.js";
import { OwnOffer, type OwnMcp } from "./mcp.js";
import { type ToolRequest, OwnToolbox, type OwnTools } from "./tools.js";

/** The binding with which the core calls the class, as `OWN_CLASS` in base/outbound.rs. */
const SERVICE = "SESSION_AGENT_CLASS";

/** The names of models that are methods: see `summaryModel` and `EMBEDDING_MODEL`. */
const SUMMARY = "summarize";
const VECTORS = "embed";

/** The time limit of the class's listings, which run before its object answers anything. */
const LISTING_MS = 10_000;
const NOTICE_MS = 10_000;

/** How long a socket that `authorize` admitted stays valid, unless `authorize` sets a time. */
const SOCKET_S = 3600;

/**
 * The rights of a request: the fields of `mintToken`. A field that is `undefined` or `null` is
 * refused, because a missing field grants more.
 */
export interface Grant {
  /** The only session that the request may use. Default: all sessions. */
  sessionId?: string;
  preset?: "chat" | "read" | "model";
  operations?: string[];
  allow?: {
    models?: string[];
    systemInstructions?: boolean;
    clientTools?: boolean;
    agentMessages?: boolean;
    agentMemory?: boolean;
    purge?: boolean;
    tools?: string[];
  };
  /** Limits of turns. They require a `holder`, because each request has its own grant. */
  limits?: { turnsPerMinute?: number; tokensPerDay?: number; costPerDay?: number };
  /** Whose turns `limits` count, such as `user-42`. */
  holder?: string;
  /** Only for a socket: how many seconds it may be used. Default: 3600. */
  expiresIn?: number;
}

/** A turn's end, in the format of `onTurnEnd`. */
export interface EndedTurn {
  deliveryId: string;
  agent: string;
  sessionId: string;
  /** `null`: the turn had no output. */
  message: any;
  usage: { inputTokens: number; outputTokens: number; cachedInputTokens?: number; cost: number };
  finishReason: string;
  steps: number;
}

/** A change of memory, in the format of `onMemoryChange`. */
export interface ChangedMemory {
  /** Pass it to writes that react to the change, so that they cause no further call. */
  deliveryId: string;
  agent: string;
  /** The session that the block belongs to; `null`: the block is the agent's. */
  sessionId: string | null;
  kind: "block" | "entry" | "document" | "proposal";
  label: string;
  /** Only for an entry or a document. */
  key?: string;
  /** Only for a proposal. */
  id?: string;
  status?: "pending" | "applied" | "rejected" | "reverted";
  deleted: boolean;
  /** The version that was written, as in `getBlockVersions`. `null`: it is not stored. */
  version: { [field: string]: any } | null;
}

type MaybePromise<Value> = Value | Promise<Value>;

/** A compaction that was written. */
export interface Compacted {
  sessionId: string;
  /** The summarized messages. */
  covers: { fromId: string; toId: string; messages: number };
  tokensBefore: number;
  tokensAfter: number;
}

/** A failed compaction. The conversation is unchanged. */
export interface FailedCompaction extends Error {
  sessionId: string;
  code: string;
  details: { [field: string]: any };
}

/** The state of a session's turn. `idle`: the turn is over. */
export interface Status {
  sessionId: string;
  phase: "thinking" | "tools" | "compacting" | "ending" | "idle";
}

/** The methods that a class can have. Each is optional and may be async. */
export interface Hooks {
  /** The model of turns: a language model of the AI SDK, or a name as in `MODEL`. */
  model?(): MaybePromise<LanguageModelLike | string>;
  /** Tools of the AI SDK, run in this object. */
  tools?(): MaybePromise<OwnTools>;
  /** Blocks of every session, with functions as their backends. */
  blocks?(): MaybePromise<InferredBlock[]>;
  /** Additional resources and prompts for clients of the Model Context Protocol. */
  mcp?(): MaybePromise<OwnMcp>;
  /** Summarizes a part of a conversation. `prompt` contains the instructions and the part. */
  summarize?(prompt: string): MaybePromise<string>;
  /** Counts the tokens of a text. A promise is not awaited: its result is used from the next count on. */
  countTokens?(text: string): MaybePromise<number>;
  /** Returns a vector for each text. */
  embed?(texts: string[]): MaybePromise<number[][]>;
  /**
   * Returns the rights of a request, from your own cookie or JWT. `null`: the request is refused.
   * `undefined`: the default rules apply.
   */
  authorize?(request: Request): MaybePromise<Grant | null | undefined>;
  /** Called after each turn. If it throws, it is retried later. */
  onTurnEnd?(turn: EndedTurn): MaybePromise<void>;
  /** Called after each change of memory. If it throws, it is retried later. */
  onMemoryChange?(change: ChangedMemory): MaybePromise<void>;
  /** Called after a compaction. */
  onCompaction?(compaction: Compacted): MaybePromise<void>;
  /** Called after a failed compaction. */
  onCompactionError?(error: FailedCompaction): MaybePromise<void>;
  /** Called when the state of a turn changes. */
  onStatus?(phase: Status["phase"], status: Status): MaybePromise<void>;
}

/** The bindings as the core sees them, and the requests to the class. */
export class HookedObject {
  #find: () => Hooks;
  #env: any;
  #fileDefaults: string | undefined;
  #model: LanguageModelLike | string | undefined;
  #defaults: string | undefined;
  /** Whether the class's parts were collected. The core reads them once. */
  #isReady = false;
  /** Blocks that the class's fields added before its parts were collected. */
  #added: OwnBlock[] = [];
  #isPrepared = false;
  /** The notices to the class, one after the other. */
  #noticed: Promise<unknown> = Promise.resolve();
  #counter = new OwnCounter((text) => this.#hooks.countTokens!(text));
  #own = new OwnModel();
  #toolbox = new OwnToolbox();
  #blocks = new OwnBlocks();
  #offer = new OwnOffer();

  /** `find` gives the class's object; `fileDefaults` is the text of the bundled `agent-defaults.json`. */
  constructor(find: () => Hooks, env: any, fileDefaults: string | undefined) {
    this.#find = find;
    this.#env = env;
    this.#fileDefaults = fileDefaults;
  }

  /** The Worker's bindings, and those that the class adds. */
  bindings(): object {
    const service = {
      fetch: (url: string, init: RequestInit) => this.#fetch(url, init),
      notice: (kind: string, notice: string) => this.#notice(kind, notice),
      count: undefined as ((text: string) => number | undefined) | undefined,
    };
    Object.defineProperty(service, "count", {
      get: () => (this.#has("countTokens") ? (text: string) => this.#counter.count(text) : undefined),
    });
    const added: { [name: string]: () => unknown } = {
      [SERVICE]: () => (this.#isReady ? service : undefined),
      MODEL: () => this.#modelName() ?? this.#env.MODEL,
      EMBEDDING_MODEL: () => (this.#has("embed") ? `own:${VECTORS}` : this.#env.EMBEDDING_MODEL),
      AGENT_DEFAULTS: () => this.#defaults ?? this.#env.AGENT_DEFAULTS,
    };
    const seen = Object.create(this.#env);
    for (const [name, get] of Object.entries(added)) Object.defineProperty(seen, name, { get, enumerable: true });
    return seen;
  }

  /** Collects the class's parts. A part that fails is omitted, and the error is logged. */
  async prepare(): Promise<void> {
    const methods = [
      "model",
      "tools",
      "blocks",
      "mcp",
      "summarize",
      "embed",
      "countTokens",
      "onTurnEnd",
      "onMemoryChange",
      "onCompaction",
      "onCompactionError",
      "onStatus",
    ] as const;
    if (!methods.some((name) => this.#has(name)) && this.#added.length === 0) {
      this.#isPrepared = true;
      return;
    }
    const [model, tools, blocks] = await Promise.all([
      this.#listed("model", () => this.#hooks.model?.()),
      this.#listed(
        "tools",
        async () => await this.#toolbox.define((await this.#hooks.tools?.()) ?? {}, SERVICE, logFailure),
      ),
      this.#listed("blocks", async () =>
        this.#blocks.define(((await this.#hooks.blocks?.()) ?? []) as OwnBlock[], SERVICE, logFailure),
      ),
      this.#listed("mcp", async () => this.#offer.define((await this.#hooks.mcp?.()) ?? {}, logFailure)),
    ]);
    this.#model = model;
    if (isLanguageModel(model)) logProblem(model);
    const added = this.#added.map((block) => this.#blocks.add(block, SERVICE));
    this.#defaults = this.#merged(tools ?? [], [...(blocks ?? []), ...added]);
    this.#isReady = true;
    this.#isPrepared = true;
  }

  /**
   * Adds a block of a class's fields. After the parts were collected, returns the block in the format of
   * `defineBlock`, and the caller defines it.
   */
  addBlock(block: OwnBlock): object | null {
    if (this.#isPrepared) {
      this.#isReady = true;
      return this.#blocks.add(block, SERVICE);
    }
    this.#added.push(block);
    return null;
  }

  /** Notifies the class of a compaction by its own code. */
  notifyStatus(sessionId: string, phase: Status["phase"]): void {
    const hooks = this.#hooks;
    this.#notifyLater("onStatus", () => hooks.onStatus?.(phase, { sessionId, phase }));
  }

  /** The rights that the class grants a request, as JSON. `undefined`: the default rules apply. */
  async granted(request: Request): Promise<string | undefined> {
    if (!this.#has("authorize")) return undefined;
    // The body is not passed to `authorize`.
    const asking = new Request(request.url, { method: request.method, headers: request.headers });
    try {
      const grant = await within(LISTING_MS, "authorize", () => this.#hooks.authorize!(asking));
      if (grant === undefined) return undefined;
      return grant === null ? "null" : grantText(grant);
    } catch (error) {
      logFailure("`authorize` failed, and the request is refused", error);
      return "null";
    }
  }

  get #hooks(): Hooks {
    return this.#find();
  }

  #has(name: keyof Hooks): boolean {
    return typeof this.#hooks[name] === "function";
  }

  async #listed<Value>(name: keyof Hooks, work: () => MaybePromise<Value>): Promise<Value | undefined> {
    if (!this.#has(name)) return undefined;
    try {
      return await within(LISTING_MS, name, work);
    } catch (error) {
      logFailure(`\`${name}\` failed, so what it provides is left out`, error);
      return undefined;
    }
  }

  #modelName(): string | undefined {
    if (!this.#has("model")) return undefined;
    if (typeof this.#model === "string" && this.#model !== "") return this.#model;
    // If `model` fails, each turn fails; no other model is used.
    const named = isLanguageModel(this.#model) ? String(this.#model.modelId ?? "") : "";
    return `own:${named.replaceAll(/[^\x21-\x7e]/g, "-").slice(0, 200) || "model"}`;
  }

  /** `AGENT_DEFAULTS` with the class's parts. Invalid JSON stays unchanged, so that the core reports it. */
  #merged(tools: object[], blocks: object[]): string | undefined {
    const variable: string | undefined = this.#env.AGENT_DEFAULTS || undefined;
    let [file, given, older]: [any, any, any] = [{}, {}, undefined];
    try {
      file = JSON.parse(this.#fileDefaults ?? "{}");
      older = this.#env.MEMORY_BLOCKS ? JSON.parse(this.#env.MEMORY_BLOCKS) : undefined;
      given = JSON.parse(variable ?? "{}");
    } catch (error) {
      logFailure("the deployed defaults can't be read, and the class's tools and blocks are left out", error);
      return variable;
    }
    const before = { ...file, ...(older !== undefined && { blocks: older }), ...given };
    return JSON.stringify({
      ...given,
      ...(tools.length > 0 && { tools: [...(before.tools ?? []), ...tools] }),
      ...(blocks.length > 0 && { blocks: [...(before.blocks ?? []), ...blocks] }),
      ...(this.#has("summarize") && { summaryModel: before.summaryModel ?? `own:${SUMMARY}` }),
      ...(this.#has("embed") && { vectors: before.vectors ?? true }),
      ...(this.#has("onTurnEnd") && { onTurnEnd: before.onTurnEnd ?? { service: SERVICE } }),
      ...(this.#has("onMemoryChange") && { onMemoryChange: before.onMemoryChange ?? { service: SERVICE } }),
    });
  }

  /** Answers a request of the core to the class. */
  async #fetch(url: string, init: RequestInit): Promise<Response> {
    // The core continues first, so that the class may run operations.
    await null;
    const path = new URL(url).pathname.slice(1);
    const request = JSON.parse(init.body as string);
    const signal = init.signal ?? undefined;
    switch (path) {
      case "model":
        return await this.#answer(request, signal);
      case "embed":
        return await this.#vectors(request);
      case "mcp":
        return await this.#offer.ask(request, logFailure);
      case "approval":
        return await this.#toolbox.needsApproval(request as ToolRequest, callOf(init), logFailure);
      case "":
        if (request.deliveryId !== undefined)
          return request.kind === undefined
            ? await this.#notifyNow("onTurnEnd", () => this.#hooks.onTurnEnd!(request))
            : await this.#notifyNow("onMemoryChange", () => this.#hooks.onMemoryChange!(request));
        return await this.#toolbox.run(request as ToolRequest, callOf(init), signal, logFailure);
      default:
        return await this.#blocks.ask(path, request as BlockRequest);
    }
  }

  async #answer(request: ModelRequest, signal: AbortSignal | undefined): Promise<Response> {
    if (request.model === SUMMARY && this.#has("summarize"))
      return lateAnswer((async () => await this.#hooks.summarize!(promptIn(request)))(), (error) =>
        logFailure("`summarize` failed", error),
      );
    try {
      // Called for each request, because a model's credentials may expire.
      const model = await within(LISTING_MS, "model", () => this.#hooks.model?.());
      if (!isLanguageModel(model)) throw new TypeError("`model` did not return an AI SDK language model");
      const problem = logProblem(model);
      // The core then refers to the log.
      if (problem !== null) return Response.json({ error: { message: problem } }, { status: 422 });
      return await this.#own.answer(model, request, signal);
    } catch (error) {
      logFailure("`model` failed", error);
      return Response.json({ error: { message: String((error as Error)?.message ?? error) } }, { status: 500 });
    }
  }

  async #vectors({ input }: { input: string[] }): Promise<Response> {
    try {
      const vectors = await this.#hooks.embed!(input);
      return Response.json({ data: vectors.map((vector) => Array.from(vector)) });
    } catch (error) {
      logFailure("`embed` failed", error);
      return Response.json({ error: { message: String((error as Error)?.message ?? error) } }, { status: 500 });
    }
  }

  /** Passes a notice on. The core continues first, so a method never runs inside a transaction. */
  #notice(kind: string, json: string): void {
    const { error, ...happened } = JSON.parse(json);
    const hooks = this.#hooks;
    if (kind === "status") this.#notifyLater("onStatus", () => hooks.onStatus?.(happened.phase, happened));
    else if (error)
      this.#notifyLater("onCompactionError", () =>
        hooks.onCompactionError?.(Object.assign(new Error(error.message), happened, error)),
      );
    else this.#notifyLater("onCompaction", () => hooks.onCompaction?.(happened));
  }

  #notifyLater(name: keyof Hooks, work: () => MaybePromise<void>): void {
    if (!this.#has(name)) return;
    this.#noticed = this.#noticed
      .then(() => within(NOTICE_MS, name, work))
      .catch((error) => logFailure(`\`${name}\` failed`, error));
  }

  async #notifyNow(name: keyof Hooks, work: () => MaybePromise<void>): Promise<Response> {
    try {
      await within(NOTICE_MS, name, work);
      return new Response(null, { status: 204 });
    } catch (error) {
      logFailure(`\`${name}\` failed, and is tried again`, error);
      return new Response(null, { status: 500 });
    }
  }
}

/** A grant in the core's format. */
function grantText(grant: Grant): string {
  // A grant without fields allows much, so `true` must not be treated as one.
  if (typeof grant !== "object" || Array.isArray(grant))
    throw new TypeError("it must return an object with the fields of `mintToken`, `null`, or `undefined`");
  const rights = JSON.parse(rightsText(grant, "grant")) as Grant;
  if (rights.limits !== undefined && rights.holder === undefined)
    throw new TypeError("it returned `limits` without a `holder`");
  return JSON.stringify({ expiresIn: SOCKET_S, ...rights });
}

/** The id of a tool's call, from the core. */
const callOf = ({ headers }: RequestInit): string | null => new Headers(headers).get("idempotency-key");

/** The problem of a model's version, for the log. */
function logProblem(model: LanguageModelLike): string | null {
  const problem = problemOfModel(model);
  if (problem !== null) console.error(`session-agent: ${problem}`);
  return problem;
}

function logFailure(what: string, error: unknown): void {
  console.error(`session-agent: ${what}`, error);
}
