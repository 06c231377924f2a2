// The options with which an agent is opened, and those of a call beside its input.

export interface AgentOptions {
  /** The Worker's secret or a minted token, or a function that gives one for each request. */
  token?: string | undefined | (() => string | undefined | Promise<string | undefined>);
  /** How often, and after which pauses, a failed call is sent again. `false`: never. */
  retry?: RetryOptions | false;
  /**
   * How operations go over a binding. `auto` and `call` use Workers RPC where the other end has the
   * method `request`, and `fetch` elsewhere. Streams always use `fetch`. Default: `auto`.
   */
  transport?: "auto" | "call" | "fetch";
  /**
   * The trace that the running code is in. It is asked with each request, so it fits
   * OpenTelemetry's `propagation.inject(context.active(), carrier)`.
   */
  trace?: () => TraceCarrier | undefined;
  /** Used for a URL in place of the global `fetch`. */
  fetch?: (input: string, init?: RequestInit) => Promise<Response>;
}

export interface RetryOptions {
  /** The first attempt included. Default: 4. */
  attempts?: number;
  /** The pause after the first failure; each later pause is twice as long. Default: 200. */
  pauseMs?: number;
  /** A longer pause than this is not made; the error is thrown instead. Default: 20,000. */
  longestPauseMs?: number;
}

/** A trace as Trace Context's headers say it, and as a propagator of OpenTelemetry writes it. */
export interface TraceCarrier {
  traceparent?: string | undefined;
  /** The data that other tracers want to be passed on. It counts with the secret alone. */
  tracestate?: string | undefined;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  retry?: RetryOptions | false | undefined;
  /** The trace of this call, in place of what the agent's `trace` says. */
  trace?: TraceCarrier | undefined;
}
