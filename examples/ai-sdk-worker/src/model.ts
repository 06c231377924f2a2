// The model. You can use any model of the AI SDK, for example with the package
// `workers-ai-provider`:
//
//   export const model = createWorkersAI({ binding: env.AI })("@cf/meta/llama-3.3-70b-instruct-fp8-fast");
//
// This stand-in needs no account and no key. It repeats the user's message, and stores a message that begins
// with "Remember".

import type { LanguageModel } from "ai";

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type Prompt = Parameters<Model["doStream"]>[0]["prompt"];
type Part = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

export const model: Model = {
  specificationVersion: "v4",
  provider: "example",
  modelId: "stand-in",
  supportedUrls: {},
  async doStream({ prompt }) {
    return { stream: streamOf(answerTo(prompt)) };
  },
  async doGenerate() {
    throw new Error("This stand-in only streams.");
  },
};

function answerTo(prompt: Prompt): Part[] {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const question = prompt.findLast(({ role }) => role === "user");
  const input =
    question?.role === "user" ? question.content.map((part) => (part.type === "text" ? part.text : "")).join(" ") : "";
  const fact = /^remember (?:that )?(.+)/i.exec(input)?.[1];
  if (fact !== undefined && prompt.at(-1)?.role === "user") {
    const change = JSON.stringify({ label: "memory", content: fact, action: "append" });
    return [
      { type: "tool-call", toolCallId: crypto.randomUUID(), toolName: "set_context", input: change },
      { type: "finish", finishReason: { unified: "tool-calls", raw: undefined }, usage },
    ];
  }
  const text = fact === undefined ? `I am a stand-in for a model. You said: ${input}` : `I will remember that ${fact}`;
  return [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: text },
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage },
  ];
}

function streamOf(parts: Part[]): ReadableStream<Part> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}
