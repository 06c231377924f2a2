// A call of a registered tool, by the way that the Model Context Protocol opens to whoever
// holds the secret. The answer is data.

import { credential } from "../connection.ts";

interface Answer {
  error?: { message?: string };
  result?: { content?: ReadonlyArray<{ type: string; text?: string }>; isError?: boolean };
}

export async function callTool(
  agent: string,
  name: string,
  input: object,
): Promise<{ text: string; isError: boolean }> {
  const token = credential.peek();
  const response = await fetch(`/agents/session-agent/${encodeURIComponent(agent)}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } }),
  });
  const { error, result }: Answer = await response.json();
  if (result === undefined) throw new Error(error?.message ?? `The Worker answered with status ${response.status}.`);
  const texts = (result.content ?? []).map((part) => part.text ?? `(${part.type})`);
  return { text: texts.join("\n"), isError: result.isError === true };
}
