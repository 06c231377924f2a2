// Items of OpenAI's Agents SDK and Responses API as events, and events as items.
//
// An event says in the log's own words what an item says, so that search, chat and other
// frameworks read it. Where those words do not give the item back exactly, the event keeps
// the whole item in its metadata.

const KEPT = "openaiItem";
const BYTES = "$bytes";

/** An item as an event, without an id. `called`: the tool that a result without a name is of. */
export function eventOfItem(item, called) {
  const event = plainEvent(item, called);
  const [back, ...more] = plainItems(event);
  if (more.length === 0 && back !== undefined && canonical(back) === canonical(item)) return event;
  return { ...event, metadata: { [KEPT]: JSON.parse(textWithBytes(item)) } };
}

/** The items of an event, also of one that chat or another framework wrote. */
export function itemsOfEvent(event) {
  const kept = event.metadata?.[KEPT];
  return kept === undefined ? plainItems(event) : [JSON.parse(JSON.stringify(kept), revive)];
}

/** A text that two items have in common if they say the same. */
export function canonical(item) {
  const sorted = (value) => {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
  };
  return JSON.stringify(sorted(JSON.parse(textWithBytes(item))));
}

function plainEvent(item, called = "function") {
  const name = item.name ?? item.type ?? "item";
  const callId = item.callId ?? item.call_id;
  if (item.type === "function_call" && callId) {
    return { action: "tool_call_request", content: "", toolCalls: [{ id: callId, name, arguments: argumentsOf(item.arguments) }] };
  }
  if ((item.type === "function_call_result" || item.type === "function_call_output") && callId) {
    const content = textOf(item.output) ?? JSON.stringify(item.output ?? "");
    return { action: "tool_result", content, toolCallId: callId, toolName: item.name || called };
  }
  const content = textOf(item.content) ?? "";
  if (item.role === "user") return { action: "user_message", content };
  if (item.role === "system" || item.role === "developer") return { action: "system_instruction", content };
  // What is for the model's own provider alone says nothing to others.
  return { action: "agent_message", content: item.role === "assistant" ? content : "" };
}

function plainItems({ action, content, toolCalls, toolCallId, toolName }) {
  const said = { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: content }] };
  switch (action) {
    case "user_message":
      return [{ type: "message", role: "user", content }];
    case "agent_message":
      return content === "" ? [] : [said];
    case "tool_call_request": {
      const calls = (toolCalls ?? []).map((call) => ({ type: "function_call", callId: call.id, name: call.name, status: "completed", arguments: JSON.stringify(call.arguments) }));
      return content === "" ? calls : [said, ...calls];
    }
    case "tool_result":
      return [{ type: "function_call_result", name: toolName ?? "", callId: toolCallId, status: "completed", output: { type: "text", text: content } }];
    default:
      return content === "" ? [] : [{ type: "message", role: "system", content }];
  }
}

/** The texts of a content, or `undefined`: it is none. */
function textOf(content) {
  if (typeof content === "string") return content;
  const parts = [content].flat().filter((part) => typeof part?.text === "string");
  return parts.length > 0 ? parts.map(({ text }) => text).join("\n") : undefined;
}

function argumentsOf(text) {
  try {
    const value = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Kept below, as the model wrote it.
  }
  return { input: text };
}

/** JSON has no bytes, and an item may hold a file's. */
const textWithBytes = (value) => JSON.stringify(value, (_, inner) => (inner instanceof Uint8Array ? { [BYTES]: btoa(Array.from(inner, (byte) => String.fromCharCode(byte)).join("")) } : inner));

const revive = (_, inner) => (typeof inner?.[BYTES] === "string" && Object.keys(inner).length === 1 ? Uint8Array.from(atob(inner[BYTES]), (character) => character.charCodeAt(0)) : inner);
