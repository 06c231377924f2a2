// src/worker.ts
import { sessionAgent } from "session-agent";

interface Env {
  MEMORY: Fetcher; // the service binding to Session Agent
  SESSION_AGENT_TOKEN: string;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/api/token" && request.method === "POST") return await giveToken(request, env);
    if (pathname.startsWith("/agents/")) return await env.MEMORY.fetch(request);
    return new Response("Nothing here.", { status: 404 });
  },
};

async function giveToken(request: Request, env: Env): Promise<Response> {
  const user = userOf(request);
  if (user === null) return new Response("Log in first.", { status: 401 });
  const agent = sessionAgent(env.MEMORY, `user:${user}`, { token: env.SESSION_AGENT_TOKEN });
  const { token, expiresAt } = await agent.mintToken({ preset: "chat", sessionId: "main", expiresIn: 3600 });
  return Response.json({ agent: agent.name, sessionId: "main", token, expiresAt });
}

/** Your own login: a session cookie, a JWT. */
function userOf(request: Request): string | null {
  return /user=(\w+)/.exec(request.headers.get("cookie") ?? "")?.[1] ?? null;
}
