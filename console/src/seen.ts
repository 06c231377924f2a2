// The agents that were opened in this browser. A Worker's objects can't be listed, so the browser
// stores their names.

import { signal } from "@preact/signals";

const KEY = "session-agent.agents";
const MAX_AGENTS = 100;

export interface SeenAgent {
  name: string;
  at: number;
}

/** The most recently opened first. */
export const seen = signal<readonly SeenAgent[]>(read());

export function remember(name: string): void {
  if (seen.peek()[0]?.name === name) return;
  store([{ name, at: Date.now() }, ...seen.peek().filter((agent) => agent.name !== name)].slice(0, MAX_AGENTS));
}

export function forget(name: string): void {
  store(seen.peek().filter((agent) => agent.name !== name));
}

function store(agents: readonly SeenAgent[]): void {
  seen.value = agents;
  try {
    localStorage.setItem(KEY, JSON.stringify(agents));
  } catch {
    // Without local storage, the list lasts until the page is closed.
  }
}

function read(): SeenAgent[] {
  try {
    const agents: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    if (!Array.isArray(agents)) return [];
    return agents.filter(({ name, at }) => typeof name === "string" && name !== "" && typeof at === "number");
  } catch {
    return [];
  }
}
