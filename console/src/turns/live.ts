// A turn as it is heard: when its steps began, when their first word came, and when each
// tool was called. The agent's record has more, once the turn is over.

import type { ChatChunk } from "session-agent";

export interface LiveTool {
  readonly id: string;
  readonly name: string;
  readonly from: number;
  /** `null`: it runs, or it waits for somebody. */
  readonly to: number | null;
  readonly error: string | null;
}

export interface LiveStep {
  readonly from: number;
  /** When the model said something. `null`: not yet. */
  readonly saidAt: number | null;
  /** When its answer was whole. `null`: not yet. */
  readonly to: number | null;
  readonly tools: readonly LiveTool[];
}

export interface LiveTurn {
  /** The answer's id. `null`: not told yet. */
  readonly id: string | null;
  /** The page came while the turn ran, so what was before has no times. */
  readonly isJoined: boolean;
  readonly from: number;
  readonly to: number | null;
  readonly steps: readonly LiveStep[];
  readonly error: string | null;
}

const SAYS = new Set(["text-delta", "reasoning-delta", "tool-input-start", "tool-input-available", "file"]);

/** The turn with one chunk more. `live` is `null`: nothing of it was heard. */
export function heardLive(live: LiveTurn | null, chunk: ChatChunk, at: number, isJoined = false): LiveTurn {
  const turn = live ?? { id: null, isJoined, from: at, to: null, steps: [], error: null };
  const { type } = chunk;
  if (type === "start" && typeof chunk.messageId === "string") return { ...turn, id: chunk.messageId };
  if (type === "start-step")
    return { ...turn, steps: [...turn.steps, { from: at, saidAt: null, to: null, tools: [] }] };
  if (type === "error") return { ...turn, to: at, error: String(chunk.errorText) };
  if (type === "finish" || type === "abort") return { ...turn, to: at };
  const step = turn.steps.at(-1);
  if (step === undefined) return turn;
  return { ...turn, steps: turn.steps.with(-1, heardStep(step, chunk, at)) };
}

function heardStep(step: LiveStep, chunk: ChatChunk, at: number): LiveStep {
  const said = step.saidAt === null && SAYS.has(chunk.type) ? { ...step, saidAt: at } : step;
  const id = String(chunk.toolCallId);
  switch (chunk.type) {
    case "tool-input-available": {
      // The model goes on to speak: its answer is whole when the last call of it is.
      const tool = { id, name: String(chunk.toolName ?? "?"), from: at, to: null, error: null };
      return { ...said, to: at, tools: [...said.tools.filter((other) => other.id !== id), tool] };
    }
    case "tool-output-available":
    case "tool-output-denied":
      return withTool(said, id, { to: at });
    case "tool-output-error":
      return withTool(said, id, { to: at, error: String(chunk.errorText) });
    case "finish-step":
      return { ...said, to: said.to ?? at };
    default:
      return said;
  }
}

function withTool(step: LiveStep, id: string, change: Partial<LiveTool>): LiveStep {
  return { ...step, tools: step.tools.map((tool) => (tool.id === id ? { ...tool, ...change } : tool)) };
}

/**
 * A turn is said again from its beginning to who lost the connection. The steps that were heard of
 * it `before` keep their times.
 */
export function withTimesOf(before: LiveTurn | null, live: LiveTurn): LiveTurn {
  if (before === null || before.id === null || before.id !== live.id) return live;
  const steps = live.steps.map((step, n) => {
    const known = before.steps[n];
    return known === undefined ? step : withTimesOfStep(known, step);
  });
  return { ...live, from: before.from, isJoined: before.isJoined, steps };
}

function withTimesOfStep(before: LiveStep, step: LiveStep): LiveStep {
  const tools = step.tools.map((tool) => {
    const known = before.tools.find(({ id }) => id === tool.id);
    return known === undefined ? tool : { ...tool, from: known.from, to: known.to ?? tool.to };
  });
  return { from: before.from, saidAt: before.saidAt ?? step.saidAt, to: before.to ?? step.to, tools };
}

/** The turn's action at this moment, for people. */
export function doing({ steps, to }: LiveTurn): string {
  if (to !== null) return "Finished";
  const step = steps.at(-1);
  if (step === undefined) return "Preparing";
  const open = step.tools.filter((tool) => tool.to === null).map(({ name }) => name);
  if (open.length > 0) return `Running ${open.join(", ")}`;
  if (step.tools.length > 0) return "Storing results";
  return step.saidAt === null ? "Waiting for the model" : "Answering";
}
