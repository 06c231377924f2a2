// The transports to an agent: a service binding, a Durable Object namespace, or a URL. Each kind has the
// same methods: `fetch`, and `request` if Workers RPC is available.

import type { ObjectRpcOptions, RpcAnswer, RpcOptions, Target } from "./bindings.js";
import type { AgentOptions } from "./options.js";

/** Bindings without the method `request`. */
const WITHOUT_REQUEST = new WeakSet<object>();

/** Bindings whose Worker rejects trace options. */
const WITHOUT_TRACE = new WeakSet<object>();

/**
 * Whether the objects of a binding give a caller without a token all rights. Your own class does, in the
 * Worker that binds it. Other objects lack the method.
 */
const WITH_RIGHTS = new WeakMap<object, boolean>();

type RequestMethod = (operation: string, json: string, options: RpcOptions) => Promise<RpcAnswer>;

/** The transports to one agent. */
export interface Transport {
  root: string;
  base: string;
  /** An operation over Workers RPC, or `null`. */
  readonly request: RequestMethod | null;
  fetch(url: string, init: RequestInit): Promise<Response>;
  /** The Worker is older than this client, so only `fetch` is used from now on. */
  disableRequests(): void;
  /** `fetch` with the rights of the binding, or `null` if the Worker doesn't support it. */
  readonly fetchBound: ((url: string, init: RequestInit) => Promise<Response>) | null;
  /** Whether the binding is known to grant rights. */
  readonly hasRights: boolean;
  /** Records whether the binding has `fetchBound`. */
  setHasRights(hasRights: boolean): void;
  /** Whether `request` supports traces. */
  readonly supportsTrace: boolean;
  /** The Worker doesn't support traces, so none are sent from now on. */
  disableTraces(): void;
}

const HOST = "https://session-agent";

/** A URL, or a path on the page's own origin. */
const ADDRESS = /^(https?:\/\/|\/|$)/i;
const NO_TARGET = "The first argument of sessionAgent must be a service binding, a Durable Object namespace, or a URL.";

/** The transports to the agent `name`. `transport`: "auto", "call" or "fetch". */
export function targetOf(
  target: Target,
  name: string,
  { transport = "auto", fetch: ownFetch }: AgentOptions = {},
): Transport {
  const base = `/agents/session-agent/${segmentOf(name, "An agent's name")}`;
  if (typeof target === "string" || target instanceof URL) {
    const root = String(target).replace(/\/+$/, "");
    if (!ADDRESS.test(root))
      throw new TypeError(`A URL begins with \`https://\` or \`http://\`, and \`${root}\` does not.`);
    // Called without a receiver, because a browser's `fetch` accepts only the window.
    return {
      root,
      base,
      request: null,
      fetch: (url, init) => (ownFetch ?? globalThis.fetch)(url, init),
      disableRequests() {},
      fetchBound: null,
      hasRights: false,
      setHasRights() {},
      supportsTrace: true,
      disableTraces() {},
    };
  }
  const binding = bindingOf(target, name);
  return {
    root: HOST,
    base,
    fetch: (url, init) => binding.stub().fetch(url, init),
    get request() {
      if (transport === "fetch" || WITHOUT_REQUEST.has(target)) return null;
      // A Worker with a `compatibility_date` before Workers RPC sees no methods at all.
      return typeof binding.stub().request === "function" ? binding.request : null;
    },
    disableRequests: () => void WITHOUT_REQUEST.add(target),
    get fetchBound() {
      if (!binding.isObject || transport === "fetch" || WITH_RIGHTS.get(target) === false) return null;
      if (typeof binding.stub().fetchBound !== "function") return null;
      // A signal can't be passed, so aborting cancels the answer.
      return (url: string, { signal, ...init }: RequestInit) => binding.stub().fetchBound(new Request(url, init));
    },
    get hasRights() {
      return WITH_RIGHTS.get(target) === true;
    },
    setHasRights: (hasRights) => void WITH_RIGHTS.set(target, hasRights),
    get supportsTrace() {
      return !WITHOUT_TRACE.has(target);
    },
    disableTraces: () => void WITHOUT_TRACE.add(target),
  };
}

/**
 * A text as one segment of a URL. URLs can't contain the segments `.` and `..`, even encoded, because they
 * are resolved as path steps.
 */
export function segmentOf(text: string, what: string): string {
  if (typeof text !== "string" || text === "" || text === "." || text === "..") {
    throw new TypeError(`${what} must be a non-empty string other than \`.\` and \`..\`.`);
  }
  if (!text.isWellFormed()) throw new TypeError(`${what} contains an unpaired surrogate, so it is not valid text.`);
  return encodeURIComponent(text);
}

function bindingOf(target: any, name: string): { stub: () => any; request: RequestMethod; isObject: boolean } {
  // A binding to a Worker's own entrypoint (`ctx.exports`) is a function.
  if (target === null || !["object", "function"].includes(typeof target)) throw new TypeError(NO_TARGET);
  // A service binding has a `fetch`, and so has an object's stub. A namespace has none.
  // No other property distinguishes them: a stub returns a method for every name.
  if (typeof target.fetch !== "function") {
    if (typeof (target.getByName ?? target.idFromName) !== "function") throw new TypeError(NO_TARGET);
    const stub = () =>
      typeof target.getByName === "function" ? target.getByName(name) : target.get(target.idFromName(name));
    return {
      stub,
      isObject: true,
      request: (operation, json, options: ObjectRpcOptions) =>
        stub().request(operation, json, { ...options, agent: name }),
    };
  }
  // An object's stub has its id as a plain property.
  if (typeof target.id === "object" && target.id !== null) {
    return {
      stub: () => target,
      isObject: true,
      request: (operation, json, options) => target.request(operation, json, { ...options, agent: name }),
    };
  }
  return {
    stub: () => target,
    isObject: false,
    request: (operation, json, options) => target.request(name, operation, json, options),
  };
}

/** Whether an error means that the other end lacks the method, so nothing was run. */
export function isMissingMethod(error: any): boolean {
  return /does not implement the method|does not support RPC|not allow its methods to be called over RPC/.test(
    error?.message,
  );
}
