// Events of Google's ADK as events of the log, and back.
//
// An event of the log has the content of an ADK event in the log's own format, so that search, chat and
// other frameworks can read it. Its metadata contains the complete ADK event. An ADK event with the results
// of several calls becomes several events of the log, the first of which contains it.

import type { Event } from "@google/adk";
import type { NewEvent, SessionEvent, ToolCall } from "./operations.js";

/** The metadata of an ADK event. */
export interface StoredAdkEvent {
  event: Event;
  /** Keys of the state delta that a newer write had already set. */
  skipped?: string[];
}

type Part = NonNullable<NonNullable<Event["content"]>["parts"]>[number];

const METADATA_KEY = "adk";
/** The API's ids and names have at most 200 characters. */
const LONGEST_ID = 200;

/** Converts an ADK event to events of the log. Each call assigns new ids, so the same event can be appended again. */
export function eventsOf(stored: StoredAdkEvent): NewEvent[] {
  const { event } = stored;
  const parts = event.content?.parts ?? [];
  const texts = parts.flatMap(({ text, thought }) => (text && !thought ? [text] : []));
  const content = texts.join("\n");
  const results = parts.flatMap(resultOf);
  const calls = parts.flatMap(callOf);
  const events: NewEvent[] = [...results];
  if (calls.length > 0) events.unshift({ action: "tool_call_request", content, toolCalls: calls });
  else if (content !== "" || results.length === 0)
    events.unshift({ action: event.author === "user" ? "user_message" : "agent_message", content });
  return events.map((one, n) => ({
    ...one,
    id: crypto.randomUUID(),
    metadata: { [METADATA_KEY]: n === 0 ? stored : { isMore: true } },
  }));
}

/** The ADK event that an event of the log contains. `undefined`: none, or the event belongs to the previous one. */
export function storedEventOf({ metadata }: SessionEvent): StoredAdkEvent | undefined {
  const stored = metadata?.[METADATA_KEY];
  return stored?.event === undefined ? undefined : stored;
}

/** An event of the log that another program wrote, as an ADK event. `undefined`: it has no content. */
export function foreignEventOf(event: SessionEvent): Partial<Event> | undefined {
  const { id, action, content, toolCalls, toolCallId, toolName, isError, createdAt: timestamp } = event;
  if (event.metadata?.[METADATA_KEY] !== undefined) return undefined;
  const texts: Part[] = content === "" ? [] : [{ text: content }];
  const eventBy = (author: string, role: string, parts: Part[]): Partial<Event> | undefined =>
    parts.length === 0 ? undefined : { id, author, timestamp, content: { role, parts } };
  switch (action) {
    case "user_message":
      return eventBy("user", "user", texts);
    case "agent_message":
    case "tool_call_request": {
      const calls = (toolCalls ?? []).map(({ id, name, arguments: args }) => ({ functionCall: { id, name, args } }));
      return eventBy("model", "model", [...texts, ...calls]);
    }
    case "tool_result": {
      const response = { [isError ? "error" : "result"]: content };
      return eventBy("model", "user", [{ functionResponse: { id: toolCallId!, name: toolName!, response } }]);
    }
    default:
      return undefined;
  }
}

const isId = (text: string | undefined): text is string => !!text && text.length <= LONGEST_ID;

function callOf({ functionCall: call }: Part): ToolCall[] {
  if (call === undefined || !isId(call.id) || !isId(call.name)) return [];
  return [{ id: call.id, name: call.name, arguments: call.args ?? {} }];
}

function resultOf({ functionResponse: result }: Part): NewEvent[] {
  if (result === undefined || !isId(result.id) || !isId(result.name)) return [];
  const content = JSON.stringify(result.response ?? {});
  return [{ action: "tool_result", content, toolCallId: result.id, toolName: result.name }];
}
