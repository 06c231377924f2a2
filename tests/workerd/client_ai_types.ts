// Checks that the client's inputs and outputs for the AI SDK have the AI SDK's types.
// types.test.mjs compiles this file.

import { generateText, isStepCount, type LanguageModel, streamText, tool } from "ai";
import { sessionAgent } from "session-agent";
import { z } from "zod";

declare const model: LanguageModel;
const session = sessionAgent("https://memory.example.com", "alice").session("s");

const echo = tool({
  description: "Says it again",
  inputSchema: z.object({ text: z.string() }),
  execute: async ({ text }) => text,
});

const { system, messages, tools } = await session.modelInput({ limit: 20 });
const result = streamText({ model, system, messages, tools: { ...tools, echo }, stopWhen: isStepCount(5) });
const { leafId } = await session.persist(result);

const input = await session.modelInput();
const spread = await generateText({ model, ...input });
await session.persist(spread, input);
await session.persist(spread, { expectedLeafId: leafId });
const place: string | null | undefined = input.expectedLeafId ?? input.parentId;
await session.persist(spread.steps);
await session.persist([{ role: "user", content: "Hello" }, ...spread.responseMessages]);
streamText({ model, system, messages, tools, onEnd: (ended) => void session.persist(ended) });

// @ts-expect-error: a text is not a turn
await session.persist("Hello");

export { leafId, place };
