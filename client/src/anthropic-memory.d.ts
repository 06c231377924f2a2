import type { MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";
import type { AgentClient } from "./index.js";

export interface MemoryOptions {
  /** The loadable block that holds the files. The first file defines it. Default: `memories`. */
  label?: string;
}

/**
 * The handlers of Anthropic's memory tool, for `betaMemoryTool` of `@anthropic-ai/sdk`. The
 * files below `/memories` are documents of a loadable block of the agent.
 */
export declare function memoryHandlers(agent: AgentClient, options?: MemoryOptions): MemoryToolHandlers;
