// OAuth 2.1 for the Model Context Protocol: the Worker is a resource server for the issuer that OAUTH_ISSUER names. A
// client finds the issuer by the metadata of RFC 9728 and sends an access token, a JWT. A token that fails a check
// here has no rights: the request continues without rights, and Rust refuses it.
//
// Only the address `…/mcp` of an agent accepts such tokens. The Worker in front checks a token before
// it wakes an object, and the object checks it again, because a binding reaches it directly.

/** The settings, by their names in the environment. */
const ISSUER = "OAUTH_ISSUER";
const AUDIENCE = "OAUTH_AUDIENCE";
const AGENTS = "OAUTH_AGENTS";
const SECRET = "SESSION_AGENT_TOKEN";

const METADATA = "/.well-known/oauth-protected-resource";
const ADDRESS = /^\/agents\/session-agent\/([^/]+)\/mcp$/;

const READ = "memory:read";
const WRITE = "memory:write";
const TOOL = "tool:";
const SCOPES = [READ, WRITE];

/** The longest token, the longest document of the issuer, and the most keys in it. */
const MAX_TOKEN_CHARS = 16 << 10;
const MAX_DOCUMENT_BYTES = 64 << 10;
const MAX_KEYS = 64;

/** The most tools in `allow`, by `MAX_ALLOWED_NAMES` in access/scope.rs. */
const MAX_TOOLS = 32;

/** The maximum lifetime of rights, by `MAX_TOKEN_SECONDS` in access/token.rs. */
const MAX_SECONDS = 86_400;

/** How far the issuer's clock may be from ours. */
const LEEWAY_S = 30;

/** The time limit for a document of the issuer. */
const FETCH_MS = 5_000;

/** How long keys are cached, and the minimum time before an unknown key or a failure refetches them. */
const KEYS_MS = 10 * 60_000;
const RETRY_MS = 30_000;
const FAILED_MS = 2_000;

/** The most concurrent requests of an isolate to the issuer. */
const MAX_ASKING = 16;

/** The shortest RSA modulus in base64url: 2,048 bits. */
const MIN_MODULUS_CHARS = 342;

const ALGORITHMS: { [alg: string]: { kty: string; fields: string[]; key: any; verify: any } } = {
  RS256: {
    kty: "RSA",
    fields: ["n", "e"],
    key: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
    verify: { name: "RSASSA-PKCS1-v1_5" },
  },
  ES256: {
    kty: "EC",
    fields: ["x", "y"],
    key: { name: "ECDSA", namedCurve: "P-256" },
    verify: { name: "ECDSA", hash: "SHA-256" },
  },
};

type Json = { [name: string]: any };

interface Settings {
  issuer: string;
  audience: string;
  /** The template of the agents that a token's subject may use. */
  agents: string | undefined;
}

/** The settings. `null`: a setting is missing or wrong, so the Worker accepts no such tokens. */
function settingsOf(env: any): Settings | null {
  if (env?.[ISSUER] === undefined) return null;
  const [issuer, audience, agents] = [env?.[ISSUER], env?.[AUDIENCE], env?.[AGENTS]];
  if (typeof issuer !== "string" || typeof audience !== "string") return null;
  // Without a secret, every request is admitted, or none.
  if (typeof env[SECRET] !== "string") return null;
  if (!isBase(issuer) || !isBase(audience) || audience.endsWith("/")) return null;
  return { issuer, audience, agents: typeof agents === "string" && agents !== "" ? agents : undefined };
}

/** An https address without a query, or one of this machine. */
function isBase(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && ["127.0.0.1", "localhost"].includes(url.hostname));
}

/** A fast path: whether a request may involve the issuer. */
export function concernsIssuer(request: Request, env: any): boolean {
  return env?.[ISSUER] !== undefined && (request.url.includes("/mcp") || request.url.includes(METADATA));
}

/** The description of the resource, for a client that discovers the issuer. */
export function describe(request: Request, env: any): Response | null {
  const settings = settingsOf(env);
  const pathname = settings && new URL(request.url).pathname;
  if (settings === null || pathname === null || !pathname.startsWith(METADATA)) return null;
  const path = pathname.slice(METADATA.length);
  if (request.method !== "GET" || !ADDRESS.test(path)) return null;
  const body = {
    resource: settings.audience + path,
    authorization_servers: [settings.issuer],
    scopes_supported: SCOPES,
    bearer_methods_supported: ["header"],
    resource_name: "Session Agent",
  };
  // The description is public, and the same for everybody.
  return Response.json(body, { headers: { "access-control-allow-origin": "*", "cache-control": "max-age=300" } });
}

/** The agent whose MCP address this is. */
function agentOf(request: Request): string | null {
  const found = ADDRESS.exec(new URL(request.url).pathname);
  if (found === null) return null;
  try {
    return decodeURIComponent(found[1]!);
  } catch {
    return null;
  }
}

