// Sessions that the user has deleted. The deletion is sent when the page is closed, so the user can undo
// it until then. After a crash, the list is restored, and nothing is deleted without the user.

import { signal } from "@preact/signals";
import { openAgent, sendLast } from "../connection.ts";

const KEY = "session-agent.deleting";

export interface Deleting {
  agent: string;
  id: string;
  name: string;
}

export const deleting = signal<readonly Deleting[]>(read());

export function isDeleting(agent: string, id: string): boolean {
  return deleting.value.some((session) => session.agent === agent && session.id === id);
}

export function deleteLater(session: Deleting): void {
  store([...deleting.peek().filter(({ agent, id }) => agent !== session.agent || id !== session.id), session]);
}

export function undo(session: Deleting): void {
  store(deleting.peek().filter((other) => other !== session));
}

export async function deleteNow(session: Deleting): Promise<void> {
  await openAgent(session.agent).session(session.id).deleteSession();
  undo(session);
}

addEventListener("pagehide", () => {
  for (const { agent, id } of deleting.peek()) sendLast(agent, "deleteSession", { sessionId: id });
  store([]);
});

function store(sessions: readonly Deleting[]): void {
  deleting.value = sessions;
  sessionStorage.setItem(KEY, JSON.stringify(sessions));
}

function read(): Deleting[] {
  try {
    const sessions: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(sessions) ? sessions : [];
  } catch {
    return [];
  }
}
