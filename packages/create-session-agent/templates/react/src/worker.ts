// The Worker behind the page: it logs visitors in, and passes their requests to their agents.
// The page itself is static files, which the platform serves.

import { tool } from "ai";
import { type OwnBlock, routeSessionAgent, SessionAgent } from "session-agent/worker";
import { z } from "zod";

interface Env {
  SESSION_AGENT: DurableObjectNamespace<Assistant>;
}

/** The page asks for a new token before the old one expires. */
const TOKEN_SECONDS = 900;

/** The operations that the page uses. The visitor's token allows nothing else. */
const OPERATIONS = [
  // Chats
  ...["listSessions", "updateSession", "getHistory", "loadEvents", "getBranches", "setLeaf"],
  ...["chat", "runTurn", "cancelTurn", "getTurns"],
  // The memory panel
  ...["getBlocks", "setBlock", "listEntries", "deleteEntry", "getProposals", "decideProposal"],
];

/** The cookie's name. Over HTTPS, no other host, not even a subdomain, can set a cookie with the prefix `__Host-`. */
const SECURE_COOKIE = "__Host-visitor";
const LOCAL_COOKIE = "visitor";
const VISITOR = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class Assistant extends SessionAgent<Env> {
  // To use a model of the AI SDK, run `npm install @ai-sdk/openai`, write the key into `.dev.vars`
  // as `OPENAI_API_KEY=…`, and add
  //
  //   override model() { return openai("gpt-5-mini"); }
  //
  // Without this method, the agent uses Workers AI if it is bound, and else a demo that needs no account.

  /** The tools that the model can call. They run here, in the Durable Object. */
  override tools() {
    return {
      clock: tool({
        description: "What time it is",
        inputSchema: z.object({}),
        execute: async () => new Date().toISOString(),
      }),
      book: tool({
        description: "Books a table for dinner",
        inputSchema: z.object({ place: z.string() }),
        // The visitor must approve each call.
        needsApproval: true,
        execute: async ({ place }) => `A table at ${place} is booked.`,
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
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/api/login" && request.method === "POST") return await login(request, env);
    // The Durable Object checks the token.
    return (await routeSessionAgent(request, env)) ?? new Response("Not found.\n", { status: 404 });
  },
};

/**
 * Returns a token for the visitor's own agent. Replace the cookie check with your own
 * authentication: it trusts anyone who has the cookie.
 */
async function login(request: Request, env: Env): Promise<Response> {
  if (!isOurPage(request)) return refuse(403, "Only this page logs in here.");
  const isSecure = request.url.startsWith("https:");
  const name = isSecure ? SECURE_COOKIE : LOCAL_COOKIE;
  const visitor = cookieOf(request, name) ?? crypto.randomUUID();
  const agent = await agentOf(visitor);
  // The agent belongs only to this visitor, so every chat may write its memory. If several people share an agent, give
  // each a token for one session (`preset: "chat"`, `sessionId`), without `agentMemory`.
  const grant = { operations: OPERATIONS, expiresIn: TOKEN_SECONDS, allow: { agentMemory: true } };
  try {
    const { token } = await env.SESSION_AGENT.getByName(agent).mintToken(grant);
    const secure = isSecure ? "; Secure" : "";
    const cookie = `${name}=${visitor}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000${secure}`;
    const headers = { "set-cookie": cookie, "cache-control": "no-store" };
    return Response.json({ agent, token, expiresIn: TOKEN_SECONDS }, { headers });
  } catch (error) {
    return refuse(500, (error as Error).message);
  }
}

/** Whether the request comes from this Worker's own page: another site could log a visitor in as somebody else. */
function isOurPage(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  // Older browsers, and programs that are not browsers, don't send `sec-fetch-site`.
  const page = request.headers.get("origin");
  return page === null || page === new URL(request.url).origin;
}

/** The cookie's value, if it looks like one that `login` set. */
function cookieOf(request: Request, name: string): string | undefined {
  const cookies = (request.headers.get("cookie") ?? "").split("; ").map((cookie) => cookie.split("="));
  // If there are two cookies of this name, it is unknown which one is ours.
  const [value, ...others] = cookies.filter(([named]) => named === name).map(([, value]) => value ?? "");
  return value !== undefined && others.length === 0 && VISITOR.test(value) ? value : undefined;
}

/**
 * The name of a visitor's agent. It appears in URLs, logs and spans, and tools and webhooks receive it. The
 * cookie works like a password, so the name must not reveal it: the name is an HMAC with the cookie's random
 * value as its key, from which the cookie can't be computed.
 */
async function agentOf(visitor: string): Promise<string> {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes(visitor), algorithm, false, ["sign"]);
  const digest = await crypto.subtle.sign("HMAC", key, bytes("the name of a visitor's agent"));
  return `visitor:${[...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** An error with a message for the page. */
function refuse(status: number, message: string): Response {
  return Response.json({ error: { message } }, { status });
}