/** The rights that a request's token grants, as JSON of the fields of `mintToken`. `undefined`: none. */
export async function rightsOfToken(request: Request, env: any): Promise<string | undefined> {
  const settings = settingsOf(env);
  const agent = settings && agentOf(request);
  const bearer = /^bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  if (settings === null || agent === null || bearer === undefined || bearer.length > MAX_TOKEN_CHARS) return undefined;
  try {
    const claims = await verify(bearer, settings);
    return claims && isFor(claims, settings, agent, new URL(request.url).pathname) ? rightsOf(claims) : undefined;
  } catch (error) {
    // The issuer is unavailable, or its answer is invalid. No message contains the token.
    console.error("session-agent: a token could not be checked", String(error));
    return undefined;
  }
}

/** Adds the issuer to a refusal, so that a client can get a token. */
export function challenge(request: Request, env: any, answer: Response): Response {
  const settings = settingsOf(env);
  if (settings === null || agentOf(request) === null || ![401, 403].includes(answer.status)) return answer;
  const path = new URL(request.url).pathname;
  const challenge = [`resource_metadata="${settings.audience}${METADATA}${path}"`];
  if (answer.status === 403) challenge.push('error="insufficient_scope"', `scope="${SCOPES.join(" ")}"`);
  else if (request.headers.has("authorization")) challenge.push('error="invalid_token"');
  const headers = new Headers(answer.headers);
  headers.set("www-authenticate", `Bearer ${challenge.join(", ")}`);
  return new Response(answer.body, { status: answer.status, headers });
}

/** The claims of a token that the issuer signed and that is valid now. */
async function verify(token: string, { issuer }: Settings): Promise<Json | null> {
  const parts = token.split(".");
  if (parts.length !== 3) return null;
  const [header, claims] = [readJson(parts[0]!), readJson(parts[1]!)];
  const signature = bytesOf(parts[2]!);
  if (header === null || claims === null || signature === null) return null;
  const algorithm = Object.hasOwn(ALGORITHMS, header.alg) ? ALGORITHMS[header.alg]! : null;
  if (algorithm === null || "crit" in header || !isType(header.typ)) return null;
  // Checked before any request to the issuer.
  const now = Date.now() / 1000;
  const { iss, exp, nbf } = claims;
  if (iss !== issuer || typeof exp !== "number" || exp <= now - LEEWAY_S) return null;
  if (nbf !== undefined && !(typeof nbf === "number" && nbf <= now + LEEWAY_S)) return null;
  const signed = new TextEncoder().encode(`${parts[0]}.${parts[1]}`);
  for (const jwk of await keysFor(issuer, header.kid, (jwk) => fits(jwk, header, algorithm))) {
    const fields = Object.fromEntries(algorithm.fields.map((name) => [name, jwk[name]]));
    const plain = { kty: algorithm.kty, ...fields, ...(algorithm.kty === "EC" && { crv: "P-256" }) };
    const key = await crypto.subtle.importKey("jwk", plain, algorithm.key, false, ["verify"]);
    if (await crypto.subtle.verify(algorithm.verify, key, signature as BufferSource, signed)) return claims;
  }
  return null;
}

/** The type of an access token is `at+jwt`, `JWT` or absent. A token for another purpose has another type. */
function isType(typ: unknown): boolean {
  if (typ === undefined) return true;
  return typeof typ === "string" && ["jwt", "at+jwt", "application/at+jwt"].includes(typ.toLowerCase());
}

function fits(jwk: Json, header: Json, { kty, fields }: { kty: string; fields: string[] }): boolean {
  if (jwk.kty !== kty || (jwk.use ?? "sig") !== "sig" || (jwk.alg ?? header.alg) !== header.alg) return false;
  if (header.kid !== undefined && jwk.kid !== header.kid) return false;
  if (!fields.every((name) => typeof jwk[name] === "string")) return false;
  return kty === "RSA" ? jwk.n.length >= MIN_MODULUS_CHARS : jwk.crv === "P-256";
}

/** The keys of an issuer, when they were fetched, and when they may be refetched. An isolate has one issuer. */
let cache: { issuer: string; keys: Json[]; fetchedAt: number; askAt: number; asking: number } | null = null;

/**
 * The issuer's matching keys. If there are none, the keys are refetched, at a limited rate: anyone can
 * invent tokens. Requests don't share a fetch: the runtime cancels it with its request.
 */
async function keysFor(issuer: string, kid: unknown, isFitting: (jwk: Json) => boolean): Promise<Json[]> {
  if (kid !== undefined && typeof kid !== "string") return [];
  if (cache?.issuer !== issuer) cache = { issuer, keys: [], fetchedAt: 0, askAt: 0, asking: 0 };
  const cached = cache;
  const isFresh = Date.now() - cached.fetchedAt < KEYS_MS;
  const known = isFresh ? cached.keys.filter(isFitting) : [];
  if (known.length > 0 || Date.now() < cached.askAt || cached.asking >= MAX_ASKING) return known;
  cached.asking += 1;
  try {
    cached.keys = await fetchKeys(issuer);
    cached.fetchedAt = Date.now();
    cached.askAt = cached.fetchedAt + RETRY_MS;
  } catch (error) {
    cached.askAt = Date.now() + FAILED_MS;
    throw error;
  } finally {
    cached.asking -= 1;
  }
  return cached.keys.filter(isFitting);
}

