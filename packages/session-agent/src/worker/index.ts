// `session-agent/worker`: the built Worker, and its object as a class to extend.
//
//   export { default, SessionAgent } from "session-agent/worker";
//
// is a whole Worker. The build bundles this module with the Worker (scripts/build/package.mjs).

import { agentDefaults } from "#defaults";
import Entrypoint, { AgentDirectory as BuiltDirectory, SessionAgent as Built } from "#built";
import type { DurableObject } from "cloudflare:workers";
import type { ObjectRpcOptions, RpcAnswer, SessionRef } from "../bindings.js";
import { buildWorkingContext, type ContextBuilderOptions, WorkingContext } from "../context.js";
import { OPERATIONS, type AppendOutcome, type LoadEventsInput, type ObjectOperations } from "../operations.js";
import type { SessionClient } from "../session.js";
import { HookedObject, type Hooks } from "./hooks.js";
import { insideOf, open } from "./inside.js";
import { idOf, readGiven } from "./positional.js";
import { addressOf } from "./address.js";
import { sessionOf } from "./session.js";

export type {
  ObjectRpcOptions,
  RpcAnswer,
  SessionAgentNamespace,
  SessionAgentObject,
  SessionAgentService,
  SessionRef,
} from "../bindings.js";
export type * from "../operations.js";
export { buildWorkingContext, type ContextBuilderOptions, WorkingContext } from "../context.js";
export * from "../compact.js";
export {
  dehydrateEvent,
  EventAction,
  eventToMessage,
  hydrateEvent,
  type LoggedEvent,
  messageToEvent,
  type ModelMessage,
  type PlainEvent,
  type StoredEvent,
  type ModelEvent,
} from "../events.js";
export * from "../provider_formats.js";
export { type ModelFormatAdapter, workersAIAdapter, type WorkersAIChatMessage } from "../workers_ai.js";
// `AskedBlock`, `AskedMcp` and `AnsweredMcp` are the earlier names of these types.
export type { BlockProvider, BlockRequest, BlockRequest as AskedBlock, OwnBlock } from "./blocks.js";
export {
  AgentContextProvider,
  type BlockMetadata,
  type BlockStore,
  Context,
  type ContextBlock,
  type PredefinedBlock,
  type StoredBlock,
} from "./context.js";
export type { ChangedMemory, Compacted, EndedTurn, FailedCompaction, Grant, Hooks, Status } from "./hooks.js";
export type { LanguageModelLike } from "./model.js";
export {
  AgentSearchProvider,
  type AnyProvider,
  type ContextProvider,
  R2SkillProvider,
  type SearchProvider,
  type SkillProvider,
  type WritableContextProvider,
} from "./providers.js";
export { type AgentStub, getAgentByName } from "./address.js";
export { routeSessionAgent, type RouteOptions } from "./route.js";
export {
  CF_AGENT_SESSION,
  CF_AGENT_SESSION_ERROR,
  type FoundMessage,
  Session,
  type SessionContextOptions,
  SessionManager,
  type SessionMessage,
} from "./session.js";
export {
  type McpArgument,
  type McpCompletion,
  type McpContents,
  type McpMessage,
  type McpPrompt,
  type McpQuestions,
  type McpRequest,
  type McpRequest as AskedMcp,
  type McpRequestWithAnswers,
  type McpRequestWithAnswers as AnsweredMcp,
  type McpResource,
  type OwnMcp,
  prompt,
  resource,
  type VariablesOf,
} from "./mcp.js";
export type { OwnTools } from "./tools.js";

/** The Worker in front of the objects, with every address. */
const worker: any = Entrypoint;
export default worker;

/**
 * An agent: a Durable Object with its own database. A class of your own extends it, and has
 * any of the methods of `Hooks`. In the class, `await this.appendEvents({ … })` and every
 * other operation runs with all rights.
 */
export interface SessionAgent<Env = unknown> extends DurableObject<Env>, ObjectOperations, Hooks {
  fetch(request: Request): Promise<Response>;
  call(operation: string, json?: string, options?: ObjectRpcOptions): Promise<string>;
  request(operation: string, json?: string, options?: ObjectRpcOptions): Promise<RpcAnswer>;
  alarm(): Promise<void>;
  webSocketMessage(socket: any, message: string | ArrayBuffer): Promise<void>;
  webSocketClose(socket: any): Promise<void>;
  webSocketError(socket: any): Promise<void>;
  /** One session of this agent, with all rights and without a token. Only for the class itself. */
  session(id: string): SessionClient;
  /** Runs a statement in the object's storage, and returns its rows. Only for the class itself. */
  sql<Row = { [column: string]: any }>(statement: TemplateStringsArray, ...values: unknown[]): Row[];
  /** The context of a turn, synchronously. Only for the class itself. */
  _buildWorkingContext(session: SessionRef, options?: BuildOptions): WorkingContext;
}

