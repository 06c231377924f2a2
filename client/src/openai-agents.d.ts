import type {
  AgentInputItem,
  Session,
  SessionHistoryRewriteArgs,
  SessionHistoryRewriteAwareSession,
  SessionHistoryTransactionArgs,
  SessionHistoryTransactionAwareSession,
} from "@openai/agents-core";
import type { SessionClient } from "./index.js";

/** Keeps the history of OpenAI's Agents SDK in a session of an agent. */
export declare class SessionAgentSession implements Session, SessionHistoryRewriteAwareSession, SessionHistoryTransactionAwareSession {
  /**
   * `session`: `agent.session(id)`. It is created with the first item. `logger`: one of the
   * SDK's. It is told of items, unless `dontLogModelData` or `dontLogToolData` is set.
   */
  constructor(session: SessionClient, options?: { logger?: SessionLogger });
  getSessionId(): Promise<string>;
  getItems(limit?: number): Promise<AgentInputItem[]>;
  /** Items are values of JSON and `Uint8Array`s. Anything else is refused before an item is written. */
  addItems(items: AgentInputItem[]): Promise<void>;
  popItem(): Promise<AgentInputItem | undefined>;
  clearSession(): Promise<void>;
  /** Replaces function calls of the history, all of them at once. The log keeps what was replaced. */
  applyHistoryMutations(args: SessionHistoryRewriteArgs): Promise<void>;
  applyHistoryTransaction(args: SessionHistoryTransactionArgs): Promise<void>;
}

export interface SessionLogger {
  debug(message: string): void;
  dontLogModelData?: boolean;
  dontLogToolData?: boolean;
}
