// The bindings of the programs, and stubs for their other imports.

import type { LanguageModel } from "ai";
import { jsonSchema, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";

export interface Env {
  CONFIG_BUCKET: R2Bucket;
  SKILLS_BUCKET: R2Bucket;
  DB: D1Database;
  AI: { run(model: string, input: object): Promise<{ response: string }> };
  VECTORIZE_INDEX: {
    query(vector: number[], options: { topK: number }): Promise<{ matches: Array<{ metadata: { text: string } }> }>;
  };
}

export async function generateEmbedding(text: string): Promise<number[]> {
  return [text.length];
}

export const VECTORIZE_INDEX: Env["VECTORIZE_INDEX"] = {
  query: async ([length], { topK }) => ({
    matches: [{ metadata: { text: `found by ${length}` } }, { metadata: { text: `of ${topK}` } }],
  }),
};

/** The inputs of the newest program's model. */
export const modelCalls: any[] = [];

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 3, text: 3, reasoning: 0 },
};

/** It calls the tool that its last message names as `use NAME JSON`, and otherwise repeats its input. */
function answerTo(options: any): any[] {
  modelCalls.push(options);
  const last = options.prompt.at(-1);
  const text = last.content
    .map((part: any) => part.text ?? part.output?.value ?? "")
    .join("")
    .trim();
  const [, toolName, input = "{}"] = /^use (\w+) ?(.*)$/.exec(text) ?? [];
  if (toolName !== undefined && last.role === "user")
    return [{ type: "tool-call", toolCallId: `call-${toolName}`, toolName, input }];
  return [{ type: "text", text: `Heard: ${text.slice(0, 400)}` }];
}

const reasonOf = ([{ type }]: any[]) => ({ unified: type === "text" ? "stop" : "tool-calls", raw: undefined });

export const myModel = new MockLanguageModelV4({
  doGenerate: async (options: any) => {
    const content = answerTo(options);
    return { content, finishReason: reasonOf(content), usage, warnings: [] };
  },
  doStream: async (options: any) => {
    const content = answerTo(options);
    const parts = content.flatMap((part) =>
      part.type === "text"
        ? [
            { type: "text-start", id: "t" },
            { type: "text-delta", id: "t", delta: part.text },
            { type: "text-end", id: "t" },
          ]
        : [part],
    );
    return {
      stream: new ReadableStream({
        start(controller) {
          controller.enqueue({ type: "stream-start", warnings: [] });
          for (const part of parts) controller.enqueue(part);
          controller.enqueue({ type: "finish", finishReason: reasonOf(content), usage });
          controller.close();
        },
      }),
    };
  },
} as any) as Exclude<LanguageModel, string>;

export const workersai = (_model: string) => myModel;

export const myApplicationTools = {
  weather: tool({
    description: "The weather",
    inputSchema: jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } } }),
    execute: async ({ city }) => `Rain in ${city}.`,
  }),
};

export const otherTools = myApplicationTools;
