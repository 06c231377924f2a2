// The base URL with OpenAI's unmodified Agents SDK over both of OpenAI's APIs. Each program runs
// against a provider directly and through an agent, and must receive the same items and events.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import { z } from "zod";
import { normalized, all, startComparison } from "./compare_with_provider.mjs";

const { compare, remember, urlsOf } = await startComparison();

const runner =
  (useResponses) =>
  ({ openai: baseURL }, apiKey) =>
    new Runner({
      modelProvider: new OpenAIProvider({ baseURL, apiKey, useResponses }),
      tracingDisabled: true,
      traceIncludeSensitiveData: false,
    });

const RUNNERS = { chat: runner(false), responses: runner(true) };

function assistant(more = {}) {
  const cities = [];
  const look = tool({
    name: "get_weather",
    description: "The weather of a city.",
    parameters: z.object({ city: z.string() }),
    execute: ({ city }) => {
      cities.push(city);
      return "sunny";
    },
  });
  const agent = new Agent({ name: "Helper", instructions: "Be kind.", model: "gpt-test", tools: [look], ...more });
  return { cities, agent };
}

const comparable = ({ finalOutput, newItems, rawResponses, history, state }) => ({
  finalOutput,
  newItems,
  rawResponses,
  history,
  usage: state.usage,
});

for (const [name, make] of Object.entries(RUNNERS)) {
  test(`openai_agents_${name}_tools_run_in_the_caller`, async () => {
    for (const text of ["hi", "weather", "both"]) {
      const result = await compare(make, async (runner) => {
        const { agent, cities } = assistant();
        return { cities, ...normalized(comparable(await runner.run(agent, text))) };
      });
      assert.equal(result.finalOutput, text === "hi" ? "Hello, dear friend." : "It is sunny.");
    }
  });

  test(`openai_agents_${name}_streams_match_the_provider`, async () => {
    for (const text of ["hi", "weather", "both"]) {
      const { events } = await compare(make, async (runner) => {
        const { agent, cities } = assistant();
        const stream = await runner.run(agent, text, { stream: true });
        const events = await all(stream);
        await stream.completed;
        return { cities, events: normalized(events), ...normalized(comparable(stream)) };
      });
      assert.ok(events.length > 5);
    }
  });

  test(`openai_agents_${name}_structured_answers_are_parsed`, async () => {
    const result = await compare(make, async (runner) => {
      const { agent } = assistant({ tools: [], outputType: z.object({ answer: z.number() }) });
      return normalized(comparable(await runner.run(agent, "how much?")));
    });
    assert.deepEqual(result.finalOutput, { answer: 42 });
  });

  test(`openai_agents_${name}_a_conversation_continues`, async () => {
    const result = await compare(make, async (runner) => {
      const { agent } = assistant();
      const first = await runner.run(agent, "both");
      const input = [...first.history, { role: "user", content: "And now?" }];
      return normalized(comparable(await runner.run(agent, input)));
    });
    assert.equal(result.finalOutput, "Hello, dear friend.");
  });

  test(`openai_agents_${name}_gets_the_memory_but_none_of_its_tools`, async () => {
    await remember(make, async (runner, text) => comparable(await runner.run(assistant().agent, text)));
    await remember(make, async (runner, text) => {
      const stream = await runner.run(assistant().agent, text, { stream: true });
      const events = await all(stream);
      await stream.completed;
      return [events, comparable(stream)];
    });
  });

  test(`openai_agents_${name}_errors_have_the_sdks_classes`, async () => {
    const refused = await compare(make, async (runner) => {
      const error = await runner.run(assistant().agent, "refuse").catch((error) => error);
      return [error.name, error.constructor.name, error.status];
    });
    assert.equal(refused.at(-1), 400);
    const stranger = make(urlsOf("locked"), "nobody's");
    await assert.rejects(stranger.run(assistant().agent, "hi"), { status: 401 });
  });
}

test("openai_agents_responses_continue_from_the_previous_response", async () => {
  const { outcome } = await compare(RUNNERS.responses, async (runner) => {
    const { agent } = assistant();
    const first = await runner.run(agent, "both");
    const second = await runner.run(agent, "And now?", { previousResponseId: first.lastResponseId });
    return { outcome: normalized(comparable(second)) };
  });
  assert.equal(outcome.finalOutput, "Hello, dear friend.");
});

test("openai_agents_responses_keep_a_conversation_by_id", async () => {
  await compare(RUNNERS.responses, async (runner) => {
    const outcomes = [];
    for (const text of ["weather", "And now?"]) {
      const { agent, cities } = assistant();
      const result = await runner.run(agent, text, { conversationId: "trip" });
      outcomes.push([cities, result.finalOutput, normalized(result.newItems)]);
    }
    return outcomes;
  });
});
