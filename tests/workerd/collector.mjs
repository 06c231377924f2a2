// An OpenTelemetry collector in its own server. It accepts strictly what the protobuf messages of
// OTLP allow in JSON: an unknown field, a number instead of a string or an id of another length is
// an error of the sender.
//
//   const collector = await startCollector();
//   startServer({ vars: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
//   await collector.spans((spans) => spans.some(({ name }) => name === "chat test"))
//   collector.mode = "refuse";   // or another of MODES

import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

/** Failure modes of a collector, each with its handling of a request. */
export const MODES = {
  refuse: (response) => response.writeHead(503).end("later"),
  /** Requests a pause that is longer than allowed. */
  limit: (response) => response.writeHead(429, { "retry-after": "3600" }).end(),
  /** Never answers. */
  silent: () => {},
  /** A byte a second. */
  trickle: async (response) => {
    response.writeHead(200, { "content-type": "application/json" });
    while (!response.destroyed) {
      response.write(" ");
      await pause(1_000);
    }
  },
  /** Redirects elsewhere: the spans and the collector's key would go there. */
  redirect: (response) => response.writeHead(307, { location: "/elsewhere" }).end(),
  hangUp: (response) => response.destroy(),
};

export async function startCollector() {
  const collector = new Collector();
  await collector.start();
  return collector;
}

class Collector {
  #server = createServer((request, response) =>
    this.#take(request, response).catch((error) => {
      this.mistakes.push(error.message);
      response.writeHead(400).end();
    }),
  );
  #changes = new EventEmitter().setMaxListeners(0);
  #spans = [];
  /** The errors of requests. A correct sender causes none. */
  mistakes = [];
  /** The headers and the bodies of all requests. */
  requests = [];
  mode = "take";
  flooded = 0;
  url;

  async start() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
  }

  /** Nothing listens at this URL. */
  async stopListening() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async listenAgain() {
    this.#server.listen(Number(new URL(this.url).port), "127.0.0.1");
    await once(this.#server, "listening");
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** All spans so far, once `are` accepts them. */
  async spans(are) {
    while (!are(this.#spans)) await once(this.#changes, "spans");
    return this.#spans;
  }

  /** The requests that contain a text. */
  requestsWith(text) {
    return this.requests.filter((request) => request.text.includes(text));
  }

  /** Waits until a request contained a text. */
  async untilRequestWith(text) {
    while (this.requestsWith(text).length === 0) await once(this.#changes, "request");
  }

  forget() {
    this.#spans = [];
    this.requests = [];
    this.mode = "take";
  }

  /** Answers without an end, as fast as the client reads. */
  async #flood(response) {
    response.writeHead(200, { "content-type": "application/json" });
    const piece = Buffer.alloc(64 << 10, " ");
    const closed = once(response, "close");
    while (!response.destroyed) {
      this.flooded += piece.length;
      if (!response.write(piece)) await Promise.race([once(response, "drain"), closed]);
    }
    this.#changes.emit("closed");
  }

  /** Waits until a client aborted the endless response; returns the bytes sent. */
  async floodEnded() {
    await once(this.#changes, "closed");
    return this.flooded;
  }

  async #take(request, response) {
    let text = "";
    for await (const chunk of request) text += chunk;
    this.requests.push({ headers: request.headers, text, url: request.url });
    this.#changes.emit("request");
    if (this.mode === "flood") return await this.#flood(response);
    if (this.mode !== "take") return await MODES[this.mode](response);
    expect(request.method === "POST" && request.url === "/v1/traces", `${request.method} ${request.url}`);
    expect(request.headers["content-type"] === "application/json", "the content type");
    const body = JSON.parse(text);
    check(body, REQUEST, "request");
    const spans = body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
    for (const span of spans) {
      expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano), `${span.name} ends before it begins`);
    }
    this.#spans.push(...spans.map((span) => ({ ...span, attributes: valuesOf(span.attributes) })));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
    this.#changes.emit("spans");
  }
}

function expect(holds, mistake) {
  if (!holds) throw new Error(mistake);
}

const text = (value) => typeof value === "string";
const hex = (bytes) => (value) =>
  text(value) && value.length === 2 * bytes && /^[0-9a-f]*[1-9a-f][0-9a-f]*$/.test(value);
/** 64-bit integers are texts in protobuf's JSON. */
const int64 = (value) => text(value) && /^-?\d{1,19}$/.test(value);
const list = (of) => ({ list: of });

const ANY_VALUE = {};
Object.assign(ANY_VALUE, {
  one: {
    stringValue: text,
    boolValue: (value) => typeof value === "boolean",
    intValue: int64,
    doubleValue: Number.isFinite,
    arrayValue: { fields: { values: list(ANY_VALUE) } },
  },
});
const ATTRIBUTES = list({ fields: { key: text, value: ANY_VALUE }, required: ["key", "value"] });
const SPAN = {
  fields: {
    traceId: hex(16),
    spanId: hex(8),
    parentSpanId: hex(8),
    name: text,
    kind: (value) => [1, 2, 3, 4, 5].includes(value),
    startTimeUnixNano: int64,
    endTimeUnixNano: int64,
    attributes: ATTRIBUTES,
    status: { fields: { code: (value) => [0, 1, 2].includes(value), message: text } },
  },
  required: ["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"],
};
const SCOPE_SPANS = {
  fields: { scope: { fields: { name: text, version: text } }, spans: list(SPAN) },
  required: ["spans"],
};
const RESOURCE_SPANS = {
  fields: { resource: { fields: { attributes: ATTRIBUTES } }, scopeSpans: list(SCOPE_SPANS) },
  required: ["resource", "scopeSpans"],
};
const REQUEST = { fields: { resourceSpans: list(RESOURCE_SPANS) }, required: ["resourceSpans"] };

/** Checks a value against its shape: a function, a list, fields, or one of several fields. */
function check(value, shape, place) {
  if (typeof shape === "function") return expect(shape(value), `${place}: ${JSON.stringify(value)}`);
  if (shape.list) {
    expect(Array.isArray(value), `${place} is not a list`);
    return value.forEach((item, index) => check(item, shape.list, `${place}[${index}]`));
  }
  expect(value !== null && typeof value === "object" && !Array.isArray(value), `${place} is not an object`);
  const fields = shape.one ?? shape.fields;
  if (shape.one) expect(Object.keys(value).length === 1, `${place} has not one value`);
  for (const name of shape.required ?? []) expect(name in value, `${place} has no ${name}`);
  for (const [name, part] of Object.entries(value)) {
    expect(name in fields, `${place}.${name} is unknown`);
    check(part, fields[name], `${place}.${name}`);
  }
}

const valuesOf = (attributes) =>
  Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, ...rest } }) => [
      key,
      stringValue ?? (intValue === undefined ? Object.values(rest)[0] : Number(intValue)),
    ]),
  );

