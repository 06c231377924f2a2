// The requests of this page: operation, duration, rows read and written. The newest are stored in
// memory while the page is open.

import { signal } from "@preact/signals";

const MAX_REQUESTS = 500;

export interface SentRequest {
  id: number;
  agent: string;
  operation: string;
  at: number;
  /** The time until the response headers. `null`: no answer yet. */
  ms: number | null;
  /** `null`: no answer. */
  status: number | null;
  rowsRead: number | null;
  rowsWritten: number | null;
  /** The agent's error message. */
  error: string | null;
}

/** The newest first. */
export const requests = signal<readonly SentRequest[]>([]);

let last = 0;

export function begin(url: string): SentRequest {
  last += 1;
  return {
    id: last,
    ...named(url),
    at: Date.now(),
    ms: null,
    status: null,
    rowsRead: null,
    rowsWritten: null,
    error: null,
  };
}

export function keep(request: SentRequest): void {
  requests.value = [request, ...requests.peek().slice(0, MAX_REQUESTS - 1)];
}

/** Marks a request as failed whose answer began with a success status. */
export function markFailed(agent: string, operation: string, error: string): void {
  const failed = requests.peek().find((request) => request.agent === agent && request.operation === operation);
  if (failed !== undefined)
    requests.value = requests.peek().map((request) => (request === failed ? { ...request, error } : request));
}

/** The operation that a request's address names. */
export function named(url: string): { agent: string; operation: string } {
  const { pathname } = new URL(url, location.origin);
  const [, , , agent = "", kind = "", ...rest] = pathname.split("/");
  const name = safelyDecoded(agent);
  if (kind === "rpc") return { agent: name, operation: rest[0] ?? "" };
  if (kind === "chat") return { agent: name, operation: rest.length > 0 ? "resumeChat" : "chat" };
  if (kind === "sessions") return { agent: name, operation: rest[1] === "import" ? "importSession" : "exportSession" };
  return { agent: name, operation: kind || pathname };
}

function safelyDecoded(piece: string): string {
  try {
    return decodeURIComponent(piece);
  } catch {
    return piece;
  }
}
