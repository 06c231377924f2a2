// A language model of the AI SDK, asked as the core asks a model: with chat completions in
// OpenAI's shape, which are the core's words for a request, and answered by their stream.
//
// The SDK itself is not needed. A model of its versions 5, 6 and 7 (the specifications v2,
// v3 and v4) is an object with `doStream`.

/** A language model of the AI SDK, as its providers' packages make them. */
export interface LanguageModelLike {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doStream(options: any): PromiseLike<any>;
}

/** What the core asks for. */
export interface AskedModel {
  model: string;
  messages: ChatMessage[];
  tools?: Array<{ function: { name: string; description: string; parameters: object } }>;
  max_tokens?: number;
  temperature?: number;
  reasoning_effort?: string;
}

interface ChatMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string | ChatPart[] | null;
  tool_calls?: Array<{ id: string; function: { name: string; arguments: string } }>;
  tool_call_id?: string;
  name?: string;
}

type ChatPart =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string } }
  | { type: "file"; file: { filename: string; file_data: string } };

export function isLanguageModel(value: unknown): value is LanguageModelLike {
  return typeof value === "object" && value !== null && typeof (value as LanguageModelLike).doStream === "function";
}

/** What a provider wants back with a call that its model made: signatures, reasoning. */
interface Kept {
  providerOptions?: unknown;
  reasoning: Array<{ type: "reasoning"; text: string; providerOptions?: unknown }>;
}

/** How many calls' signatures an object remembers. One turn has fewer. */
const MAX_KEPT = 256;

/** One object's model, which remembers what belongs to the calls of the turns that run. */
export class OwnModel {
  #kept = new Map<string, Kept>();

