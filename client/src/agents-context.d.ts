import type { ContextProvider, SearchProvider, WritableContextProvider } from "agents/context";
import type { AgentClient, SessionClient } from "./index.js";

export interface ContextProviderOptions<Kind extends "readonly" | "writable" | "searchable"> {
  /** What the model does with the block. Default: `writable`. */
  kind?: Kind;
  /** The block's label. Default: the label that the Agents SDK gives the provider. */
  label?: string;
  /** Used when the block is not there yet, and the first write defines it. */
  description?: string;
  maxTokens?: number;
}

/** Keeps a context block of the Agents SDK in a block of an agent, or of a session. */
export declare function contextProvider(owner: AgentClient | SessionClient, options: ContextProviderOptions<"searchable"> & { kind: "searchable" }): SearchProvider;
export declare function contextProvider(owner: AgentClient | SessionClient, options: ContextProviderOptions<"readonly"> & { kind: "readonly" }): ContextProvider;
export declare function contextProvider(owner: AgentClient | SessionClient, options?: ContextProviderOptions<"writable">): WritableContextProvider;
