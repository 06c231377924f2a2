// OpenAI's Responses API with a provider that supports it: reasoning, the provider's own tools and
// other items are forwarded. The official client, the AI SDK and the Agents SDK run against a
// provider directly and through an agent, and must receive the same items and events.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { Agent, OpenAIProvider, Runner, webSearchTool } from "@openai/agents";
import { generateText, streamText } from "ai";
import OpenAI from "openai";
import OldOpenAI from "openai-a-year-old";
import { normalized, all, startComparison, WEATHER } from "./compare_with_provider.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

const { provider, run, tokenOf, urlsOf, compare, remember } = await startComparison();

const clientOf =
  (Client) =>
  ({ openai: baseURL }, apiKey) =>
    new Client({ baseURL, apiKey, maxRetries: 0 });

const SEARCH = { type: "web_search", search_context_size: "low" };
const WEATHER_TOOL = { type: "function", ...WEATHER.function };
const PATCH = { type: "custom", name: "apply_patch", description: "Changes files." };

/** A token that allows a model that reasons. */
const REASONING = { allow: { models: ["openai:gpt-5-test"], systemInstructions: true, clientTools: true } };

const user = (text) => ({ role: "user", content: text });

for (const [version, Client] of Object.entries({ newest: OpenAI, "a year old": OldOpenAI })) {
  const make = clientOf(Client);

  test(`openai_${version}_reasoning_and_provider_tools_are_sent_back`, async () => {
    const requests = [
      { input: "search", tools: [SEARCH] },
      { input: "search", tools: [WEATHER_TOOL, SEARCH], include: ["reasoning.encrypted_content"], store: false },
      { input: "think", reasoning: { effort: "low", summary: "auto" }, text: { verbosity: "low" } },
      { input: "ponder", tools: [WEATHER_TOOL], max_tool_calls: 3, truncation: "auto" },
      { input: "patch", tools: [PATCH] },
      { input: "fail" },
    ];
    for (const model of ["gpt-test", "gpt-5-test"]) {
      for (const request of requests) {
        const settings = { model, instructions: "Be kind.", ...request };
        const answers = await compare(
          make,
          async (client) => {
            const complete = await client.responses.create(settings);
            const streamed = await all(await client.responses.create({ ...settings, stream: true }));
            return [complete, streamed].map(normalized);
          },
          REASONING,
        );
        assert.equal(answers[0].status, request.input === "fail" ? "failed" : "completed");
      }
    }
  });

  test(`openai_${version}_a_history_of_all_item_types_continues`, async () => {
    for (const include of [[], ["reasoning.encrypted_content"]]) {
      const last = await compare(make, async (client) => {
        const settings = { model: "gpt-test", tools: [SEARCH, WEATHER_TOOL, PATCH], include };
        const input = [];
        const answers = [];
        const go = async (...items) => {
          input.push(...items);
          const answer = await client.responses.create({ ...settings, input });
          input.push(...answer.output);
          answers.push(answer);
          return answer.output.at(-1);
        };
        await go(user("search"));
        const call = await go(user("ponder"));
        await go({ type: "function_call_output", call_id: call.call_id, output: "sunny" });
        const patch = await go(user("patch"));
        await go({ type: "custom_tool_call_output", call_id: patch.call_id, output: "done" });
        await go(user("And now?"));
        return answers.map(normalized);
      });
      assert.equal(last.at(-2).output[0].content[0].text, "It is done.");
      const kinds = provider.requests.at(-1).body.input.map(({ type, role }) => type ?? role);
      assert.deepEqual(
        kinds.filter((kind) => kind === "reasoning" || kind === "web_search_call"),
        ["reasoning", "web_search_call", "reasoning"],
      );
    }
  });

  test(`openai_${version}_a_response_continues_by_id_and_is_read_with_all_items`, async () => {
    const agent = `items-${version.replaceAll(" ", "-")}`;
    const client = make(urlsOf(agent), await tokenOf(agent));
    const settings = { model: "gpt-test", tools: [SEARCH, WEATHER_TOOL] };
    const first = await client.responses.create({ ...settings, input: "search" });
    const read = await client.responses.retrieve(first.id);
    assert.deepEqual(read.output, first.output);
    assert.deepEqual(
      first.output.map(({ type }) => type),
      ["reasoning", "web_search_call", "message"],
    );
    const second = await client.responses.create({ ...settings, input: "ponder", previous_response_id: first.id });
    const result = { type: "function_call_output", call_id: second.output.at(-1).call_id, output: "sunny" };
    await client.responses.create({ ...settings, input: [result], previous_response_id: second.id });
    const sent = provider.requests.at(-1).body;
    assert.equal(sent.previous_response_id, undefined);
    assert.deepEqual(
      sent.input.map(({ type, role }) => type ?? role),
      ["user", "reasoning", "web_search_call", "message", "user", "reasoning", "message", "function_call", result.type],
    );
    const { sessions } = await run(agent, "listSessions", {});
    assert.equal(sessions.length, 1);
  });

  test(`openai_${version}_unsupported_features_are_refused_by_name`, async () => {
    const agent = `refuses-${version.replaceAll(" ", "-")}`;
    const client = make(urlsOf(agent), await tokenOf(agent));
    const settings = { model: "gpt-test", input: "hi" };
    for (const [field, value] of [
      ["background", true],
      ["context_management", [{ type: "compaction" }]],
      ["input", ""],
    ]) {
      const refused = client.responses.create({ ...settings, [field]: value });
      await assert.rejects(refused, ({ status, param }) => status === 400 && param === field);
    }
    for (const path of ["responses/compact", "responses/input_tokens", "responses/resp_a/cancel", "conversations"]) {
      const refused = client.post(`/${path}`, { body: settings });
      await assert.rejects(refused, (error) => error.status === 404 && error.message.includes(path));
    }
    const narrow = make(urlsOf(agent), await tokenOf(agent, { allow: {} }));
    const searching = narrow.responses.create({ ...settings, tools: [SEARCH] });
    await assert.rejects(searching, Client.PermissionDeniedError);
  });
}

