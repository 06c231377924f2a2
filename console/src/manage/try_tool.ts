// Calls a registered tool through the agent's MCP endpoint. The answer is untrusted data.

import { credential } from "../connection.ts";

export interface Answer {
  /** `refused`: the Worker refuses such calls from this page. */
  kind: "answered" | "failed" | "refused";
  text: string;
}

interface Body {
  error?: { message?: string };
  result?: { content?: ReadonlyArray<{ type: string; text?: string }>; isError?: boolean };
}

export async function callTool(agent: string, name: string, input: object): Promise<Answer> {
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
  const { error, result }: Body = await response.json();
  const reason = error?.message ?? `The Worker returned status ${response.status}.`;
  // Without a credential, the only reason for a refusal is the request's origin.
  if (response.status === 403 && token === null) return { kind: "refused", text: reason };
  if (result === undefined) throw new Error(reason);
  const texts = (result.content ?? []).map((part) => part.text ?? `(${part.type})`);
  return { kind: result.isError === true ? "failed" : "answered", text: texts.join("\n") };
}
