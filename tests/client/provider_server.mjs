// A provider on this machine with OpenAI's Chat Completions and Responses and Anthropic's Messages,
// with and without streaming. Its answers depend only on the request, so that a client's results
// can be compared directly and through an agent.
//
//   const provider = await startProvider();
//   after(() => provider.stop());
//   provider.openai       // the base URL for OpenAI's clients
//   provider.anthropic    // the base URL for Anthropic's clients
//   provider.requests     // { path, headers, body } of each request
//
// The last message decides the answer: "weather" calls the tool `get_weather`, "both" calls it twice after
// a text, "ponder" calls it after a thought and a text, a result is repeated, "remember …" calls
// `set_context` if there is such a tool, "search" uses `web_search` and "patch" calls `apply_patch` if there
// are such tools of Responses, "fail" fails in the middle in Responses, "use … {…}" calls the named tool with these arguments, "think" adds
// a thought, "refuse" is refused, "wait" stops in the middle until `provider.open()`. A forced tool is
// called. Anything else is greeted. What every provider refuses is in provider_rules.mjs.

import { once } from "node:events";
import { createServer } from "node:http";
import { responses } from "./provider_responses.mjs";
import { AFTER_THOUGHT, problemOfCompletion, problemOfMessage } from "./provider_rules.mjs";

export async function startProvider() {
  const provider = new Provider();
  await provider.start();
  return provider;
}

class Provider {
  #server = createServer((request, response) => {
    this.#answer(request, response).catch((error) => response.destroy(error));
  });
  #gate = Promise.withResolvers();
  requests = [];

  async start() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const url = `http://127.0.0.1:${this.#server.address().port}`;
    this.openai = `${url}/v1`;
    this.anthropic = url;
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Releases the waiting answers. */
  open() {
    this.#gate.resolve();
    this.#gate = Promise.withResolvers();
  }

  async #answer(request, response) {
    let text = "";
    for await (const piece of request) text += piece;
    const path = request.url.split("?")[0];
    const body = JSON.parse(text || "{}");
    this.requests.push({ path, headers: request.headers, body });
    const api = Object.entries(APIS).find(([end]) => path.endsWith(end))?.[1];
    if (api === undefined) return json(response, 404, { error: { message: "There is nothing here." } });
    if (body.thread?.type === "continue") return json(response, 404, THREAD_NOT_FOUND);
    const problem = api.problemOf(body);
    if (problem !== undefined) return json(response, 400, { ...api.refusal, problem });
    const answer = decide(api.read(body));
    answer.name = `${api.answerNumber(body)}`;
    for (const call of answer.calls ?? []) call.id = `${call.id}${answer.name}`;
    if (answer.refused) return json(response, 400, api.refusal);
    if (body.stream !== true) return json(response, 200, api.complete(answer, body));
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const [index, event] of api.events(answer, body).entries()) {
      if (answer.waits && index === 3) await this.#gate.promise;
      response.write(event);
    }
    response.end();
  }
}

/** The answer: `{ thought?, text, calls: [{ id, name, input }] }`. */
function decide({ text, result, tools, forced, wantsJson }) {
  if (result !== undefined) return { text: `It is ${result}.`, calls: [] };
  if (text.startsWith("refuse")) return { refused: true };
  const call = (name, input, id = "a") => ({ id, name, input });
  if (forced !== undefined) return { text: "", calls: [call(forced, { answer: 42 })] };
  if (text.startsWith("weather")) return { text: "", calls: [call("get_weather", { city: "Rome" })] };
  if (text.startsWith("ponder"))
    return {
      thought: "I don't know.",
      text: "I look.",
      calls: [call("get_weather", { city: "Rome" }, AFTER_THOUGHT)],
    };
  if (text.startsWith("both")) {
    const calls = [call("get_weather", { city: "Rome" }), call("get_weather", { city: "Oslo" }, "b")];
    return { text: "I look at both.", calls };
  }
  if (text.startsWith("remember") && tools.includes("set_context")) {
    const input = { label: "memory", content: text.slice("remember ".length) };
    return { text: "", calls: [call("set_context", input)] };
  }
  const [, used, input] = /(?:^|\n)use (\S+) (\{.*\})/.exec(text) ?? [];
  if (used !== undefined) return { text: "", calls: [call(used, JSON.parse(input))] };
  if (text.startsWith("fail")) return { fails: true, text: "", calls: [] };
  if (text.startsWith("search") && tools.includes("web_search"))
    return { thought: "I search.", searches: true, text: "It is an example.", calls: [] };
  if (text.startsWith("patch") && tools.includes("apply_patch"))
    return { text: "", custom: { name: "apply_patch", input: "*** Begin Patch" }, calls: [] };
  if (wantsJson) return { text: '{"answer":42}', calls: [] };
  const thought = text.startsWith("think") ? "They greet me." : undefined;
  return { thought, text: "Hello, dear friend.", calls: [], waits: text.startsWith("wait") };
}

/** This provider stores no threads. Anthropic's clients then send the whole history. */
const THREAD_NOT_FOUND = {
  type: "error",
  error: { type: "not_found_error", message: "No.", details: { error_code: "thread_not_found" } },
};

const USAGE = {
  prompt_tokens: 11,
  completion_tokens: 7,
  total_tokens: 18,
  prompt_tokens_details: { cached_tokens: 3 },
};

const finishOf = (calls) => (calls.length > 0 ? "tool_calls" : "stop");