/** The options of a context. */
export interface BuildOptions extends ContextBuilderOptions, Omit<LoadEventsInput, "sessionId"> {}

type State = ConstructorParameters<typeof DurableObject>[0];

/** The methods of a class that no other Worker can call. */
const LOCAL = ["session", "sql", "_buildWorkingContext"] as const;

class Extensible extends Built {
  /** `null`: the class is not extended. */
  #hooked: HookedObject | null = null;

  constructor(ctx: any, env: any) {
    // Without a subclass, the object is the Worker's own.
    if (isShipped(new.target.prototype)) {
      super(ctx, env);
      return;
    }
    // The class's fields exist only after all constructors have run. Nothing reads them earlier.
    let hooks: Hooks = {};
    const hooked = new HookedObject(() => hooks, env, agentDefaults());
    super(ctx, env, hooked.bindings());
    hooks = this as Hooks;
    this.#hooked = hooked;
    open(this, {
      hooked,
      state: ctx,
      env,
      call: async (operation, input) => await this.#run(operation, input),
      now: (operation, input) => this.#runNow(operation, input),
      fetch: (sessionId, url, init) => Built.inside.fetch(this, new Request(url, init), rightsOf(sessionId)),
    });
    this.#watchTransactions(ctx.storage);
    this.#keep(LOCAL);
    if (new.target.operationsForBindings === false) this.#keep([...Object.keys(OPERATIONS), "fetchBound"]);
    ctx.blockConcurrencyWhile(async () => {
      await null;
      await hooked.prepare();
      // The core answered the class's earlier calls to its own object without the class's parts.
      Built.inside.renew(this);
    });
  }

  /** See the exported class. */
  static operationsForBindings = true;

  /**
   * A transaction of the class may be rolled back with the operations in it, so the core must discard what
   * it has cached of them.
   */
  #watchTransactions(storage: any): void {
    const forget = () => Built.inside.forgetReads(this, true);
    const { transactionSync, transaction } = storage;
    storage.transactionSync = (work: () => unknown) => {
      try {
        return transactionSync.call(storage, work);
      } finally {
        forget();
      }
    };
    storage.transaction = async (work: (txn: unknown) => Promise<unknown>) => {
      // The class may roll back the transaction itself and then continue.
      const watched = (txn: any) => {
        const { rollback } = txn;
        Object.defineProperty(txn, "rollback", {
          value() {
            try {
              return rollback.call(txn);
            } finally {
              forget();
            }
          },
        });
        return work(txn);
      };
      try {
        return await transaction.call(storage, watched);
      } finally {
        forget();
      }
    };
  }

  /** The runtime doesn't expose own properties of an object over a binding. */
  #keep(names: readonly string[]): void {
    const methods = this as unknown as { [name: string]: unknown };
    for (const name of names) {
      const value = methods[name];
      // Methods that the class overrides are preserved.
      if (value === (Extensible.prototype as any)[name])
        Object.defineProperty(this, name, { value, writable: true, configurable: true });
    }
  }

  override async fetch(request: Request): Promise<Response> {
    const addressed = addressOf(request, (this as any).ctx.id.name);
    // A Worker that connects to a turn's lease has a right of its own, and this request has no other.
    const granted = addressed.headers.has(LEASE) ? NO_RIGHTS : await this.#hooked?.granted(addressed);
    return await Built.inside.fetch(this, addressed, granted);
  }

  /**
   * `fetch` with all rights for a Worker that binds the class: the client uses it if it has no token. It is
   * not reachable by a URL or from a browser.
   */
  async fetchBound(request: Request): Promise<Response> {
    if (this.#hooked === null) throw new TypeError("The object does not implement the method `fetchBound`.");
    return await Built.inside.fetch(this, addressOf(request, (this as any).ctx.id.name), ALL_RIGHTS);
  }

  session(id: string): SessionClient {
    return sessionOf(this, id);
  }

  sql<Row>(statement: TemplateStringsArray, ...values: unknown[]): Row[] {
    const rows = [...(this as any).ctx.storage.sql.exec(statement.join("?"), ...values)];
    Built.inside.forgetReads(this, false);
    return rows as Row[];
  }

  _buildWorkingContext(
    session: SessionRef,
    { systemInstructions = [], eventToMessage, leafId, limit, ...filter }: BuildOptions = {},
  ): WorkingContext {
    const { now } = insideOf(this);
    const sessionId = idOf(session);
    const isFiltered = eventToMessage !== undefined || Object.values(filter).some((value) => value !== undefined);
    const most = limit === undefined ? {} : { limit };
    if (isFiltered) {
      const events = now("loadEvents", { tail: true, ...filter, ...most, sessionId });
      return buildWorkingContext(events, { systemInstructions, ...(eventToMessage && { eventToMessage }), leafId });
    }
    const leaf = leafId == null ? {} : { leafId };
    const built = now("buildWorkingContext", { systemInstructions, ...most, ...leaf, sessionId });
    const context = new WorkingContext(built.systemInstructions, built.messages);
    context.leafId = built.leafId;
    return context;
  }

  /** Runs an operation as the class's own. */
  #run(operation: string, input: unknown): Promise<any> {
    return Built.inside
      .call(this, operation, Built.inside.textOf(operation, input))
      .then((answer: string) => JSON.parse(answer));
  }

  #runNow(operation: string, input: object): any {
    const answer = Built.inside.callNow(this, operation, Built.inside.textOf(operation, input));
    if (typeof answer === "string") return JSON.parse(answer);
    if (answer !== undefined) throw answer;
    throw new Error(
      `\`${operation}\` has to wait for something here, and this synchronous method can't wait. Call the operation and await it, as in \`await this.${operation}({ … })\`.`,
    );
  }

  static {
    const methods = Extensible.prototype as unknown as { [operation: string]: unknown };
    for (const operation of Object.keys(OPERATIONS)) {
      const method = methods[operation] as (input?: unknown, options?: unknown) => Promise<unknown>;
      methods[operation] = async function (this: Extensible, ...given: unknown[]) {
        // A call without options is the class's own. A Worker that binds the class can make
        // one, too, since the runtime does not distinguish the two: see `operationsForBindings`.
        // A call with options is limited by the token in them.
        const { input, options, wantsId } = readGiven(operation, given);
        if (this.#hooked === null || options.length > 0) return await method.apply(this, given as []);
        const answer = await this.#run(operation, input);
        return wantsId ? answer.id : answer;
      };
    }
    const { buildWorkingContext: build, persistWorkingContext: persist, destroy } = methods as any;

    methods.buildWorkingContext = function (this: Extensible, ...given: any[]) {
      const isLocal = this.#hooked !== null && idOf(given[0]) !== undefined && given.length <= 2;
      return isLocal ? this._buildWorkingContext(given[0], given[1]) : build.apply(this, given);
    };

    methods.persistWorkingContext = async function (this: Extensible, ...given: any[]) {
      const [session, context] = given;
      if (typeof context?.getNewMessages !== "function") return await persist.apply(this, given);
      const messages = context.getNewMessages();
      if (messages.length === 0) return { events: [], leafId: context.leafId ?? null } satisfies AppendOutcome;
      const outcome = await persist.call(this, { sessionId: idOf(session), messages });
      context.written?.(messages.length, outcome.leafId);
      return outcome;
    };

    methods.destroy = function (this: Extensible, ...given: any[]) {
      // `super.destroy()` of a class that overrides the method destroys its own object. Other callers
      // need a confirmation: a Worker that binds the class calls the class's method.
      const isOverriding = (this as any).destroy !== methods.destroy && given.length === 0;
      return destroy.apply(this, isOverriding ? [{ confirm: (this as any).ctx.id.name }] : given);
    };
  }
}

