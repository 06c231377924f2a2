import type { AgentInputItem, Session, SessionHistoryTransactionArgs, SessionHistoryTransactionAwareSession } from "@openai/agents-core";
import type { SessionClient } from "./index.js";

/** Keeps the history of OpenAI's Agents SDK in a session of an agent. */
export declare class SessionAgentSession implements Session, SessionHistoryTransactionAwareSession {
  /** `session`: `agent.session(id)`. It is created with the first item. */
  constructor(session: SessionClient);
  getSessionId(): Promise<string>;
  getItems(limit?: number): Promise<AgentInputItem[]>;
  addItems(items: AgentInputItem[]): Promise<void>;
  popItem(): Promise<AgentInputItem | undefined>;
  clearSession(): Promise<void>;
  applyHistoryTransaction(args: SessionHistoryTransactionArgs): Promise<void>;
}
