// Pure functions that convert between events, rows and messages. A Workflow or a Worker can build a
// model's context from the result of `loadEvents` with them.

import type { Action, ContextFile, ToolCall } from "./operations.js";

/** A row of the table `cf_agents_events`. */
export interface StoredEvent {
  id: string;
  session_id: string;
  seq: number;
  action: Action;
  content: string | null;
  /** JSON. */
  metadata: string | null;
  created_at: number;
}

/** The fields of an event without its position in the tree, which a row doesn't have. */
interface PlainFields {
  id: string;
  sessionId: string;
  seq: number;
  action: Action;
  content: string;
  createdAt: number;
  toolCalls?: ToolCall[] | null;
  toolCallId?: string | null;
  toolName?: string | null;
  isError?: boolean | null;
  metadata?: { [field: string]: any } | null;
}

/** An event without its position in the tree. Its `action` determines its fields. */
export type PlainEvent = PlainFields &
  (
    | { action: "user_message" | "agent_message" | "system_instruction" | "compaction" }
    | { action: "tool_call_request"; toolCalls: ToolCall[] }
    | { action: "tool_result"; toolCallId: string }
  );

/**
 * The fields of an event that determine a model's message. No field has the type `any`: with RPC stubs,
 * TypeScript would recurse into it endlessly.
 */
export interface ModelEvent {
  action: Action;
  content?: string | null;
  toolCalls?: ReadonlyArray<{ id: string; name: string }> | null;
  toolCallId?: string | null;
  toolName?: string | null;
  isError?: boolean | null;
}

/** The fields of an event that a row contains. */
export interface LoggedEvent extends ModelEvent {
  id: string;
  sessionId: string;
  seq: number;
  createdAt: number;
}

/** A message as a model receives it. */
export interface ModelMessage {
  role: "user" | "assistant" | "tool" | "system";
  content: string;
  toolCalls?: ToolCall[] | null;
  toolCallId?: string | null;
  toolName?: string | null;
  isError?: boolean | null;
  files?: ContextFile[];
}

/** The kind of an event. */
export type EventAction = Action;
export const EventAction: {
  readonly USER_MESSAGE: "user_message";
  readonly AGENT_MESSAGE: "agent_message";
  readonly TOOL_CALL_REQUEST: "tool_call_request";
  readonly TOOL_RESULT: "tool_result";
  readonly SYSTEM_INSTRUCTION: "system_instruction";
  readonly COMPACTION: "compaction";
} = /* @__PURE__ */ Object.freeze({
  USER_MESSAGE: "user_message",
  AGENT_MESSAGE: "agent_message",
  TOOL_CALL_REQUEST: "tool_call_request",
  TOOL_RESULT: "tool_result",
  SYSTEM_INSTRUCTION: "system_instruction",
  COMPACTION: "compaction",
});

/** The fields of an event that a row stores inside its metadata, by action. */
const IN_METADATA: { [Name in Action]?: Array<"toolCalls" | "toolCallId" | "toolName" | "isError"> } = {
  tool_call_request: ["toolCalls"],
  tool_result: ["toolCallId", "toolName", "isError"],
};

/** A row of `cf_agents_events` as an event. Throws if the row's metadata is not JSON. */
export function hydrateEvent(row: StoredEvent): PlainEvent {
  const metadata = row.metadata ? JSON.parse(row.metadata) : {};
  const event: PlainFields = {
    id: row.id,
    sessionId: row.session_id,
    seq: row.seq,
    action: row.action,
    content: row.content ?? "",
    createdAt: row.created_at,
  };
  // The rows of the documentation have the opposite of `isError`.
  const { isSuccess, ...rest } = metadata;
  if (row.action === EventAction.TOOL_RESULT && isSuccess !== undefined) rest.isError ??= !isSuccess;
  else if (isSuccess !== undefined) rest.isSuccess = isSuccess;
  for (const field of IN_METADATA[row.action] ?? []) {
    if (rest[field] !== undefined) event[field] = rest[field];
    delete rest[field];
  }
  if (row.action === EventAction.TOOL_CALL_REQUEST) event.toolCalls ??= [];
  if (row.action === EventAction.TOOL_RESULT) event.toolCallId ??= "";
  if (Object.keys(rest).length > 0) event.metadata = rest;
  return event as PlainEvent;
}

/** An event as a row of `cf_agents_events`. */
export function dehydrateEvent(event: LoggedEvent): StoredEvent {
  const metadata: { [field: string]: any } = { ...(event as PlainFields).metadata };
  for (const field of IN_METADATA[event.action] ?? []) {
    if (event[field] !== undefined && event[field] !== null) metadata[field] = event[field];
  }
  return {
    id: event.id,
    session_id: event.sessionId,
    seq: event.seq,
    action: event.action,
    content: event.content ?? "",
    metadata: Object.keys(metadata).length > 0 ? JSON.stringify(metadata) : null,
    created_at: event.createdAt,
  };
}

/** The model's message for an event. `null`: none. */
export function eventToMessage(event: ModelEvent): ModelMessage | null {
  const content = event.content ?? "";
  switch (event.action) {
    case EventAction.USER_MESSAGE:
      return { role: "user", content };
    case EventAction.AGENT_MESSAGE:
      return { role: "assistant", content };
    case EventAction.TOOL_CALL_REQUEST:
      return { role: "assistant", content, toolCalls: (event.toolCalls ?? []) as ToolCall[] };
    case EventAction.TOOL_RESULT:
      return {
        role: "tool",
        content,
        toolCallId: event.toolCallId,
        ...(event.toolName && { toolName: event.toolName }),
        ...(event.isError && { isError: true }),
      };
    case EventAction.SYSTEM_INSTRUCTION:
    case EventAction.COMPACTION:
      return { role: "system", content };
    default:
      return null;
  }
}

/**
 * Converts a message into an event for `appendEvents`. The event has an id, so a retry is stored
 * once. The log assigns its `seq`.
 */
export function messageToEvent(sessionId: string, message: ModelMessage): PlainEvent {
  const event = { id: crypto.randomUUID(), sessionId, seq: 0, content: message.content ?? "", createdAt: Date.now() };
  switch (message.role) {
    case "user":
      return { ...event, action: EventAction.USER_MESSAGE };
    case "assistant":
      if (!message.toolCalls?.length) return { ...event, action: EventAction.AGENT_MESSAGE };
      return { ...event, action: EventAction.TOOL_CALL_REQUEST, toolCalls: message.toolCalls };
    case "tool":
      return {
        ...event,
        action: EventAction.TOOL_RESULT,
        toolCallId: message.toolCallId ?? "",
        ...(message.toolName && { toolName: message.toolName }),
        ...(message.isError && { isError: true }),
      };
    case "system":
      return { ...event, action: EventAction.SYSTEM_INSTRUCTION };
    default:
      throw new TypeError(`A message's role is user, assistant, tool or system, not \`${message.role}\`.`);
  }
}
