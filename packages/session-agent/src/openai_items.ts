// Items of OpenAI's Agents SDK and Responses API as events, and events as items.
//
// An event has the content of an item in the log's own format, so that search, chat and other
// frameworks can read it. If the item can't be restored exactly from it, the event also stores the whole
// item in its metadata.

import { base64Of, bytesOf } from "./bytes.js";
import type { SessionEvent, ToolCall } from "./operations.js";

/** An item of any of OpenAI's APIs. Its fields are untrusted. */
export type Item = any;

/** An event to append, without its id. */
export interface ItemEvent {
  action: SessionEvent["action"];
  content: string;
  toolCalls?: ToolCall[];
  toolCallId?: string;
  toolName?: string;
  metadata?: { [field: string]: any };
}

type EventContent = Pick<SessionEvent, "action" | "content" | "toolCalls" | "toolCallId" | "toolName" | "metadata">;

const METADATA_KEY = "openaiItem";
const BYTES = "$bytes";

/** Converts an item to an event without an id. `called`: the tool of a result without a name. */
export function eventOfItem(item: Item, called?: string): ItemEvent {
  const event = plainEvent(item, called);
  const [back, ...more] = plainItems(event);
  if (more.length === 0 && back !== undefined && canonical(back) === canonical(item)) return event;
  return { ...event, metadata: { [METADATA_KEY]: JSON.parse(textWithBytes(item)) } };
}

/** The items of an event, even if chat or another framework wrote it. */
export function itemsOfEvent(event: EventContent): Item[] {
  const stored = event.metadata?.[METADATA_KEY];
  return stored === undefined ? plainItems(event) : [JSON.parse(JSON.stringify(stored), revive)];
}

/** A canonical text: equal for equivalent items. */
export function canonical(item: Item): string {
  const sorted = (value: any): any => {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.keys(value)
        .sort()
        .map((key) => [key, sorted(value[key])]),
    );
  };
  return JSON.stringify(sorted(JSON.parse(textWithBytes(item))));
}

function plainEvent(item: Item, called: string = "function"): ItemEvent {
  const name = item.name ?? item.type ?? "item";
  const callId = item.callId ?? item.call_id;
  if (item.type === "function_call" && callId) {
    return {
      action: "tool_call_request",
      content: "",
      toolCalls: [{ id: callId, name, arguments: argumentsOf(item.arguments) }],
    };
  }
  if ((item.type === "function_call_result" || item.type === "function_call_output") && callId) {
    const content = textOf(item.output) ?? JSON.stringify(item.output ?? "");
    return { action: "tool_result", content, toolCallId: callId, toolName: item.name || called };
  }
  const content = textOf(item.content) ?? "";
  if (item.role === "user") return { action: "user_message", content };
  if (item.role === "system" || item.role === "developer") return { action: "system_instruction", content };
  // An item that only the model's provider uses has no content.
  return { action: "agent_message", content: item.role === "assistant" ? content : "" };
}

function plainItems({ action, content, toolCalls, toolCallId, toolName }: EventContent): Item[] {
  const message = {
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: content }],
  };
  switch (action) {
    case "user_message":
      return [{ type: "message", role: "user", content }];
    case "agent_message":
      return content === "" ? [] : [message];
    case "tool_call_request": {
      const calls = (toolCalls ?? []).map((call) => ({
        type: "function_call",
        callId: call.id,
        name: call.name,
        status: "completed",
        arguments: JSON.stringify(call.arguments),
      }));
      return content === "" ? calls : [message, ...calls];
    }
    case "tool_result":
      return [
        {
          type: "function_call_result",
          name: toolName ?? "",
          callId: toolCallId,
          status: "completed",
          output: { type: "text", text: content },
        },
      ];
    default:
      return content === "" ? [] : [{ type: "message", role: "system", content }];
  }
}

