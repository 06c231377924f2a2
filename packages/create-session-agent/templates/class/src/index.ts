// An agent of your own: its model, its tools, its memory and its login. README.md explains how to try it.

import { tool } from "ai";
import { type Grant, type OwnBlock, routeSessionAgent, SessionAgent } from "session-agent/worker";
import { z } from "zod";

interface Env {
  SESSION_AGENT: DurableObjectNamespace<Assistant>;
}

export class Assistant extends SessionAgent<Env> {
  /**
   * The model. The demo needs no account. For another one, `npm install @ai-sdk/openai`, write the key
   * into `.dev.vars` as `OPENAI_API_KEY=…`, and return `openai("gpt-5-mini")`.
   */
  override model() {
    return "demo";
  }

  /** The tools that the model can call. They run here, in the Durable Object. */
  override tools() {
    return {
      clock: tool({
        description: "What time it is",
        inputSchema: z.object({}),
        execute: async () => new Date().toISOString(),
      }),
    };
  }

  /** The blocks of every prompt. The model writes `memory`. */
  override blocks(): OwnBlock[] {
    return [
      { label: "soul", kind: "readonly", provider: { get: async () => "You are a helpful assistant." } },
      {
        label: "memory",
        kind: "writable",
        description: "What matters in every conversation",
        maxTokens: 1100,
        // After a change, other conversations see the new text in their next turn.
        whenChanged: "remind",
      },
      { label: "facts", kind: "searchable", description: "Learned facts about the user" },
    ];
  }

  /**
   * The rights of each caller. Each user has one agent, named after them, which nobody else may use. So a
   * conversation may write the agent's memory (`agentMemory`), and facts learned from it are stored at once. If
   * several people share an agent, leave `agentMemory` out.
   */
  override async authorize(request: Request): Promise<Grant | null | undefined> {
    const user = await userOf(request);
    // If nobody is logged in, the default rules apply: a token gives access, as for the console, and with
    // `npm run dev` everybody on this machine has access.
    if (user === null) return undefined;
    if (user !== this.ctx.id.name) return null;
    return { preset: "chat", sessionId: "chat", allow: { agentMemory: true } };
  }

  /** Your own method, which your other Workers can call. Operations called inside the class have all rights. */
  async remember(text: string) {
    return await this.setEntry({ label: "facts", key: crypto.randomUUID(), content: text });
  }
}

/** The error that a deployed Worker returns until it has a login. */
class NoLogin extends Error {
  override message =
    "This Worker has no login yet, so it refuses all requests. Its placeholder accepts any cookie `user=…`, and works on localhost only. Write your own login in `userOf` in src/index.ts: verify a session cookie that you signed, or a JWT.";
}

/** The user who is logged in, or `null`. Replace this with your own authentication. */
async function userOf(request: Request): Promise<string | null> {
  // placeholder-login: trusts any cookie. `npm run deploy` refuses while this line is here.
  if (!["localhost", "127.0.0.1", "[::1]"].includes(new URL(request.url).hostname)) throw new NoLogin();
  return /(?:^|; )user=(\w+)(?:;|$)/.exec(request.headers.get("cookie") ?? "")?.[1] ?? null;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    try {
      await userOf(request);
    } catch (error) {
      if (!(error instanceof NoLogin)) throw error;
      return Response.json({ error: { code: "not_configured", message: error.message, details: {} } }, { status: 501 });
    }
    return (
      (await routeSessionAgent(request, env)) ??
      new Response("POST /agents/session-agent/{agent}/chat\n", { status: 404 })
    );
  },
};
