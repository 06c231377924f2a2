// The MCP streams that notify a client of changed resources: a GET in revisions with a handshake, and
// `subscriptions/listen` in the newest. The Worker in front has them open, and polls the object at a
// bounded rate. So an object can sleep while its clients listen: an open stream would keep it in memory,
// which is billed.
//
// The only state of a stream is a fingerprint of each resource's content, which the object computes. A client with a
// handshake carries the state in the ids of events, so a resumed stream reports what changed in the meantime.

const ADDRESS = /^\/agents\/[^/]+\/[^/]+\/mcp$/;
const LISTEN = "subscriptions/listen";
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

/** As `POLL` in crates/api/src/mcp/subscriptions.rs. */
const POLL = "session-agent/poll";

/** The pause before the first poll. It doubles after each poll without changes, up to the longest. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/** The most polls of a stream. After the last, the client opens another: after an hour or two, if little changes. */
const MAX_POLLS = 240;

/** How long a client should wait before it opens another stream. */
const RETRY_MS = 2_000;

/** The longest request to listen, and the longest id of an event. */
const MAX_LISTEN_BYTES = 128 << 10;
const MAX_ID_CHARS = 4_096;

/** Since this revision, an event without data is not a message. */
const PRIMED_SINCE = "2025-11-25";

const COMMENT = ": waiting\n\n";

type Marks = { [address: string]: string };

/** The stream's format for its client. */
interface Listener {
  /** The client's request: its id, its `_meta`, and its subscriptions. */
  id: unknown;
  params: { [field: string]: unknown };
  /** Texts for the stream: its beginning, a change, and its end. */
  begins(marks: Marks): string;
  notificationOf(address: string, marks: Marks): string;
  /** The text if nothing has changed. It detects a closed connection, and keeps proxies from closing the stream. */
  waits(marks: Marks): string;
  ends(): string;
}

/** Whether a request opens such a stream. */
export function opensStream(request: Request): boolean {
  // A fast path: most requests are not MCP.
  const { url } = request;
  if (!url.includes("/mcp")) return false;
  const { method, headers } = request;
  const isAsking =
    (method === "GET" && (headers.get("accept") ?? "").toLowerCase().includes("text/event-stream")) ||
    (method === "POST" && headers.get("mcp-method")?.trim() === LISTEN);
  return isAsking && ADDRESS.test(new URL(url).pathname);
}

/**
 * Answers a request that opens a stream. `ask` sends a request to the object, which checks it as any other.
 * If the first poll is refused, that is the answer.
 */
export async function streamOf(request: Request, ask: (forwarded: Request) => Promise<Response>): Promise<Response> {
  const listener = request.method === "GET" ? ofSession(request) : await ofListen(request);
  if (listener === null) return await ask(request);
  const stream = crypto.randomUUID();
  let marks: Marks | undefined;
  const poll = async () => {
    const params = { ...listener.params, stream, ...(marks && { resources: marks }) };
    const body = JSON.stringify({ jsonrpc: "2.0", id: listener.id, method: POLL, params });
    return await ask(new Request(request.url, { method: "POST", headers: headersOf(request), body }));
  };
  const first = await poll();
  const answer: any = await read(first);
  if (answer?.result === undefined) return refusal(request, first, answer);
  marks = answer.result.resources as Marks;
  // The changes since the client's state.
  const missed: string[] = answer.result.changed;
  const encoder = new TextEncoder();
  let polls = 0;
  let pauseMs = FIRST_PAUSE_MS;
  let wake = () => {};
  let isOver = false;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const notices = missed.map((address) => listener.notificationOf(address, marks!));
        controller.enqueue(encoder.encode(listener.begins(marks!) + notices.join("")));
      },
      async pull(controller) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, pauseMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        if (isOver) return;
        const polled: any = await poll().then(read, () => null);
        if (isOver) return;
        polls += 1;
        if (polled?.result === undefined || polls >= MAX_POLLS) {
          controller.enqueue(encoder.encode(listener.ends()));
          controller.close();
          return;
        }
        marks = polled.result.resources as Marks;
        const changed: string[] = polled.result.changed;
        pauseMs = changed.length > 0 ? FIRST_PAUSE_MS : Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
        const text =
          changed.map((address) => listener.notificationOf(address, marks!)).join("") || listener.waits(marks);
        controller.enqueue(encoder.encode(text));
      },
      cancel() {
        isOver = true;
        wake();
      },
    },
    { highWaterMark: 0 },
  );
  const headers = new Headers(first.headers);
  headers.delete("content-length");
  headers.set("content-type", "text/event-stream");
  headers.set("cache-control", "no-cache");
  // Without this header nginx would buffer the events.
  headers.set("x-accel-buffering", "no");
  return new Response(body, { headers });
}

