// Converts a context to the format of Workers AI's chat completions.

import type { ModelMessage } from "./events.js";

/** Converts a context to the input of one provider. It has no state. */
export interface ModelFormatAdapter<Input = unknown> {
  readonly name: string;
  toModelMessages(systemInstructions: string[], messages: ModelMessage[]): Input;
}

export interface WorkersAIChatMessage {
  role: "user" | "assistant" | "tool" | "system";
  content: string;
  name?: string;
  tool_call_id?: string;
  tool_calls?: Array<{ id: string; type: "function"; function: { name: string; arguments: string } }>;
}

export const workersAIAdapter: ModelFormatAdapter<{ messages: WorkersAIChatMessage[] }> = {
  name: "workers-ai",

  /** The input of `env.AI.run(model, input)`. */
  toModelMessages(systemInstructions, messages) {
    const system: WorkersAIChatMessage[] =
      systemInstructions.length > 0 ? [{ role: "system", content: systemInstructions.join("\n\n") }] : [];
    return { messages: [...system, ...messages.map(toMessage)] };
  },
};

function toMessage({ role, content, toolCalls, toolCallId, toolName }: ModelMessage): WorkersAIChatMessage {
  const message: WorkersAIChatMessage = { role, content: content ?? "" };
  if (role === "assistant" && toolCalls?.length) {
    message.tool_calls = toolCalls.map(({ id, name, arguments: given }) => ({
      id,
      type: "function",
      function: { name, arguments: JSON.stringify(given) },
    }));
  }
  if (role === "tool") {
    if (typeof toolCallId === "string") message.tool_call_id = toolCallId;
    if (toolName) message.name = toolName;
  }
  return message;
}
