// The state with which an authorization server redirects a browser back. As the Worker in Rust
// (`check_return` in api/authorization.rs), a Worker refuses a state that no agent of its deployment
// created before it wakes an object.

const KEY = "TOOL_TOKEN_KEY";

/** The shortest key, by `MIN_SECRET_CHARS` in access/token.rs. */
const MIN_KEY_CHARS = 32;

/** The purpose, the format and the nonce of a sealed text, by access/seal.rs. */
const PURPOSE = "session-agent sealing key 1";
const PREFIX = "1.";
const NONCE_BYTES = 12;

const utf8 = new TextEncoder();

/**
 * The agent of a state, as `State` in chat/tools/mcp/oauth/begin.rs writes it. `null`: no agent of
 * this deployment created the state.
 */
export async function agentOfState(state: string | null, env: any): Promise<string | null> {
  const key = env?.[KEY];
  if (typeof key !== "string" || [...key].length < MIN_KEY_CHARS) return null;
  try {
    const [agent, server, nonce] = JSON.parse(new TextDecoder().decode(bytesOf(state ?? "")));
    if (typeof agent !== "string" || agent === "" || typeof server !== "string") return null;
    if (typeof nonce !== "string" || !nonce.startsWith(PREFIX)) return null;
    const context = JSON.stringify(["state", agent, server]);
    await open(key, context, bytesOf(nonce.slice(PREFIX.length)));
    return agent;
  } catch {
    return null;
  }
}

/** Decrypts a sealed text. Throws if it was sealed with another key or for another context. */
async function open(secret: string, context: string, sealed: Uint8Array<ArrayBuffer>): Promise<void> {
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const from = await crypto.subtle.importKey("raw", utf8.encode(secret), hmac, false, ["sign"]);
  const derived = await crypto.subtle.sign("HMAC", from, utf8.encode(PURPOSE));
  const key = await crypto.subtle.importKey("raw", derived, "AES-GCM", false, ["decrypt"]);
  const how = { name: "AES-GCM", iv: sealed.slice(0, NONCE_BYTES), additionalData: utf8.encode(context) };
  await crypto.subtle.decrypt(how, key, sealed.slice(NONCE_BYTES));
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}
