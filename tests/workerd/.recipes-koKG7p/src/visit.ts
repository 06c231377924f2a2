// src/visit.ts
import { sessionAgent, type UiMessage } from "session-agent";

interface Visit {
  agent: string;
  sessionId: string;
  token: string;
  expiresAt: number;
}

const SPARE_MS = 6 * 60_000;
let current: Promise<Visit> | undefined;

/** The user's agent and session, with a token that still holds. */
export async function visit(): Promise<Visit> {
  const known = await current?.catch(() => undefined);
  if (known === undefined || known.expiresAt < Date.now() + SPARE_MS) current = renew();
  return await current!;
}

async function renew(): Promise<Visit> {
  const response = await fetch("/api/token", { method: "POST" });
  if (!response.ok) throw new Error(await response.text());
  return await response.json();
}

const token = async () => (await visit()).token;

async function session() {
  const { agent, sessionId } = await visit();
  return sessionAgent(location.origin, agent, { token }).session(sessionId);
}

/** What was said so far. */
export const loadHistory = async (): Promise<UiMessage[]> => await (await session()).getMessages();

/** Stops the turn in the agent, so that the model stops, too. What was said stays. */
export const stopTurn = async () => await (await session()).cancelTurn();

/** What went wrong, as a sentence: the agent's own where there is one. */
export function sentenceOf(error: Error): string {
  try {
    return JSON.parse(error.message).error.message ?? error.message;
  } catch {
    return error.message;
  }
}
