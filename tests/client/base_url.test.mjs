// The base URL with the official, unmodified clients of OpenAI and Anthropic, in the newest version
// and in one that is a year old. Each client runs against a provider directly and through an agent,
// and must receive the same events and fields.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OldAnthropic from "anthropic-a-year-old";
import OpenAI from "openai";
import OldOpenAI from "openai-a-year-old";
import { documents, tableUnder } from "../workerd/documents.mjs";
import { normalized, all, plain, startComparison, WEATHER } from "./compare_with_provider.mjs";

const { provider, run, tokenOf, baseOf, compare } = await startComparison();

/** With a provider without the Responses API. */
const inChat = await startComparison(undefined, "chat-completions");

const openais = { newest: OpenAI, "a year old": OldOpenAI };
const anthropics = { newest: Anthropic, "a year old": OldAnthropic };

const openai = (Client) => (urls, apiKey) => new Client({ baseURL: urls.openai, apiKey, maxRetries: 0 });
const claude = (Client) => (urls, apiKey) => new Client({ baseURL: urls.anthropic, apiKey, maxRetries: 0 });

const SCHEMA = {
  type: "json_schema",
  json_schema: {
    name: "answer",
    strict: true,
    schema: { type: "object", properties: { answer: { type: "number" } }, required: ["answer"] },
  },
};

const chatOf = (content, more = {}) => ({
  model: "gpt-test",
  messages: [
    { role: "system", content: "Be kind." },
    { role: "user", content },
  ],
  ...more,
});

for (const [version, Client] of Object.entries(openais)) {
  const make = openai(Client);

  test(`openai_${version}_completions_match_the_provider`, async () => {
    const completion = await compare(make, async (client) => plain(await client.chat.completions.create(chatOf("hi"))));
    assert.equal(completion.choices[0].message.content, "Hello, dear friend.");
    const more = { seed: 7, logit_bias: { 5: 1 }, max_completion_tokens: 50, metadata: { a: "b" } };
    await compare(make, async (client) => plain(await client.chat.completions.create(chatOf("hi", more))));
    const { body } = provider.requests.at(-1);
    for (const [name, value] of Object.entries(more)) assert.deepEqual(body[name], value);
    assert.equal(provider.requests.at(-1).headers.authorization, "Bearer openai's key");
  });

  test(`openai_${version}_streams_match_the_provider`, async () => {
    const streamed = (more) => async (client) =>
      all(await client.chat.completions.create(chatOf("hi", { stream: true, ...more })));
    assert.ok((await compare(make, streamed({}))).length > 3);
    await compare(make, streamed({ stream_options: { include_usage: true } }));
    await compare(make, async (client) => {
      const stream = client.chat.completions.stream(chatOf("weather", { tools: [WEATHER] }));
      return plain(await stream.finalChatCompletion());
    });
  });

  test(`openai_${version}_tools_run_in_the_client`, async () => {
    const final = await compare(make, async (client) => {
      const cities = [];
      const runner = client.chat.completions.runTools(
        chatOf("weather", {
          stream: version === "newest",
          tools: [
            {
              type: "function",
              function: {
                ...WEATHER.function,
                parse: JSON.parse,
                function: ({ city }) => {
                  cities.push(city);
                  return "sunny";
                },
              },
            },
          ],
        }),
      );
      return [await runner.finalContent(), cities];
    });
    assert.deepEqual(final, ["It is sunny.", ["Rome"]]);
  });

  test(`openai_${version}_structured_answers_are_parsed`, async () => {
    const parsed = await compare(make, async (client) => {
      const completion = await client.chat.completions.parse(chatOf("how much?", { response_format: SCHEMA }));
      return completion.choices[0].message.content;
    });
    assert.equal(parsed, '{"answer":42}');
  });

  test(`openai_${version}_errors_have_the_sdks_classes`, async () => {
    const refused = await compare(make, async (client) => {
      const error = await client.chat.completions.create(chatOf("refuse")).catch((error) => error);
      return [error instanceof Client.BadRequestError, error.status, error.type];
    });
    assert.deepEqual(refused, [true, 400, "invalid_request_error"]);
    const url = `${baseOf("locked")}/openai/v1`;
    const stranger = new Client({ baseURL: url, apiKey: "nobody's", maxRetries: 0 });
    await assert.rejects(stranger.chat.completions.create(chatOf("hi")), Client.AuthenticationError);
    await assert.rejects(stranger.models.list(), Client.AuthenticationError);
    const known = new Client({ baseURL: url, apiKey: await tokenOf("locked"), maxRetries: 0 });
    const completion = known.chat.completions.create(chatOf("hi", { model: "gpt-dear" }));
    await assert.rejects(completion, Client.PermissionDeniedError);
    const twice = known.chat.completions.create(chatOf("hi", { n: 2 }));
    await assert.rejects(twice, (error) => error instanceof Client.BadRequestError && error.param === "n");
    const listed = await all(await known.models.list());
    assert.deepEqual(
      listed.map(({ id }) => id),
      ["gpt-test", "anthropic:claude-test"],
    );
    assert.equal((await known.models.retrieve("gpt-test")).id, "gpt-test");
    await assert.rejects(known.models.retrieve("gpt-5"), Client.NotFoundError);
  });
}

