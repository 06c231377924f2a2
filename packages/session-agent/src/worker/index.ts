// `session-agent/worker`: the built Worker, and its object as a class to extend.
//
//   export { default, SessionAgent } from "session-agent/worker";
//
// is a whole Worker. The build bundles this module with the Worker (scripts/build/package.mjs).

import { agentDefaults } from "#defaults";
import Entrypoint, { AgentDirectory as BuiltDirectory, SessionAgent as Built } from "#built";
import type { DurableObject } from "cloudflare:workers";
import type { ObjectOperations, ObjectRpcOptions, RpcAnswer } from "../bindings.js";
import { OPERATIONS } from "../operations.js";
import { HookedObject, type Hooks } from "./hooks.js";

export type {
  ObjectOperations,
  ObjectRpcOptions,
  RpcAnswer,
  SessionAgentNamespace,
  SessionAgentObject,
  SessionAgentService,
} from "../bindings.js";
export type * from "../operations.js";
export type { AskedBlock, BlockProvider, OwnBlock } from "./blocks.js";
export type { ChangedMemory, Compacted, EndedTurn, FailedCompaction, Grant, Hooks, Status } from "./hooks.js";
export type { LanguageModelLike } from "./model.js";
export { routeSessionAgent, type RouteOptions } from "./route.js";
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
}

type State = ConstructorParameters<typeof DurableObject>[0];

class Extensible extends Built {
  /** `null`: nobody extends the class. */
  #hooked: HookedObject | null = null;

  constructor(ctx: any, env: any) {
    // Of this class itself, the object is as the Worker has it.
    if (new.target === Extensible) {
      super(ctx, env);
      return;
    }
    // The class has its fields only when all constructors are through. Nothing asks before.
    let hooks: Hooks = {};
    const hooked = new HookedObject(() => hooks, env, agentDefaults());
    super(ctx, env, hooked.bindings());
    hooks = this as Hooks;
    this.#hooked = hooked;
    if (new.target.operationsForBindings === false) this.#keepOperations();
    ctx.blockConcurrencyWhile(async () => {
      await null;
      await hooked.prepare();
      // The core answered the class's earlier calls to its own object without the class's parts.
      Built.inside.renew(this);
    });
  }

  /** See the class that is exported. */
  static operationsForBindings = true;

  /** The runtime lets nobody call what an object has of its own over a binding. */
  #keepOperations(): void {
    const methods = this as unknown as { [operation: string]: unknown };
    for (const operation of Object.keys(OPERATIONS)) {
      const value = methods[operation];
      // Methods that the class has overridden stay its own.
      if (value === (Extensible.prototype as any)[operation]) Object.defineProperty(this, operation, { value });
    }
  }

  override async fetch(request: Request): Promise<Response> {
    const granted = await this.#hooked?.granted(request);
    return await Built.inside.fetch(this, request, granted);
  }

  static {
    const methods = Extensible.prototype as unknown as { [operation: string]: unknown };
    for (const operation of Object.keys(OPERATIONS)) {
      const asked = methods[operation] as (input?: object, options?: object) => Promise<unknown>;
      methods[operation] = async function (this: Extensible, ...given: [input?: object, options?: object]) {
        // A call without options is the class's own. A Worker that binds the class can make
        // one, too, since the runtime does not tell the two apart: see `operationsForBindings`.
        // A call with options is held to the token in them.
        if (this.#hooked === null || given.length > 1) return await asked.apply(this, given);
        return JSON.parse(await Built.inside.call(this, operation, JSON.stringify(given[0] ?? {})));
      };
    }
  }
}

/** The class to extend. */
export interface SessionAgentClass {
  new <Env = unknown>(ctx: State, env: Env): SessionAgent<Env>;
  /**
   * Whether a Worker that binds the class may call operations as methods. Without options
   * such a call has all rights: being bound is the permission. A class that says `false` keeps
   * the methods for itself; `call` and `request`, which ask for a token, stay.
   */
  operationsForBindings: boolean;
}

export const SessionAgent: SessionAgentClass = Extensible as never;

/** The directory of agents, for a Worker that binds it as `DIRECTORY`. Nobody extends it. */
export const AgentDirectory: new (ctx: State, env: unknown) => DurableObject = BuiltDirectory as never;
