// Messages of TanStack AI as events, and events as messages.
//
// TanStack AI has two formats: the messages that a model receives (`ModelMessage`), and the messages that
// a page shows (`UIMessage`). A `UIMessage` can correspond to several `ModelMessage`s. The log has an event
// for each `ModelMessage`. If the event alone can't restore the message exactly, its metadata contains the
// missing data. The first event of a `UIMessage` contains the whole message.

import {
  convertMessagesToModelMessages,
  type ModelMessage,
  modelMessagesToUIMessages,
  type UIMessage,
} from "@tanstack/ai";
import { canonical } from "./openai_items.js";
import type { NewEvent, SessionEvent, ToolCall } from "./operations.js";

/** Events that were stored together, and their messages. */
export interface Unit {
  events: SessionEvent[];
  messages: ModelMessage[];
  /** The message of a page, if it was stored as one. */
  ui?: UIMessage;
}

type EventContent = Pick<SessionEvent, "action" | "content" | "toolCalls" | "toolCallId" | "isError">;

/** The metadata field for data that the event can't contain. */
export const METADATA_KEY = "tanstack";
/** The API accepts ids and names of at most 200 characters. */
const LONGEST_ID = 200;

/** The events of messages for a model, without ids. `before`: the messages that they follow. */
export function eventsOfMessages(messages: ModelMessage[], before: ModelMessage[]): NewEvent[] {
  const names = new Map<string, string>();
  return [...before, ...messages]
    .map((message) => {
      for (const call of message.toolCalls ?? []) names.set(call.id, call.function.name);
      return eventOf(message, names);
    })
    .slice(before.length);
}

/** The events of a page's message, without ids. */
export function eventsOfUiMessage(ui: UIMessage): NewEvent[] {
  const messages = modelMessagesOf(ui);
  const events = eventsOfMessages(messages, []);
  if (events.length === 0) events.push({ action: "system_instruction", content: textOf(ui.parts) ?? "" });
  return events.map((event, n) => ({ ...event, metadata: { [METADATA_KEY]: n === 0 ? { ui } : { isMore: true } } }));
}

/** The messages of a branch, from its events. */
export function unitsOf(events: SessionEvent[]): Unit[] {
  const units: Unit[] = [];
  for (const event of events) {
    const stored = event.metadata?.[METADATA_KEY];
    const last = units.at(-1);
    if (stored?.ui !== undefined) {
      const ui = dated(stored.ui) as UIMessage;
      units.push({ events: [event], messages: modelMessagesOf(ui), ui });
    } else if (stored?.isMore) {
      last?.events.push(event);
    } else {
      const message = messageOf(event);
      if (message === null) continue;
      // A page shows results with the message that has their calls.
      if (message.role === "tool" && last !== undefined && last.ui === undefined) {
        last.events.push(event);
        last.messages.push(message);
      } else {
        units.push({ events: [event], messages: [message] });
      }
    }
  }
  return units;
}

/** The message of an event, as it was added. `null`: the event is not a message of a conversation. */
function messageOf(event: SessionEvent): ModelMessage | null {
  const stored = event.metadata?.[METADATA_KEY]?.message;
  if (stored === undefined) return plainMessage(event);
  return dated("content" in stored ? stored : { ...stored, content: event.content }) as ModelMessage;
}

export const uiMessagesOf = (unit: Unit): UIMessage[] =>
  unit.ui === undefined ? modelMessagesToUIMessages(unit.messages) : [unit.ui];

/**
 * A canonical text: equal for messages with the same content. A page returns an answer with another id
 * and another time than the model assigned.
 */
export function sameMessage({ role, content, toolCalls = [], toolCallId, error }: ModelMessage): string {
  const calls = toolCalls.map(({ id, function: called }) => [id, called.name, called.arguments]);
  return canonical({ role, content: plainContent(content), calls, toolCallId, error });
}

/** The same for two messages of a page. */
export function sameUiMessage({ role, name, parts, metadata = {} }: UIMessage): string {
  const { tanstack: _, ...own } = metadata;
  return canonical({ role, name, parts, own });
}