const claudeOf = (content, more = {}) => ({
  model: "claude-test",
  max_tokens: 100,
  system: [{ type: "text", text: "Be kind.", cache_control: { type: "ephemeral" } }],
  messages: [{ role: "user", content }],
  ...more,
});

const CLAUDES_WEATHER = {
  name: "get_weather",
  description: "The weather of a city.",
  input_schema: WEATHER.function.parameters,
};

for (const [version, Client] of Object.entries(anthropics)) {
  const make = claude(Client);

  test(`anthropic_${version}_messages_match_the_provider`, async () => {
    const message = await compare(make, async (client) => plain(await client.messages.create(claudeOf("hi"))));
    assert.equal(message.content[0].text, "Hello, dear friend.");
    const more = { top_k: 5, stop_sequences: ["END"], metadata: { user_id: "u" }, service_tier: "auto" };
    await compare(make, async (client) => plain(await client.messages.create(claudeOf("hi", more))));
    const { body, headers } = provider.requests.at(-1);
    for (const [name, value] of Object.entries(more)) assert.deepEqual(body[name], value);
    assert.deepEqual(body.system, claudeOf("hi").system);
    assert.equal(headers["x-api-key"], "anthropic's key");
    await compare(make, async (client) =>
      plain(await client.beta.messages.create(claudeOf("hi", { betas: ["files-api-2025-04-14"] }))),
    );
    assert.equal(provider.requests.at(-1).headers["anthropic-beta"], "files-api-2025-04-14");
  });

  test(`anthropic_${version}_streams_match_the_provider`, async () => {
    assert.ok(
      (await compare(make, async (client) => all(await client.messages.create(claudeOf("hi", { stream: true })))))
        .length > 5,
    );
    const final = await compare(make, async (client) =>
      plain(await client.messages.stream(claudeOf("weather", { tools: [CLAUDES_WEATHER] })).finalMessage()),
    );
    assert.deepEqual(final.content[0].input, { city: "Rome" });
  });

  test(`anthropic_${version}_a_tool_result_continues_the_turn`, async () => {
    const message = await compare(make, async (client) => {
      const request = claudeOf("weather", { tools: [CLAUDES_WEATHER] });
      const first = await client.messages.create(request);
      const result = { type: "tool_result", tool_use_id: first.content[0].id, content: "sunny" };
      request.messages.push({ role: "assistant", content: first.content }, { role: "user", content: [result] });
      return plain(await client.messages.create(request));
    });
    assert.equal(message.content[0].text, "It is sunny.");
  });

  test(`anthropic_${version}_errors_have_their_classes_and_tokens_are_counted`, async () => {
    const refused = await compare(make, async (client) => {
      const error = await client.messages.create(claudeOf("refuse")).catch((error) => error);
      return [error instanceof Client.BadRequestError, error.status, error.error.error.type];
    });
    assert.deepEqual(refused, [true, 400, "invalid_request_error"]);
    const baseURL = `${baseOf("locked")}/anthropic`;
    const stranger = new Client({ baseURL, apiKey: "nobody's", maxRetries: 0 });
    await assert.rejects(stranger.messages.create(claudeOf("hi")), Client.AuthenticationError);
    const known = new Client({ baseURL, apiKey: await tokenOf("locked"), maxRetries: 0 });
    const { max_tokens: _, ...counted } = claudeOf("hi");
    const { input_tokens: few } = await known.messages.countTokens(counted);
    const { input_tokens: many } = await known.messages.countTokens({
      ...counted,
      messages: [{ role: "user", content: "hi ".repeat(1_000) }],
    });
    assert.ok(few > 0 && many > few + 500, `${few} ${many}`);
    const [model] = await all(await known.models.list());
    assert.equal(model.id, "openai:gpt-test");
  });
}

