// The resources and prompts that the conformance suites request, offered by a class that extends
// SessionAgent.

import worker, { prompt, resource, SessionAgent as Base } from "session-agent/worker";

export default worker;

const PIXEL = Uint8Array.from(
  atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
  (letter) => letter.charCodeAt(0),
);

const RESOURCES = [
  resource({
    uri: "test://static-text",
    name: "Static text",
    read: () => "This is the content of the static text resource.",
  }),
  resource({ uri: "test://static-binary", name: "Static binary", mimeType: "image/png", read: () => PIXEL }),
  resource({
    uriTemplate: "test://template/{id}/data",
    name: "Template",
    mimeType: "application/json",
    complete: { id: ["123", "456"] },
    read: ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  }),
  resource({ uri: "test://watched-resource", name: "Watched", version: () => 1, read: () => "Nothing changes." }),
];

const embedded = (uri) => ({
  role: "user",
  content: {
    type: "resource",
    resource: { uri, mimeType: "text/plain", text: "Embedded resource content for testing." },
  },
});

const PROMPTS = [
  prompt({
    name: "test_simple_prompt",
    description: "A prompt without arguments",
    get: () => "This is a simple prompt for testing.",
  }),
  prompt({
    name: "test_prompt_with_arguments",
    description: "A prompt with arguments",
    arguments: [
      { name: "arg1", description: "The first", required: true, complete: ["test", "testValue1"] },
      { name: "arg2", description: "The second", required: true },
    ],
    get: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  }),
  prompt({
    name: "test_prompt_with_embedded_resource",
    description: "A prompt with a resource",
    arguments: [{ name: "resourceUri", description: "The resource", required: true }],
    get: ({ resourceUri }) => [
      embedded(resourceUri),
      { role: "user", content: "Please process the embedded resource above." },
    ],
  }),
  prompt({
    name: "test_prompt_with_image",
    description: "A prompt with an image",
    get: () => [
      { role: "user", content: { type: "image", data: PIXEL, mimeType: "image/png" } },
      { role: "user", content: "Please analyze the image above." },
    ],
  }),
  prompt({
    name: "test_input_required_result_prompt",
    description: "A prompt that asks for input",
    get: (_, { inputResponses }) =>
      inputResponses?.user_context
        ? `The context: ${JSON.stringify(inputResponses.user_context.content)}`
        : {
            resultType: "input_required",
            inputRequests: {
              user_context: {
                method: "elicitation/create",
                params: {
                  message: "What context should the prompt use?",
                  requestedSchema: {
                    type: "object",
                    properties: { context: { type: "string" } },
                    required: ["context"],
                  },
                },
              },
            },
          },
  }),
];

export class SessionAgent extends Base {
  mcp() {
    return { resources: RESOURCES, prompts: PROMPTS };
  }
}
