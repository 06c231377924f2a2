// OpenAI's Responses as the provider of these tests speaks them: see provider_server.mjs.

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

/** The fields of a request that the answer doesn't repeat. */
const ASKED = ["model", "input", "stream", "include", "stream_options", "conversation"];

let answers = 0;

export const responses = {
  refusal: { error: { message: "No.", type: "invalid_request_error", param: "messages", code: "refused" } },
  problemOf: problemOfResponse,
  read({ input, tools = [], tool_choice, text: wanted }) {
    const last = typeof input === "string" ? { content: input } : input.at(-1);
    const content = last.type === "function_call_output" ? last.output : last.content;
    const text = typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("");
    return {
      text,
      result: last.type === "function_call_output" ? text : undefined,
      tools: tools.map(({ name }) => name),
      forced: tool_choice?.name,
      wantsJson: wanted?.format?.type === "json_schema",
    };
  },
  countSaid: () => (answers += 1),
  items({ text, calls, name: answer }) {
    const items = calls.map(({ id, name, input }) => ({
      type: "function_call",
      status: "completed",
      call_id: `call_${id}`,
      name,
      arguments: JSON.stringify(input),
    }));
    const content = [{ type: "output_text", annotations: [], logprobs: [], text }];
    if (text) items.unshift({ type: "message", status: "completed", role: "assistant", content });
    const prefix = ({ type }) => (type === "message" ? "msg" : "fc");
    return items.map((item, index) => ({ id: `${prefix(item)}_${answer}_${index}`, ...item }));
  },
  whole(said, body) {
    const echo = Object.fromEntries(Object.entries(body).filter(([field]) => !ASKED.includes(field)));
    return {
      id: `resp_${said.name}`,
      object: "response",
      created_at: 1_700_000_000,
      status: "completed",
      error: null,
      incomplete_details: null,
      model: body.model,
      ...DEFAULTS,
      ...echo,
      output: responses.items(said),
      usage: USAGE,
    };
  },
  events(said, body) {
    const whole = responses.whole(said, body);
    const begun = { ...whole, status: "in_progress", output: [], usage: null };
    const events = [
      { type: "response.created", response: begun },
      { type: "response.in_progress", response: begun },
    ];
    for (const [output_index, item] of whole.output.entries()) {
      const at = { item_id: item.id, output_index };
      const isText = item.type === "message";
      const empty = { ...item, status: "in_progress", ...(isText ? { content: [] } : { arguments: "" }) };
      events.push({ type: "response.output_item.added", output_index, item: empty });
      events.push(...(isText ? textEvents(at, item.content[0]) : callEvents(at, item)));
      events.push({ type: "response.output_item.done", output_index, item });
    }
    events.push({ type: "response.completed", response: whole });
    return events.map((event, sequence_number) => {
      const data = JSON.stringify({ ...event, sequence_number });
      return `event: ${event.type}\ndata: ${data}\n\n`;
    });
  },
};

function textEvents(item, part) {
  const at = { ...item, content_index: 0 };
  return [
    { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
    ...part.text.match(/\S+\s*/g).map((delta) => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
    { type: "response.output_text.done", ...at, text: part.text, logprobs: [] },
    { type: "response.content_part.done", ...at, part },
  ];
}

function callEvents(at, { arguments: whole }) {
  return [
    ...[whole.slice(0, 5), whole.slice(5)].map((delta) => ({
      type: "response.function_call_arguments.delta",
      ...at,
      delta,
    })),
    { type: "response.function_call_arguments.done", ...at, arguments: whole },
  ];
}
