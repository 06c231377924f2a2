import type { AgentClient, CallOptions, SessionClient } from "./index.js";

export interface ImportOptions extends CallOptions {
  /** Writes nothing. The report says what would be written. Default: false. */
  dryRun?: boolean;
  /** Called as messages or items are written. */
  onProgress?: (progress: { done: number; total: number }) => void;
}

export interface ImportReport {
  dryRun: boolean;
  sessions: SessionReport[];
}

export interface SessionReport {
  id: string;
  /** Whether the session was there before. */
  exists: boolean;
  /** How many messages or events were written, or would be. */
  write: number;
  /** How many were there already. */
  known: number;
  /** How many summaries were written, or would be. */
  compactions: number;
  /** What was left out, and why. */
  skipped: Array<{ id: string | null; reason: string }>;
}

export interface TablesReport extends ImportReport {
  blocks: Array<{ label: string; kind: "writable" | "searchable"; write: boolean; entries?: number; reason?: string }>;
  /** Tables of the export that hold nothing of a conversation. */
  ignoredTables: string[];
}

/** A row of an export. Bytes are base64. */
export interface TableRow {
  table: string;
  row: { [column: string]: any };
}

/** Writes `UIMessage`s of the AI SDK into a session, each after the one before it. */
export declare function importUIMessages(session: SessionClient, messages: Iterable<object>, options?: ImportOptions): Promise<ImportReport>;
/** Writes items of OpenAI's Responses API or Agents SDK, or messages of its chat completions, into a session. */
export declare function importOpenAIItems(session: SessionClient, items: Iterable<object>, options?: ImportOptions): Promise<ImportReport>;
/**
 * Writes the conversations and blocks of an agent of the Agents SDK into an agent. `file` is an
 * export, or `agent.foreignRows()` where the SDK's object became the agent. It is read whole.
 */
export declare function importAgentsTables(
  agent: AgentClient,
  file: string | Blob | Response | ReadableStream<Uint8Array> | Iterable<TableRow> | AsyncIterable<TableRow>,
  options?: ImportOptions,
): Promise<TablesReport>;