const openai = {
  refusal: { error: { message: "No.", type: "invalid_request_error", param: "messages", code: "refused" } },
  problemOf: problemOfCompletion,
  read({ messages, tools = [], tool_choice, response_format }) {
    const last = messages.at(-1);
    const text = typeof last.content === "string" ? last.content : last.content.map(({ text }) => text ?? "").join("");
    return {
      text,
      result: last.role === "tool" ? text : undefined,
      tools: tools.map((tool) => tool.function.name),
      forced: tool_choice?.function?.name,
      wantsJson: response_format?.type === "json_schema",
    };
  },
  answerNumber: ({ messages }) => messages.filter(({ role }) => role === "user" || role === "tool").length,
  call: ({ name, input }) => ({ name, arguments: JSON.stringify(input) }),
  complete({ thought, text, calls, name }, { model }) {
    const message = { role: "assistant", content: text || null, refusal: null, annotations: [] };
    if (thought !== undefined) message.reasoning_content = thought;
    if (calls.length > 0) {
      message.tool_calls = calls.map((call) => ({
        id: `call_${call.id}`,
        type: "function",
        function: openai.call(call),
      }));
    }
    return {
      id: `chatcmpl-${name}`,
      object: "chat.completion",
      created: 1_700_000_000,
      model: `${model}-2026`,
      choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(calls) }],
      usage: USAGE,
      service_tier: "default",
      system_fingerprint: "fp_a",
    };
  },
  events({ thought, text, calls, name }, { model, stream_options }) {
    const wantsUsage = stream_options?.include_usage === true;
    const chunk = (choices, usage = null) => ({
      id: `chatcmpl-${name}`,
      object: "chat.completion.chunk",
      created: 1_700_000_000,
      model: `${model}-2026`,
      service_tier: "default",
      system_fingerprint: "fp_a",
      choices,
      ...(wantsUsage ? { usage } : {}),
    });
    const choice = (delta, finish_reason = null) => [{ index: 0, delta, logprobs: null, finish_reason }];
    const deltas = [{ role: "assistant", content: calls.length > 0 ? null : "", refusal: null }];
    if (thought !== undefined) deltas.push({ reasoning_content: thought });
    for (const word of text.match(/\S+\s*/g) ?? []) deltas.push({ content: word });
    for (const [index, call] of calls.entries()) {
      const { name, arguments: json } = openai.call(call);
      const head = { index, id: `call_${call.id}`, type: "function", function: { name, arguments: "" } };
      deltas.push({ tool_calls: [head] });
      for (const piece of [json.slice(0, 5), json.slice(5)])
        deltas.push({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
    const chunks = deltas.map((delta) => chunk(choice(delta)));
    chunks.push(chunk(choice({}, finishOf(calls))));
    if (wantsUsage) chunks.push(chunk([], USAGE));
    return [...chunks.map((it) => `data: ${JSON.stringify(it)}\n\n`), "data: [DONE]\n\n"];
  },
};

const anthropic = {
  refusal: { type: "error", error: { type: "invalid_request_error", message: "No." } },
  problemOf: problemOfMessage,
  read({ messages, tools = [], tool_choice, output_config, output_format }) {
    const { content } = messages.findLast(({ role }) => role !== "system");
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const result = blocks.find(({ type }) => type === "tool_result")?.content;
    return {
      text: blocks.map(({ text }) => text ?? "").join(""),
      result: Array.isArray(result) ? result.map(({ text }) => text).join("") : result,
      tools: tools.map(({ name }) => name),
      forced: tool_choice?.name,
      wantsJson: (output_config?.format ?? output_format)?.type === "json_schema",
    };
  },
  answerNumber: ({ messages }) => messages.filter(({ role }) => role === "user").length,
  blocks: ({ thought, text, calls }) => [
    ...(thought === undefined ? [] : [{ type: "thinking", thinking: thought, signature: "c2lnbmVk" }]),
    ...(text ? [{ type: "text", text, citations: null }] : []),
    ...calls.map(({ id, name, input }) => ({ type: "tool_use", id: `toolu_${id}`, name, input })),
  ],
  empty(block) {
    if (block.type === "text") return { ...block, text: "" };
    return block.type === "thinking" ? { ...block, thinking: "", signature: "" } : { ...block, input: {} };
  },
  pieces(block) {
    if (block.type === "text") return block.text.match(/\S+\s*/g).map((text) => ({ type: "text_delta", text }));
    if (block.type === "tool_use") return [{ type: "input_json_delta", partial_json: JSON.stringify(block.input) }];
    return [
      { type: "thinking_delta", thinking: block.thinking },
      { type: "signature_delta", signature: block.signature },
    ];
  },
  complete(answer, { model }) {
    return {
      id: `msg_${answer.name}`,
      type: "message",
      role: "assistant",
      model,
      content: anthropic.blocks(answer),
      stop_reason: answer.calls.length > 0 ? "tool_use" : "end_turn",
      stop_sequence: null,
      container: null,
      usage: { input_tokens: 11, output_tokens: 7, cache_read_input_tokens: 3, service_tier: "standard" },
    };
  },
  events(answer, { model }) {
    const events = [
      {
        type: "message_start",
        message: {
          ...anthropic.complete({ ...answer, text: "", calls: [], thought: undefined }, { model }),
          content: [],
          stop_reason: null,
          usage: { input_tokens: 11, output_tokens: 1, cache_read_input_tokens: 3 },
        },
      },
      { type: "ping" },
    ];
    for (const [index, block] of anthropic.blocks(answer).entries()) {
      events.push({ type: "content_block_start", index, content_block: anthropic.empty(block) });
      const pieces = anthropic.pieces(block);
      for (const delta of pieces) events.push({ type: "content_block_delta", index, delta });
      events.push({ type: "content_block_stop", index });
    }
    const stop_reason = answer.calls.length > 0 ? "tool_use" : "end_turn";
    events.push({ type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 7 } });
    events.push({ type: "message_stop" });
    return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  },
};

const APIS = { "/chat/completions": openai, "/responses": responses, "/messages": anthropic };

function json(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
