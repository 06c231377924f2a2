// The times of a running turn: the start and the first output of each step, and each tool call. When
// the turn is over, the agent's record has more.

import type { ChatChunk } from "session-agent";

export interface LiveTool {
  readonly id: string;
  readonly name: string;
  readonly from: number;
  /** `null`: it runs, or it waits for an answer. */
  readonly to: number | null;
  readonly error: string | null;
}

export interface LiveStep {
  readonly from: number;
  /** The time of the first output. `null`: not yet. */
  readonly firstOutputAt: number | null;
  /** The time at which the model's answer was complete. `null`: not yet. */
  readonly to: number | null;
  readonly tools: readonly LiveTool[];
}

export interface LiveTurn {
  /** The answer's id. `null`: unknown so far. */
  readonly id: string | null;
  /** The page joined a running turn, so earlier steps have no times. */
  readonly isJoined: boolean;
  readonly from: number;
  readonly to: number | null;
  readonly steps: readonly LiveStep[];
  readonly error: string | null;
}

const OUTPUT_TYPES = new Set(["text-delta", "reasoning-delta", "tool-input-start", "tool-input-available", "file"]);

/** The turn with another chunk. `live`: `null` for the first chunk. */
export function withLiveChunk(live: LiveTurn | null, chunk: ChatChunk, at: number, isJoined = false): LiveTurn {
  const turn = live ?? { id: null, isJoined, from: at, to: null, steps: [], error: null };
  const { type } = chunk;
  if (type === "start" && typeof chunk.messageId === "string") return { ...turn, id: chunk.messageId };
  if (type === "start-step")
    return { ...turn, steps: [...turn.steps, { from: at, firstOutputAt: null, to: null, tools: [] }] };
  if (type === "error") return { ...turn, to: at, error: String(chunk.errorText) };
  if (type === "finish" || type === "abort") return { ...turn, to: at };
  const step = turn.steps.at(-1);
  if (step === undefined) return turn;
  return { ...turn, steps: turn.steps.with(-1, withChunk(step, chunk, at)) };
}

function withChunk(step: LiveStep, chunk: ChatChunk, at: number): LiveStep {
  const started = step.firstOutputAt === null && OUTPUT_TYPES.has(chunk.type) ? { ...step, firstOutputAt: at } : step;
  const id = String(chunk.toolCallId);
  switch (chunk.type) {
    case "tool-input-available": {
      // The model may output more: its answer is complete with its last call.
      const tool = { id, name: String(chunk.toolName ?? "?"), from: at, to: null, error: null };
      return { ...started, to: at, tools: [...started.tools.filter((other) => other.id !== id), tool] };
    }
    case "tool-output-available":
    case "tool-output-denied":
      return withTool(started, id, { to: at });
    case "tool-output-error":
      return withTool(started, id, { to: at, error: String(chunk.errorText) });
    case "finish-step":
      return { ...started, to: started.to ?? at };
    default:
      return started;
  }
}

function withTool(step: LiveStep, id: string, change: Partial<LiveTool>): LiveStep {
  return { ...step, tools: step.tools.map((tool) => (tool.id === id ? { ...tool, ...change } : tool)) };
}

/**
 * After a reconnection, the turn is replayed from its beginning. Steps that were received `before`
 * keep their times.
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
  return {
    from: before.from,
    firstOutputAt: before.firstOutputAt ?? step.firstOutputAt,
    to: before.to ?? step.to,
    tools,
  };
}

/** The turn's action at this moment, for people. */
export function doing({ steps, to }: LiveTurn): string {
  if (to !== null) return "Finished";
  const step = steps.at(-1);
  if (step === undefined) return "Preparing";
  const open = step.tools.filter((tool) => tool.to === null).map(({ name }) => name);
  if (open.length > 0) return `Running ${open.join(", ")}`;
  if (step.tools.length > 0) return "Storing results";
  return step.firstOutputAt === null ? "Waiting for the model" : "Answering";
}
