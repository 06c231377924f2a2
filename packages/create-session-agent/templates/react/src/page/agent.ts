// The visitor's agent, as one chat of the page reaches it: with a token for this chat, which
// is renewed before its time is over, and when the Worker no longer takes it.

import { sessionAgent } from "session-agent";

interface Login {
  agent: string;
  token: string;
  /** By this page's own clock. */
  renewAt: number;
}

/** A token with less time than this is renewed. */
const SPARE_MS = 60_000;

export type Agent = Awaited<ReturnType<typeof agentOf>>;

/** The parts that a chat needs: `client` for operations, `api` and `fetch` for `useChat`. */
export async function agentOf(sessionId: string) {
  let current: Promise<Login> | undefined;

  async function login(): Promise<Login> {
    const known = await current?.catch(() => undefined);
    if (known === undefined || known.renewAt < Date.now()) current = ask(sessionId);
    return await current!;
  }

  async function authorized(address: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
    const send = async () => {
      const headers = new Headers(init.headers);
      headers.set("authorization", `Bearer ${(await login()).token}`);
      return await fetch(address, { ...init, headers });
    };
    const response = await send();
    if (response.status !== 401) return response;
    current = undefined;
    return await send();
  }

  const { agent } = await login();
  const client = sessionAgent(location.origin, agent, { fetch: authorized });
  return { client, api: `/agents/session-agent/${encodeURIComponent(agent)}/chat`, fetch: authorized };
}

async function ask(sessionId: string): Promise<Login> {
  const response = await fetch("/api/login", { method: "POST", body: JSON.stringify({ sessionId }) });
  if (!response.ok) throw new Error(await response.text());
  const { agent, token, expiresIn } = await response.json();
  return { agent, token, renewAt: Date.now() + expiresIn * 1000 - SPARE_MS };
}

/** The failure, as a sentence for the visitor. */
export function sentenceOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  // The browser's own words for a connection that failed.
  if (error instanceof TypeError || /fetch|network/i.test(message))
    return "The agent can't be reached. Is the connection there?";
  try {
    return JSON.parse(message).error.message;
  } catch {
    return message;
  }
}