/** The spans of a trace as a tree, a line each: when it began, how long it took, its name. */
export function drawTrace(
  spans,
  shownAttributes = ["gen_ai.tool.type", "server.address", "http.response.status_code"],
) {
  const first = spans.map(({ startTimeUnixNano }) => BigInt(startTimeUnixNano)).reduce((a, b) => (a < b ? a : b));
  const ms = (nanoseconds) => Number(nanoseconds / 1_000_000n);
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const lines = [];
  const draw = (span, depth) => {
    const [start, end] = [BigInt(span.startTimeUnixNano), BigInt(span.endTimeUnixNano)];
    const more = shownAttributes.map((name) => span.attributes[name]).filter((value) => value !== undefined);
    const time = `${String(ms(start - first)).padStart(5)} ms ${String(ms(end - start)).padStart(5)} ms`;
    const name = `${"  ".repeat(depth)}${span.name}${more.length > 0 ? ` (${more.join(", ")})` : ""}`;
    lines.push(`${time}  ${name.padEnd(58)} ${span.spanId} below ${span.parentSpanId ?? "nothing"}`);
    const parts = spans.filter(({ parentSpanId }) => parentSpanId === span.spanId);
    for (const part of parts.sort((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano))))
      draw(part, depth + 1);
  };
  for (const span of spans) if (!ids.has(span.parentSpanId)) draw(span, 0);
  return lines.join("\n");
}
