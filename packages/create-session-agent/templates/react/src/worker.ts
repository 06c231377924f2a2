// The Worker behind the page: it logs visitors in, and passes their requests to their agents.
// The page itself is static files, which the platform serves.

import { tool } from "ai";
import { routeSessionAgent, SessionAgent } from "session-agent/worker";
import { z } from "zod";

interface Env {
  SESSION_AGENT: DurableObjectNamespace<Assistant>;
}

/** The page asks for a new token before the old one's time is over. */
const TOKEN_SECONDS = 900;
const VISITOR = /(?:^|; )visitor=([0-9a-f-]{36})(?:;|$)/;

export class Assistant extends SessionAgent<Env> {
  // The model of the AI SDK that answers, such as
  //
  //   model() { return openai("gpt-5-mini"); }
  //
  // Without this method: Workers AI where it is bound, or a demo that needs no account.

  /** The tools of the model. They run here, in the object. */
  tools() {
    return {
      clock: tool({
        description: "What time it is",
        inputSchema: z.object({}),
        execute: async () => new Date().toISOString(),
      }),
      book: tool({
        description: "Books a table for dinner",
        inputSchema: z.object({ place: z.string() }),
        // The visitor is asked first.
        needsApproval: true,
        execute: async ({ place }) => `A table at ${place} is booked.`,
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
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/api/login" && request.method === "POST") return await login(request, env);
    // The object asks for the token itself.
    return (await routeSessionAgent(request, env)) ?? new Response("Not found.\n", { status: 404 });
  },
};

/**
 * A token for one chat of the visitor's own agent. Put your own login here: who knows the
 * cookie is the visitor.
 */
async function login(request: Request, env: Env): Promise<Response> {
  // Another site's page could make a visitor somebody else.
  const site = request.headers.get("sec-fetch-site");
  if (site !== null && site !== "same-origin") return refuse(403, "Only this page logs in here.");
  const { sessionId } = await request.json<{ sessionId?: unknown }>().catch(() => ({ sessionId: undefined }));
  if (typeof sessionId !== "string") return refuse(400, "The chat's `sessionId` is missing.");
  const known = VISITOR.exec(request.headers.get("cookie") ?? "")?.[1];
  const visitor = known ?? crypto.randomUUID();
  const agent = `visitor:${visitor}`;
  // The agent is this visitor's alone, so that every chat may write its memory.
  const asked = { preset: "chat" as const, sessionId, expiresIn: TOKEN_SECONDS, allow: { agentMemory: true } };
  try {
    const { token } = await env.SESSION_AGENT.getByName(agent).mintToken(asked);
    const secure = request.url.startsWith("https:") ? "; Secure" : "";
    const cookie = `visitor=${visitor}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000${secure}`;
    return Response.json({ agent, token, expiresIn: TOKEN_SECONDS }, { headers: { "set-cookie": cookie } });
  } catch (error) {
    return refuse(500, (error as Error).message);
  }
}

/** A sentence for the page. */
function refuse(status: number, message: string): Response {
  return Response.json({ error: { message } }, { status });
}
