// Converts to the AI SDK's types, without importing it: a context into messages for `streamText`, and
// the agent's tools into its tools. ai_sdk_turn.js reads turns.

import type { BuiltContext, ContextMessage, ListedTool, ToolOutcome } from "./operations.js";

/** The symbols that mark a schema of the AI SDK. Version 5 also requires the second one. */
const SCHEMA = Symbol.for("vercel.ai.schema");
const VALIDATOR = Symbol.for("vercel.ai.validator");

/** A message for a model, in the AI SDK's format. */
export type AiMessage =
  | {
      role: "user";
      content:
        | string
        | Array<{ type: "text"; text: string } | { type: "file"; data: string; mediaType: string; filename?: string }>;
    }
  | {
      role: "assistant";
      content:
        | string
        | Array<
            { type: "text"; text: string } | { type: "tool-call"; toolCallId: string; toolName: string; input: unknown }
          >;
    }
  | {
      role: "tool";
      content: Array<{
        type: "tool-result";
        toolCallId: string;
        toolName: string;
        output: { type: "text" | "error-text"; value: string };
      }>;
    };

/** A tool of the AI SDK. */
export interface MemoryTool {
  description: string;
  /** A JSON Schema as a schema of the AI SDK. */
  inputSchema: any;
  execute(input: any, options?: { abortSignal?: AbortSignal }): Promise<string>;
}

/** The tools that `getTools` lists, as tools of the AI SDK. `run(name, input, signal)` runs one of them. */
export function toolsOf(
  listed: ListedTool[],
  run: (name: string, input: any, signal?: AbortSignal) => Promise<ToolOutcome>,
): { [name: string]: MemoryTool } {
  const tool = ({ name, description, parameters }: ListedTool): MemoryTool => ({
    description,
    inputSchema: { [SCHEMA]: true, [VALIDATOR]: true, jsonSchema: parameters, validate: undefined },
    async execute(input, { abortSignal } = {}) {
      const { output, isError } = await run(name, input, abortSignal);
      // If a tool throws, the SDK passes the error to the model and continues.
      if (isError) throw new Error(output);
      return output;
    },
  });
  return Object.fromEntries(listed.map((one) => [one.name, tool(one)]));
}

/** A built context as `{ system, messages }`. The SDK accepts no system message among the others. */
export function promptOf({ systemInstructions, messages: given, reminder }: BuiltContext): {
  system: string;
  messages: AiMessage[];
} {
  const names = new Map(given.flatMap(({ toolCalls }) => toolCalls ?? []).map(({ id, name }) => [id, name]));
  const isSystem = ({ role }: ContextMessage) => role === "system";
  const messages = given.filter((message) => !isSystem(message)).map((message) => toModelMessage(message, names));
  if (reminder)
    messages.splice(messages.findLastIndex(({ role }) => role === "user") + 1 || messages.length, 0, {
      role: "user",
      content: reminder,
    });
  const texts = [...systemInstructions, ...given.filter(isSystem).map(({ content }) => content)];
  return { system: texts.filter((text) => text !== "").join("\n\n"), messages };
}

function toModelMessage(
  { role, content, toolCalls, toolCallId, toolName, isError, files }: ContextMessage,
  names: Map<string, string>,
): AiMessage {
  if (role === "tool") {
    const id = toolCallId ?? "";
    const output = { type: isError ? ("error-text" as const) : ("text" as const), value: content };
    return {
      role,
      content: [{ type: "tool-result", toolCallId: id, toolName: toolName ?? names.get(id) ?? "", output }],
    };
  }
  const parts =
    role === "user"
      ? (files ?? []).map(({ url, mediaType, filename }) => ({
          type: "file",
          data: url,
          mediaType,
          ...(filename && { filename }),
        }))
      : (toolCalls ?? []).map((call) => ({
          type: "tool-call",
          toolCallId: call.id,
          toolName: call.name,
          input: call.arguments,
        }));
  if (parts.length === 0) return { role, content } as AiMessage;
  return { role, content: [...(content ? [{ type: "text", text: content }] : []), ...parts] } as AiMessage;
}