async function fetchKeys(issuer: string): Promise<Json[]> {
  const url = new URL(issuer);
  const path = url.pathname === "/" ? "" : url.pathname.replace(/\/$/, "");
  const documents = [
    `${url.origin}/.well-known/oauth-authorization-server${path}`,
    `${url.origin}${path}/.well-known/openid-configuration`,
  ];
  for (const document of documents) {
    const metadata = await fetchJson(document);
    if (metadata === null) continue;
    if (metadata.issuer !== issuer) throw new Error("the issuer's metadata names another issuer");
    if (typeof metadata.jwks_uri !== "string" || !isBase(metadata.jwks_uri))
      throw new Error("the issuer names no keys");
    const keys = (await fetchJson(metadata.jwks_uri))?.keys;
    if (!Array.isArray(keys)) throw new Error("the issuer's keys can't be read");
    return keys.slice(0, MAX_KEYS).filter((key) => typeof key === "object" && key !== null);
  }
  throw new Error("the issuer has no metadata");
}

/** A document of the issuer. `null`: it doesn't exist. */
async function fetchJson(url: string): Promise<Json | null> {
  const answer = await fetch(url, {
    redirect: "manual",
    headers: { accept: "application/json" },
    signal: AbortSignal.timeout(FETCH_MS),
  });
  if (answer.status === 404) return null;
  if (answer.status !== 200 || answer.body === null) throw new Error(`the issuer answered ${answer.status}`);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > MAX_DOCUMENT_BYTES) throw new Error("the issuer's document is too long");
    pieces.push(piece);
  }
  const read = JSON.parse(await new Blob(pieces as BlobPart[]).text());
  if (typeof read !== "object" || read === null) throw new Error("the issuer's document is not an object");
  return read;
}

/** Whether the token is for this agent: by its audience, and by its subject. */
function isFor(claims: Json, { audience, agents }: Settings, agent: string, path: string): boolean {
  const named: unknown[] = Array.isArray(claims.aud) ? claims.aud : [claims.aud];
  const isForAgent = named.includes(audience + path);
  const isForWorker = named.includes(audience) || named.includes(`${audience}/`);
  // A token for the whole Worker is only for the agents of its subject.
  if (agents === undefined) return isForAgent;
  return (isForAgent || isForWorker) && isNamedBy(agents, claims, agent);
}

/** Whether `user:{sub}` with the token's claims names this agent. At its end, `*` matches any text. */
export function isNamedBy(template: string, claims: Json, agent: string): boolean {
  let isWhole = true;
  const name = template.replaceAll(/\{(\w+)\}/g, (_, claim: string) => {
    const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
    // A value that contains a separator of names could name another user's agent.
    if (typeof value !== "string" || value.length > 200 || !/^[^:/{}*\s]+$/.test(value)) isWhole = false;
    return String(value);
  });
  if (!isWhole || !/\{\w+\}/.test(template)) return false;
  return name.endsWith("*") ? agent.startsWith(name.slice(0, -1)) : agent === name;
}

/** The rights of a token's scopes. An unknown scope adds no rights. */
export function rightsOf(claims: Json): string {
  const scope = claims.scope ?? claims.scp;
  const given: unknown[] = Array.isArray(scope) ? scope : typeof scope === "string" ? scope.split(" ") : [];
  const scopes = new Set(given.filter((scope): scope is string => typeof scope === "string"));
  const tools = [...scopes].filter((scope) => scope.startsWith(TOOL)).map((scope) => scope.slice(TOOL.length));
  // Over this protocol, `loadSkill` shows a document and loads none.
  const read = scopes.has(READ) ? { preset: "read" } : {};
  const operations = [...(scopes.has(READ) ? ["loadSkill"] : []), ...(scopes.has(WRITE) ? ["callTool"] : [])];
  const seconds = Math.floor(claims.exp + LEEWAY_S - Date.now() / 1000);
  return JSON.stringify({
    ...read,
    // Without this list, every operation would be allowed.
    operations,
    ...(tools.length > 0 && { allow: { tools: tools.filter((name) => name !== "").slice(0, MAX_TOOLS) } }),
    expiresIn: Math.min(Math.max(seconds, 1), MAX_SECONDS),
  });
}

function bytesOf(text: string): Uint8Array | null {
  if (!/^[\w-]*$/.test(text)) return null;
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}

function readJson(text: string): Json | null {
  const bytes = bytesOf(text);
  if (bytes === null) return null;
  try {
    const read = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return typeof read === "object" && read !== null && !Array.isArray(read) ? read : null;
  } catch {
    return null;
  }
}
