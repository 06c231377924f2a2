// Events, rows and messages, turned into each other by pure functions. A Workflow or a
// Worker builds a model's context with these from what `loadEvents` gave.

/** What an event records. */
export const EventAction = /* @__PURE__ */ Object.freeze({
  USER_MESSAGE: "user_message",
  AGENT_MESSAGE: "agent_message",
  TOOL_CALL_REQUEST: "tool_call_request",
  TOOL_RESULT: "tool_result",
  SYSTEM_INSTRUCTION: "system_instruction",
  COMPACTION: "compaction",
});

/** The fields of an event that a row keeps inside its metadata, by action. */
const IN_METADATA = {
  tool_call_request: ["toolCalls"],
  tool_result: ["toolCallId", "toolName", "isError"],
};

/** A row of `cf_agents_events` as an event. Throws if the row's metadata is not JSON. */
export function hydrateEvent(row) {
  const metadata = row.metadata ? JSON.parse(row.metadata) : {};
  const event = {
    id: row.id,
    sessionId: row.session_id,
    seq: row.seq,
    action: row.action,
    content: row.content ?? "",
    createdAt: row.created_at,
  };
  // The documents' rows say the opposite of `isError`.
  const { isSuccess, ...kept } = metadata;
  if (row.action === EventAction.TOOL_RESULT && isSuccess !== undefined) kept.isError ??= !isSuccess;
  else if (isSuccess !== undefined) kept.isSuccess = isSuccess;
  for (const field of IN_METADATA[row.action] ?? []) {
    if (kept[field] !== undefined) event[field] = kept[field];
    delete kept[field];
  }
  if (row.action === EventAction.TOOL_CALL_REQUEST) event.toolCalls ??= [];
  if (row.action === EventAction.TOOL_RESULT) event.toolCallId ??= "";
  if (Object.keys(kept).length > 0) event.metadata = kept;
  return event;
}

/** An event as a row of `cf_agents_events`. */
export function dehydrateEvent(event) {
  const metadata = { ...event.metadata };
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

/** What a model is told of an event, or `null`: nothing. */
export function eventToMessage(event) {
  const content = event.content ?? "";
  switch (event.action) {
    case EventAction.USER_MESSAGE:
      return { role: "user", content };
    case EventAction.AGENT_MESSAGE:
      return { role: "assistant", content };
    case EventAction.TOOL_CALL_REQUEST:
      return { role: "assistant", content, toolCalls: event.toolCalls ?? [] };
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
 * A message as an event for `appendEvents`. The event has an id of its own, so that a
 * retry is stored once. The log gives it its `seq`.
 */
export function messageToEvent(sessionId, message) {
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
        toolCallId: message.toolCallId,
        ...(message.toolName && { toolName: message.toolName }),
        ...(message.isError && { isError: true }),
      };
    case "system":
      return { ...event, action: EventAction.SYSTEM_INSTRUCTION };
    default:
      throw new TypeError(`A message's role is user, assistant, tool or system, not \`${message.role}\`.`);
  }
}
