// The tools that the conformance suites call, behind a service binding. They answer in the
// protocol's own shape, or in plain text where that is all that is asked.

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
  // The suite calls these to see that nothing but the answer comes: no log, and no request
  // of the server's own.
  test_logging_tool: "Nothing was logged.",
  test_streaming_elicitation: "Nothing was asked.",
};

/** The Worker behind the binding `FIXTURE`. */
export const WORKER = `const ANSWERS = ${JSON.stringify(ANSWERS)};
export default {
  async fetch(request) {
    const { name } = await request.json();
    const answer = ANSWERS[name];
    return typeof answer === "string" ? new Response(answer) : Response.json(answer);
  },
};`;

/** The schema that has to come back as it was registered. */
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

/** What `defineTool` takes for each of them. */
export const TOOLS = Object.keys(ANSWERS).map((name) => ({
  name,
  description: `The conformance suite's ${name}.`,
  service: "FIXTURE",
  ...(name === "json_schema_2020_12_tool" && { parameters: SCHEMA }),
}));
