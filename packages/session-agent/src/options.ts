// The options of a client, and of a single call.

export interface AgentOptions {
  /** The Worker's secret or a minted token, or a function that returns one for each request. */
  token?: string | undefined | (() => string | undefined | Promise<string | undefined>);
  /** The retries of a failed call. `false`: none. */
  retry?: RetryOptions | false;
  /**
   * The transport of operations over a binding. `auto` and `call` use Workers RPC if the other end has
   * the method `request`, and `fetch` otherwise. Streams always use `fetch`. Default: `auto`.
   */
  transport?: "auto" | "call" | "fetch";
  /**
   * Returns the current trace. It is called for each request, so OpenTelemetry's
   * `propagation.inject(context.active(), carrier)` works.
   */
  trace?: () => TraceCarrier | undefined;
  /** Replaces the global `fetch` for a URL. */
  fetch?: (input: string, init?: RequestInit) => Promise<Response>;
}

export interface RetryOptions {
  /** The number of attempts, including the first. Default: 4. */
  attempts?: number;
  /** The pause after the first failure, which doubles after each failure. Default: 200. */
  pauseMs?: number;
  /** The longest pause. If a longer one is required, the error is thrown. Default: 20,000. */
  longestPauseMs?: number;
}

/** A trace in the format of Trace Context's headers, as a propagator of OpenTelemetry writes it. */
export interface TraceCarrier {
  traceparent?: string | undefined;
  /** Vendor-specific trace data. Accepted only with the secret. */
  tracestate?: string | undefined;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  retry?: RetryOptions | false | undefined;
  /** The trace of this call, instead of the client's `trace`. */
  trace?: TraceCarrier | undefined;
}
