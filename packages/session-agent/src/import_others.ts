// Converts exports of ChatGPT, Claude, LangChain and Zep into messages and items. The functions are pure.
// Exports are untrusted: each value is checked before it is used, and omitted data is reported with a
// reason.

import type { Checked, SessionPlan } from "./import_tables.js";

export type JsonObject = { [field: string]: any };
type Check = (message: unknown) => Checked;

/** A session to write, and the message that the conversation ended with. */
export interface ConversationPlan extends SessionPlan {
  leafId?: string;
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The conversations of ChatGPT's `conversations.json`: its text, its list, or one of the list. */
export function conversationsOfChatGPT(file: unknown, check: Check): ConversationPlan[] {
  const given = typeof file === "string" ? parsed(file, "importChatGPT") : file;
  const list = Array.isArray(given) ? given : [given];
  return list.map((conversation, n) => {
    const id = conversation?.conversation_id ?? conversation?.id;
    if (!isObject(conversation) || !isObject(conversation.mapping) || typeof id !== "string") {
      throw new TypeError(
        `importChatGPT takes ChatGPT's \`conversations.json\`, whose conversations have an \`id\` and a \`mapping\`. Conversation ${n + 1} is ${described(conversation)}.`,
      );
    }
    return conversationOf(id, conversation, check);
  });
}

function conversationOf(id: string, conversation: JsonObject, check: Check): ConversationPlan {
  const plan: ConversationPlan = { id, messages: [], compactions: [], skipped: [] };
  if (typeof conversation.title === "string" && conversation.title !== "") plan.name = conversation.title;
  const nodes: { [id: string]: JsonObject } = conversation.mapping;
  /** The nearest message that is written, at or above a node. */
  const written = new Map<string, string | null>();
  const children = childrenOf(nodes);
  const open = [...(children.get(null) ?? [])].reverse();
  while (open.length > 0) {
    const at = open.pop()!;
    const node = nodes[at]!;
    const above = written.get(node.parent) ?? null;
    const { checked, reason } = messageOfChatGPT(at, node, check);
    if (checked !== undefined) plan.messages.push({ message: checked, parentId: above });
    // Parts of a written message may be omitted.
    if (reason !== undefined) plan.skipped.push({ id: at, reason });
    written.set(at, checked?.id ?? above);
    open.push(...[...(children.get(at) ?? [])].reverse());
  }
  const leafId = written.get(conversation.current_node);
  return leafId ? { ...plan, leafId } : plan;
}

/** By `parent`, in the order in which each parent lists its children. */
function childrenOf(nodes: { [id: string]: JsonObject }): Map<string | null, string[]> {
  const children = new Map<string | null, string[]>();
  const indexInParent = (id: string): number => {
    const listed = nodes[nodes[id]!.parent]?.children;
    return Array.isArray(listed) ? listed.indexOf(id) : 0;
  };
  for (const [id, node] of Object.entries(nodes)) {
    const parent = isObject(node) && nodes[node.parent] !== undefined ? node.parent : null;
    if (isObject(node)) children.set(parent, [...(children.get(parent) ?? []), id]);
  }
  for (const ids of children.values()) ids.sort((one, other) => indexInParent(one) - indexInParent(other));
  return children;
}

/**
 * Neither a message nor a reason: the node is empty, as the root is. Both: a part of the message is
 * omitted.
 */
function messageOfChatGPT(id: string, { message }: JsonObject, check: Check): Checked {
  if (!isObject(message) || message.metadata?.is_visually_hidden_from_conversation === true) return {};
  const role = message.author?.role;
  const { parts, text, content_type: type, ...content } = message.content ?? {};
  const texts = [text ?? [], parts ?? []].flat().filter((part) => typeof part === "string" && part !== "");
  const others = (Array.isArray(parts) ? parts : []).filter((part) => typeof part !== "string");
  // Browser output and reasoning are in other fields.
  const hasMore = Object.values(content).some((value) => (Array.isArray(value) ? value.length > 0 : isObject(value)));
  const isResult = typeof content.result === "string" && content.result !== "";
  if (role === "tool" && (texts.length > 0 || isResult))
    return { reason: `It is what the tool \`${message.author.name}\` answered.` };
  if (texts.length === 0) {
    if (others.length > 0) return { reason: `It is \`${type}\` without a text. The export has its files apart.` };
    return isResult || hasMore ? { reason: `It is \`${type}\`, which is not a text of the conversation.` } : {};
  }
  if (typeof message.recipient === "string" && message.recipient !== "all")
    return { reason: `It is a call of the tool \`${message.recipient}\`.` };
  const time = typeof message.create_time === "number" ? { createdAt: Math.round(message.create_time * 1000) } : {};
  const checked = check({ id, role, parts: texts.map((part) => ({ type: "text", text: part })), ...time });
  const files = others.length + lengthOf(message.metadata?.attachments);
  if (checked.checked === undefined || files === 0) return checked;
  return { ...checked, reason: `Its text is imported without ${filesText(files)}. The export has its files apart.` };
}

const lengthOf = (list: unknown): number => (Array.isArray(list) ? list.length : 0);
const filesText = (count: number): string => (count === 1 ? "its picture or file" : `its ${count} pictures or files`);

/** The conversations of Claude's data export: its text, its list, or one of the list. */
export function conversationsOfClaude(file: unknown, check: Check): ConversationPlan[] {
  const given = typeof file === "string" ? parsed(file, "importClaude") : file;
  return (Array.isArray(given) ? given : [given]).map((conversation, n) => {
    if (!isOfClaude(conversation))
      throw new TypeError(
        `importClaude takes the \`conversations.json\` of Claude's data export, whose conversations have a \`uuid\` and \`chat_messages\`. Conversation ${n + 1} is ${described(conversation)}.`,
      );
    const plan: ConversationPlan = { id: conversation.uuid, messages: [], compactions: [], skipped: [] };
    if (typeof conversation.name === "string" && conversation.name !== "") plan.name = conversation.name;
    let last: string | null = null;
    const written = new Map<unknown, string | null>();
    for (const message of conversation.chat_messages) {
      const { checked, reason } = messageOfClaude(message, check);
      // Newer exports contain the parent of each message.
      const parent: string | null =
        written.get(message?.parent_message_uuid) ?? (written.has(message?.parent_message_uuid) ? null : last);
      if (checked !== undefined) plan.messages.push({ message: checked, parentId: parent });
      if (reason !== undefined) plan.skipped.push({ id: message?.uuid ?? null, reason });
      last = checked?.id ?? parent;
      written.set(message?.uuid, last);
    }
    return last === null ? plan : { ...plan, leafId: last };
  });
}

const isOfClaude = (value: unknown): value is JsonObject =>
  isObject(value) && typeof value.uuid === "string" && Array.isArray(value.chat_messages);

function messageOfClaude(message: unknown, check: Check): Checked {
  if (!isObject(message)) return { reason: "It is not a message." };
  const blocks: unknown[] = Array.isArray(message.content) ? message.content : [];
  const isText = (block: unknown): block is JsonObject => isObject(block) && block.type === "text";
  const texts = blocks.filter(isText).map(({ text }) => text);
  if (texts.length === 0 && typeof message.text === "string") texts.push(message.text);
  const left = blocks.flatMap((block) => (isText(block) ? [] : [`\`${(block as JsonObject)?.type}\``]));
  for (const field of ["attachments", "files"]) if (lengthOf(message[field]) > 0) left.push(`\`${field}\``);
  const parts = texts.filter((text) => typeof text === "string" && text !== "").map((text) => ({ type: "text", text }));
  const without = left.length === 0 ? undefined : [...new Set(left)].join(", ");
  if (parts.length === 0)
    return { reason: without === undefined ? "It has no text." : `It has no text, but ${without}.` };
  const time = timeOf(message.created_at);
  const checked = check({
    id: message.uuid,
    role: message.sender === "human" ? "user" : message.sender,
    parts,
    ...(time !== undefined && { createdAt: time }),
  });
  if (checked.checked === undefined || without === undefined) return checked;
  return { ...checked, reason: `Its text is imported without ${without}.` };
}

/** Converts messages of LangChain, in any of its formats, to messages of chat completions. Also returns the omitted parts. */
export function completionsOfLangChain(messages: unknown): { items: JsonObject[]; skipped: SessionPlan["skipped"] } {
  const skipped: SessionPlan["skipped"] = [];
  const list: any = typeof messages === "string" ? parsed(messages, "importLangChainMessages") : messages;
  if (typeof list !== "object" || list === null || typeof list[Symbol.iterator] !== "function")
    throw new TypeError(`importLangChainMessages takes a list of messages, but got ${described(list)}.`);
  const items = Array.from(list as Iterable<unknown>, (message, n) => {
    const { kind, fields } = langChain(message);
    const role = LANGCHAIN_ROLES[kind ?? ""] ?? (kind === "generic" || kind === "chat" ? fields.role : undefined);
    if (role === undefined)
      throw new TypeError(`Message ${n + 1} is not a message of LangChain's: it is ${described(message)}.`);
    const left = leftOfLangChain(fields);
    if (left.length > 0)
      skipped.push({
        id: typeof fields.id === "string" ? fields.id : null,
        reason: `Message ${n + 1} is imported without ${left.join(", ")}.`,
      });
    const content = plainContent(fields.content);
    if (role === "tool") return { role, tool_call_id: fields.tool_call_id ?? "", content };
    const calls = Array.isArray(fields.tool_calls) ? fields.tool_calls : [];
    if (calls.length === 0) return { role, content };
    return {
      role,
      content,
      tool_calls: calls.map(({ id, name, args }: JsonObject) => ({
        id: id ?? "",
        type: "function",
        function: { name, arguments: JSON.stringify(args ?? {}) },
      })),
    };
  });
  return { items, skipped };
}

/** The fields of LangChain's messages that an event can't contain. */
const LEFT_OF_LANGCHAIN = [
  "artifact",
  "additional_kwargs",
  "response_metadata",
  "usage_metadata",
  "invalid_tool_calls",
];

function leftOfLangChain(fields: JsonObject): string[] {
  const blocks: unknown[] = Array.isArray(fields.content) ? fields.content : [];
  // A call is among the content and among `tool_calls`.
  const isImported = (block: unknown) =>
    typeof block === "string" ||
    typeof (block as JsonObject)?.text === "string" ||
    /^tool_(use|call)/.test((block as JsonObject)?.type);
  const others = blocks.filter((block) => !isImported(block)).map((block) => `\`${(block as JsonObject)?.type}\``);
  const isFull = (value: unknown) =>
    value !== undefined && value !== null && (typeof value !== "object" || Object.keys(value).length > 0);
  const named = LEFT_OF_LANGCHAIN.filter((field) => isFull(fields[field])).map((field) => `\`${field}\``);
  return [...new Set([...others, ...named])];
}

const LANGCHAIN_ROLES: { [kind: string]: string } = {
  human: "user",
  ai: "assistant",
  system: "system",
  developer: "system",
  tool: "tool",
  function: "tool",
};
const SERIALIZED = /^(Human|AI|System|Tool|Function|Chat)Message(?:Chunk)?$/;

/** An instance, a stored message (`{ type, data }`) or a serialized one (`{ lc, kwargs }`). */
export function langChain(message: unknown): { kind?: string; fields: JsonObject } {
  if (!isObject(message)) return { fields: {} };
  if (message.lc === 1 && Array.isArray(message.id) && isObject(message.kwargs)) {
    return { kind: SERIALIZED.exec(String(message.id.at(-1)))?.[1]?.toLowerCase(), fields: message.kwargs };
  }
  if (isObject(message.data) && "content" in message.data && typeof message.type === "string")
    return { kind: message.type, fields: message.data };
  for (const method of ["getType", "_getType"])
    if (typeof message[method] === "function") return { kind: message[method](), fields: message };
  // The output of Python's `message.model_dump()`.
  if (
    typeof message.type === "string" &&
    Object.hasOwn(LANGCHAIN_ROLES, message.type) &&
    "content" in message &&
    !("role" in message)
  )
    return { kind: message.type, fields: message };
  return { fields: {} };
}

/** The texts of a content. LangChain's blocks have different names than OpenAI's. */
function plainContent(content: any): string {
  if (typeof content === "string") return content;
  return [content ?? []]
    .flat()
    .map((part) => (typeof part === "string" ? part : (part?.text ?? "")))
    .filter((text) => text !== "")
    .join("\n");
}

/** Messages of Zep as those of the AI SDK. `role` is a name there, and `role_type` the role. */
export function messagesOfZep(messages: unknown): JsonObject[] {
  const value: any = typeof messages === "string" ? parsed(messages, "importZepMessages") : messages;
  const list = Array.isArray(value) ? value : value?.messages;
  if (!Array.isArray(list))
    throw new TypeError(
      `importZepMessages takes a list of messages, or an object with \`messages\`, but got ${described(value)}.`,
    );
  return list.map((message, n) => {
    if (!isObject(message) || typeof message.content !== "string")
      throw new TypeError(`Message ${n + 1} is not a message of Zep's: it is ${described(message)}.`);
    const role = message.role_type ?? message.roleType ?? message.role;
    const time = timeOf(message.created_at ?? message.createdAt);
    const named =
      message.role_type !== undefined && message.role_type !== message.role && typeof message.role === "string";
    return {
      id: message.uuid ?? message.uuid_,
      role: role === "ai" ? "assistant" : role,
      parts: [{ type: "text", text: message.content }],
      ...((named || isObject(message.metadata)) && {
        metadata: { ...message.metadata, ...(named && { name: message.role }) },
      }),
      ...(time !== undefined && { createdAt: time }),
    };
  });
}

export function timeOf(value: any): number | undefined {
  const time = value instanceof Date ? value.getTime() : typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

export function parsed(text: string, name: string): unknown {
  try {
    // Some editors begin a file with a byte order mark.
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    throw new TypeError(`${name} received text that is not JSON.`);
  }
}

const SHOWN_FIELDS = 5;

/** The kind of a value, and the function that imports it. Never contains the value itself. */
export function described(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value !== "object") return value === undefined ? "undefined" : `a ${typeof value}`;
  const known = knownShape(value);
  if (known !== undefined) return known;
  const fields = Object.keys(value as JsonObject);
  const shown = fields.slice(0, SHOWN_FIELDS).map((field) => `\`${field}\``);
  return fields.length === 0
    ? "an empty object"
    : `an object with ${shown.join(", ")}${fields.length > SHOWN_FIELDS ? " and more" : ""}`;
}

/** A block that only Anthropic's API has. A message with only texts is also valid in chat completions. */
const isOfAnthropic = (block: unknown): boolean =>
  isObject(block) &&
  (/^(tool_use|tool_result|thinking|redacted_thinking|server_tool_use)$/.test(block.type) || isObject(block.source));

/** The name of a format that another function of this module imports. */
export function knownShape(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
  const isClaudes: boolean = isOfClaude(value);
  if (isClaudes) return "a conversation of Claude's data export, which `importClaude` takes";
  if (typeof value.uuid === "string" && typeof value.sender === "string")
    return "a message of Claude's data export. `importClaude` takes the whole `conversations.json`";
  if (Array.isArray(value.content) && value.content.some(isOfAnthropic))
    return "a message of Anthropic's API with blocks that no function here takes. Give `importUIMessages` messages of the AI SDK, with a tool's call and its result as one part";
  if (isObject(value.mapping)) return "a conversation of ChatGPT's data export, which `importChatGPT` takes";
  if (isObject(value.author) && isObject(value.content))
    return "a message of ChatGPT's data export. `importChatGPT` takes the whole `conversations.json`";
  if (isObject(value.message) && "parent" in value)
    return "a node of ChatGPT's data export. `importChatGPT` takes the whole `conversations.json`";
  if (langChain(value).kind !== undefined) return "a message of LangChain's, which `importLangChainMessages` takes";
  if ("role_type" in value || "roleType" in value) return "a message of Zep's, which `importZepMessages` takes";
  if (typeof value.fact === "string") return "a fact of Zep's, which `importZepFacts` takes";
  if (typeof value.memory === "string") return "a memory of mem0's, which `importMem0` takes";
  if (typeof value.role === "string" && Array.isArray(value.parts) && !("content" in value))
    return "a message of the AI SDK, which `importUIMessages` takes";
  return undefined;
}