  /** The answer as the core reads it. */
  async answer(model: LanguageModelLike, asked: AskedModel, signal: AbortSignal | undefined): Promise<Response> {
    const stops = new AbortController();
    signal?.addEventListener("abort", () => stops.abort(signal.reason), { once: true });
    let parts: ReadableStream<any>;
    try {
      ({ stream: parts } = await model.doStream(this.#optionsOf(model, asked, stops.signal)));
    } catch (error) {
      return refusalOf(error);
    }
    return new Response(this.#events(parts.getReader(), stops), { headers: { "content-type": "text/event-stream" } });
  }

  #optionsOf(model: LanguageModelLike, asked: AskedModel, abortSignal: AbortSignal): object {
    const isNewest = !["v2", "v3"].includes(model.specificationVersion);
    const tools = (asked.tools ?? []).map(({ function: { name, description, parameters } }) => ({
      type: "function",
      name,
      description,
      inputSchema: parameters,
    }));
    const effort = asked.reasoning_effort;
    return {
      prompt: this.#promptOf(asked.messages, isNewest),
      ...(tools.length > 0 && { tools, toolChoice: { type: "auto" } }),
      ...(asked.max_tokens !== undefined && { maxOutputTokens: asked.max_tokens }),
      ...(asked.temperature !== undefined && { temperature: asked.temperature }),
      ...(effort !== undefined &&
        (isNewest ? { reasoning: effort } : { providerOptions: { openai: { reasoningEffort: effort } } })),
      abortSignal,
      includeRawChunks: false,
    };
  }

  #promptOf(messages: ChatMessage[], isNewest: boolean): object[] {
    const names = new Map(
      messages.flatMap(({ tool_calls: calls = [] }) => calls.map((call) => [call.id, call.function.name] as const)),
    );
    const prompt: Array<{ role: string; content: any }> = [];
    for (const message of messages) {
      if (message.role === "system") prompt.push({ role: "system", content: textOf(message.content) });
      else if (message.role === "user")
        prompt.push({ role: "user", content: partsOf(message.content).map((part) => userPart(part, isNewest)) });
      else if (message.role === "assistant") prompt.push({ role: "assistant", content: this.#said(message) });
      else {
        const id = message.tool_call_id ?? "";
        const result = {
          type: "tool-result",
          toolCallId: id,
          toolName: message.name ?? names.get(id) ?? "",
          output: { type: "text", value: textOf(message.content) },
        };
        // The results of one step are one message.
        const last = prompt.at(-1);
        if (last?.role === "tool") last.content.push(result);
        else prompt.push({ role: "tool", content: [result] });
      }
    }
    return prompt;
  }

  #said({ content, tool_calls: calls = [] }: ChatMessage): object[] {
    const text = textOf(content);
    const kept = calls.flatMap(({ id }) => this.#kept.get(id) ?? []);
    return [
      ...(kept[0]?.reasoning ?? []),
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...calls.map((call) => {
        const providerOptions = this.#kept.get(call.id)?.providerOptions;
        return {
          type: "tool-call",
          toolCallId: call.id,
          toolName: call.function.name,
          input: objectIn(call.function.arguments),
          ...(providerOptions !== undefined && { providerOptions }),
        };
      }),
    ];
  }

  /** The parts of an answer as events. A reader that goes away ends the model's work. */
  #events(parts: ReadableStreamDefaultReader<any>, stops: AbortController): ReadableStream<Uint8Array> {
    const writer = new EventWriter((id, kept) => this.#keep(id, kept));
    return new ReadableStream({
      async pull(controller) {
        for (;;) {
          let read: { done: boolean; value?: any };
          try {
            read = await parts.read();
          } catch (error) {
            read = { done: false, value: { type: "error", error } };
          }
          const text = read.done ? writer.end() : writer.write(read.value);
          if (text !== "") controller.enqueue(new TextEncoder().encode(text));
          if (read.done || writer.isOver) {
            if (!read.done) stops.abort();
            controller.close();
            return;
          }
          if (text !== "") return;
        }
      },
      cancel(reason) {
        stops.abort(reason);
        return parts.cancel(reason);
      },
    });
  }

  #keep(id: string, kept: Kept): void {
    if (kept.providerOptions === undefined && kept.reasoning.length === 0) return;
    if (this.#kept.size >= MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(id, kept);
  }
}

/** Writes the parts of an answer as events of a chat completion. */
class EventWriter {
  isOver = false;
  #keep: (id: string, kept: Kept) => void;
  #indexes = new Map<string, number>();
  #streamed = new Set<string>();
  #reasoning = new Map<string, { type: "reasoning"; text: string; providerOptions?: unknown }>();
  #usage: object | undefined;
  #reason: string | undefined;

  constructor(keep: (id: string, kept: Kept) => void) {
    this.#keep = keep;
  }

  write(part: any): string {
    switch (part.type) {
      case "text-delta":
        return this.#choice({ content: part.delta });
      case "reasoning-start":
        this.#reasoning.set(part.id, { type: "reasoning", text: "", ...optionsOf(part) });
        return "";
      case "reasoning-delta": {
        const kept = this.#reasoning.get(part.id);
        if (kept !== undefined) Object.assign(kept, { text: kept.text + part.delta }, optionsOf(part));
        return this.#choice({ reasoning_content: part.delta });
      }
      case "reasoning-end":
        Object.assign(this.#reasoning.get(part.id) ?? {}, optionsOf(part));
        return "";
      case "tool-input-start":
        if (part.providerExecuted) return "";
        return this.#call(part.id, { name: part.toolName, arguments: "" });
      case "tool-input-delta":
        if (!this.#indexes.has(part.id)) return "";
        this.#streamed.add(part.id);
        return this.#call(part.id, { arguments: part.delta });
      case "tool-call": {
        // What a provider runs itself is no call of ours.
        if (part.providerExecuted) return "";
        const reasoning =
          this.#indexes.size === 0 || this.#indexes.get(part.toolCallId) === 0 ? [...this.#reasoning.values()] : [];
        this.#keep(part.toolCallId, { reasoning, ...optionsOf(part) });
        if (this.#streamed.has(part.toolCallId)) return "";
        const input = typeof part.input === "string" ? part.input : JSON.stringify(part.input ?? {});
        return this.#call(part.toolCallId, {
          ...(!this.#indexes.has(part.toolCallId) && { name: part.toolName }),
          arguments: input,
        });
      }
      case "finish":
        this.#usage = usageOf(part.usage);
        this.#reason = reasonOf(part.finishReason);
        return "";
      case "error":
        this.isOver = true;
        console.error("session-agent: the model failed in its answer", part.error);
        return eventOf({ error: problemOf(part.error) });
      default:
        return "";
    }
  }

  end(): string {
    const finish = {
      choices: [{ index: 0, delta: {}, finish_reason: this.#reason ?? "stop" }],
      ...(this.#usage && { usage: this.#usage }),
    };
    return `${eventOf(finish)}data: [DONE]\n\n`;
  }

  #call(id: string, called: { name?: string; arguments: string }): string {
    const isNew = !this.#indexes.has(id);
    if (isNew) this.#indexes.set(id, this.#indexes.size);
    return this.#choice({
      tool_calls: [{ index: this.#indexes.get(id), ...(isNew && { id, type: "function" }), function: called }],
    });
  }

  #choice(delta: object): string {
    return eventOf({ choices: [{ index: 0, delta }] });
  }
}

const eventOf = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

const optionsOf = ({ providerMetadata }: any): { providerOptions?: unknown } =>
  providerMetadata === undefined ? {} : { providerOptions: providerMetadata };

/** Tokens as each version of the SDK counts them. */
function usageOf({ inputTokens: input, outputTokens: output, cachedInputTokens: cached }: any = {}): object {
  return {
    prompt_tokens: input?.total ?? numberOf(input),
    completion_tokens: output?.total ?? numberOf(output),
    prompt_tokens_details: { cached_tokens: input?.cacheRead ?? numberOf(cached) },
  };
}

const numberOf = (value: unknown): number => (typeof value === "number" ? value : 0);

function reasonOf(reason: any): string {
  const unified = typeof reason === "string" ? reason : (reason?.unified ?? "other");
  return (
    (
      { stop: "stop", length: "length", "content-filter": "content_filter", "tool-calls": "tool_calls" } as {
        [name: string]: string;
      }
    )[unified] ?? unified
  );
}

/** An error before the answer began, with the status that the provider gave. */
function refusalOf(error: any): Response {
  console.error("session-agent: the model refused", error);
  const status =
    Number.isInteger(error?.statusCode) && error.statusCode >= 400 && error.statusCode < 600 ? error.statusCode : 500;
  const retryAfter = error?.responseHeaders?.["retry-after"];
  return Response.json(
    { error: problemOf(error) },
    { status, headers: retryAfter === undefined ? {} : { "retry-after": retryAfter } },
  );
}

function problemOf(error: any): object {
  return {
    message: String(error?.message ?? error),
    ...(error?.statusCode !== undefined && { code: error.statusCode }),
  };
}

const partsOf = (content: ChatMessage["content"]): ChatPart[] =>
  Array.isArray(content) ? content : [{ type: "text", text: content ?? "" }];

export const textOf = (content: ChatMessage["content"]): string =>
  partsOf(content)
    .flatMap((part) => (part.type === "text" ? [part.text] : []))
    .join("\n\n");

function userPart(part: ChatPart, isNewest: boolean): object {
  if (part.type === "text") return part;
  if (part.type === "file")
    return { ...fileOf(part.file.file_data, "application/pdf", isNewest), filename: part.file.filename };
  return fileOf(part.image_url.url, "image/*", isNewest);
}

/** A file by its content or by its address. Since the newest specification, the data says which. */
function fileOf(url: string, usual: string, isNewest: boolean): object {
  const [, mediaType = usual, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? [];
  const given = data ?? new URL(url);
  if (!isNewest) return { type: "file", mediaType, data: given };
  return { type: "file", mediaType, data: data === undefined ? { type: "url", url: given } : { type: "data", data } };
}

function objectIn(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
}

/** The whole text of a request: what a function that summarises is given. */
export function promptIn({ messages }: AskedModel): string {
  return messages
    .map(({ content }) => textOf(content))
    .filter((text) => text !== "")
    .join("\n\n");
}

/** How often an answer that is still made says so, so that it is not given up as silent. */
const STILL_MS = 20_000;

/** A text that comes later, as the core reads an answer. */
export function lateAnswer(making: Promise<string>): Response {
  let timer: ReturnType<typeof setInterval> | undefined;
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (text: string): void => controller.enqueue(new TextEncoder().encode(text));
      timer = setInterval(() => send(": still\n\n"), STILL_MS);
      try {
        const text = await making;
        send(eventOf({ choices: [{ index: 0, delta: { content: text }, finish_reason: "stop" }] }));
        send("data: [DONE]\n\n");
      } catch (error) {
        send(eventOf({ error: problemOf(error) }));
      } finally {
        clearInterval(timer);
      }
      controller.close();
    },
    cancel: () => clearInterval(timer),
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
