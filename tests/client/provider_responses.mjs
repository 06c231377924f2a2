// OpenAI's Responses API of the test provider: see provider_server.mjs.

import { problemOfResponse } from "./provider_rules.mjs";

const USAGE = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 3 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 18,
};

const DEFAULTS = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  service_tier: "default",
  store: true,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
  user: null,
};

const RESULTS = ["function_call_output", "custom_tool_call_output"];

/** The fields of a request that the answer doesn't repeat. */
const UNECHOED = ["model", "input", "stream", "include", "stream_options", "conversation"];

/** The citation in an answer that searched the web. */
const CITED = { type: "url_citation", url: "https://example.com/", title: "An example", start_index: 0, end_index: 8 };

const SEARCH = { type: "web_search_call", status: "completed", action: { type: "search", query: "an example" } };

const PREFIXES = {
  message: "msg",
  function_call: "fc",
  custom_tool_call: "ctc",
  reasoning: "rs",
  web_search_call: "ws",
};

const FAILED = { code: "server_error", message: "Sorry." };

let answers = 0;

export const responses = {
  refusal: { error: { message: "No.", type: "invalid_request_error", param: "messages", code: "refused" } },
  problemOf: problemOfResponse,
  read({ input, tools = [], tool_choice, text: wanted }) {
    const last = typeof input === "string" ? { content: input } : input.at(-1);
    const isResult = RESULTS.includes(last.type);
    const content = isResult ? last.output : last.content;
    const text = typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
    return {
      text,
      result: isResult ? text : undefined,
      tools: tools.map(({ name, type }) => name ?? type),
      forced: tool_choice?.name,
      wantsJson: wanted?.format?.type === "json_schema",
    };
  },
  answerNumber: () => (answers += 1),
  items({ thought, searches, custom, text, calls, name: answer }, { include = [] }) {
    const items = calls.map(({ id, name, input }) => ({
      type: "function_call",
      status: "completed",
      call_id: `call_${id}`,
      name,
      arguments: JSON.stringify(input),
    }));
    const annotations = searches ? [CITED] : [];
    const content = [{ type: "output_text", annotations, logprobs: [], text }];
    if (text) items.unshift({ type: "message", status: "completed", role: "assistant", content });
    if (custom) items.push({ ...custom, type: "custom_tool_call", status: "completed", call_id: `call_c${answer}` });
    if (searches) items.unshift(SEARCH);
    if (thought) {
      const summary = [{ type: "summary_text", text: thought }];
      const sealed = include.includes("reasoning.encrypted_content");
      items.unshift({ type: "reasoning", summary, ...(sealed ? { encrypted_content: `sealed ${thought}` } : {}) });
    }
    return items.map((item, index) => ({ id: `${PREFIXES[item.type]}_${answer}_${index}`, ...item }));
  },
  complete(answer, body) {
    const echo = Object.fromEntries(Object.entries(body).filter(([field]) => !UNECHOED.includes(field)));
    if (typeof body.conversation === "string") echo.conversation = { id: body.conversation };
    else if (body.conversation) echo.conversation = body.conversation;
    return {
      id: `resp_${answer.name}`,
      object: "response",
      created_at: 1_700_000_000,
      status: answer.fails ? "failed" : "completed",
      error: answer.fails ? FAILED : null,
      incomplete_details: null,
      model: body.model,
      ...DEFAULTS,
      ...echo,
      output: answer.fails ? [] : responses.items(answer, body),
      usage: USAGE,
    };
  },
  events(answer, body) {
    const complete = responses.complete(answer, body);
    const started = { ...complete, status: "in_progress", output: [], usage: null };
    const events = [
      { type: "response.created", response: started },
      { type: "response.in_progress", response: started },
    ];
    for (const [output_index, item] of complete.output.entries()) {
      const at = { item_id: item.id, output_index };
      const { empty, events: inner } = PIECES[item.type](at, item);
      events.push({ type: "response.output_item.added", output_index, item: { ...item, ...empty } });
      events.push(...inner);
      events.push({ type: "response.output_item.done", output_index, item });
    }
    events.push({ type: `response.${complete.status}`, response: complete });
    return events.map((event, sequence_number) => {
      const data = JSON.stringify({ ...event, sequence_number });
      return `event: ${event.type}\ndata: ${data}\n\n`;
    });
  },
};

/** For each kind of item: its fields when it begins, and its events. */
const PIECES = {
  message: (at, { content: [part] }) => ({
    empty: { status: "in_progress", content: [] },
    events: textEvents(at, part),
  }),
  function_call: (at, { arguments: json }) => ({
    empty: { status: "in_progress", arguments: "" },
    events: callEvents("response.function_call_arguments", "arguments", at, json),
  }),
  custom_tool_call: (at, { input }) => ({
    empty: { status: "in_progress", input: "" },
    events: callEvents("response.custom_tool_call_input", "input", at, input),
  }),
  reasoning: (at, { summary: [part] }) => ({ empty: { summary: [] }, events: thoughtEvents(at, part) }),
  web_search_call: (at) => ({
    empty: { status: "in_progress" },
    events: ["in_progress", "searching", "completed"].map((step) => ({
      type: `response.web_search_call.${step}`,
      ...at,
    })),
  }),
};

function textEvents(item, part) {
  const at = { ...item, content_index: 0 };
  return [
    { type: "response.content_part.added", ...at, part: { ...part, text: "", annotations: [] } },
    ...wordsOf(part.text).map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
    ...part.annotations.map((annotation, annotation_index) => ({
      type: "response.output_text.annotation.added",
      ...at,
      annotation_index,
      annotation,
    })),
    { type: "response.output_text.done", ...at, text: part.text, logprobs: [] },
    { type: "response.content_part.done", ...at, part },
  ];
}

function thoughtEvents(item, part) {
  const at = { ...item, summary_index: 0 };
  const kind = "response.reasoning_summary";
  return [
    { type: `${kind}_part.added`, ...at, part: { ...part, text: "" } },
    ...wordsOf(part.text).map((delta) => ({ type: `${kind}_text.delta`, ...at, delta })),
    { type: `${kind}_text.done`, ...at, text: part.text },
    { type: `${kind}_part.done`, ...at, part },
  ];
}

function callEvents(kind, field, at, json) {
  const pieces = [json.slice(0, 5), json.slice(5)];
  return [
    ...pieces.map((delta) => ({ type: `${kind}.delta`, ...at, delta })),
    { type: `${kind}.done`, ...at, [field]: json },
  ];
}

const wordsOf = (text) => text.match(/\S+\s*/g);
