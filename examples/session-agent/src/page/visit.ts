// Who is visiting: the visitor's agent, and a token for it that still holds.

interface Visit {
  agent: string;
  token: string;
  expiresAt: number;
}

/** A token with less time than this is renewed. */
const SPARE_MS = 60_000;

let current: Promise<Visit> | undefined;

export async function visit(): Promise<Visit> {
  const known = await current?.catch(() => undefined);
  if (known === undefined || known.expiresAt < Date.now() + SPARE_MS) current = renew();
  return await current!;
}

async function renew(): Promise<Visit> {
  const response = await fetch("/api/token", { method: "POST" });
  if (!response.ok) throw new Error(`The server gives no token (${response.status}).`);
  return await response.json();
}

export const token = async () => (await visit()).token;
