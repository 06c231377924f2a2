// Pure functions for long conversations: shorten older messages, and choose the messages to summarize.
// `Session.onCompaction` accepts the result of `createCompactFunction`, or a function of your own.

/** The fields of a message that are read. */
interface AnyMessage {
  id?: string;
  role: string;
  parts: any[];
}

export interface TruncateOptions {
  /** The number of newest messages that stay unchanged. Default: 4. */
  keepRecent?: number;
  /** The characters of a tool's output in an older message. Default: 500. */
  maxToolOutputChars?: number;
  /** The characters of a text in an older message. Default: 10,000. */
  maxTextChars?: number;
}

/** Returns the messages with shortened tool outputs and long texts in all but the newest. The input is not modified. */
export function truncateOlderMessages<Message extends object>(
  messages: readonly Message[],
  { keepRecent = 4, maxToolOutputChars = 500, maxTextChars = 10_000 }: TruncateOptions = {},
): Message[] {
  const recent = messages.length - keepRecent;
  return messages.map((message, n) => {
    if (n >= recent) return message;
    const given = (message as unknown as AnyMessage).parts;
    const parts = given.map((part) => {
      if (part.type === "text") return shortened(part, "text", part.text, maxTextChars);
      return isTool(part) ? shortened(part, "output", part.output, maxToolOutputChars) : part;
    });
    return parts.every((part, at) => part === given[at]) ? message : { ...message, parts };
  });
}

function shortened(part: any, field: string, value: unknown, most: number): any {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  if (text.length <= most) return part;
  return { ...part, [field]: `${text.slice(0, most).toWellFormed()}... [truncated ${text.length} chars]` };
}

const isTool = ({ type }: { type: string }): boolean => type === "dynamic-tool" || type.startsWith("tool-");

/** The tokens of a text: a quarter of its characters, or 1.3 for each word. */
export function estimateStringTokens(text: string): number {
  const words = text.split(/\s+/).filter((word) => word !== "").length;
  return Math.ceil(Math.max(text.length / 4, words * 1.3));
}

/** The tokens of messages: those of their texts and of their tools' inputs and outputs, and 4 for each. */
export function estimateMessageTokens(messages: readonly object[]): number {
  const ofPart = (part: any): number => {
    if (part.type === "text") return estimateStringTokens(part.text);
    if (!isTool(part)) return 0;
    return [part.input, part.output]
      .filter((value) => value !== undefined)
      .reduce((sum: number, value) => sum + estimateStringTokens(JSON.stringify(value) ?? ""), 0);
  };
  return (messages as readonly AnyMessage[]).reduce(
    (sum, { parts }) => sum + 4 + parts.reduce((of, part) => of + ofPart(part), 0),
    0,
  );
}

/** The prefix of the ids of summaries. */
export const COMPACTION_PREFIX = "compaction_";

export const isCompactionMessage = ({ id }: { id?: string }): boolean => id?.startsWith(COMPACTION_PREFIX) ?? false;

/** The summarized messages, by the ids of the first and the last. */
export interface CompactResult {
  fromMessageId: string;
  toMessageId: string;
  summary: string;
}

/** `null`: there is nothing to compact. */
export type CompactFunction = (messages: any[]) => Promise<CompactResult | null>;

export interface CompactOptions {
  /** Writes the summary. `prompt` contains the instructions and the messages. */
  summarize(prompt: string): Promise<string>;
  /** The number of first messages that are preserved. Default: 3. */
  protectHead?: number;
  /** The tokens of newest messages that are preserved. Default: 20,000. */
  tailTokenBudget?: number;
  /** The minimum number of newest messages that are preserved. Default: 2. */
  minTailMessages?: number;
}

/** Creates a function for `onCompaction`, which summarizes the messages between the first and the newest. */
export function createCompactFunction({
  summarize,
  protectHead = 3,
  tailTokenBudget = 20_000,
  minTailMessages = 2,
}: CompactOptions): CompactFunction {
  return async (messages: AnyMessage[]) => {
    const start = protectHead;
    let end = messages.length - minTailMessages;
    for (let tokens = 0, at = messages.length - 1; at >= start; at -= 1) {
      tokens += estimateMessageTokens([messages[at]!]);
      if (tokens > tailTokenBudget) break;
      end = Math.min(end, at);
    }
    const middle = messages.slice(start, Math.max(start, end)).filter((message) => !isCompactionMessage(message));
    const [first, last] = [middle[0]?.id, middle.at(-1)?.id];
    if (first === undefined || last === undefined) return null;
    const earlier = messages.find(isCompactionMessage);
    const summary = await summarize(promptFor(middle, earlier && textOf(earlier)));
    return summary.trim() === "" ? null : { fromMessageId: first, toMessageId: last, summary };
  };
}

/** A summary has a fifth of the tokens that it replaces, and at least this many. */
const MIN_SUMMARY_TOKENS = 100;

/** The characters that the prompt shows of a tool's input or output. */
const SHOWN = 500;

const textOf = ({ parts }: AnyMessage): string =>
  parts
    .filter(({ type }) => type === "text")
    .map(({ text }) => text)
    .join("\n");

function promptFor(messages: AnyMessage[], earlier: string | undefined): string {
  const tokens = Math.max(MIN_SUMMARY_TOKENS, Math.floor(estimateMessageTokens(messages) / 5));
  const shownOf = (name: string, value: unknown): string[] => {
    if (value === undefined) return [];
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return [`${name}: ${text.slice(0, SHOWN).toWellFormed()}`];
  };
  const written = messages.map((message) => {
    const tools = message.parts
      .filter(isTool)
      .flatMap((part) => [
        `[Tool: ${part.toolName ?? part.type.replace(/^tool-/, "")}]`,
        ...shownOf("Input", part.input),
        ...shownOf("Output", part.output),
      ]);
    return [`[${message.role}]`, textOf(message), ...tools].filter((line) => line !== "").join("\n");
  });
  return [
    earlier === undefined
      ? "Summarize this conversation, so that it can continue from the summary."
      : "Update the summary of a conversation with the messages since. Keep what still matters, add what is new, and leave out only what is clearly finished.",
    ...(earlier === undefined ? [] : [`The summary so far:\n\n${earlier}`]),
    `The conversation:\n\n${written.join("\n\n---\n\n")}`,
    `Include the topic, the decisions and facts, the current state, and open questions. Write about ${tokens} tokens, only what was said, and nothing but the summary.`,
  ].join("\n\n");
}