/**
 * Whether the class is not extended. A runner may wrap it, as `wrangler dev` does, which doesn't count.
 */
function isShipped(prototype: object): boolean {
  if (prototype === Extensible.prototype) return true;
  const own = Reflect.ownKeys(prototype).filter((name) => name !== "constructor");
  const isWrapper = own.length > 0 && own.every((name) => String(name).startsWith("__miniflare"));
  return isWrapper && isShipped(Object.getPrototypeOf(prototype));
}

/** The grant of a class's own caller, as src/edge/object/granted.rs reads it. `authorize` can't return it. */
const ALL_RIGHTS = '"all"';
const NO_RIGHTS = "null";

/** The header with the id of a turn's lease, by access/front.rs. */
const LEASE = "x-session-agent-lease";

/** The time limit of a class's own request to its object. */
const RIGHTS_S = 3600;

/** The rights of a class's own client: the maximum of a token for the session. */
function rightsOf(sessionId: string): string {
  const allow = { systemInstructions: true, clientTools: true, agentMessages: true, agentMemory: true };
  const operations = Object.entries(OPERATIONS).flatMap(([name, { ofSession }]) => (ofSession ? [name] : []));
  return JSON.stringify({ sessionId, preset: "chat", operations, allow, expiresIn: RIGHTS_S });
}

/** The class to extend. */
export interface SessionAgentClass {
  new <Env = unknown>(ctx: State, env: Env): SessionAgent<Env>;
  /**
   * Whether a Worker that binds the class may call operations as methods. Without options, such a call has
   * all rights, which the binding grants. With `false`, only the class itself can call the methods; `call`
   * and `request`, which require a token, remain available.
   */
  operationsForBindings: boolean;
}

export const SessionAgent: SessionAgentClass = Extensible as never;

/** The directory of agents, for a Worker that binds it as `DIRECTORY`. It can't be extended. */
export const AgentDirectory: new (ctx: State, env: unknown) => DurableObject = BuiltDirectory as never;
