// The connection to the Worker: the tab's credential, a `fetch` that measures each request, and
// whether the Worker is reachable.

import { signal } from "@preact/signals";
import { type AgentClient, sessionAgent } from "session-agent";
import { begin, keep, type SentRequest } from "./requests.ts";

const CREDENTIAL = "session-agent.credential";
const RETRY_MS = 1500;

/** The secret or a token. `null`: none; with `AUTH=local`, none is needed. */
export const credential = signal<string | null>(sessionStorage.getItem(CREDENTIAL));

/** A request was refused because it had no valid credential. */
export const isSignInNeeded = signal(false);

export const isLost = signal(false);

/** The number of reconnections. Views that failed while offline then load again. */
export const reconnections = signal(0);

export function signIn(text: string): void {
  credential.value = text;
  sessionStorage.setItem(CREDENTIAL, text);
  isSignInNeeded.value = false;
}

export function signOut(): void {
  credential.value = null;
  sessionStorage.removeItem(CREDENTIAL);
  isSignInNeeded.value = true;
}

const agents = new Map<string, AgentClient>();

/** `isQuiet`: for the page's own polling, which the list of requests omits. */
export function openAgent(name: string, { isQuiet = false } = {}): AgentClient {
  const key = `${isQuiet}/${name}`;
  let agent = agents.get(key);
  if (agent === undefined) {
    const send = (url: string, init?: RequestInit) => measured(url, init, isQuiet);
    agent = agentBy(name, send);
    agents.set(key, agent);
  }
  return agent;
}

/** The same, for requests whose order matters: `onAccepted` is called when the answer begins. */
export function openAgentNotifying(name: string, onAccepted: () => void): AgentClient {
  const send = async (url: string, init?: RequestInit) => {
    const response = await measured(url, init);
    if (response.ok) onAccepted();
    return response;
  };
  return agentBy(name, send);
}

function agentBy(name: string, send: (url: string, init?: RequestInit) => Promise<Response>): AgentClient {
  return sessionAgent(location.origin, name, { token: () => credential.peek() ?? undefined, fetch: send });
}

/** Sends a request while the page unloads, without waiting for the answer. */
export function sendLast(agent: string, operation: string, input: object): void {
  const token = credential.peek();
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
  const url = `/agents/session-agent/${encodeURIComponent(agent)}/rpc/${operation}`;
  void fetch(url, { method: "POST", keepalive: true, headers, body: JSON.stringify(input) }).catch(() => {});
}

async function measured(url: string, init: RequestInit = {}, isQuiet = false): Promise<Response> {
  const request = begin(url);
  const started = performance.now();
  const sentWith = credential.peek();
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (!init.signal?.aborted) {
      keep({ ...request, ms: performance.now() - started, error: "The connection failed." });
      lose();
    }
    throw error;
  }
  if (!isQuiet) keep(await answered({ ...request, ms: performance.now() - started }, response));
  // A late answer doesn't apply to a credential that was entered after its request.
  if (response.status === 401 && sentWith === credential.peek()) isSignInNeeded.value = true;
  return response;
}

async function answered(request: SentRequest, response: Response): Promise<SentRequest> {
  return {
    ...request,
    status: response.status,
    rowsRead: counted(response, "x-rows-read"),
    rowsWritten: counted(response, "x-rows-written"),
    error: response.ok ? null : await reason(response.clone()),
  };
}

function counted(response: Response, header: string): number | null {
  const text = response.headers.get(header);
  return text === null ? null : Number(text);
}

async function reason(response: Response): Promise<string> {
  try {
    const { error } = await response.json();
    return `${error.code}: ${error.message}`;
  } catch {
    return `Status ${response.status}`;
  }
}

/** Fails without a connection. */
export async function reach(): Promise<void> {
  await fetch("/health", { cache: "no-store" });
}

/** Reports that the connection is lost, and retries until it is restored. */
function lose(): void {
  if (isLost.peek()) return;
  isLost.value = true;
  const check = async () => {
    try {
      await reach();
    } catch {
      setTimeout(check, RETRY_MS);
      return;
    }
    isLost.value = false;
    reconnections.value += 1;
  };
  setTimeout(check, RETRY_MS);
}
