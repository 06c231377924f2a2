// Reads the messages of an AI SDK turn, without importing the SDK, and writes them into a session.
//
// Texts, calls and results become events, as in a chat turn. Events can't contain reasoning or files,
// so an answer with one of them becomes one message, with the parts that `toUIMessageStream` would
// produce.

import { base64Of } from "./bytes.js";

import type { NewEvent } from "./operations.js";
import type { CallOptions } from "./options.js";
import type { SessionClient } from "./session.js";

/** A result of `streamText` or `generateText`, the argument of their callbacks, a list of steps, or a list of messages. */
export type AiTurn =
  | { readonly steps: PromiseLike<readonly AiStep[]> | readonly AiStep[] }
  | readonly AiStep[]
  | readonly AiTurnMessage[];

export interface AiStep {
  readonly content: readonly any[];
  readonly usage: any;
}

export interface AiTurnMessage {
  readonly role: "user" | "assistant" | "tool" | "system";
  readonly content: string | readonly any[];
}

/** The spending of a turn, as the input of `addUsage`. */
interface Spent {
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  contextTokens?: number;
}

/** The tokens of all steps together, and those that the first step read. */
export interface Counted {
  total: Spent;
  firstInputTokens: number;
}

/** An item to write: an event, which has an `action`, or a message, which has a `role`. Writing assigns its id. */
export interface Item {
  id?: string;
  [field: string]: any;
}

/** The answers of a turn between two messages from others. */
interface Answer {
  role: "assistant" | "tool";
  parts: readonly any[];
}

/** The position of a turn: after the leaf, or after another event as a new branch. */
export interface AppendPosition {
  /** The leaf that the turn follows. `null`: the session is empty. If the leaf is another one, the write fails. */
  expectedLeafId?: string | null | undefined;
  /** The event that the turn follows as a new branch. */
  parentId?: string | null | undefined;
}

export interface Persisted {
  /** The written events, in order. `inserted: false`: the event was there already. */
  events: Array<{ id: string; inserted: boolean; seq?: number }>;
  leafId: string | null;
}

/** A turn's name has 32 hexadecimal digits, enough for any session. */
const NAME_DIGITS = 32;

/**
 * The messages and the spending of a turn: `{ messages, usage }`. `turn` is a result of
 * `streamText` or `generateText`, the argument of their callbacks, a list of steps, or a list of
 * messages.
 */
export async function readTurn(
  turn: AiTurn,
): Promise<{ messages: readonly AiTurnMessage[]; usage?: Counted | undefined }> {
  if (isList(turn)) {
    const isSteps = turn.length > 0 && (turn[0] as { role?: string } | undefined)?.role === undefined;
    if (!isSteps) return { messages: turn as readonly AiTurnMessage[] };
    const steps = turn as readonly AiStep[];
    return { messages: steps.flatMap(messagesOfStep), usage: sum(steps.map((step) => step.usage)) };
  }
  if (turn?.steps === undefined)
    throw new TypeError(
      "`persist` takes a result of `streamText` or `generateText`, a list of its steps, or a list of messages.",
    );
  return await readTurn([...(await turn.steps)]);
}

const isList = (turn: AiTurn): turn is readonly AiStep[] | readonly AiTurnMessage[] => Array.isArray(turn);

/** A step as the messages that the SDK would send in the next step. */
function messagesOfStep({ content = [] }: { content?: readonly any[] }): AiTurnMessage[] {
  const isOutcome = ({ type }: { type: string }) => type === "tool-result" || type === "tool-error";
  const parts = content
    .filter((part) => !isOutcome(part))
    .map(({ file, providerMetadata, ...part }) => ({
      ...part,
      ...(file !== undefined && { data: file.base64, mediaType: file.mediaType }),
      ...(providerMetadata !== undefined && { providerOptions: providerMetadata }),
    }));
  const results = content.filter(isOutcome).map(({ toolCallId, toolName, output, error, providerMetadata }) => ({
    type: "tool-result",
    toolCallId,
    toolName,
    output: error === undefined ? { value: output } : { type: "error-text", value: String(error) },
    ...(providerMetadata !== undefined && { providerOptions: providerMetadata }),
  }));
  return [
    { role: "assistant", content: parts },
    { role: "tool", content: results },
  ];
}

/** Tokens of several steps together, and those of the first step. `undefined`: no count was given. */
function sum(usages: any[]): Counted | undefined {
  const total = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 };
  for (const usage of usages) {
    total.inputTokens += usage?.inputTokens || 0;
    total.outputTokens += usage?.outputTokens || 0;
    total.cachedInputTokens += (usage?.inputTokenDetails?.cacheReadTokens ?? usage?.cachedInputTokens) || 0;
  }
  return total.inputTokens + total.outputTokens > 0
    ? { total, firstInputTokens: usages[0]?.inputTokens || 0 }
    : undefined;
}

