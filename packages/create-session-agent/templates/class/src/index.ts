// An agent of your own: `npm run dev`, then
//
//   curl localhost:8787/agents/session-agent/ann/rpc/runTurn -H 'cookie: user=ann' \
//     -d '{"sessionId": "chat", "message": {"id": "1", "role": "user",
//          "parts": [{"type": "text", "text": "Remember that I like tea."}]}}'

import { tool } from "ai";
import { routeSessionAgent, SessionAgent } from "session-agent/worker";
import { z } from "zod";

interface Env {
  SESSION_AGENT: DurableObjectNamespace<Assistant>;
}

export class Assistant extends SessionAgent<Env> {
  /** The model: one of the AI SDK's, such as `openai("gpt-5-mini")`. The demo needs no account. */
  model() {
    return "demo";
  }

  /** The tools of the model. They run here, in the object. */
  tools() {
    return {
      clock: tool({
        description: "What time it is",
        inputSchema: z.object({}),
        execute: async () => new Date().toISOString(),
      }),
    };
  }

  /** The blocks of every prompt. The model writes `memory`. */
  blocks() {
    return [
      { label: "soul", kind: "readonly" as const, provider: { get: async () => "You are a helpful assistant." } },
      {
        label: "memory",
        kind: "writable" as const,
        description: "What matters in every conversation",
        maxTokens: 1100,
        // Other conversations know of a change in their next turn.
        whenChanged: "remind" as const,
      },
      { label: "facts", kind: "searchable" as const, description: "What was learnt of the user" },
    ];
  }

  /**
   * The rights of each caller. Put your own login here: a session cookie, a JWT. Each user has the
   * agent of this name, so a conversation may write the agent's memory.
   */
  authorize(request: Request) {
    const user = /user=(\w+)/.exec(request.headers.get("cookie") ?? "")?.[1];
    if (user === undefined || user !== this.ctx.id.name) return null;
    return { preset: "chat" as const, sessionId: "chat", allow: { agentMemory: true } };
  }

  /** A method of your own, for your other Workers. Inside, operations have all rights. */
  async remember(text: string) {
    return await this.setEntry({ label: "facts", key: crypto.randomUUID(), content: text });
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    return (
      (await routeSessionAgent(request, env)) ??
      new Response("POST /agents/session-agent/{agent}/chat\n", { status: 404 })
    );
  },
};
