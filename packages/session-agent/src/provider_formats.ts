// Converts a context into the formats of OpenAI's chat completions and of Anthropic's messages.

import type { ModelMessage } from "./events.js";
import type { ModelFormatAdapter } from "./workers_ai.js";

export interface OpenAIChatMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: any;
  tool_call_id?: string;
  tool_calls?: Array<{ id: string; type: "function"; function: { name: string; arguments: string } }>;
}

/** The input of `openai.chat.completions.create`, to spread next to `model`. */
export const openAIAdapter: ModelFormatAdapter<{ messages: any[] }> = {
  name: "openai",

  toModelMessages(systemInstructions, messages) {
    const system = systemOf(systemInstructions);
    return {
      messages: [...(system === "" ? [] : [{ role: "system", content: system }]), ...messages.map(toOpenAI)],
    };
  },
};

function toOpenAI({ role, content, toolCalls, toolCallId, files = [] }: ModelMessage): OpenAIChatMessage {
  if (role === "tool") return { role, content, tool_call_id: toolCallId ?? "" };
  if (role === "assistant" && toolCalls?.length) {
    const calls = toolCalls.map(({ id, name, arguments: given }) => ({
      id,
      type: "function" as const,
      function: { name, arguments: JSON.stringify(given) },
    }));
    return { role, content: content || null, tool_calls: calls };
  }
  if (role !== "user" || files.length === 0) return { role, content };
  const parts = files.map(({ url, mediaType, filename }) =>
    mediaType.startsWith("image/")
      ? { type: "image_url", image_url: { url } }
      : { type: "file", file: { file_data: url, filename: filename ?? "file" } },
  );
  return { role, content: [...(content ? [{ type: "text", text: content }] : []), ...parts] };
}

/** The input of `anthropic.messages.create`, to spread next to `model` and `max_tokens`. */
export const anthropicAdapter: ModelFormatAdapter<{ system?: string; messages: any[] }> = {
  name: "anthropic",

  /** Anthropic's conversations contain no system messages; they are in `system`. */
  toModelMessages(systemInstructions, messages) {
    const isSystem = ({ role }: ModelMessage): boolean => role === "system";
    const system = systemOf([...systemInstructions, ...messages.filter(isSystem).map(({ content }) => content)]);
    const turned: Array<{ role: "user" | "assistant"; content: any[] }> = [];
    for (const message of messages.filter((one) => !isSystem(one))) {
      const role = message.role === "assistant" ? "assistant" : "user";
      const content = blocksOf(message);
      // Roles must alternate, and the results of a step are in one message.
      const last = turned.at(-1);
      if (content.length === 0) continue;
      if (last?.role === role) last.content.push(...content);
      else turned.push({ role, content });
    }
    return { ...(system !== "" && { system }), messages: turned };
  },
};

function blocksOf({ role, content, toolCalls, toolCallId, isError, files = [] }: ModelMessage): object[] {
  if (role === "tool")
    return [
      { type: "tool_result", tool_use_id: nameOf(toolCallId ?? ""), content, ...(isError && { is_error: true }) },
    ];
  return [
    ...files.map(({ url, mediaType }) => ({
      type: mediaType.startsWith("image/") ? "image" : "document",
      source: sourceOf(url, mediaType),
    })),
    // The API rejects a text of only whitespace.
    ...(content.trim() === "" ? [] : [{ type: "text", text: content }]),
    ...(toolCalls ?? []).map(({ id, name, arguments: input }) => ({ type: "tool_use", id: nameOf(id), name, input })),
  ];
}

function sourceOf(url: string, mediaType: string): object {
  const [, data] = /^data:[^,]*;base64,(.*)$/s.exec(url) ?? [];
  return data === undefined ? { type: "url", url } : { type: "base64", media_type: mediaType, data };
}

/** Anthropic's ids allow few characters. Others are escaped, as is the escape itself, so ids stay distinct. */
const nameOf = (id: string): string =>
  /^[\w-]+$/.test(id) && !/_[0-9a-f]+_/.test(id)
    ? id
    : id.replaceAll(/[^A-Za-z0-9-]/gu, (letter) => `_${letter.codePointAt(0)!.toString(16)}_`);

const systemOf = (texts: string[]): string => texts.filter((text) => text !== "").join("\n\n");
