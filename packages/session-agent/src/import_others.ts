// Reads exports of ChatGPT, LangChain, mem0 and Zep as messages, items and entries. These functions
// read and write nothing. Their shapes are strangers': each is looked at before it is used, and
// what can't be taken is named with a reason.

import type { BlockPlan, Checked, SessionPlan } from "./import_tables.js";

type Thing = { [field: string]: any };
type Check = (message: unknown) => Checked;

/** A session to write, and the message that the conversation ended with. */
export interface ConversationPlan extends SessionPlan {
  leafId?: string;
}

/** A fact to write into a searchable block. */
export interface FactsPlan {
  entries: Required<BlockPlan>["entries"];
  skipped: Array<{ id: string | null; reason: string }>;
}

export const isObject = (value: unknown): value is Thing =>
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

function conversationOf(id: string, conversation: Thing, check: Check): ConversationPlan {
  const plan: ConversationPlan = { id, messages: [], compactions: [], skipped: [] };
  if (typeof conversation.title === "string" && conversation.title !== "") plan.name = conversation.title;
  const nodes: { [id: string]: Thing } = conversation.mapping;
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
    else if (reason !== undefined) plan.skipped.push({ id: at, reason });
    written.set(at, checked?.id ?? above);
    open.push(...[...(children.get(at) ?? [])].reverse());
  }
  const leafId = written.get(conversation.current_node);
  return leafId ? { ...plan, leafId } : plan;
}

/** By `parent`, in the order in which each parent lists its children. */
function childrenOf(nodes: { [id: string]: Thing }): Map<string | null, string[]> {
  const children = new Map<string | null, string[]>();
  const place = (id: string): number => {
    const listed = nodes[nodes[id]!.parent]?.children;
    return Array.isArray(listed) ? listed.indexOf(id) : 0;
  };
  for (const [id, node] of Object.entries(nodes)) {
    const parent = isObject(node) && nodes[node.parent] !== undefined ? node.parent : null;
    if (isObject(node)) children.set(parent, [...(children.get(parent) ?? []), id]);
  }
  for (const ids of children.values()) ids.sort((one, other) => place(one) - place(other));
  return children;
}

/** Neither a message nor a reason: the node says nothing, as the root. */
function messageOfChatGPT(id: string, { message }: Thing, check: Check): Checked {
  if (!isObject(message) || message.metadata?.is_visually_hidden_from_conversation === true) return {};
  const role = message.author?.role;
  const { parts, text, content_type: type } = message.content ?? {};
  const texts = [text ?? [], parts ?? []].flat().filter((part) => typeof part === "string" && part !== "");
  const others = (Array.isArray(parts) ? parts : []).filter((part) => typeof part !== "string").length;
  if (texts.length === 0)
    return others === 0 ? {} : { reason: `It is \`${type}\` without a text. The export has its files apart.` };
  if (role === "tool") return { reason: `It is what the tool \`${message.author.name}\` answered.` };
  if (typeof message.recipient === "string" && message.recipient !== "all")
    return { reason: `It is a call of the tool \`${message.recipient}\`.` };
  const time = typeof message.create_time === "number" ? { createdAt: Math.round(message.create_time * 1000) } : {};
  return check({ id, role, parts: texts.map((part) => ({ type: "text", text: part })), ...time });
}

/** Messages of LangChain, in any of its shapes, as messages of chat completions. */
export function completionsOfLangChain(messages: unknown): Thing[] {
  const list: any = typeof messages === "string" ? parsed(messages, "importLangChainMessages") : messages;
  if (typeof list !== "object" || list === null || typeof list[Symbol.iterator] !== "function")
    throw new TypeError(`importLangChainMessages takes a list of messages, and got ${described(list)}.`);
  return Array.from(list as Iterable<unknown>, (message, n) => {
    const { kind, fields } = langChain(message);
    const role = LANGCHAIN_ROLES[kind ?? ""] ?? (kind === "generic" || kind === "chat" ? fields.role : undefined);
    if (role === undefined)
      throw new TypeError(`Message ${n + 1} is not a message of LangChain's: it is ${described(message)}.`);
    const content = plainContent(fields.content);
    if (role === "tool") return { role, tool_call_id: fields.tool_call_id ?? "", content };
    const calls = Array.isArray(fields.tool_calls) ? fields.tool_calls : [];
    if (calls.length === 0) return { role, content };
    return {
      role,
      content,
      tool_calls: calls.map(({ id, name, args }: Thing) => ({
        id: id ?? "",
        type: "function",
        function: { name, arguments: JSON.stringify(args ?? {}) },
      })),
    };
  });
}

const LANGCHAIN_ROLES: { [kind: string]: string } = {
  human: "user",
  ai: "assistant",
  system: "system",
  developer: "system",
  tool: "tool",
  function: "tool",
};
const SERIALISED = /^(Human|AI|System|Tool|Function|Chat)Message(?:Chunk)?$/;