for (const [version, Client] of Object.entries(openais)) {
  test(`openai_${version}_responses_match_the_provider_in_either_api`, async () => {
    const tools = [{ type: "function", ...WEATHER.function }];
    const format = { type: "json_schema", ...SCHEMA.json_schema };
    const requests = [
      { input: "hi", instructions: "Be kind.", max_output_tokens: 50, temperature: 0.5, metadata: { a: "b" } },
      { input: "both", tools, tool_choice: "auto", parallel_tool_calls: true, store: false, user: "u" },
      { input: "how much?", text: { format }, reasoning: { effort: "low" }, safety_identifier: "s" },
    ];
    for (const request of requests) {
      const settings = { model: "gpt-test", ...request };
      for (const world of [compare, inChat.compare]) {
        const responses = await world(openai(Client), async (client) => {
          const complete = await client.responses.create(settings);
          const next = { ...settings, input: "And now?", previous_response_id: complete.id };
          const streamed = await all(await client.responses.create({ ...settings, stream: true }));
          const after = settings.store === false || settings.tools ? [] : await all(client.responses.stream(next));
          return [complete, streamed, after].map(normalized);
        });
        assert.equal(responses[0].status, "completed");
      }
    }
    assert.match(provider.requests.at(-1).path, /\/responses$/);
    assert.match(inChat.provider.requests.at(-1).path, /\/chat\/completions$/);
    const refused = await compare(openai(Client), async (client) => {
      const error = await client.responses.create({ model: "gpt-test", input: "refuse" }).catch((error) => error);
      return [error instanceof Client.BadRequestError, error.type];
    });
    assert.deepEqual(refused, [true, "invalid_request_error"]);
  });

  test(`openai_${version}_responses_stream_item_by_item_and_continue`, async () => {
    const agent = `responses-${version.replaceAll(" ", "-")}`;
    const client = new Client({ baseURL: `${baseOf(agent)}/openai/v1`, apiKey: await tokenOf(agent), maxRetries: 0 });
    const first = await client.responses.create({ model: "gpt-test", instructions: "Be kind.", input: "hi" });
    assert.equal(first.output_text, "Hello, dear friend.");
    assert.equal(first.usage.input_tokens, 11);
    const stream = client.responses.stream({
      model: "gpt-test",
      input: "And now?",
      previous_response_id: first.id,
    });
    const kinds = (await all(stream)).map(({ type }) => type);
    assert.equal(kinds[0], "response.created");
    assert.equal(kinds.at(-1), "response.completed");
    const second = await stream.finalResponse();
    assert.equal(second.output[0].content[0].text, "Hello, dear friend.");
    assert.equal(provider.requests.at(-1).body.input.length, 3);

    const tools = [{ type: "function", ...WEATHER.function }];
    const question = await client.responses.create({ model: "gpt-test", input: "weather", tools });
    const [call] = question.output;
    assert.deepEqual([call.type, call.name, call.arguments], ["function_call", "get_weather", '{"city":"Rome"}']);
    const answer = await client.responses.create({
      model: "gpt-test",
      previous_response_id: question.id,
      input: [{ type: "function_call_output", call_id: call.call_id, output: "sunny" }],
      tools,
    });
    assert.equal(answer.output_text, "It is sunny.");
    const parsed = await client.responses.parse({
      model: "gpt-test",
      input: "how much?",
      text: { format: { type: "json_schema", ...SCHEMA.json_schema } },
    });
    assert.equal(parsed.output_text, '{"answer":42}');

    assert.equal((await client.responses.retrieve(first.id)).output_text, first.output_text);
    await client.responses.delete(first.id);
    await assert.rejects(client.responses.retrieve(first.id), Client.NotFoundError);
    const named = { model: "gpt-test", input: "one" };
    await client.responses.create({ ...named, conversation: { id: "trip" } });
    await client.responses.create({ ...named, input: "two", conversation: { id: "trip" } });
    assert.equal(provider.requests.at(-1).body.input.length, 3);
  });
}

