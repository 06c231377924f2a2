// The tools that the conformance suites call, behind a service binding. They answer in the
// protocol's own format, or in plain text where that suffices. The resources and prompts are in
// own_class.mjs.

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const audio = { type: "audio", data: SILENCE, mimeType: "audio/wav" };
const resource = {
  type: "resource",
  resource: { uri: "test://embedded-resource", mimeType: "text/plain", text: "This is an embedded resource content." },
};

const ANSWERS = {
  test_simple_text: "This is a simple text response for testing.",
  test_image_content: { content: [image] },
  test_audio_content: { content: [audio] },
  test_embedded_resource: { content: [resource] },
  test_multiple_content_types: {
    content: [
      { type: "text", text: "Multiple content types test:" },
      image,
      {
        type: "resource",
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: '{"test":"data","value":123}',
        },
      },
    ],
  },
  test_error_handling: {
    content: [{ type: "text", text: "This tool intentionally returns an error for testing" }],
    isError: true,
  },
  json_schema_2020_12_tool: "Taken.",
};

const form = (message, properties) => ({
  method: "elicitation/create",
  params: { message, requestedSchema: { type: "object", properties, required: Object.keys(properties) } },
});
const text = { type: "string" };
const sampling = {
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text: "Test prompt" } }], maxTokens: 100 },
};
const roots = { method: "roots/list", params: {} };
const ok = form("Please confirm", { ok: { type: "boolean" } });

/** The questions of tools that ask once and accept any answer. */
const QUESTIONS = {
  test_missing_capability: { thought: sampling },
  test_streaming_elicitation: { name: form("Who?", { name: text }) },
  test_sampling: { thought: sampling },
  test_elicitation: { user: form("Please provide your information", { username: text, email: text }) },
  test_elicitation_sep1034_defaults: {
    user: form("Please check", {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    }),
  },
  test_elicitation_sep1330_enums: {
    choice: form("Please choose", {
      untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
      titledSingle: {
        type: "string",
        oneOf: [
          { const: "value1", title: "First Option" },
          { const: "value2", title: "Second Option" },
          { const: "value3", title: "Third Option" },
        ],
      },
      legacyEnum: {
        type: "string",
        enum: ["opt1", "opt2", "opt3"],
        enumNames: ["Option One", "Option Two", "Option Three"],
      },
      untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
      titledMulti: {
        type: "array",
        items: {
          anyOf: [
            { const: "value1", title: "First Choice" },
            { const: "value2", title: "Second Choice" },
            { const: "value3", title: "Third Choice" },
          ],
        },
      },
    }),
  },
  test_input_required_result_elicitation: { user_name: form("What is your name?", { name: text }) },
  test_input_required_result_sampling: { capital_question: sampling },
  test_input_required_result_list_roots: { client_roots: roots },
  test_input_required_result_request_state: { confirm: ok },
  test_input_required_result_multiple_inputs: {
    user_name: form("What is your name?", { name: text }),
    greeting: sampling,
    client_roots: roots,
  },
  test_input_required_result_tampered_state: { confirm: ok },
  test_input_required_result_capabilities: { confirm: ok, thought: sampling },
};

/** The questions of a tool that asks twice, by the returned state. */
const ROUNDS = {
  test_input_required_result_multi_round: [
    { step1: form("Step 1: What is your name?", { name: text }) },
    { step2: form("Step 2: What is your favorite color?", { color: text }) },
  ],
};
for (const [name, questions] of Object.entries(QUESTIONS)) ROUNDS[name] = [questions];

/** The notifications that tools send while they run. */
const progress = (progress) => ({ method: "notifications/progress", params: { progress, total: 100 } });
const log = (data) => ({ method: "notifications/message", params: { level: "info", data } });
const NOTIFICATIONS = {
  test_tool_with_progress: [progress(0), progress(50), progress(100)],
  test_tool_with_logging: [log("Tool execution started"), log("Tool processing data"), log("Tool execution completed")],
  // The suite calls it to check that a client that requests no log gets none.
  test_logging_tool: [log("Nobody asked for this.")],
};

/** The Worker behind the binding `FIXTURE`. */
export const WORKER = `const ANSWERS = ${JSON.stringify(ANSWERS)};
const ROUNDS = ${JSON.stringify(ROUNDS)};
const TOLD = ${JSON.stringify(NOTIFICATIONS)};
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
function tell(messages) {
  const encoder = new TextEncoder();
  const { readable, writable } = new TransformStream();
  const writer = writable.getWriter();
  const send = (message) => writer.write(encoder.encode("data: " + JSON.stringify(message) + "\\n\\n"));
  (async () => {
    for (const message of messages) {
      await send(message);
      await pause();
    }
    await send({ result: "The tool has told all." });
    await writer.close();
  })();
  return new Response(readable, { headers: { "content-type": "text/event-stream" } });
}
export default {
  async fetch(request) {
    const { name, inputResponses, requestState } = await request.json();
    if (name in TOLD) return tell(TOLD[name]);
    if (name in ROUNDS) {
      const round = Number(requestState ?? 0);
      const isAnswered = Object.keys(ROUNDS[name][round]).some((question) => inputResponses?.[question]);
      const next = isAnswered ? round + 1 : round;
      const inputRequests = ROUNDS[name][next];
      return inputRequests === undefined
        ? new Response("state-ok " + JSON.stringify(inputResponses))
        : Response.json({ resultType: "input_required", inputRequests, requestState: String(next) });
    }
    const answer = ANSWERS[name];
    return typeof answer === "string" ? new Response(answer) : Response.json(answer);
  },
};`;

/** The schema that must come back as registered. */
const SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

/** The definition of each tool, as `defineTool` takes it. */
export const TOOLS = Object.keys({ ...ANSWERS, ...ROUNDS, ...NOTIFICATIONS }).map((name) => ({
  name,
  description: `The conformance suite's ${name}.`,
  service: "FIXTURE",
  ...(name === "json_schema_2020_12_tool" && { parameters: SCHEMA }),
}));
