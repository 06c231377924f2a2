// The types of bindings for the client, and their methods over Workers RPC.

import type { ErrorCode, ObjectOperations } from "./operations.js";

/** A service binding of Session Agent's Worker, or an object's stub. */
export interface BindingTarget {
  fetch(input: string, init?: RequestInit): Promise<any>;
}

/** A namespace of Session Agent's objects. */
export interface NamespaceTarget {
  idFromName(name: string): any;
  get(id: any): any;
  getByName?(name: string): any;
}

export type Target = BindingTarget | NamespaceTarget | string | URL;

/** The options of a call, in addition to its operation and its input. */
export interface RpcOptions {
  /** The Worker's secret or a minted token. */
  token?: string;
  /** The caller's trace, in the format of the header of this name. Invalid values are ignored. */
  traceparent?: string;
  /** Vendor-specific trace data. Accepted only with the secret. */
  tracestate?: string;
}

export interface ObjectRpcOptions extends RpcOptions {
  /** The agent's name, for an object that was found only by its id. A wrong name is rejected. */
  agent?: string;
}

/** An answer or an error, as data. */
export type RpcAnswer =
  /** `value` is the JSON of the operation's output. */
  | { ok: true; value: string }
  | { ok: false; error: { code: ErrorCode; message: string; details: { [field: string]: any } }; status: number };

/** A service binding of Session Agent's Worker: `interface Env { MEMORY: SessionAgentService }`. */
export interface SessionAgentService {
  fetch(input: string, init?: RequestInit): Promise<Response>;
  /** `json` is the input as JSON; the result is the output as JSON. Throws errors. */
  call(agent: string, operation: string, json?: string, options?: RpcOptions): Promise<string>;
  /** As `call`, but returns errors as data. */
  request(agent: string, operation: string, json?: string, options?: RpcOptions): Promise<RpcAnswer>;
}

/** A session by its id, or as `createSession` gave it. */
export type SessionRef = string | { id: string; agentId: string };

/** An agent's object, by a binding with `script_name`. */
export interface SessionAgentObject extends ObjectOperations {
  fetch(input: string, init?: RequestInit): Promise<Response>;
  call(operation: string, json?: string, options?: ObjectRpcOptions): Promise<string>;
  request(operation: string, json?: string, options?: ObjectRpcOptions): Promise<RpcAnswer>;
}

/** A namespace of agents' objects: `interface Env { AGENTS: SessionAgentNamespace }`. */
export interface SessionAgentNamespace extends NamespaceTarget {
  getByName(name: string): SessionAgentObject;
  get(id: any): SessionAgentObject;
}

/**
 * A service binding with its own type. `wrangler types` knows it as a `Fetcher`, which has no
 * `call` and no `request`: `serviceOf(env.MEMORY).call(…)`.
 */
export const serviceOf = (binding: BindingTarget): SessionAgentService => binding as SessionAgentService;

/** The same for a namespace with `script_name`: `namespaceOf(env.AGENTS).getByName("alice").loadEvents(…)`. */
export const namespaceOf = (binding: NamespaceTarget): SessionAgentNamespace => binding as SessionAgentNamespace;