test("a_codex_request_is_answered_in_one_session", async () => {
  const agent = "codex";
  const client = new OpenAI({ baseURL: `${baseOf(agent)}/openai/v1`, apiKey: await tokenOf(agent), maxRetries: 0 });
  const item = (role, ...texts) => ({
    type: "message",
    id: `msg_${role}`,
    role,
    content: texts.map((text) => ({ type: "input_text", text })),
  });
  const request = {
    model: "gpt-test",
    input: [
      item("developer", "You are a coding agent.", "Be kind."),
      item("user", "The folder is /work."),
      item("user", "weather"),
    ],
    tools: [{ type: "function", ...WEATHER.function, strict: false }],
    tool_choice: "auto",
    parallel_tool_calls: true,
    reasoning: { summary: "auto" },
    store: false,
    include: ["reasoning.encrypted_content"],
    prompt_cache_key: "thread",
    client_metadata: { "x-codex-window-id": "thread:0", thread_id: "thread" },
  };
  const first = await client.responses.create(request);
  const [call] = first.output;
  const result = { type: "function_call_output", id: "fco_a", call_id: call.call_id, output: "sunny" };
  const second = await client.responses.create({ ...request, input: [...request.input, call, result] });
  assert.equal(second.output_text, "It is sunny.");
  assert.equal((await run(agent, "listSessions", {})).sessions.length, 1);
});

test("a_client_without_sessions_keeps_its_conversation_and_memory", async () => {
  const agent = "remembers";
  await run(agent, "defineBlock", { label: "memory", kind: "writable", description: "Facts" });
  const client = new OpenAI({ baseURL: `${baseOf(agent)}/openai/v1`, apiKey: await tokenOf(agent) });
  const request = chatOf("remember tea.");
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
    assert.ok(!JSON.stringify(chunk).includes("set_context"));
  }
  assert.equal((await run(agent, "getBlock", { label: "memory" })).content, "tea.");
  const { data: first, response } = await client.chat.completions.create(chatOf("remember milk.")).withResponse();
  const session = response.headers.get("x-session-id");
  const history = chatOf("remember milk.");
  history.messages.push(first.choices[0].message, { role: "user", content: "And now?" });
  const { response: second } = await client.chat.completions.create(history).withResponse();
  assert.equal(second.headers.get("x-session-id"), session);
  assert.match(JSON.stringify(provider.requests.at(-1).body.messages), /remember milk/);
  const { messages } = await run(agent, "getHistory", { sessionId: session });
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant", "user", "assistant"],
  );
  const off = { headers: { "x-session-memory": "off" } };
  await client.chat.completions.create(chatOf("hi"), off);
  assert.equal(provider.requests.at(-1).body.tools, undefined);
});

test("clients_read_base_url_and_token_from_the_environment", async () => {
  const agent = "environment";
  const [base, token] = [baseOf(agent), await tokenOf(agent)];
  const given = {
    OPENAI_BASE_URL: `${base}/openai/v1`,
    OPENAI_API_KEY: token,
    ANTHROPIC_BASE_URL: `${base}/anthropic`,
    ANTHROPIC_AUTH_TOKEN: token,
  };
  Object.assign(process.env, given);
  try {
    const completion = await new OpenAI().chat.completions.create(chatOf("hi"));
    assert.equal(completion.choices[0].message.content, "Hello, dear friend.");
    const message = await new Anthropic().messages.create(claudeOf("hi"));
    assert.equal(message.content[0].text, "Hello, dear friend.");
  } finally {
    for (const name of Object.keys(given)) delete process.env[name];
  }
  assert.equal((await run(agent, "listSessions", {})).sessions.length, 2);
});

test("a_session_is_named_by_url_or_header", async () => {
  const agent = "named";
  const apiKey = await tokenOf(agent);
  const there = new OpenAI({ baseURL: `${baseOf(agent)}/sessions/trip/openai/v1`, apiKey });
  await there.chat.completions.create(chatOf("one"));
  const defaultHeaders = { "x-session-id": "trip", "x-session-history": "stored" };
  const stored = new OpenAI({ baseURL: `${baseOf(agent)}/openai/v1`, apiKey, defaultHeaders });
  await stored.chat.completions.create(chatOf("two"));
  const contents = provider.requests.at(-1).body.messages.map(({ content }) => content);
  assert.deepEqual(contents, ["Be kind.", "one", "Hello, dear friend.", "two"]);
  const narrow = await tokenOf(agent, { sessionId: "mine" });
  const other = new OpenAI({ baseURL: `${baseOf(agent)}/openai/v1`, apiKey: narrow, defaultHeaders, maxRetries: 0 });
  await assert.rejects(other.chat.completions.create(chatOf("two")), OpenAI.PermissionDeniedError);
});