/** An instance, a stored message (`{ type, data }`) or a serialised one (`{ lc, kwargs }`). */
export function langChain(message: unknown): { kind?: string; fields: Thing } {
  if (!isObject(message)) return { fields: {} };
  if (message.lc === 1 && Array.isArray(message.id) && isObject(message.kwargs)) {
    return { kind: SERIALISED.exec(String(message.id.at(-1)))?.[1]?.toLowerCase(), fields: message.kwargs };
  }
  if (isObject(message.data) && "content" in message.data && typeof message.type === "string")
    return { kind: message.type, fields: message.data };
  for (const method of ["getType", "_getType"])
    if (typeof message[method] === "function") return { kind: message[method](), fields: message };
  // As Python's `message.model_dump()` gives it.
  if (
    typeof message.type === "string" &&
    Object.hasOwn(LANGCHAIN_ROLES, message.type) &&
    "content" in message &&
    !("role" in message)
  )
    return { kind: message.type, fields: message };
  return { fields: {} };
}

/** The texts of a content. LangChain's blocks have other names than OpenAI's. */
function plainContent(content: any): string {
  if (typeof content === "string") return content;
  return [content ?? []]
    .flat()
    .map((part) => (typeof part === "string" ? part : (part?.text ?? "")))
    .filter((text) => text !== "")
    .join("\n");
}

/** Memories of mem0: what `getAll` gives, or its list. Each is an entry under its own id. */
export function entriesOfMem0(memories: unknown): FactsPlan {
  return factsOf(memories, "results", "importMem0", (memory) => {
    const text = memory.memory ?? memory.data?.memory;
    if (typeof text !== "string") return undefined;
    return {
      key: memory.id,
      content: text,
      ...from(memory.updated_at ?? memory.created_at ?? memory.updatedAt ?? memory.createdAt),
    };
  });
}

/** Facts of Zep: edges of its graph, or the facts of its older memory. */
export function entriesOfZep(facts: unknown): FactsPlan {
  return factsOf(facts, "edges", "importZepFacts", (fact) => {
    if (typeof fact.fact !== "string") return undefined;
    const until = timeOf(fact.invalid_at ?? fact.invalidAt ?? fact.expired_at ?? fact.expiredAt);
    return {
      key: fact.uuid ?? fact.uuid_,
      content: fact.fact,
      ...from(fact.valid_at ?? fact.validAt ?? fact.created_at ?? fact.createdAt),
      ...(until !== undefined && { validUntil: until }),
    };
  });
}

function factsOf(
  given: unknown,
  field: string,
  name: string,
  entryOf: (fact: Thing) => Required<BlockPlan>["entries"][number] | undefined,
): FactsPlan {
  const value: any = typeof given === "string" ? parsed(given, name) : given;
  const list = Array.isArray(value) ? value : (value?.[field] ?? value?.facts ?? value?.relevant_facts);
  if (!Array.isArray(list))
    throw new TypeError(
      `${name} takes a list, or an object with the list under \`${field}\`, and got ${described(value)}.`,
    );
  const plan: FactsPlan = { entries: [], skipped: [] };
  list.forEach((fact, n) => {
    const entry = isObject(fact) ? entryOf(fact) : undefined;
    if (entry === undefined)
      throw new TypeError(`Number ${n + 1} of the list can't be imported: it is ${described(fact)}.`);
    if (typeof entry.key !== "string" || entry.key === "") plan.skipped.push({ id: null, reason: "It has no id." });
    else if (entry.content === "") plan.skipped.push({ id: entry.key, reason: "It has no text." });
    else plan.entries.push(entry);
  });
  return plan;
}

/** Messages of Zep as those of the AI SDK. `role` is a name there, and `role_type` the role. */
export function messagesOfZep(messages: unknown): Thing[] {
  const value: any = typeof messages === "string" ? parsed(messages, "importZepMessages") : messages;
  const list = Array.isArray(value) ? value : value?.messages;
  if (!Array.isArray(list))
    throw new TypeError(
      `importZepMessages takes a list of messages, or an object with \`messages\`, and got ${described(value)}.`,
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
      ...(named && { metadata: { name: message.role } }),
      ...(time !== undefined && { createdAt: time }),
    };
  });
}

const from = (time: unknown): { validFrom?: number } => {
  const validFrom = timeOf(time);
  return validFrom === undefined ? {} : { validFrom };
};

function timeOf(value: any): number | undefined {
  const time = value instanceof Date ? value.getTime() : typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

function parsed(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new TypeError(`${name} got a text that is not JSON.`);
  }
}

const SHOWN_FIELDS = 5;

/** The kind of a value, and the function that takes it. It does not say the value itself. */
export function described(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value !== "object") return value === undefined ? "undefined" : `a ${typeof value}`;
  const known = knownShape(value);
  if (known !== undefined) return known;
  const fields = Object.keys(value as Thing);
  const shown = fields.slice(0, SHOWN_FIELDS).map((field) => `\`${field}\``);
  return fields.length === 0
    ? "an empty object"
    : `an object with ${shown.join(", ")}${fields.length > SHOWN_FIELDS ? " and more" : ""}`;
}

/** The name of a shape that another function of this module takes. */
export function knownShape(value: unknown): string | undefined {
  if (!isObject(value)) return undefined;
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
