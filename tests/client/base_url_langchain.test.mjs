// The base URL with LangChain's unmodified models: `@langchain/openai` over Chat Completions and
// Responses, and `@langchain/anthropic`. Each program runs against a provider directly and through
// an agent, and must receive the same messages and chunks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage, SystemMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";
import { normalized, all, startComparison } from "./compare_with_provider.mjs";

const { compare, remember, tokenOf, urlsOf } = await startComparison();

const openai =
  (useResponsesApi) =>
  ({ openai: baseURL }, apiKey) =>
    new ChatOpenAI({ model: "gpt-test", apiKey, configuration: { baseURL }, useResponsesApi, maxRetries: 0 });

const MODELS = {
  openai_chat: openai(false),
  openai_responses: openai(true),
  anthropic: ({ anthropic: anthropicApiUrl }, apiKey) =>
    new ChatAnthropic({ model: "claude-test", apiKey, anthropicApiUrl, maxTokens: 100, maxRetries: 0 }),
};

const messagesOf = (text) => [new SystemMessage("Be kind."), new HumanMessage(text)];

const weather = () => {
  const cities = [];
  const look = tool(
    ({ city }) => {
      cities.push(city);
      return "sunny";
    },
    { name: "get_weather", description: "The weather of a city.", schema: z.object({ city: z.string() }) },
  );
  return { cities, look };
};

const textOf = ({ content }) =>
  typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");

for (const [name, make] of Object.entries(MODELS)) {
  test(`langchain_${name}_messages_match_the_provider`, async () => {
    for (const text of ["hi", "think"]) {
      const result = await compare(make, async (model) => {
        const message = await model.invoke(messagesOf(text));
        return { text: textOf(message), message: normalized(message) };
      });
      assert.equal(result.text, "Hello, dear friend.");
    }
  });

  test(`langchain_${name}_streams_match_the_provider`, async () => {
    for (const text of ["hi", "think", "both"]) {
      const chunks = await compare(make, async (model) => {
        const { look } = weather();
        return normalized(await all(await model.bindTools([look]).stream(messagesOf(text))));
      });
      assert.ok(chunks.length > 3);
    }
  });

  test(`langchain_${name}_tools_run_in_the_caller`, async () => {
    for (const text of ["weather", "both"]) {
      const result = await compare(make, async (model) => {
        const { cities, look } = weather();
        const agent = createReactAgent({ llm: model, tools: [look], prompt: "Be kind." });
        const { messages } = await agent.invoke({ messages: [new HumanMessage(text)] });
        messages.push(new HumanMessage("And now?"));
        const next = await agent.invoke({ messages });
        const streamed = await all(await agent.stream({ messages: next.messages.slice(0, 1) }));
        return {
          cities,
          streamed: normalized(streamed),
          messages: normalized(next.messages),
          text: textOf(next.messages.at(-1)),
        };
      });
      assert.equal(result.text, "Hello, dear friend.");
      assert.ok(result.cities.includes("Rome"));
    }
  });

  test(`langchain_${name}_structured_answers_are_parsed`, async () => {
    const schema = z.object({ answer: z.number() });
    for (const method of ["jsonSchema", "functionCalling"]) {
      const parsed = await compare(make, async (model) =>
        normalized(
          await model.withStructuredOutput(schema, { name: "answer", method, includeRaw: true }).invoke("how much?"),
        ),
      );
      assert.deepEqual(parsed.parsed, { answer: 42 }, method);
    }
  });

  test(`langchain_${name}_gets_the_memory_but_none_of_its_tools`, async () => {
    const { look } = weather();
    await remember(make, (model, text) => model.bindTools([look]).invoke(messagesOf(text)));
    await remember(make, async (model, text) => all(await model.bindTools([look]).stream(messagesOf(text))));
  });

  test(`langchain_${name}_errors_have_the_sdks_classes`, async () => {
    const refused = await compare(make, async (model) => {
      const error = await model.invoke(messagesOf("refuse")).catch((error) => error);
      return [error.name, error.constructor.name, error.status];
    });
    assert.equal(refused.at(-1), 400);
    await assert.rejects(make(urlsOf("locked"), "nobody's").invoke("hi"), { status: 401 });
    const token = await tokenOf("locked", { allow: {} });
    await assert.rejects(make(urlsOf("locked"), token).invoke(messagesOf("hi")), { status: 403 });
  });
}

test("langchain_anthropic_sends_thinking_back_before_calls", async () => {
  const make = ({ anthropic: anthropicApiUrl }, apiKey) => {
    const thinking = { type: "enabled", budget_tokens: 1024 };
    return new ChatAnthropic({
      model: "claude-test",
      apiKey,
      anthropicApiUrl,
      maxTokens: 2000,
      maxRetries: 0,
      thinking,
    });
  };
  const result = await compare(make, async (model) => {
    const { cities, look } = weather();
    const agent = createReactAgent({ llm: model, tools: [look] });
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "aGVsbG8=" } };
    const content = [{ type: "text", text: "ponder" }, image];
    const { messages } = await agent.invoke({ messages: [new HumanMessage({ content })] });
    return { cities, messages: normalized(messages), text: textOf(messages.at(-1)) };
  });
  assert.equal(result.text, "It is sunny.");
});
