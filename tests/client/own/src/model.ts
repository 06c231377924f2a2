// A language model of the AI SDK, built on the SDK's mock model: it follows the newest user
// message.

import { MockLanguageModelV4 } from "ai/test";

const USAGE = {
  inputTokens: { total: 10, noCache: 8, cacheRead: 2, cacheWrite: 0 },
  outputTokens: { total: 3, text: 3, reasoning: 0 },
};

type Part = { [field: string]: any };

function stream(parts: Part[]) {
  return new ReadableStream<any>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

const reply = (text: string): Part[] => [
  { type: "stream-start", warnings: [] },
  { type: "text-start", id: "t" },
  ...text.split(/(?<= )/).map((delta) => ({ type: "text-delta", id: "t", delta })),
  { type: "text-end", id: "t" },
  { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: USAGE },
];

const calls = (toolName: string, input: object): Part[] => [
  { type: "stream-start", warnings: [] },
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", delta: `I use ${toolName}.` },
  { type: "reasoning-end", id: "r", providerMetadata: { maker: { signature: "signed" } } },
  {
    type: "tool-call",
    toolCallId: `call-${toolName}`,
    toolName,
    input: JSON.stringify(input),
    providerMetadata: { maker: { thought: "kept" } },
  },
  { type: "finish", finishReason: { unified: "tool-calls", raw: "tool_calls" }, usage: USAGE },
];

const textOf = (content: any): string =>
  typeof content === "string" ? content : content.map(({ text = "" }) => text).join("");

async function answer({ prompt, tools = [], abortSignal }: any): Promise<Part[]> {
  const last = prompt.at(-1);
  const text = textOf(prompt.findLast(({ role }: any) => role === "user").content);
  if (last.role === "tool") {
    const [first] = prompt.at(-2).content;
    const call = prompt.at(-2).content.at(-1);
    const signed =
      first.providerOptions?.maker?.signature === "signed" && call.providerOptions?.maker?.thought === "kept";
    return reply(`The tool says: ${last.content[0].output.value}${signed ? "" : " (unsigned)"}`);
  }
  const [word, ...rest] = text.split(" ");
  switch (word) {
    case "use":
      return calls(rest[0]!, JSON.parse(rest.slice(1).join(" ") || "{}"));
    case "system":
      return reply(textOf(prompt[0].content));
    case "tools":
      return reply(JSON.stringify(tools.map(({ name, inputSchema }: any) => [name, inputSchema])));
    case "signed": {
      const earlier = prompt.flatMap(({ role, content }: any) => (role === "assistant" ? content : []));
      const called = earlier.filter(({ type }: any) => type === "tool-call");
      const signed = called.filter(({ providerOptions }: any) => providerOptions?.maker?.thought === "kept");
      return reply(`The model signed ${signed.length} of ${called.length} calls.`);
    }
    case "refuse":
      throw Object.assign(new Error("The maker is full."), { statusCode: 400 });
    case "break":
      return [...reply("Half an").slice(0, -2), { type: "error", error: new Error("cut off") }];
    case "wait":
      await new Promise((_, reject) => abortSignal.addEventListener("abort", () => reject(abortSignal.reason)));
      return [];
    case "slow":
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      return reply("At last.");
    default:
      return reply(`You said: ${text}`);
  }
}

export const model = new MockLanguageModelV4({
  modelId: "mock-1",
  doStream: async (options: any) => ({ stream: stream(await answer(options)) }),
} as any);
