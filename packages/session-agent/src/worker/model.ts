// Adapts a language model of the AI SDK to the core, which sends requests in the format of OpenAI's chat
// completions and reads their stream.
//
// The SDK itself is not needed. A model of its versions 5, 6 and 7 (the specifications v2,
// v3 and v4) is an object with `doStream`.

/** A language model of the AI SDK, from a provider's package. */
export interface LanguageModelLike {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  doStream(options: any): PromiseLike<any>;
}

/** The request of the core. */
export interface ModelRequest {
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
  kept?: ProviderData;
}

type ChatPart =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string } }
  | { type: "file"; file: { filename: string; file_data: string } };

export function isLanguageModel(value: unknown): value is LanguageModelLike {
  return typeof value === "object" && value !== null && typeof (value as LanguageModelLike).doStream === "function";
}

/**
 * The data that a provider expects back with an answer: its parts in order, with signatures and ids. The
 * core stores it with the answer, and returns it to the same model.
 */
interface ProviderData {
  parts: ProviderPart[];
}

/** A text is a piece of the message's text, so its length identifies it; a call is the next call. */
type ProviderPart =
  | { type: "reasoning"; text: string; providerOptions?: unknown }
  | { type: "text"; length: number; providerOptions?: unknown }
  | { type: "tool-call"; providerOptions?: unknown };