/**
 * The input of `addUsage`. `estimate` is the estimate of the first step's context. Later steps send
 * more; their estimates are assumed to be equally accurate.
 */
export function usageOf({ total, firstInputTokens }: Counted, estimate: number | undefined): Spent {
  if (!estimate || firstInputTokens <= 0) return total;
  return { ...total, contextTokens: Math.round((estimate * total.inputTokens) / firstInputTokens) };
}

// Items: events, which have an `action`, and messages, which have a `role`.

/** The items of messages of the AI SDK, in their order and without ids. */
export function itemsOfMessages(messages: readonly AiTurnMessage[]): Item[] {
  const items: Item[] = [];
  let answers: Answer[] = [];
  const close = () => {
    items.push(...itemsOfAnswers(answers));
    answers = [];
  };
  for (const { role, content } of messages) {
    const parts: readonly any[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
    if (role === "assistant" || role === "tool") {
      answers.push({ role, parts });
      continue;
    }
    close();
    if (role === "user") items.push(itemOfUser(parts));
    else if (role === "system") items.push({ action: "system_instruction", content: textOf(parts) });
    else throw new TypeError(`A message's role is user, assistant, tool or system, not \`${role}\`.`);
  }
  close();
  return items;
}

function itemOfUser(parts: readonly any[]): Item {
  const other = parts.find(({ type }) => type !== "text" && type !== "file");
  if (other !== undefined)
    throw new TypeError(
      `\`persist\` can only write the texts and files of a user's message. Write a message with a part of type \`${other.type}\` with \`appendMessage\`.`,
    );
  if (parts.every(({ type }) => type === "text")) return { action: "user_message", content: textOf(parts) };
  return {
    role: "user",
    parts: parts.map((part) => (part.type === "text" ? { type: "text", text: part.text } : fileOf(part))),
  };
}

const textOf = (parts: readonly any[]): string => parts.map(({ text }) => text).join("\n");

function itemsOfAnswers(answers: Answer[]): Item[] {
  const needsMessage = ({ type, text, providerOptions }: any) =>
    type === "file" ||
    type === "reasoning-file" ||
    (type === "reasoning" && (text !== "" || providerOptions !== undefined));
  if (!answers.some(({ parts }) => parts.some(needsMessage)))
    return answers.flatMap(({ parts }) => eventsOfParts(parts));
  const made: any[] = [];
  const calls = new Map<string, any[]>();
  const others: Item[] = [];
  for (const { role, parts } of answers) {
    // Models repeat ids: a result belongs to its step, and to the step's first call without a result.
    const named = new Map<string, any[]>();
    if (role === "assistant") made.push({ type: "step-start" });
    for (const part of parts) {
      if (part.type === "tool-result") {
        // A call of an earlier turn is not part of this message.
        const callParts = calls.get(part.toolCallId);
        if (callParts !== undefined)
          Object.assign(
            callParts.find(({ state }) => state === "input-available") ?? callParts.at(-1),
            outcomeOf(part),
          );
        else others.push(eventOfResult(part));
        continue;
      }
      const of = partOf(part);
      if (part.type === "tool-call") {
        const ofId = named.get(part.toolCallId) ?? [];
        ofId.push(of);
        named.set(part.toolCallId, ofId);
        calls.set(part.toolCallId, ofId);
      }
      if (of !== undefined) made.push(of);
    }
  }
  return [...others, { role: "assistant", parts: made }];
}

// Events.

/** The texts and calls of one answer belong together, up to a text that follows a call. */
function eventsOfParts(parts: readonly any[]): Item[] {
  const events: Item[] = [];
  let [texts, calls, results]: [string[], any[], Item[]] = [[], [], []];
  const close = () => {
    const content = texts.join("\n");
    if (calls.length > 0) events.push({ action: "tool_call_request", content, toolCalls: calls });
    else if (content !== "") events.push({ action: "agent_message", content });
    events.push(...results);
    [texts, calls, results] = [[], [], []];
  };
  for (const part of parts) {
    if (part.type === "text") {
      if (calls.length + results.length > 0) close();
      texts.push(part.text);
    }
    if (part.type === "tool-call")
      calls.push({ id: part.toolCallId, name: part.toolName, arguments: objectOf(part.input) });
    if (part.type === "tool-result") results.push(eventOfResult(part));
  }
  close();
  return events;
}

function eventOfResult({ toolCallId, toolName, output }: any): Item {
  const { errorText, value } = readOutput(output);
  return {
    action: "tool_result",
    content: errorText ?? textOfOutput(value),
    toolCallId,
    toolName,
    ...(errorText !== undefined && { isError: true }),
  };
}

const textOfOutput = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

/** `{ value }`, or `{ errorText }` of a call that failed or was not allowed. */
function readOutput({ type = "", value, reason }: any = {}): { errorText?: string; value?: any } {
  if (type === "execution-denied") return { errorText: reason ?? "The user did not allow this call." };
  return type.startsWith("error") ? { errorText: textOfOutput(value) } : { value };
}

/** Invalid arguments are returned to the model unchanged. */
const objectOf = (input: unknown): object =>
  typeof input === "object" && input !== null && !Array.isArray(input) ? input : { input };

// Parts of a message.

/** `undefined`: the part has nothing to store. */
function partOf(part: any): any {
  const { type, text, toolCallId, toolName, input, providerExecuted, providerOptions } = part;
  switch (type) {
    case "text":
      return text === "" && providerOptions === undefined
        ? undefined
        : { type, text, state: "done", ...metadata("providerMetadata", providerOptions) };
    case "reasoning":
      return { type, text, state: "done", ...metadata("providerMetadata", providerOptions) };
    case "file":
    case "reasoning-file":
      return fileOf(part);
    case "tool-call":
      return {
        type: `tool-${toolName}`,
        toolCallId,
        state: "input-available",
        input: objectOf(input),
        ...(providerExecuted && { providerExecuted }),
        ...metadata("callProviderMetadata", providerOptions),
      };
    default:
      return undefined;
  }
}

function outcomeOf({ output, providerOptions }: any) {
  const { errorText, value = null } = readOutput(output);
  const outcome =
    errorText === undefined ? { state: "output-available", output: value } : { state: "output-error", errorText };
  return { ...outcome, ...metadata("resultProviderMetadata", providerOptions) };
}

const metadata = (field: string, value: unknown): object => (value === undefined ? {} : { [field]: value });

function fileOf({ type, data, mediaType, filename, providerOptions }: any) {
  return {
    type,
    mediaType,
    ...(filename !== undefined && { filename }),
    url: urlOf(data, mediaType),
    ...metadata("providerMetadata", providerOptions),
  };
}

/** In the SDK, a file is base64, bytes, a URL, or one of these with its type. */
function urlOf(data: any, mediaType: string): string {
  if (data instanceof URL) return data.href;
  if (typeof data === "string") return /^(?:data|https?):/.test(data) ? data : `data:${mediaType};base64,${data}`;
  if (data instanceof ArrayBuffer) return urlOf(new Uint8Array(data), mediaType);
  if (ArrayBuffer.isView(data))
    return urlOf(base64Of(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)), mediaType);
  const inner = data?.type === "url" ? data.url : data?.type === "data" ? data.data : undefined;
  if (inner === undefined) throw new TypeError("`persist` needs a file's content or URL, and this file has neither.");
  return urlOf(inner, mediaType);
}

