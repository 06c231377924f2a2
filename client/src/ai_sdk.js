// The AI SDK's shapes, made and read without the AI SDK: a context as messages for
// `streamText`, the agent's tools as its tools, and what a turn said as events.

/** Marks an object as a schema of the AI SDK. */
const SCHEMA = Symbol.for("vercel.ai.schema");

/** Names a turn of 32 hexadecimal digits, enough for any session. */
const NAME_DIGITS = 32;

// To the model.

/** What `getTools` lists, as tools of the AI SDK. `run(name, input, signal)` runs one of them. */
export function toolsOf(listed, run) {
  const tool = ({ name, description, parameters }) => ({
    description,
    inputSchema: { [SCHEMA]: true, jsonSchema: parameters, validate: undefined },
    async execute(input, { abortSignal } = {}) {
      const { output, isError } = await run(name, input, abortSignal);
      // The SDK tells the model of a tool that threw, and goes on.
      if (isError) throw new Error(output);
      return output;
    },
  });
  return Object.fromEntries(listed.map((one) => [one.name, tool(one)]));
}

/** A built context as `{ system, messages }`. The SDK takes no system message among the others. */
export function promptOf(instructions, given, reminder) {
  const names = new Map(given.flatMap(({ toolCalls }) => toolCalls ?? []).map(({ id, name }) => [id, name]));
  const isSystem = ({ role }) => role === "system";
  const messages = given.filter((message) => !isSystem(message)).map((message) => toModelMessage(message, names));
  if (reminder) messages.splice(messages.findLastIndex(({ role }) => role === "user") + 1 || messages.length, 0, { role: "user", content: reminder });
  const texts = [...instructions, ...given.filter(isSystem).map(({ content }) => content)];
  return { system: texts.filter((text) => text !== "").join("\n\n"), messages };
}

function toModelMessage({ role, content, toolCalls, toolCallId, toolName, isError, files }, names) {
  if (role === "tool") {
    const output = { type: isError ? "error-text" : "text", value: content };
    return { role, content: [{ type: "tool-result", toolCallId, toolName: toolName ?? names.get(toolCallId) ?? "", output }] };
  }
  const parts =
    role === "user"
      ? (files ?? []).map(({ url, mediaType, filename }) => ({ type: "file", data: url, mediaType, ...(filename && { filename }) }))
      : (toolCalls ?? []).map((call) => ({ type: "tool-call", toolCallId: call.id, toolName: call.name, input: call.arguments }));
  if (parts.length === 0) return { role, content };
  return { role, content: [...(content ? [{ type: "text", text: content }] : []), ...parts] };
}

// From the model.

/**
 * What a turn said and spent: `{ messages, usage }`. `turn` is a result of `streamText` or
 * `generateText`, what its callbacks are given, a list of steps, or a list of messages.
 */
export async function readTurn(turn) {
  if (Array.isArray(turn)) {
    const isSteps = turn.length > 0 && turn[0]?.role === undefined;
    return isSteps ? { messages: turn.flatMap(messagesOfStep), usage: sum(turn.map((step) => step.usage)) } : { messages: turn };
  }
  if (turn?.steps === undefined) throw new TypeError("`persist` takes a result of `streamText` or `generateText`, a list of its steps, or a list of messages.");
  return await readTurn([...(await turn.steps)]);
}

function messagesOfStep({ content = [] }) {
  const said = content.filter(({ type }) => type === "text" || type === "tool-call");
  const outcomes = content.filter(({ type }) => type === "tool-result" || type === "tool-error");
  const results = outcomes.map(({ toolCallId, toolName, output, error }) => ({
    type: "tool-result",
    toolCallId,
    toolName,
    output: error === undefined ? { value: output } : { type: "error-text", value: String(error) },
  }));
  return [
    { role: "assistant", content: said },
    { role: "tool", content: results },
  ];
}

/** The events of messages of the AI SDK, without ids. */
export function eventsOfMessages(messages) {
  return messages.flatMap(({ role, content }) => {
    if (role === "user") return [{ action: "user_message", content: textOf(content) }];
    if (role === "system") return [{ action: "system_instruction", content: textOf(content) }];
    if (role !== "assistant" && role !== "tool") throw new TypeError(`A message's role is user, assistant, tool or system, not \`${role}\`.`);
    return eventsOfParts(typeof content === "string" ? [{ type: "text", text: content }] : content);
  });
}

/** The texts and calls of one answer belong together, up to a text that follows a call. */
function eventsOfParts(parts) {
  const events = [];
  let [texts, calls, results] = [[], [], []];
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
    if (part.type === "tool-call") calls.push({ id: part.toolCallId, name: part.toolName, arguments: objectOf(part.input) });
    if (part.type === "tool-result") results.push(eventOfResult(part));
  }
  close();
  return events;
}

function eventOfResult({ toolCallId, toolName, output }) {
  const { type = "", value, reason } = output ?? {};
  const isError = type.startsWith("error") || type === "execution-denied";
  const content = type === "execution-denied" ? (reason ?? "The user did not allow this call.") : textOfOutput(value);
  return { action: "tool_result", content, toolCallId, toolName, ...(isError && { isError }) };
}

const textOfOutput = (value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

/** A model that writes broken arguments gets them back as they were. */
const objectOf = (input) => (typeof input === "object" && input !== null && !Array.isArray(input) ? input : { input });

function textOf(content) {
  if (typeof content === "string") return content;
  const other = content.find(({ type }) => type !== "text");
  if (other !== undefined) throw new TypeError(`\`persist\` writes a user's texts alone. Write a message with a part of type \`${other.type}\` with \`appendMessage\`.`);
  return content.map(({ text }) => text).join("\n");
}

/** Gives the events ids that a repetition gives again, and no other turn. Answers the turn's name. */
export async function nameEvents(events, leafId) {
  const bytes = new TextEncoder().encode(JSON.stringify([leafId, events]));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const name = `turn-${[...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("").slice(0, NAME_DIGITS)}`;
  for (const [n, event] of events.entries()) event.id = `${name}-${n + 1}`;
  return name;
}

/** Tokens of several steps together, in the words of `addUsage`. `undefined`: nobody counted. */
function sum(usages) {
  const total = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 };
  for (const usage of usages) {
    total.inputTokens += usage?.inputTokens || 0;
    total.outputTokens += usage?.outputTokens || 0;
    total.cachedInputTokens += (usage?.inputTokenDetails?.cacheReadTokens ?? usage?.cachedInputTokens) || 0;
  }
  return total.inputTokens + total.outputTokens > 0 ? total : undefined;
}
