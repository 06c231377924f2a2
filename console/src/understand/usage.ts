// What was used, day by day. It is counted from the sessions: each counts on the day of
// its last change.

import type { Session } from "session-agent";
import { shownDay } from "../text.ts";
import type { Bar } from "./plot.tsx";

const DAY_MS = 86_400_000;
const DAYS = 30;

export interface Used {
  tokens: Bar[];
  cost: Bar[];
  sessions: number;
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  allCost: number;
}

export function usedBy(sessions: readonly Session[], now = Date.now()): Used {
  const today = startOfDay(now);
  const days = Array.from({ length: DAYS }, (_, n) => startOfDay(today - (DAYS - 1 - n) * DAY_MS + DAY_MS / 2));
  const index = new Map(days.map((day, n) => [day, n]));
  const tokens = days.map((day) => ({ name: shownDay(day), value: 0 }));
  const cost = days.map((day) => ({ name: shownDay(day), value: 0 }));
  const used = { tokens, cost, sessions: sessions.length, inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, allCost: 0 };
  for (const { usage, updatedAt } of sessions) {
    used.inputTokens += usage.inputTokens;
    used.outputTokens += usage.outputTokens;
    used.cachedInputTokens += usage.cachedInputTokens ?? 0;
    used.allCost += usage.cost;
    const n = index.get(startOfDay(updatedAt));
    if (n === undefined) continue;
    tokens[n]!.value += usage.inputTokens + usage.outputTokens;
    cost[n]!.value += usage.cost;
  }
  return used;
}

function startOfDay(at: number): number {
  return new Date(at).setHours(0, 0, 0, 0);
}
