// The connection to one agent: sends operations and other requests, and gives answers or
// throws errors. It knows no operation by name.

import { errorFrom } from "./error_codes.js";
import { NetworkError } from "./errors.js";
import { policyOf, retrying } from "./retry.js";
import { saysNoSuchMethod, targetOf } from "./target.js";

/** What an answer that is none of ours says, at most, in an error's message. */
const SHOWN_CHARACTERS = 200;

export class Connection {
  #target;
  #token;
  #retry;

  constructor(target, name, options) {
    if (typeof name !== "string" || name === "") throw new TypeError("The second argument of sessionAgent is the agent's name.");
    this.#target = targetOf(target, name, options);
    this.#token = options.token;
    this.#retry = options.retry;
  }

  /** Runs an operation. `reads`: it changes nothing; `isRepeatable`: running it twice is as good as once. */
  async operate(operation, input, { reads, isRepeatable }, { signal, retry } = {}) {
    const json = JSON.stringify(input);
    const attempt = async () => JSON.parse((await this.#call(operation, json, reads, signal)) ?? (await this.#post(operation, json, signal)));
    return await this.#retrying(attempt, isRepeatable, { signal, retry });
  }

  /** The answer of another address of this agent, as a `Response` whose status is good. */
  async request(operation, path, init = {}, { signal, retry, isRepeatable = false } = {}) {
    return await this.#retrying(() => this.#fetch(operation, path, init, signal), isRepeatable, { signal, retry });
  }

  /** As `request`, for an address that belongs to no agent. */
  async requestRoot(operation, path, options = {}) {
    return await this.#retrying(() => this.#fetch(operation, path, {}, options.signal, ""), true, options);
  }

  #retrying(work, isRepeatable, { signal, retry }) {
    return retrying(work, { isRepeatable, signal, policy: policyOf(retry ?? this.#retry) });
  }

  /** The answer over Workers RPC, or `null`: `fetch` has to do it. */
  async #call(operation, json, reads, signal) {
    const call = this.#target.call;
    if (call === null) return null;
    const token = await this.#readToken();
    try {
      return await untilAborted(call(operation, json, token === undefined ? {} : { token }), signal);
    } catch (error) {
      if (signal?.aborted) throw error;
      if (typeof error?.code !== "string") {
        // A binding without the method never gets it while this isolate lives.
        if (saysNoSuchMethod(error)) return this.#target.giveUpCalls(), null;
        // Either the connection failed, or the error has lost its code on the way.
        if (reads) return this.#target.giveUpCalls(), null;
        throw lost(operation, error);
      }
      // Such an answer is streamed by `fetch`.
      if (reads && error.code === "payload_too_large") return null;
      throw errorFrom(error, { status: error.status, operation });
    }
  }

  async #post(operation, json, signal) {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: json };
    const response = await this.#fetch(operation, `/rpc/${operation}`, init, signal);
    return await readText(response, operation, signal);
  }

  async #fetch(operation, path, init, signal, base = this.#target.base) {
    const token = await this.#readToken();
    const headers = { ...init.headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) };
    let response;
    try {
      response = await this.#target.fetch(`${this.#target.root}${base}${path}`, { ...init, headers, ...(signal && { signal }) });
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw lost(operation, error);
    }
    if (response.ok) return response;
    throw await refusal(response, operation, signal);
  }

  async #readToken() {
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    return token || undefined;
  }
}

/** The error that an answer of a bad status stands for. */
async function refusal(response, operation, signal) {
  const text = await readText(response, operation, signal);
  const error = parsed(text)?.error;
  if (typeof error?.code === "string" && typeof error.message === "string") {
    return errorFrom(error, { status: response.status, operation });
  }
  const shown = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
  const message = `\`${operation}\` was answered with status ${response.status} by something that is no Session Agent: ${shown || "(nothing)"}`;
  return new NetworkError(message, { status: response.status, operation });
}

async function readText(response, operation, signal) {
  try {
    return await response.text();
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw lost(operation, error);
  }
}

export function lost(operation, cause) {
  const why = cause?.cause?.message ?? cause?.message ?? String(cause);
  return new NetworkError(`\`${operation}\` got no answer: ${why || "the connection failed"}`, { operation, cause });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A call over RPC can't be aborted. Its caller need not wait for it, though. */
function untilAborted(promise, signal) {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    if (signal.aborted) abort();
  });
}
