// Converts the agent's usage for plots and tables.

import type { UsageEntry } from "session-agent";
import { shownUtcDay } from "../text.ts";
import type { Bar } from "./plot.tsx";

const DAY_MS = 86_400_000;

/** The number of days shown, including today. */
export const DAYS = 30;

/** When the first shown day began: days begin at midnight UTC. */
export function firstDay(now = Date.now()): number {
  return Math.floor(now / DAY_MS) * DAY_MS - (DAYS - 1) * DAY_MS;
}

/** A bar for each day, also for those on which nothing was used. */
export function barsByDay(days: readonly UsageEntry[], valueOf: (day: UsageEntry) => number, now = Date.now()): Bar[] {
  const used = new Map(days.map((day) => [day.day, valueOf(day)]));
  return Array.from({ length: DAYS }, (_, n) => {
    const day = firstDay(now) + n * DAY_MS;
    return { name: shownUtcDay(day), value: used.get(day) ?? 0 };
  });
}

export function tokensOf({ inputTokens, outputTokens }: UsageEntry): number {
  return inputTokens + outputTokens;
}

export interface Total {
  turns: number;
  failedTurns: number;
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  cost: number;
}

export function totalOf(entries: readonly UsageEntry[]): Total {
  const total = { turns: 0, failedTurns: 0, inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, cost: 0 };
  for (const { turns, failedTurns, inputTokens, outputTokens, cachedInputTokens, cost } of entries) {
    total.turns += turns ?? 0;
    total.failedTurns += failedTurns ?? 0;
    total.inputTokens += inputTokens;
    total.outputTokens += outputTokens;
    total.cachedInputTokens += cachedInputTokens;
    total.cost += cost;
  }
  return total;
}
