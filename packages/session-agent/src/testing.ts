// `session-agent/testing`: a language model that requires no account and no network, for tests of your
// own class. It has the interface of the AI SDK's models, but requires no package of the SDK.

/** A tool call of the model. */
export interface MockToolCall {
  toolName: string;
  input: object;
  /** Default: `call-1`, `call-2` … of the model. */
  toolCallId?: string;
}

/** An answer of the model: a text, or its parts. An `Error` is thrown, like an error of a provider. */
export type MockAnswer =
  | string
  | Error
  | {
      text?: string;
      reasoning?: string;
      toolCalls?: readonly MockToolCall[];
      inputTokens?: number;
      outputTokens?: number;
    };

/** The purpose of a request: a step of a turn, or other work of the agent. */
export type MockPurpose = "turn" | "learn" | "consolidate" | "summary";

/** A request to the model. */
export interface MockRequest {
  purpose: MockPurpose;
  /** The system prompt. */
  system: string;
  /** The newest text of the user. */
  text: string;
  /** The results of the tools that ran since that text, in their order. */
  toolResults: Array<{ toolName: string; output: unknown }>;
  /** The names of the tools that the model may call. */
  tools: string[];
  /** All messages, as the AI SDK passes them to a model. */
  prompt: any[];
}

/**
 * The answers for the steps of turns, in order, or a function that is called for each request. For other
 * requests, and if the function returns `undefined`, the model has default answers: learning finds
 * nothing, and a summary is a fixed text.
 */
export type MockAnswers =
  | MockAnswer
  | readonly MockAnswer[]
  | ((request: MockRequest) => MockAnswer | undefined | Promise<MockAnswer | undefined>);

export interface MockOptions {
  /** Default: `mock`. */
  modelId?: string;
  /** `v2` for `ai` 5, `v3` for `ai` 6, `v4` for `ai` 7. The class accepts all three. Default: `v4`. */
  specificationVersion?: "v2" | "v3" | "v4";
}

/** A model for `model()` of a class, and for `generateText` and `streamText`. */
export interface MockModel {
  // The AI SDK distinguishes its models' types by this text, so `any` fits all of them.
  readonly specificationVersion: any;
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: { [mediaType: string]: RegExp[] };
  /** The newest 100 requests, oldest first. */
  readonly requests: MockRequest[];
  doGenerate(options: any): Promise<any>;
  doStream(options: any): Promise<any>;
}

/** The number of requests that a model records. */
const MAX_REQUESTS = 100;

/** The first words of requests that are not turns, and a valid answer for each. */
const OTHER_REQUESTS: ReadonlyArray<readonly [MockPurpose, string, string]> = [
  ["learn", "Learn from this conversation", '{"changes": []}'],
  ["consolidate", "Consolidate these entries", '{"changes": []}'],
  ["summary", "Summarize this conversation", "A summary of the mock model."],
];

/** The first words of a reminder, which follows the user's text in the same message. */
const REMINDER = "These blocks have changed since your instructions were written.";

/**
 * A model with the answers of a test. Without `answers`, it repeats the user's text. After the last
 * answer of a list, the next request fails with an error that names it. Create the model outside
 * `model()`, which is called for each answer.
 */
export function mockModel(
  answers: MockAnswers = () => undefined,
  { modelId = "mock", specificationVersion = "v4" }: MockOptions = {},
): MockModel {
  const left = Array.isArray(answers) ? [...answers] : undefined;
  const requests: MockRequest[] = [];
  let calls = 0;

  async function answer({ prompt = [], tools = [] }: any): Promise<Answer> {
    const request = requestOf(prompt, tools);
    requests.push(request);
    if (requests.length > MAX_REQUESTS) requests.shift();
    const given = await answerTo(request);
    if (given instanceof Error) throw given;
    const { text, reasoning, toolCalls = [], ...tokens } = typeof given === "string" ? { text: given } : given;
    return {
      content: [
        ...(reasoning === undefined ? [] : [{ type: "reasoning", text: reasoning }]),
        ...(text === undefined ? [] : [{ type: "text", text }]),
        ...toolCalls.map(({ toolName, input, toolCallId }) => {
          calls += 1;
          return {
            type: "tool-call",
            toolCallId: toolCallId ?? `call-${calls}`,
            toolName,
            input: JSON.stringify(input),
          };
        }),
      ],
      ...endOf(specificationVersion, toolCalls.length > 0 ? "tool-calls" : "stop", tokens),
    };
  }

  async function answerTo(request: MockRequest): Promise<MockAnswer> {
    const builtIn = OTHER_REQUESTS.find(([purpose]) => purpose === request.purpose)?.[2];
    if (typeof answers === "function") return (await answers(request)) ?? builtIn ?? `You said: ${request.text}`;
    if (builtIn !== undefined) return builtIn;
    if (left === undefined) return answers as MockAnswer;
    const next = left.shift();
    if (next !== undefined) return next;
    throw new Error(
      `The mock model has no answer left for ${JSON.stringify(request.text)}, request ${requests.length}. Add an answer to its list, or give \`mockModel\` a function.`,
    );
  }

  return {
    specificationVersion,
    provider: "session-agent",
    modelId,
    supportedUrls: {},
    requests,
    doGenerate: async (options) => ({ ...(await answer(options)), warnings: [] }),
    doStream: async (options) => ({ stream: streamOf(await answer(options)) }),
  };
}

interface Answer {
  content: Array<{ type: string; [field: string]: any }>;
  finishReason: unknown;
  usage: unknown;
}

/** The end of an answer, in the format of each specification. */
function endOf(
  version: string,
  reason: string,
  { inputTokens = 10, outputTokens = 5 }: { inputTokens?: number; outputTokens?: number },
): { finishReason: unknown; usage: unknown } {
  if (version === "v2")
    return {
      finishReason: reason,
      usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
    };
  return {
    finishReason: { unified: reason, raw: reason },
    usage: {
      inputTokens: { total: inputTokens, noCache: inputTokens, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: outputTokens, text: outputTokens, reasoning: 0 },
    },
  };
}

function streamOf({ content, finishReason, usage }: Answer): ReadableStream<any> {
  const parts = content.flatMap((part, index) => {
    if (part.type === "tool-call") return [part];
    const id = `${index}`;
    return [
      { type: `${part.type}-start`, id },
      { type: `${part.type}-delta`, id, delta: part.text },
      { type: `${part.type}-end`, id },
    ];
  });
  return new ReadableStream({
    start(controller) {
      for (const part of [{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason, usage }])
        controller.enqueue(part);
      controller.close();
    },
  });
}

function requestOf(prompt: any[], tools: any[]): MockRequest {
  const newest = prompt.findLastIndex(({ role }) => role === "user");
  const since = prompt.slice(newest + 1).filter(({ role }) => role === "tool");
  const text = textOf(prompt[newest]?.content).split(REMINDER)[0]!.trimEnd();
  return {
    purpose: OTHER_REQUESTS.find(([, begins]) => text.startsWith(begins))?.[0] ?? "turn",
    system: prompt
      .filter(({ role }) => role === "system")
      .map(({ content }) => content)
      .join("\n\n"),
    text,
    toolResults: since.flatMap(({ content }) =>
      content.map(({ toolName, output }: any) => ({ toolName, output: output?.value ?? output })),
    ),
    tools: tools.map(({ name }) => name),
    prompt,
  };
}

function textOf(content: any): string {
  if (typeof content === "string") return content;
  return (content ?? [])
    .filter(({ type }: any) => type === "text")
    .map(({ text }: any) => text)
    .join("\n\n");
}
