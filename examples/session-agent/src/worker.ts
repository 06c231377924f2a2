// The Worker in front of the page. It identifies its visitors, mints a token for each visitor's own agent,
// and forwards their requests to Session Agent. The secret never leaves this Worker.

import { WorkerEntrypoint } from "cloudflare:workers";
import { sessionAgent } from "session-agent";

interface Env {
  MEMORY: Fetcher;
  SESSION_AGENT_TOKEN: string;
}

const TOKEN_SECONDS = 3600;

/** The cookie's name. Over HTTPS, no other host, not even a subdomain, can set a cookie with the prefix `__Host-`. */
const SECURE_COOKIE = "__Host-visitor";
const LOCAL_COOKIE = "visitor";
const VISITOR = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The operations that the page uses. The visitor's token allows nothing else. */
const OPERATIONS = [
  "chat",
  "cancelTurn",
  "getTurns",
  "createSession",
  "deleteSession",
  "listSessions",
  "getHistory",
  "loadEvents",
  "getBranches",
  "setLeaf",
  "getBlocks",
  "listEntries",
  "setBlock",
];

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/api/token" && request.method === "POST") return await welcome(request, env);
    // Session Agent checks the token.
    if (pathname.startsWith("/agents/")) return await env.MEMORY.fetch(request);
    return new Response("Not found.\n", { status: 404 });
  },
};

/**
 * Returns a token for the visitor's own agent. Replace the cookie check with your own
 * authentication: it trusts anyone who has the cookie.
 */
async function welcome(request: Request, env: Env): Promise<Response> {
  if (!isOurPage(request)) return new Response("Only this page logs in here.\n", { status: 403 });
  const isSecure = request.url.startsWith("https:");
  const cookie = isSecure ? SECURE_COOKIE : LOCAL_COOKIE;
  const visitor = cookieOf(request, cookie) ?? crypto.randomUUID();
  const name = await agentOf(visitor);
  const agent = sessionAgent(env.MEMORY, name, { token: env.SESSION_AGENT_TOKEN });
  if ((await agent.getBlock({ label: "memory" })) === null) await furnish(agent);
  const { token } = await agent.mintToken({ operations: OPERATIONS, expiresIn: TOKEN_SECONDS });
  const secure = isSecure ? "; Secure" : "";
  const headers = {
    "set-cookie": `${cookie}=${visitor}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000${secure}`,
    "cache-control": "no-store",
  };
  return Response.json({ agent: name, token, expiresIn: TOKEN_SECONDS }, { headers });
}

/** Whether the request comes from this Worker's own page: another site could log a visitor in as somebody else. */
function isOurPage(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  // Older browsers, and programs that are not browsers, don't send `sec-fetch-site`.
  const page = request.headers.get("origin");
  return page === null || page === new URL(request.url).origin;
}

/** The cookie's value, if it looks like one that `welcome` set. */
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

/** A new agent: its prompt, its memory and its tools. */
async function furnish(agent: ReturnType<typeof sessionAgent>): Promise<void> {
  await agent.defineBlock({
    label: "soul",
    kind: "readonly",
    defaultContent: "You are a helpful assistant. You keep what you learn of the user in `memory`.",
  });
  await agent.defineTool({
    name: "echo",
    description: "Repeats a text.",
    parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    service: "TOOLS",
  });
  await agent.defineTool({
    name: "weather",
    description: "Returns the weather in a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    service: "TOOLS",
  });
  await agent.defineTool({
    name: "book",
    description: "Books a table for dinner.",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
    service: "TOOLS",
    needsApproval: true,
  });
  // Last, because this block shows that the others exist. The model sees a change at once, in each chat,
  // and its prompt stays the same.
  await agent.defineBlock({
    label: "memory",
    kind: "writable",
    description: "What you know of the user",
    maxTokens: 1100,
    whenChanged: "remind",
  });
}

/** The tools. Only Session Agent can call them: this entry point has no public URL. */
export class Tools extends WorkerEntrypoint {
  async fetch(request: Request): Promise<Response> {
    const { name, arguments: given } = await request.json<{
      name: string;
      arguments: { text?: string; city?: string; place?: string };
    }>();
    switch (name) {
      case "echo":
        return Response.json({ text: String(given.text ?? "") });
      case "weather":
        return Response.json(weatherIn(String(given.city ?? "")));
      case "book":
        return Response.json({ booked: String(given.place ?? "") });
      default:
        return new Response(`There is no tool ${name}.`, { status: 404 });
    }
  }
}

/** Invented weather, which is always the same for a city. */
function weatherIn(city: string): { city: string; sky: string; celsius: number } {
  const number = [...city].reduce((sum, letter) => sum + letter.codePointAt(0)!, 0);
  return { city, sky: ["sun", "clouds", "rain", "snow"][number % 4]!, celsius: (number % 35) - 5 };
}
