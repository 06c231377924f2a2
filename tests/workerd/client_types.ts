// What programs may write with the client, and what the compiler refuses. types.test.mjs compiles
// this file for pages and for Workers.

import {
  buildWorkingContext,
  type ErrorCode,
  eventToMessage,
  hydrateEvent,
  messageToEvent,
  type ModelFormatAdapter,
  namespaceOf,
  RateLimitedError,
  sessionAgent,
  SessionAgentError,
  type SessionAgentNamespace,
  type SessionAgentService,
  type SessionEvent,
  serviceOf,
  type UiMessage,
  type WorkingContext,
  workersAIAdapter,
} from "session-agent";

const agent = sessionAgent(new URL("https://memory.example.com"), "alice", {
  token: async () => "t",
  retry: { attempts: 2 },
  // As an OpenTelemetry propagator fills a carrier.
  trace: () => {
    const carrier: { [name: string]: string } = {};
    carrier.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    return carrier;
  },
});
await agent.listSessions({}, { trace: { traceparent: "00-a", tracestate: "vendor=1" } });
// @ts-expect-error: a trace is a carrier, and no text.
await agent.listSessions({}, { trace: "00-a" });
const session = agent.session("s");

// Inputs and outputs.
const name: string | null = (await agent.createSession()).name;
await agent.createSession({ id: "s", metadata: { topic: 1 } }, { signal: AbortSignal.timeout(10), retry: false });
const leaf: string | null = (
  await session.appendEvents({ events: [{ action: "user_message", content: "a" }], parentId: null })
).leafId;
const maybe: UiMessage | null = await session.getMessage({ messageId: "m" });
const page = await session.getHistory();
const cursor: string | null = page.cursor;
await session.updateSession();
await agent.destroy({ confirm: "alice" });
// @ts-expect-error: there is no such operation
await agent.createSesion();
// @ts-expect-error: there is no such action
await session.appendEvents({ events: [{ action: "user_mesage", content: "a" }] });
// @ts-expect-error: the id of the session is missing
await agent.getHistory({ limit: 1 });
// @ts-expect-error: `limit` is a number
await session.getHistory({ limit: "1" });
// @ts-expect-error: the session knows its id
await session.getHistory({ sessionId: "t" });
// @ts-expect-error: there may be no message
maybe.id;
// @ts-expect-error: sessions alone have `events`
await agent.listSessions({}).events;
// @ts-expect-error: this operation has no session
session.listSessions();

// A field that an operation does not have, also where it has none or the session's id alone.
// @ts-expect-error: it has no field
await agent.getConfig({ sessionId: "s" });
// @ts-expect-error: there is no such field
await agent.getSession({ sessionId: "s", id: "t" });
// @ts-expect-error: it has no field but the session's id
await session.getLatestLeaf({ leafId: "l" });
// @ts-expect-error: the session knows its id
await session.getSession({ sessionId: "t" });
// @ts-expect-error: there is no such field
await session.loadEvents({ limits: 1 });
// @ts-expect-error: the field for the leaf is `expectedLeafId`
await session.persistWorkingContext({ messages: [], leafId: "l" });
await session.getLatestLeaf({});
await session.getLatestLeaf({}, { retry: false });

// A message of an interface of the caller's own, as the AI SDK's is.
interface OwnMessage {
  id: string;
  role: "user" | "assistant";
  parts: Array<{ type: "text"; text: string }>;
}
declare const own: OwnMessage;
await session.appendMessage({ message: own });
const last: string | null = (await session.appendMessages({ messages: [own], parentId: null })).leafId;
// @ts-expect-error: they are a list
await session.appendMessages({ messages: own.id.length });

// Blocks and entries, as calls create them.
await agent.setBlock({ label: "memory", content: "a", kind: "writable", maxTokens: 10 });
await session.setBlock({ label: "memory", content: "a" });
// @ts-expect-error: only a writable block is defined by its text
await agent.setBlock({ label: "memory", content: "a", kind: "searchable" });
const key: string = (await agent.setEntry({ label: "facts", content: "a" })).key;
// @ts-expect-error: an entry has a content
await session.setEntry({ label: "facts" });
const back: OwnMessage["parts"] = page.messages[0]!.parts;