/** One object's model. */
export class OwnModel {
  /** The answer in the core's format. */
  async answer(model: LanguageModelLike, request: ModelRequest, signal: AbortSignal | undefined): Promise<Response> {
    const stops = new AbortController();
    const stop = () => stops.abort(signal?.reason);
    // The call may have been aborted while the class returned its model.
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
    let parts: ReadableStream<any>;
    try {
      ({ stream: parts } = await model.doStream(this.#optionsOf(model, request, stops.signal)));
    } catch (error) {
      return refusalOf(error);
    }
    return new Response(this.#events(parts.getReader(), stops), { headers: { "content-type": "text/event-stream" } });
  }

  #optionsOf(model: LanguageModelLike, request: ModelRequest, abortSignal: AbortSignal): object {
    const isNewest = !["v2", "v3"].includes(model.specificationVersion);
    const tools = (request.tools ?? []).map(({ function: { name, description, parameters } }) => ({
      type: "function",
      name,
      description,
      inputSchema: parameters,
    }));
    const effort = request.reasoning_effort;
    return {
      prompt: this.#promptOf(request.messages, isNewest),
      ...(tools.length > 0 && { tools, toolChoice: { type: "auto" } }),
      ...(request.max_tokens !== undefined && { maxOutputTokens: request.max_tokens }),
      ...(request.temperature !== undefined && { temperature: request.temperature }),
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
      else if (message.role === "assistant") prompt.push({ role: "assistant", content: this.#assistantParts(message) });
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

  #assistantParts({ content, tool_calls: calls = [], kept }: ChatMessage): object[] {
    const text = textOf(content);
    const called = calls.map((call) => ({
      type: "tool-call",
      toolCallId: call.id,
      toolName: call.function.name,
      input: objectIn(call.function.arguments),
    }));
    const parts = Array.isArray(kept?.parts) ? kept.parts : [];
    const [texts, marks] = [parts.filter(isText), parts.filter(({ type }) => type === "tool-call")];
    // A message that was shortened or changed since, or is of an older build, has its
    // reasoning first.
    if (texts.reduce((sum, { length }) => sum + length, 0) !== text.length || marks.length !== called.length)
      return [
        ...parts.filter(({ type }) => type === "reasoning"),
        ...(text === "" ? [] : [{ type: "text", text }]),
        ...called.map((call, index) => ({ ...call, ...(marks.length === called.length && givenBack(marks[index])) })),
      ];
    let [at, next] = [0, 0];
    return parts.map((part) => {
      if (part.type === "reasoning") return part;
      if (part.type === "tool-call") return { ...called[next++], ...givenBack(part) };
      const piece = { type: "text", text: text.slice(at, at + part.length), ...givenBack(part) };
      at += part.length;
      return piece;
    });
  }

  /** The parts of an answer as events. If the reader disconnects, the model's call is aborted. */
  #events(parts: ReadableStreamDefaultReader<any>, stops: AbortController): ReadableStream<Uint8Array> {
    const writer = new EventWriter();
    return new ReadableStream({
      async pull(controller) {
        for (;;) {
          let isDone = false;
          let text: string;
          try {
            const read = await parts.read();
            isDone = read.done;
            text = isDone ? writer.end() : writer.write(read.value);
          } catch (error) {
            text = writer.write({ type: "error", error });
          }
          if (text !== "") controller.enqueue(new TextEncoder().encode(text));
          if (isDone || writer.isOver) {
            if (!isDone) stops.abort();
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
}

/** Writes the parts of an answer as events of a chat completion. */
class EventWriter {
  isOver = false;
  #indexes = new Map<string, number>();
  #streamed = new Set<string>();
  /** The parts, in order. */
  #parts: ProviderPart[] = [];
  /** The texts and the reasoning among them that may continue, by their kinds and ids. */
  #open = new Map<string, ProviderPart>();
  #usage: object | undefined;
  #reason: string | undefined;

  write(part: any): string {
    switch (part.type) {
      case "text-start":
      case "text-end":
        this.#text(part.id, "", part);
        return "";
      case "text-delta":
        this.#text(part.id, part.delta, part);
        return this.#choice({ content: part.delta });
      case "reasoning-start":
      case "reasoning-end":
        this.#reasoning(part.id, "", part);
        return "";
      case "reasoning-delta":
        this.#reasoning(part.id, part.delta, part);
        return this.#choice({ reasoning_content: part.delta });
      case "tool-input-start":
        if (part.providerExecuted) return "";
        return this.#call(part.id, { name: part.toolName, arguments: "" });
      case "tool-input-delta":
        if (!this.#indexes.has(part.id)) return "";
        this.#streamed.add(part.id);
        return this.#call(part.id, { arguments: part.delta });
      case "tool-call": {
        // Calls that the provider runs itself are skipped.
        if (part.providerExecuted) return "";
        this.#parts.push({ type: "tool-call", ...optionsOf(part) });
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
        // In the middle of an answer, no HTTP status can report it.
        return eventOf({
          error: { ...(isStatus(part.error) && { code: part.error.statusCode }), ...problemOf(part.error) },
        });
      default:
        return "";
    }
  }

  end(): string {
    // An interrupted answer is a failure, not an end.
    if (this.#reason === undefined) throw new Error("The model's answer ended without a `finish`.");
    const finish = {
      choices: [{ index: 0, delta: {}, finish_reason: this.#reason }],
      ...(this.#usage && { usage: this.#usage }),
      ...this.#providerData(),
    };
    return `${eventOf(finish)}data: [DONE]\n\n`;
  }

  #text(id: string, delta: string, part: any): void {
    const stored = this.#partNamed(`text ${id}`, { type: "text", length: 0 });
    if (stored.type === "text") Object.assign(stored, { length: stored.length + delta.length }, optionsOf(part));
    // Some providers give the next text the same id.
    if (part.type === "text-end") this.#open.delete(`text ${id}`);
  }

  #reasoning(id: string, delta: string, part: any): void {
    const stored = this.#partNamed(`reasoning ${id}`, { type: "reasoning", text: "" });
    if (stored.type === "reasoning") Object.assign(stored, { text: stored.text + delta }, optionsOf(part));
    if (part.type === "reasoning-end") this.#open.delete(`reasoning ${id}`);
  }

  /** The part of this name, or a new one. */
  #partNamed(name: string, begins: ProviderPart): ProviderPart {
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    this.#open.set(name, begins);
    this.#parts.push(begins);
    return begins;
  }

  /** The data that the provider expects back. An answer with only text needs none. */
  #providerData(): { kept?: ProviderData } {
    const isPlain = ({ type, providerOptions }: ProviderPart): boolean =>
      type !== "reasoning" && providerOptions === undefined;
    const parts = this.#parts.filter((part) => part.type !== "text" || part.length > 0 || !isPlain(part));
    return parts.every(isPlain) ? {} : { kept: { parts } };
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

const isText = (part: ProviderPart): part is Extract<ProviderPart, { type: "text" }> => part.type === "text";

const givenBack = (part: ProviderPart | undefined): { providerOptions?: unknown } =>
  part?.providerOptions === undefined ? {} : { providerOptions: part.providerOptions };

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
  const status = isStatus(error) ? error.statusCode : 500;
  const retryAfter = error?.responseHeaders?.["retry-after"];
  return Response.json(
    { error: problemOf(error) },
    { status, headers: retryAfter === undefined ? {} : { "retry-after": retryAfter } },
  );
}

/**
 * An error in OpenAI's format: the provider's own identifiers, or the name of the error's class.
 */
function problemOf(error: any): object {
  const data = error?.data ?? (error instanceof Error ? undefined : error);
  const body = data?.error ?? data;
  const words = ["code", "type", "status"].flatMap((field) => {
    const word = body?.[field];
    return typeof word === "string" || typeof word === "number" ? [[field, word]] : [];
  });
  const name = error instanceof Error && error.name !== "Error" && !isStatus(error) ? error.name : undefined;
  return {
    message: String(error?.message ?? error),
    ...(words.length > 0 ? Object.fromEntries(words) : name !== undefined && { type: name }),
  };
}

/** Whether a provider answered with an error's status. */
const isStatus = (error: any): boolean =>
  Number.isInteger(error?.statusCode) && error.statusCode >= 400 && error.statusCode < 600;

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

/** A file by its content or by its address. Since the newest specification, the data contains the kind. */
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

/** The whole text of a request, for a function that summarizes. */
export function promptIn({ messages }: ModelRequest): string {
  return messages
    .map(({ content }) => textOf(content))
    .filter((text) => text !== "")
    .join("\n\n");
}

/** The code of the failure in `lastCompactionError` and `onCompactionError`. */
const SUMMARIZE_FAILED = "summarize_failed";

/** The interval of keep-alives during a summary, so that it is not aborted as silent. */
const STILL_MS = 20_000;

/** A pending summary in the core's format for answers. A failure names the hook that failed. */
export function lateAnswer(making: Promise<string>, failed: (error: unknown) => void): Response {
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
        failed(error);
        send(eventOf({ error: { ...problemOf(error), code: SUMMARIZE_FAILED } }));
      } finally {
        clearInterval(timer);
      }
      controller.close();
    },
    cancel: () => clearInterval(timer),
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