test("openai_memory_is_written_between_reasoning_items_and_hidden", async () => {
  const make = clientOf(OpenAI);
  const requestOf = (input) => ({ model: "gpt-test", tools: [SEARCH], input });
  await remember(make, (client, text) => client.responses.create(requestOf(text)));
  await remember(make, async (client, text) =>
    all(await client.responses.create({ ...requestOf(text), stream: true })),
  );
});

const sdkOf = ({ openai: baseURL }, apiKey) => createOpenAI({ baseURL, apiKey });

/** The AI SDK generates an id for each source. */
const withoutSourceIds = (value) =>
  JSON.parse(
    JSON.stringify(value, (_, it) => (it?.sourceType && it.type === "source" ? { ...it, id: undefined } : it)),
  );

const partsOf = ({ text, reasoningText, sources, content, usage, finishReason, providerMetadata, response }) => ({
  text,
  reasoningText,
  sources,
  content,
  usage,
  finishReason,
  providerMetadata,
  response,
});

test("ai_sdk_reasoning_and_searches_are_returned_and_continue", async () => {
  for (const openai of [{}, { store: false, include: ["reasoning.encrypted_content"] }]) {
    const parts = await compare(sdkOf, async (sdk) => {
      const tools = { web_search: sdk.tools.webSearch({}) };
      const shared = { model: sdk("gpt-test"), tools, maxRetries: 0, providerOptions: { openai } };
      const messages = [user("search")];
      const first = await generateText({ ...shared, messages });
      messages.push(...first.response.messages, user("think"));
      const second = await generateText({ ...shared, messages });
      messages.push(...second.response.messages, user("search again"));
      const stream = streamText({ ...shared, messages });
      return normalized(withoutSourceIds([partsOf(first), partsOf(second), await all(stream.fullStream)]));
    });
    assert.equal(parts[0].reasoningText, "I search.");
    assert.equal(parts[0].sources[0].title, "An example");
  }
});

const runnerOf = ({ openai: baseURL }, apiKey) =>
  new Runner({
    modelProvider: new OpenAIProvider({ baseURL, apiKey, useResponses: true }),
    tracingDisabled: true,
    traceIncludeSensitiveData: false,
  });

test("openai_agents_reasoning_and_searches_are_returned_and_continue", async () => {
  const answers = await compare(runnerOf, async (runner) => {
    const agent = new Agent({ name: "Helper", instructions: "Be kind.", model: "gpt-test", tools: [webSearchTool()] });
    const first = await runner.run(agent, "search");
    const second = await runner.run(agent, [...first.history, user("think")]);
    const third = await runner.run(agent, "search", { previousResponseId: second.lastResponseId });
    const stream = await runner.run(agent, "search", { stream: true });
    const events = await all(stream);
    await stream.completed;
    const comparable = ({ finalOutput, newItems, rawResponses, history }) => ({
      finalOutput,
      newItems,
      rawResponses,
      history,
    });
    return normalized([comparable(first), comparable(second), comparable(third), events, comparable(stream)]);
  });
  assert.equal(answers[0].finalOutput, "It is an example.");
});