test("a_conversation_with_repeated_text_stays_one_conversation", async () => {
  const ask = {
    stored: (client, content) =>
      client.chat.completions.create({ model: "gpt-test", messages: [{ role: "user", content }] }),
    conversation: (client, input) => client.responses.create({ model: "gpt-test", input, conversation: "trip" }),
  };
  for (const [how, send] of Object.entries(ask)) {
    const agent = `again-${how}`;
    const defaultHeaders = how === "stored" ? { "x-session-id": "trip", "x-session-history": "stored" } : {};
    const baseURL = `${baseOf(agent)}/openai/v1`;
    const client = new OpenAI({ baseURL, apiKey: await tokenOf(agent), defaultHeaders, maxRetries: 0 });
    for (const text of ["yes", "two", "yes", "yes"]) await send(client, text);
    const sent = () => {
      const { messages, input } = provider.requests.at(-1).body;
      return (messages ?? input).filter(({ role }) => role === "user");
    };
    assert.deepEqual(
      sent().map(({ content }) => content),
      ["yes", "two", "yes", "yes"],
      how,
    );
    // A question that got no answer is not stored again.
    for (const _ of [1, 2]) await assert.rejects(send(client, "refuse"), OpenAI.BadRequestError);
    assert.equal(sent().length, 5, how);
  }
});

test("a_client_that_reconnects_and_repeats_its_request_joins_the_turn", async () => {
  const agent = "leaves";
  const client = new OpenAI({ baseURL: `${baseOf(agent)}/openai/v1`, apiKey: await tokenOf(agent) });
  const before = provider.requests.length;
  const request = chatOf("wait", { stream: true });
  const { data: stream, response } = await client.chat.completions.create(request).withResponse();
  for await (const chunk of stream) if (chunk.choices[0].delta.content) break;
  const again = await client.chat.completions.create(request);
  setTimeout(() => provider.open(), 100);
  const chunks = await all(again);
  assert.equal(chunks.map(({ choices: [choice] }) => choice.delta.content ?? "").join(""), "Hello, dear friend.");
  assert.equal(provider.requests.length, before + 1);
  const { messages } = await run(agent, "getHistory", { sessionId: response.headers.get("x-session-id") });
  assert.equal(messages.length, 2);
});

test("the_documented_programs_run", async () => {
  const allow = { models: ["anthropic:claude-opus-5-5"], systemInstructions: true, clientTools: true };
  const token = await tokenOf("printed", { allow });
  const blocks = documents.flatMap(({ blocks }) => blocks).filter(({ language }) => language === "ts anthropic");
  assert.equal(blocks.length, 2);
  const AsyncFunction = (async () => {}).constructor;
  for (const { text } of blocks) {
    const program = `${text.replace(/^import .*$/m, "")}\nreturn client;`;
    const client = await new AsyncFunction("Anthropic", "BASE", "TOKEN", program)(Anthropic, baseOf("printed"), token);
    const message = await client.messages.create(claudeOf("hi", { model: "claude-opus-5-5" }));
    assert.equal(message.content[0].text, "Hello, dear friend.");
  }
});

test("the_documented_clients_are_those_tested", async () => {
  const pinned = [];
  for (const folder of [".", "coding_agents"]) {
    const { devDependencies } = JSON.parse(await readFile(join(import.meta.dirname, folder, "package.json"), "utf8"));
    for (const [name, version] of Object.entries(devDependencies))
      pinned.push(version.startsWith("npm:") ? version.slice("npm:".length) : `${name}@${version}`);
  }
  const printed = tableUnder("docs/base-url.md", "Clients").map(
    ([name, version]) => `${name.split("`")[1]}@${version}`,
  );
  assert.ok(printed.length >= 12);
  for (const client of printed) assert.ok(pinned.includes(client), client);
});

test("pages_of_other_origins_can_use_the_sdks", async () => {
  const response = await fetch(`${baseOf("page")}/anthropic/v1/messages`, {
    method: "OPTIONS",
    headers: {
      origin: "https://app.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "x-api-key,anthropic-version,x-session-id,x-stainless-lang",
    },
  });
  assert.equal(response.status, 204);
  const allowed = response.headers.get("access-control-allow-headers");
  for (const name of ["x-api-key", "anthropic-version", "x-session-id", "x-stainless-lang"])
    assert.ok(allowed.split(", ").includes(name), name);
});