// Operations by their names.
const stats: number = (await agent.call("getStats", {})).databaseBytes;
const newer: unknown = await agent.call("newerThanThis", { any: "thing" });
const known: UiMessage | null = await session.call("getMessage", { messageId: "m" });
declare const anyName: string;
await agent.call(anyName, { any: "thing" });
await session.call("newerThanThis", { any: "thing" });
// @ts-expect-error: it has no field
await agent.call("getStats", { sessionId: "s" });
// @ts-expect-error: there is no such field
await agent.call("loadEvents", { sessionId: "s", limits: 1 });
// @ts-expect-error: it has no field but the session's id
await session.call("getLatestLeaf", { leafId: "l" });
// @ts-expect-error: there is no such field
await session.call("loadEvents", { limits: 1 });
// @ts-expect-error: this operation has no session
await session.call("getStats", {});

// Iterators and streams.
for await (const { seq, action } of session.events({ afterSeq: 1 })) [seq.toFixed(), action === "tool_result"];
for await (const { parts } of session.history({ limit: 1 })) parts.length;
for await (const { messages } of session.historyPages()) messages.length;
for await (const { type } of session.changes({ follow: false })) type === "append";
for await (const { updatedAt } of agent.sessions()) updatedAt.toFixed();
for await (const chunk of session.chat({ message: "Hello", trigger: "submit-message" })) chunk.type;
for await (const { key } of agent.entries({ label: "facts" })) key.length;
const file: ReadableStream<Uint8Array> = await session.exportSession({
  onProgress: ({ bytes, lines }) => bytes + lines,
});
const imported: number = (await session.importSession(file, { allowSources: true })).imported;

// Bindings without the client.
declare const env: { AGENTS: SessionAgentNamespace; MEMORY: SessionAgentService };
const object = env.AGENTS.getByName("alice");
const loaded: SessionEvent[] = await object.loadEvents({ sessionId: "s" }, { token: "t" });
const listed: string | null = (await object.listSessions()).cursor;
// @ts-expect-error: `sessionId` is missing
await object.loadEvents({});
// @ts-expect-error: it has no field
await object.getStats({ sessionId: "s" });
// @ts-expect-error: there is no such option
await object.loadEvents({ sessionId: "s" }, { signal: null });
// @ts-expect-error: there is no such operation
await object.loadEvent({});
const refused = await env.MEMORY.request("alice", "loadEvents", "{}", { token: "t" });
const outcome: string = refused.ok ? refused.value : refused.error.code;
// @ts-expect-error: a refusal has no value
if (!refused.ok) refused.value;
for (const target of [env.AGENTS, env.MEMORY]) sessionAgent(target, "alice");
// As `wrangler types` declares them.
declare const plain: {
  AGENTS: { idFromName(name: string): object; get(id: object): object };
  MEMORY: { fetch(url: string): Promise<object> };
};
const serviceAnswer: string = await serviceOf(plain.MEMORY).call("alice", "getStats");
const rows: number = (await namespaceOf(plain.AGENTS).getByName("alice").getStats()).databaseBytes;
// @ts-expect-error: it is not a namespace
namespaceOf(plain.MEMORY);

// Errors.
try {
  await session.clearMessages();
} catch (error) {
  if (error instanceof RateLimitedError) error.retryAfter.toFixed();
  if (error instanceof SessionAgentError && error.code === "leaf_moved") error.details.leafId;
  // @ts-expect-error: there is no such code
  if (error instanceof SessionAgentError && error.code === "leaf_moves") throw error;
}
const code: ErrorCode = "corrupt_row";

// Events and contexts.
const events: SessionEvent[] = await session.loadEvents();
const context: WorkingContext = buildWorkingContext(events, {
  eventToMessage: (event) => (event.seq > 1 ? eventToMessage(event) : null),
});
context.addMessage({ role: "user", content: "a" });
// @ts-expect-error: there is no such role
context.addMessage({ role: "robot", content: "a" });
await session.appendEvents({ events: context.getNewMessages().map((message) => messageToEvent("s", message)) });
await session.persistWorkingContext(context);
await session.persistWorkingContext({ messages: context.getNewMessages(), expectedLeafId: null });
// @ts-expect-error: the messages are missing
await session.persistWorkingContext({ expectedLeafId: null });
const row = hydrateEvent({
  id: "e",
  session_id: "s",
  seq: 1,
  action: "user_message",
  content: null,
  metadata: null,
  created_at: 1,
});
buildWorkingContext([row]);
const { messages } = workersAIAdapter.toModelMessages(context.systemInstructions, context.messages);
const role: "user" | "assistant" | "tool" | "system" = messages[0]!.role;
const adapter: ModelFormatAdapter<string> = { name: "text", toModelMessages: (system) => system.join() };

export {
  adapter,
  serviceAnswer,
  back,
  code,
  cursor,
  imported,
  key,
  known,
  last,
  leaf,
  listed,
  rows,
  loaded,
  outcome,
  name,
  newer,
  role,
  stats,
};