/** The texts of a content. `undefined`: it contains none. */
function textOf(content: any): string | undefined {
  if (typeof content === "string") return content;
  const parts = [content].flat().filter((part) => typeof part?.text === "string");
  return parts.length > 0 ? parts.map(({ text }) => text).join("\n") : undefined;
}

function argumentsOf(text: any): { [field: string]: any } {
  try {
    const value = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Stored below, as the model wrote it.
  }
  return { input: text };
}

/** JSON has no bytes, but an item may contain a file. A text that only looks like encoded bytes is wrapped in a list. */
function textWithBytes(value: unknown): string {
  return JSON.stringify(value, (_, inner) => {
    if (inner instanceof Uint8Array) return { [BYTES]: base64Of(inner) };
    return looksLikeBytes(inner) ? { [BYTES]: [inner[BYTES]] } : inner;
  });
}

function revive(_: string, inner: any): any {
  if (!looksLikeBytes(inner)) return inner;
  const bytes = inner[BYTES];
  return typeof bytes === "string" ? bytesOf(bytes) : { [BYTES]: bytes[0] };
}

const looksLikeBytes = (value: any): boolean =>
  typeof value === "object" && value !== null && Object.hasOwn(value, BYTES) && Object.keys(value).length === 1;

/**
 * A copy of an item that JSON and base64 can represent. Throws `UnsupportedValue` for other items, which
 * could not be restored exactly. Calls no accessors.
 */
export function snapshotOf(item: Item): any {
  if (typeof item !== "object" || item === null || Array.isArray(item)) throw new UnsupportedValue([], kindOf(item));
  const copy = copied(item, [], new Set());
  if (copy instanceof Uint8Array) throw new UnsupportedValue([], "bytes");
  return copy;
}

/** The path and the kind of a value that JSON can't represent. Never contains the value itself. */
export class UnsupportedValue extends TypeError {
  constructor(path: string[], what: string) {
    super(`${path.length === 0 ? "It" : `\`${path.join(".")}\``} is ${what}, which JSON does not have.`);
  }
}

function copied(value: any, path: string[], above: Set<object>): any {
  if (value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value)) return value;
  if (typeof value !== "object") throw new UnsupportedValue(path, kindOf(value));
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (above.has(value)) throw new UnsupportedValue(path, "an object that contains itself");
  above.add(value);
  const isList = Array.isArray(value);
  const prototype = Object.getPrototypeOf(value);
  if (!isList && prototype !== Object.prototype && prototype !== null) throw new UnsupportedValue(path, kindOf(value));
  const copy: any = isList ? [] : {};
  const keys = Reflect.ownKeys(value).filter((key) => !isList || key !== "length");
  for (const key of keys) {
    if (typeof key === "symbol") throw new UnsupportedValue(path, "an object with a symbol");
    const { enumerable, value: inner, get, set } = Object.getOwnPropertyDescriptor(value, key)!;
    const at = [...path, key];
    if (get !== undefined || set !== undefined) throw new UnsupportedValue(at, "an accessor");
    if (!enumerable) throw new UnsupportedValue(at, "a hidden property");
    if (isList && key !== String(copy.length)) throw new UnsupportedValue(at, "an item of a list with gaps");
    // An `undefined` field is the same as a missing one.
    if (inner === undefined && !isList) continue;
    Object.defineProperty(copy, key, {
      value: copied(inner, at, above),
      configurable: true,
      enumerable: true,
      writable: true,
    });
  }
  if (isList && copy.length !== value.length) throw new UnsupportedValue(path, "a list with gaps");
  above.delete(value);
  return copy;
}

/** The kind of a value. Never contains the value itself. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "number") return Number.isFinite(value) ? "a number" : "a number without a value";
  if (typeof value !== "object") return typeof value === "undefined" ? "undefined" : `a ${typeof value}`;
  if (Array.isArray(value)) return "a list";
  const name = Object.getPrototypeOf(value)?.constructor?.name;
  return typeof name === "string" && name !== "Object" ? `an object of the class \`${name}\`` : "an object";
}