/** The stream of a client with a handshake. */
function ofSession(request: Request): Listener {
  const isPrimed = (request.headers.get("mcp-protocol-version") ?? "") >= PRIMED_SINCE;
  const known = marksIn(request.headers.get("last-event-id") ?? "");
  let followed = "";
  /** An event without data, which gives the client the stream's state. */
  const primes = (marks: Marks): string => {
    followed = addressesOf(marks);
    return isPrimed ? `${idOf(marks)}data: \n\n` : COMMENT;
  };
  return {
    id: 0,
    params: known === null ? {} : { resources: known },
    begins: (marks) => `retry: ${RETRY_MS}\n${primes(marks)}`,
    notificationOf: (uri, marks) => `${idOf(marks)}${event(notification("notifications/resources/updated", { uri }))}`,
    // The client has subscribed to a resource, or unsubscribed.
    waits: (marks) => (addressesOf(marks) === followed ? COMMENT : primes(marks)),
    ends: () => "",
  };
}

/** The stream of a client of the newest revision. `null`: the object returns the error. */
async function ofListen(request: Request): Promise<Listener | null> {
  if (Number(request.headers.get("content-length") ?? 0) > MAX_LISTEN_BYTES) return null;
  const text = await request.clone().text();
  let message: any;
  try {
    message = text.length <= MAX_LISTEN_BYTES ? JSON.parse(text) : null;
  } catch {
    return null;
  }
  const { id, method, params } = message ?? {};
  if (method !== LISTEN || (typeof id !== "string" && typeof id !== "number")) return null;
  const { _meta, notifications } = params ?? {};
  const tagged = { _meta: { [SUBSCRIPTION]: id } };
  return {
    id,
    params: { _meta, notifications },
    begins: (marks) => {
      const resourceSubscriptions = Object.keys(marks);
      const honored = resourceSubscriptions.length > 0 ? { resourceSubscriptions } : {};
      const params = { ...tagged, notifications: honored };
      return event(notification("notifications/subscriptions/acknowledged", params));
    },
    notificationOf: (uri) => event(notification("notifications/resources/updated", { ...tagged, uri })),
    waits: () => COMMENT,
    ends: () => event({ jsonrpc: "2.0", id, result: { resultType: "complete", ...tagged } }),
  };
}

const notification = (method: string, params: object): object => ({ jsonrpc: "2.0", method, params });

const event = (message: object): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`;

const addressesOf = (marks: Marks): string => JSON.stringify(Object.keys(marks));

/** The line with a stream's state. A state that is too long is not carried. */
function idOf(marks: Marks): string {
  const id = encodeURIComponent(JSON.stringify(marks));
  return id.length <= MAX_ID_CHARS ? `id: ${id}\n` : "";
}

/** The state in an event's id. It comes from the client, and the object checks each part of it. */
function marksIn(id: string): Marks | null {
  try {
    const marks = JSON.parse(decodeURIComponent(id));
    return marks !== null && typeof marks === "object" && !Array.isArray(marks) ? marks : null;
  } catch {
    return null;
  }
}

/** The headers of a poll, including the credentials. */
function headersOf(request: Request): Headers {
  const headers = new Headers(request.headers);
  for (const name of ["content-length", "last-event-id", "mcp-name"]) headers.delete(name);
  headers.set("content-type", "application/json");
  headers.set("accept", "application/json");
  if (request.method === "POST") headers.set("mcp-method", POLL);
  return headers;
}

async function read(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return null;
  }
}

/** A refusal of the first poll. A protocol error without a status gets one for a GET. */
function refusal(request: Request, { status, headers }: Response, body: unknown): Response {
  const isGet = request.method === "GET";
  const forwarded = new Headers(headers);
  forwarded.delete("content-length");
  return new Response(JSON.stringify(body), { status: isGet && status === 200 ? 400 : status, headers: forwarded });
}
