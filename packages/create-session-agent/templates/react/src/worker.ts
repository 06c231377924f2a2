// The Worker behind the page: it logs visitors in, and passes their requests to their agents.
// The page itself is static files, which the platform serves.

import { tool } from "ai";
import { routeSessionAgent, SessionAgent } from "session-agent/worker";
import { z } from "zod";

interface Env {
  SESSION_AGENT: DurableObjectNamespace<Assistant>;
}

/** The page asks for a new token before the old one expires. */
const TOKEN_SECONDS = 900;

/** What the page does with the visitor's agent. A token allows nothing else. */
const OPERATIONS = [
  // Chats
  ...["listSessions", "updateSession", "getHistory", "loadEvents", "getBranches", "setLeaf"],
  ...["chat", "runTurn", "cancelTurn", "getTurns"],
  // The memory panel
  ...["getBlocks", "setBlock", "listEntries", "deleteEntry", "getProposals", "decideProposal"],
];

/** The cookie's name. Over HTTPS no other host, a subdomain for instance, can set a cookie of this name. */
const SECURE_COOKIE = "__Host-visitor";
const LOCAL_COOKIE = "visitor";
const VISITOR = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class Assistant extends SessionAgent<Env> {
  // The model of the AI SDK that answers. `npm install @ai-sdk/openai`, write the key into `.dev.vars`
  // as `OPENAI_API_KEY=…`, and add
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
      { label: "facts", kind: "searchable" as const, description: "Learned facts about the user" },
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

/** A token for the visitor's own agent. Put your own login here: who knows the cookie is the visitor. */
async function login(request: Request, env: Env): Promise<Response> {
  if (!isOurPage(request)) return refuse(403, "Only this page logs in here.");
  const isSecure = request.url.startsWith("https:");
  const name = isSecure ? SECURE_COOKIE : LOCAL_COOKIE;
  const visitor = cookieOf(request, name) ?? crypto.randomUUID();
  const agent = await agentOf(visitor);
  // The agent is this visitor's alone, so every chat may write its memory. If several people share an
  // agent, give each a token for one session (`preset: "chat"`, `sessionId`), without `agentMemory`.
  const asked = { operations: OPERATIONS, expiresIn: TOKEN_SECONDS, allow: { agentMemory: true } };
  try {
    const { token } = await env.SESSION_AGENT.getByName(agent).mintToken(asked);
    const secure = isSecure ? "; Secure" : "";
    const cookie = `${name}=${visitor}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000${secure}`;
    const headers = { "set-cookie": cookie, "cache-control": "no-store" };
    return Response.json({ agent, token, expiresIn: TOKEN_SECONDS }, { headers });
  } catch (error) {
    return refuse(500, (error as Error).message);
  }
}

/** Whether the page is this Worker's own: another site's could make a visitor somebody else. */
function isOurPage(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  // Of an older browser, and of what is none.
  const page = request.headers.get("origin");
  return page === null || page === new URL(request.url).origin;
}

/** The cookie's value, if it has the form of the login's. */
function cookieOf(request: Request, name: string): string | undefined {
  const cookies = (request.headers.get("cookie") ?? "").split("; ").map((cookie) => cookie.split("="));
  // Of two cookies of one name, nobody knows which is ours.
  const [value, ...others] = cookies.filter(([named]) => named === name).map(([, value]) => value ?? "");
  return value !== undefined && others.length === 0 && VISITOR.test(value) ? value : undefined;
}

/**
 * The name of a visitor's agent. It stands in addresses, logs and spans, and tools and webhooks are
 * told it. The cookie is what lets a visitor in, so the name only follows from it: an HMAC, whose key
 * is the cookie's random number. Nobody computes the cookie from the name.
 */
async function agentOf(visitor: string): Promise<string> {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes(visitor), algorithm, false, ["sign"]);
  const digest = await crypto.subtle.sign("HMAC", key, bytes("the name of a visitor's agent"));
  return `visitor:${[...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** A sentence for the page. */
function refuse(status: number, message: string): Response {
  return Response.json({ error: { message } }, { status });
}
