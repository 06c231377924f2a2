// Where an agent is: behind a service binding, in a namespace of objects, or at a URL.
// Each kind gives the same two ways in: `fetch`, and `call` where there is Workers RPC.

/** Bindings that were found to have no method `call`, or to lose what errors say. */
const WITHOUT_CALL = new WeakSet();

const HOST = "https://session-agent";

/** The ways to the agent `name`. `transport`: "auto", "call" or "fetch". */
export function targetOf(target, name, { transport = "auto", fetch: ownFetch } = {}) {
  const base = `/agents/session-agent/${encodeURIComponent(name)}`;
  if (typeof target === "string" || target instanceof URL) {
    const root = String(target).replace(/\/+$/, "");
    // Called without a receiver: a browser's `fetch` refuses any other than the window.
    return { root, base, call: null, fetch: (url, init) => (ownFetch ?? globalThis.fetch)(url, init) };
  }
  const binding = bindingOf(target, name);
  const mayCall = transport !== "fetch" && (transport === "call" || errorsSurvive());
  return {
    root: HOST,
    base,
    fetch: (url, init) => binding.stub().fetch(url, init),
    get call() {
      const isRefused = transport === "auto" && WITHOUT_CALL.has(target);
      return mayCall && !isRefused && typeof binding.stub().call === "function" ? binding.call : null;
    },
    /** From now on `fetch` alone. */
    giveUpCalls: () => WITHOUT_CALL.add(target),
  };
}

function bindingOf(target, name) {
  // A binding to a Worker's own entrypoint (`ctx.exports`) is a function.
  if (target === null || !["object", "function"].includes(typeof target)) {
    throw new TypeError("The first argument of sessionAgent is a service binding, a namespace of objects, or a URL.");
  }
  // A service binding has a `fetch`, and so has an object's stub. A namespace has none.
  // No other property tells them apart: a stub has every name that is asked for.
  if (typeof target.fetch !== "function") {
    const stub = () => (typeof target.getByName === "function" ? target.getByName(name) : target.get(target.idFromName(name)));
    return { stub, call: (operation, json, options) => stub().call(operation, json, options) };
  }
  // An object's stub has its id as a plain property.
  if (typeof target.id === "object" && target.id !== null) {
    return { stub: () => target, call: (operation, json, options) => target.call(operation, json, options) };
  }
  return { stub: () => target, call: (operation, json, options) => target.call(name, operation, json, options) };
}

/**
 * Whether an error that crosses Workers RPC keeps its fields. A Worker with a
 * `compatibility_date` before 2026-04-21 gets the message alone, and is better off with
 * `fetch`. Outside of Workers nobody can tell.
 */
function errorsSurvive() {
  const flags = globalThis.Cloudflare?.compatibilityFlags;
  if (flags !== undefined) return flags.enhanced_error_serialization === true;
  return globalThis.navigator?.userAgent !== "Cloudflare-Workers";
}

/** Whether an error says that the other end has no such method. Nothing has run then. */
export function saysNoSuchMethod(error) {
  return /does not implement the method|does not support RPC|not allow its methods to be called over RPC/.test(error?.message);
}
