// A context in the shape of Workers AI's chat completions.

export const workersAIAdapter = {
  name: "workers-ai",

  /** The input of `env.AI.run(model, input)`. */
  toModelMessages(systemInstructions, messages) {
    const system = systemInstructions.length > 0 ? [{ role: "system", content: systemInstructions.join("\n\n") }] : [];
    return { messages: [...system, ...messages.map(toMessage)] };
  },
};

function toMessage({ role, content, toolCalls, toolCallId, toolName }) {
  const message = { role, content: content ?? "" };
  if (role === "assistant" && toolCalls?.length) {
    message.tool_calls = toolCalls.map(({ id, name, arguments: given }) => ({
      id,
      type: "function",
      function: { name, arguments: JSON.stringify(given) },
    }));
  }
  if (role === "tool") {
    message.tool_call_id = toolCallId;
    if (toolName) message.name = toolName;
  }
  return message;
}