/** Whether a message is the placeholder of a pending result: the tool was approved and has not run. */
export function isPlaceholder({ role, content }: ModelMessage): boolean {
  if (role !== "tool" || typeof content !== "string" || !content.includes("pendingExecution")) return false;
  try {
    return JSON.parse(content).pendingExecution === true;
  } catch {
    return false;
  }
}

const modelMessagesOf = (ui: UIMessage): ModelMessage[] =>
  convertMessagesToModelMessages([ui]).filter((message) => message.role !== ("system" as string));

function eventOf(message: ModelMessage, names: Map<string, string>): NewEvent {
  const event = plainEvent(message, names);
  const plain = plainMessage(event as EventContent);
  if (plain !== null && canonical(plain) === canonical(message)) return event;
  const { content, ...rest } = message;
  return { ...event, metadata: { [METADATA_KEY]: { message: content === event.content ? rest : message } } };
}

function plainEvent(message: ModelMessage, names: Map<string, string>): NewEvent {
  const content = textOf(message.content) ?? "";
  const isId = (text: string | undefined): text is string => !!text && text.length <= LONGEST_ID;
  if (message.role === "user") return { action: "user_message", content };
  if (message.role === "tool" && isId(message.toolCallId)) {
    const name = names.get(message.toolCallId);
    return {
      action: "tool_result",
      content: message.error ?? content,
      toolCallId: message.toolCallId,
      toolName: isId(name) ? name : "tool",
      ...(message.error !== undefined && { isError: true }),
    };
  }
  const calls = message.toolCalls ?? [];
  if (calls.length === 0 || !calls.every(({ id, function: called }) => isId(id) && isId(called.name)))
    return { action: "agent_message", content };
  const toolCalls: ToolCall[] = calls.map(({ id, function: called }) => ({
    id,
    name: called.name,
    arguments: argumentsOf(called.arguments),
  }));
  return { action: "tool_call_request", content, toolCalls };
}

function plainMessage({ action, content, toolCalls, toolCallId, isError }: EventContent): ModelMessage | null {
  switch (action) {
    case "user_message":
      return { role: "user", content };
    case "agent_message":
      return content === "" ? null : { role: "assistant", content };
    case "tool_call_request":
      return {
        role: "assistant",
        content: content === "" ? null : content,
        toolCalls: (toolCalls ?? []).map((call) => ({
          id: call.id,
          type: "function",
          function: { name: call.name, arguments: JSON.stringify(call.arguments) },
        })),
      };
    case "tool_result":
      return { role: "tool", content, toolCallId: toolCallId!, ...(isError && { error: content }) };
    default:
      return null;
  }
}

/** The texts of a content or of a message's parts. `undefined`: there are none. */
export function textOf(content: ModelMessage["content"] | UIMessage["parts"]): string | undefined {
  if (typeof content === "string") return content;
  const texts = (content ?? []).flatMap((part) => (part.type === "text" ? [part.content] : []));
  return texts.length > 0 ? texts.join("\n") : undefined;
}

/** A text is equivalent to a list of one text, and an empty text to none. */
export function plainContent(content: ModelMessage["content"]): ModelMessage["content"] {
  const [only, ...more] = Array.isArray(content) ? content : [];
  const plain = only?.type === "text" && more.length === 0 ? only.content : content;
  return plain === "" ? null : plain;
}

function argumentsOf(text: string): { [field: string]: any } {
  try {
    const value = JSON.parse(text || "{}");
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // The metadata has it as the model wrote it.
  }
  return { input: text };
}

/** A stored message, with its times as dates again. */
export function dated<Message extends { createdAt?: any; parts?: any[] }>(message: Message): Message {
  const inner = Array.isArray(message.parts)
    ? { ...message, parts: message.parts.map((part) => dated(part)) }
    : message;
  return typeof inner.createdAt === "string" ? { ...inner, createdAt: new Date(inner.createdAt) } : inner;
}
