// Retries failed calls that are safe to repeat: after a pause, a limited number of times, and until the
// caller's signal is aborted.

import { NetworkError } from "./errors.js";
import type { RetryOptions } from "./options.js";

const DEFAULTS: Required<RetryOptions> = { attempts: 4, pauseMs: 200, longestPauseMs: 20_000 };

/** Codes of temporary failures. */
const PASSING = new Set(["network_failed", "rate_limited", "model_overloaded", "storage_failed"]);

/** `retry` as a caller gives it, completed: `false` means one attempt. */
export function policyOf(retry: RetryOptions | false | undefined): Required<RetryOptions> {
  return retry === false ? { ...DEFAULTS, attempts: 1 } : { ...DEFAULTS, ...retry };
}

/** Runs `work` until it succeeds. `isRepeatable`: whether it is idempotent. */
export async function retrying<Answer>(
  work: () => Promise<Answer>,
  {
    isRepeatable,
    policy,
    signal,
  }: { isRepeatable: boolean; policy: Required<RetryOptions>; signal?: AbortSignal | undefined },
): Promise<Answer> {
  for (let attempt = 1; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      const pause = pauseAfter(error, attempt, policy);
      if (!isRepeatable || pause === null) throw error;
      await wait(pause, signal);
    }
  }
}

/** The milliseconds to wait after a failure, or `null`: the failure is final. */
function pauseAfter(
  error: any,
  attempt: number,
  { attempts, pauseMs, longestPauseMs }: Required<RetryOptions>,
): number | null {
  if (attempt >= attempts || !PASSING.has(error?.code)) return null;
  // A complete answer that is not a Session Agent's doesn't change if the request is repeated.
  if (error instanceof NetworkError && (error.status ?? 500) < 500) return null;
  const requestedMs = Number(error.retryAfter ?? 0) * 1000;
  if (requestedMs > longestPauseMs) return null;
  const backoffMs = pauseMs * 2 ** (attempt - 1);
  // Jitter, so that callers don't retry at the same time.
  return Math.min(longestPauseMs, Math.max(requestedMs, backoffMs * (0.5 + Math.random() / 2)));
}

export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(finish, ms);
    signal?.addEventListener("abort", finish, { once: true });
    function finish() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", finish);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    }
    if (signal?.aborted) finish();
  });
}
