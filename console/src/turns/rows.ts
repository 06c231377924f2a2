// The rows of a waterfall: a row for the turn, for each request to a model, each tool's call and
// each compaction, with their times.

import type { AgentClient } from "session-agent";
import { count, counted, milliseconds } from "../text.ts";
import type { LiveTurn } from "./live.ts";

export type TurnRecord = Awaited<ReturnType<AgentClient["getTurns"]>>["turns"][number];

export type SegmentKind = "turn" | "prepare" | "wait" | "answer" | "tool" | "compaction";

export interface Segment {
  kind: SegmentKind;
  from: number;
  to: number;
}

export interface Row {
  key: string;
  text: string;
  kind: "turn" | "step" | "tool" | "compaction";
  segments: readonly Segment[];
  /** Further facts, in a few words. */
  note: string;
  failure: { code: string | null; message: string } | null;
  isRunning: boolean;
}

export interface Waterfall {
  from: number;
  to: number;
  rows: readonly Row[];
}

export const SEGMENTS: Record<SegmentKind, string> = {
  turn: "turn",
  prepare: "preparing",
  wait: "waiting for first token",
  answer: "answering",
  tool: "tool",
  compaction: "compaction",
};

const FINISHES: Readonly<Record<string, string>> = {
  stop: "Completed",
  "tool-calls": "Called tools",
  length: "Reached the output limit",
  "content-filter": "Stopped by the content filter",
  cancelled: "Canceled",
  error: "Failed",
  other: "Ended",
};

/** The displayed text for a finish reason. */
export function finishText(reason: string | null | undefined): string | null {
  return reason == null ? null : (FINISHES[reason] ?? reason);
}

export function waterfallOf(turn: TurnRecord): Waterfall {
  const to = turn.endedAt;
  const from = turn.startedAt ?? to - (turn.durationMs ?? 0);
  const steps = turn.steps.flatMap((step, n) => [
    stepRow(step, n + 1 + turn.omittedSteps),
    ...step.tools.flatMap(toolRow),
  ]);
  const compactions = turn.compactions.map(
    (compaction, n): Row => ({
      key: `compaction ${n}`,
      text: "compaction",
      kind: "compaction",
      segments: segments([["compaction", compaction.startedAt, compaction.startedAt + compaction.durationMs]]),
      note: `${tokensOf(compaction.tokensBefore)} → ${tokensOf(compaction.tokensAfter)} tokens`,
      failure: compaction.failure ?? null,
      isRunning: false,
    }),
  );
  const rows = [...steps, ...compactions].toSorted((a, b) => startOf(a) - startOf(b));
  return { from, to, rows: [turnRow(turn, from, to), ...rows] };
}

function turnRow({ model, finishReason, failure, recoveries }: TurnRecord, from: number, to: number): Row {
  const again = recoveries > 0 ? [`resumed ${counted(recoveries, "time")}`] : [];
  return {
    key: "turn",
    text: model ?? "turn",
    kind: "turn",
    segments: segments([["turn", from, to]]),
    note: [finishText(finishReason), ...again].filter(Boolean).join(" · "),
    failure: failure ?? null,
    isRunning: false,
  };
}

function stepRow(step: TurnRecord["steps"][number], number: number): Row {
  const sentAt = step.startedAt + step.preparedMs;
  const to = step.startedAt + step.durationMs;
  const firstOutputAt = step.timeToFirstTokenMs == null ? to : sentAt + step.timeToFirstTokenMs;
  const cached = step.cachedInputTokens ? `, ${count(step.cachedInputTokens)} cached` : "";
  return {
    key: `step ${number}`,
    text: `request ${number}`,
    kind: "step",
    segments: segments([
      ["prepare", step.startedAt, sentAt],
      ["wait", sentAt, firstOutputAt],
      ["answer", firstOutputAt, to],
    ]),
    note: [`${count(step.inputTokens)} in${cached}, ${count(step.outputTokens)} out`, finishText(step.finishReason)]
      .filter(Boolean)
      .join(" · "),
    failure: step.failure ?? null,
    isRunning: false,
  };
}

function toolRow({
  toolCallId,
  name,
  kind,
  startedAt,
  durationMs,
  error,
}: TurnRecord["steps"][number]["tools"][number]): Row[] {
  const wasMade = startedAt != null && durationMs != null;
  return [
    {
      key: `tool ${toolCallId}`,
      text: name,
      kind: "tool",
      segments: wasMade ? [{ kind: "tool", from: startedAt, to: startedAt + durationMs }] : [],
      note: wasMade ? kind : `${kind}, not run by the agent`,
      failure: error == null ? null : { code: null, message: error },
      isRunning: false,
    },
  ];
}

/** The same for a running turn. */
export function waterfallOfLive(live: LiveTurn, now: number): Waterfall {
  const to = live.to ?? Math.max(now, live.from + 1);
  const failure = live.error === null ? null : { code: null, message: live.error };
  const turn: Row = {
    key: "turn",
    text: "turn",
    kind: "turn",
    segments: segments([["turn", live.from, to]]),
    note: "",
    failure,
    isRunning: live.to === null,
  };
  const rows = live.steps.flatMap((step, n): Row[] => {
    const end = step.to ?? to;
    const firstOutputAt = step.firstOutputAt ?? end;
    const tools = step.tools.map(
      (tool): Row => ({
        key: `tool ${n} ${tool.id}`,
        text: tool.name,
        kind: "tool",
        segments: [{ kind: "tool", from: tool.from, to: tool.to ?? to }],
        note: "",
        failure: tool.error === null ? null : { code: null, message: tool.error },
        isRunning: tool.to === null && live.to === null,
      }),
    );
    const request: Row = {
      key: `step ${n}`,
      text: `request ${n + 1}`,
      kind: "step",
      segments: segments([
        ["wait", step.from, firstOutputAt],
        ["answer", firstOutputAt, end],
      ]),
      note: "",
      failure: null,
      isRunning: step.to === null && live.to === null,
    };
    return [request, ...tools];
  });
  return { from: live.from, to, rows: [turn, ...rows] };
}

function segments(given: readonly [SegmentKind, number, number][]): Segment[] {
  return given.filter(([, from, to]) => to > from).map(([kind, from, to]) => ({ kind, from, to }));
}

const startOf = ({ segments }: Row) => segments[0]?.from ?? Number.POSITIVE_INFINITY;

const tokensOf = (tokens: number | null | undefined) => (tokens == null ? "?" : count(tokens));

/** The duration of a row. Empty: zero or unknown. */
export function durationOf({ segments }: Row): string {
  const [first, last] = [segments[0], segments.at(-1)];
  return first === undefined || last === undefined ? "" : milliseconds(last.to - first.from);
}
