// The base URL with the AI SDK's unmodified providers: `@ai-sdk/openai` over Chat Completions and
// Responses, `@ai-sdk/anthropic` and `@ai-sdk/openai-compatible`. Each program runs against a
// provider directly and through an agent, and must receive the same parts and fields.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { normalized, all, startComparison } from "./compare_with_provider.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

const { provider, compare, remember, urlsOf } = await startComparison();

/** Creates each model. */
const MODELS = {
  openai_chat: ({ openai: baseURL }, apiKey) => createOpenAI({ baseURL, apiKey }).chat("gpt-test"),
  openai_responses: ({ openai: baseURL }, apiKey) => createOpenAI({ baseURL, apiKey })("gpt-test"),
  anthropic: ({ anthropic }, apiKey) => createAnthropic({ baseURL: `${anthropic}/v1`, apiKey })("claude-test"),
  openai_compatible: ({ openai: baseURL }, apiKey) =>
    createOpenAICompatible({ name: "ours", baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true })(
      "gpt-test",
    ),
};

const weather = () => {
  const cities = [];
  const get_weather = tool({
    description: "The weather of a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => {
      cities.push(city);
      return "sunny";
    },
  });
  return { cities, tools: { get_weather } };
};

const comparable = ({
  text,
  reasoningText,
  finishReason,
  usage,
  totalUsage,
  toolCalls,
  toolResults,
  warnings,
  response,
  steps,
}) => ({
  text,
  reasoningText,
  finishReason,
  usage,
  totalUsage,
  toolCalls,
  toolResults,
  warnings,
  response,
  steps,
});

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const settings = { instructions: "Be kind.", maxRetries: 0 };

for (const [name, make] of Object.entries(MODELS)) {
  test(`ai_sdk_${name}_answers_match_the_provider`, async () => {
    for (const prompt of ["hi", "think"]) {
      const result = await compare(make, async (model) =>
        normalized(
          comparable(await generateText({ ...settings, model, prompt, maxOutputTokens: 50, temperature: 0.5 })),
        ),
      );
      assert.equal(result.text, "Hello, dear friend.");
    }
  });

  test(`ai_sdk_${name}_streams_match_the_provider`, async () => {
    for (const prompt of ["hi", "think", "both"]) {
      const { tools } = weather();
      delete tools.get_weather.execute;
      const parts = await compare(make, async (model) =>
        normalized(await all(streamText({ ...settings, model, prompt, tools }).fullStream)),
      );
      assert.ok(parts.length > 5);
    }
  });

  test(`ai_sdk_${name}_tools_run_in_the_caller`, async () => {
    for (const prompt of ["weather", "both"]) {
      const complete = await compare(make, async (model) => {
        const { cities, tools } = weather();
        const result = await generateText({ ...settings, model, prompt, tools, stopWhen: stepCountIs(3) });
        return normalized({ cities, ...comparable(result) });
      });
      assert.equal(complete.text, "It is sunny.");
      assert.deepEqual(complete.cities, prompt === "both" ? ["Rome", "Oslo"] : ["Rome"]);
      await compare(make, async (model) => {
        const { cities, tools } = weather();
        const stream = streamText({ ...settings, model, prompt, tools, stopWhen: stepCountIs(3) });
        return normalized([await all(stream.fullStream), cities]);
      });
    }
  });

  test(`ai_sdk_${name}_structured_answers_are_parsed`, async () => {
    const output = Output.object({ schema: z.object({ answer: z.number() }) });
    const parsed = await compare(make, async (model) => {
      const result = await generateText({ ...settings, model, prompt: "how much?", output });
      const stream = streamText({ ...settings, model, prompt: "how much?", output });
      return normalized([
        result.output,
        comparable(result),
        await all(stream.partialOutputStream),
        await stream.output,
      ]);
    });
    assert.deepEqual(parsed[0], { answer: 42 });
  });

  test(`ai_sdk_${name}_a_conversation_continues_with_reasoning_images_and_settings`, async () => {
    const image = { type: "image", image: PIXEL };
    const providerOptions = {
      anthropic: { thinking: { type: "enabled", budgetTokens: 1024 }, cacheControl: { type: "ephemeral" } },
      openai: { reasoningEffort: "low", user: "u", metadata: { a: "b" }, parallelToolCalls: false },
      ours: { reasoningEffort: "low", user: "u" },
    };
    const result = await compare(make, async (model) => {
      const { cities, tools } = weather();
      const shared = { ...settings, model, tools, stopWhen: stepCountIs(3) };
      const messages = [{ role: "user", content: "think" }];
      const answers = [];
      const go = async (content, more) => {
        const answer = await generateText({ ...shared, ...more, messages });
        messages.push(...answer.response.messages, { role: "user", content });
        answers.push(comparable(answer));
      };
      await go([{ type: "text", text: "ponder" }, image]);
      await go("both", { providerOptions, toolChoice: "auto" });
      await go("ponder again");
      const stream = streamText({ ...shared, providerOptions, messages });
      return normalized([cities, answers, await all(stream.fullStream), await stream.text]);
    });
    assert.equal(result[3], "It is sunny.");
    assert.deepEqual(result[0], ["Rome", "Rome", "Oslo", "Rome"]);
    assert.ok(JSON.stringify(provider.requests.at(-1).body).includes(PIXEL));
  });

  test(`ai_sdk_${name}_gets_the_memory_but_none_of_its_tools`, async () => {
    const { tools } = weather();
    await remember(make, async (model, prompt) =>
      comparable(await generateText({ ...settings, model, prompt, tools })),
    );
    await remember(make, (model, prompt) => all(streamText({ ...settings, model, prompt, tools }).fullStream));
  });

  test(`ai_sdk_${name}_errors_have_the_sdks_classes`, async () => {
    const error = await compare(make, async (model) => {
      const error = await generateText({ ...settings, model, prompt: "refuse" }).catch((error) => error);
      return [error.name, error.statusCode, error.isRetryable, error.data.error.type];
    });
    assert.deepEqual(error, ["AI_APICallError", 400, false, "invalid_request_error"]);
    const model = make(urlsOf("locked"), "nobody's");
    await assert.rejects(generateText({ ...settings, model, prompt: "hi" }), { statusCode: 401 });
  });
}