// Writing.

/** Assigns ids that are the same for a retry, and unique for the turn. Returns the turn's name. */
export async function nameItems(items: Item[], leafId: string | null): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify([leafId, items]));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const name = `turn-${[...digest]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")
    .slice(0, NAME_DIGITS)}`;
  for (const [n, item] of items.entries()) item.id = `${name}-${n + 1}`;
  return name;
}

/**
 * Writes the items: adjacent events together, and each message separately after the preceding items. If
 * a write fails, a retry continues there.
 */
export async function writeItems(
  session: SessionClient,
  items: Item[],
  position: AppendPosition,
  options: CallOptions,
): Promise<Persisted> {
  const outcome: Persisted = { events: [], leafId: null };
  let next: AppendPosition = position;
  for (let at = 0; at < items.length; ) {
    const item = items[at]!;
    if (item.role !== undefined) {
      const { inserted, message } = await session.appendMessage({ message: item, ...next }, options);
      outcome.events.push({ id: message.id, inserted });
      outcome.leafId = message.id;
      at += 1;
    } else {
      const end = items.findIndex((item, n) => n > at && item.role !== undefined);
      const events = items.slice(at, end === -1 ? undefined : end) as NewEvent[];
      const { events: written, leafId } = await session.appendEvents({ events, ...next }, options);
      outcome.events.push(...written);
      outcome.leafId = leafId;
      at += events.length;
    }
    next = Object.fromEntries(Object.keys(position).map((field) => [field, items[at - 1]!.id]));
  }
  return outcome;
}
