// The connection to one agent: sends operations and other requests, and returns answers or throws
// errors. It is independent of the individual operations.

import type { Target } from "./bindings.js";
import { errorFrom } from "./error_codes.js";
import { NetworkError } from "./errors.js";
import { policyOf, retrying } from "./retry.js";
import type { AgentOptions, CallOptions, TraceCarrier } from "./options.js";
import { isMissingMethod, targetOf, type Transport } from "./target.js";

/** The most characters of an unrecognized answer in an error message. */
const SHOWN_CHARACTERS = 200;

const OPERATION_NAME = /^\w+$/;

export class Connection {
  #target: Transport;
  #token: AgentOptions["token"];
  #retry: AgentOptions["retry"];
  #trace: AgentOptions["trace"];

  constructor(target: Target, name: string, options: AgentOptions) {
    if (typeof name !== "string" || name === "")
      throw new TypeError("The second argument of sessionAgent must be the agent's name.");
    this.#target = targetOf(target, name, options);
    this.#token = options.token;
    this.#retry = options.retry;
    this.#trace = options.trace;
  }

  /** Runs an operation. `reads`: it changes nothing; `isRepeatable`: it is idempotent. */
  async operate(
    operation: string,
    input: object,
    { reads, isRepeatable }: { reads: boolean; isRepeatable: boolean },
    options: CallOptions = {},
  ): Promise<any> {
    // The name is part of a URL, where other characters would change the path.
    if (!OPERATION_NAME.test(operation))
      throw new TypeError("An operation's name must consist of letters and digits, as in `loadEvents`.");
    const json = JSON.stringify(input);
    const attempt = async () =>
      JSON.parse((await this.#ask(operation, json, reads, options)) ?? (await this.#post(operation, json, options)));
    return await this.#retrying(attempt, isRepeatable, options);
  }

  /** Requests another URL of this agent. Returns a successful `Response`, or throws. */
  async request(
    operation: string,
    path: string,
    init: RequestInit = {},
    { isRepeatable = false, ...options }: CallOptions & { isRepeatable?: boolean } = {},
  ): Promise<Response> {
    return await this.#retrying(() => this.#fetch(operation, path, init, options), isRepeatable, options);
  }

  /** As `request`, for a URL that belongs to no agent. */
  async requestRoot(operation: string, path: string, options: CallOptions = {}): Promise<Response> {
    return await this.#retrying(() => this.#fetch(operation, path, {}, options, ""), true, options);
  }

  #retrying<Answer>(
    work: () => Promise<Answer>,
    isRepeatable: boolean,
    { signal, retry }: CallOptions,
  ): Promise<Answer> {
    return retrying(work, { isRepeatable, signal, policy: policyOf(retry ?? this.#retry) });
  }

  /** The answer over Workers RPC, or `null` if `fetch` is required. */
  async #ask(operation: string, json: string, reads: boolean, call: CallOptions): Promise<string | null> {
    const { signal, trace } = call;
    const request = this.#target.request;
    if (request === null) return null;
    const token = await this.#readToken();
    const mayBeBound = token === undefined && this.#target.fetchBound !== null;
    if (mayBeBound && this.#target.hasRights) return null;
    const traced = this.#target.supportsTrace ? this.#traceOf(trace) : {};
    let answer: any;
    try {
      const options = { ...(token !== undefined && { token }), ...traced };
      answer = await untilAborted(request(operation, json, options), signal);
    } catch (error) {
      if (signal?.aborted) throw error;
      if (!isMissingMethod(error)) throw lost(operation, error);
      // A binding without the method is remembered for the life of the isolate.
      this.#target.disableRequests();
      return null;
    }
    if (typeof answer?.value === "string") return answer.value;
    const { error, status } = answer ?? {};
    if (typeof error?.code !== "string")
      throw lost(operation, new Error("something other than a Session Agent answered"));
    // A Worker without trace support rejects the options before it runs anything, so retry without the trace.
    if (traced.traceparent !== undefined && error.code === "invalid_request" && error.details?.field === "options") {
      this.#target.disableTraces();
      return await this.#ask(operation, json, reads, call);
    }
    // The binding itself may grant access: `fetch` finds out.
    if (mayBeBound && (error.code === "unauthorized" || error.code === "forbidden")) return null;
    // `fetch` streams such an answer.
    if (reads && error.code === "payload_too_large") return null;
    throw errorFrom(error, { status, operation });
  }

  async #post(operation: string, json: string, options: CallOptions): Promise<string> {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: json };
    const response = await this.#fetch(operation, `/rpc/${operation}`, init, options);
    return await readText(response, operation, options.signal);
  }

  async #fetch(
    operation: string,
    path: string,
    init: RequestInit,
    { signal, trace }: CallOptions,
    base: string = this.#target.base,
  ): Promise<Response> {
    const token = await this.#readToken();
    const headers: { [name: string]: string } = {
      ...(init.headers as { [name: string]: string }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...this.#traceOf(trace),
    };
    const url = `${this.#target.root}${base}${path}`;
    // A redirect must not receive the token or the body.
    const sent: RequestInit = { ...init, headers, redirect: "manual", ...(signal && { signal }) };
    let response: Response;
    try {
      response =
        (token === undefined ? await this.#fetchBound(url, sent) : null) ?? (await this.#target.fetch(url, sent));
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw lost(operation, error);
    }
    if (response.ok) return response;
    if (isRedirect(response)) {
      await response.body?.cancel().catch(() => {});
      throw redirected(operation, response);
    }
    throw await refusal(response, operation, signal);
  }

  /** The answer if the binding grants access. `null`: it doesn't. */
  async #fetchBound(url: string, init: RequestInit): Promise<Response | null> {
    const { fetchBound, hasRights } = this.#target;
    // A stream can be sent only once.
    const isStream = init.body !== undefined && init.body !== null && typeof init.body !== "string";
    if (fetchBound === null || (isStream && !hasRights)) return null;
    try {
      const response = await untilAborted(fetchBound(url, init), init.signal ?? undefined);
      this.#target.setHasRights(true);
      return response;
    } catch (error) {
      if (hasRights || !isMissingMethod(error)) throw error;
      this.#target.setHasRights(false);
      return null;
    }
  }

  /** The trace of a call, as headers and as options of a binding. Other fields of the carrier are ignored. */
  #traceOf(own: TraceCarrier | undefined): { traceparent?: string; tracestate?: string } {
    const { traceparent, tracestate } = own ?? this.#trace?.() ?? {};
    // A `tracestate` without a `traceparent` has no meaning.
    if (!traceparent) return {};
    return { traceparent, ...(tracestate && { tracestate }) };
  }

  async #readToken(): Promise<string | undefined> {
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    return token || undefined;
  }
}

/** Browsers hide the content and the status of a redirect. */
const isRedirect = ({ type, status }: Response): boolean =>
  type === "opaqueredirect" || (status >= 300 && status < 400);

function redirected(operation: string, { status, headers }: Response): NetworkError {
  const to = originOf(headers.get("location"));
  const message = `\`${operation}\` was answered with a redirect${to && ` to ${to}`}. It is not followed, because the token and the input would be sent there. Open the agent at its final URL.`;
  return new NetworkError(message, { status: status || 307, operation });
}

/** The origin of a URL; the rest may contain a secret. */
function originOf(location: string | null): string {
  try {
    return new URL(location ?? "").origin;
  } catch {
    return "";
  }
}

/** The error of an unsuccessful response. */
async function refusal(response: Response, operation: string, signal: AbortSignal | undefined): Promise<Error> {
  const text = await readText(response, operation, signal);
  const error = parsed(text)?.error;
  if (typeof error?.code === "string" && typeof error.message === "string") {
    return errorFrom(error, { status: response.status, operation });
  }
  const shown = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
  const message = `\`${operation}\` was answered with status ${response.status}, but not by a Session Agent: ${shown || "(nothing)"}`;
  return new NetworkError(message, { status: response.status, operation });
}

async function readText(response: Response, operation: string, signal: AbortSignal | undefined): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw lost(operation, error);
  }
}

export function lost(operation: string, cause: any): NetworkError {
  const why = cause?.cause?.message ?? cause?.message ?? String(cause);
  return new NetworkError(`\`${operation}\` got no answer: ${why || "the connection failed"}`, { operation, cause });
}

function parsed(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A call over RPC can't be aborted, but its caller can stop waiting. */
function untilAborted<Answer>(promise: Promise<Answer>, signal: AbortSignal | undefined): Promise<Answer> {
  if (signal === undefined) return promise;
  return new Promise<Answer>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
    if (signal.aborted) abort();
  });
}
