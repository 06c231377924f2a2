// A class's stub type fits every pure function of the package.

import {
  anthropicAdapter,
  buildWorkingContext,
  dehydrateEvent,
  estimateMessageTokens,
  eventToMessage,
  getAgentByName,
  hydrateEvent,
  messageToEvent,
  openAIAdapter,
  type OwnBlock,
  SessionAgent,
  truncateOlderMessages,
  workersAIAdapter,
} from "session-agent/worker";

export class Own extends SessionAgent {
  override blocks() {
    return [
      { label: "soul", kind: "readonly", provider: { get: async () => "You are kind." } },
      { label: "memory", kind: "writable", maxTokens: 1100, whenChanged: "remind" },
    ];
  }

  listed(): OwnBlock[] {
    return [
      // @ts-expect-error: no block has such a field.
      { label: "memory", kind: "writable", maxToken: 1100 },
      // @ts-expect-error: there is no such kind.
      { label: "memory", kind: "writeable" },
      { label: "facts", provider: { search: async (query: string) => query } },
    ];
  }
}

/** The namespace's type names its class. Without one it accepts any call. */
export async function inferred(agents: DurableObjectNamespace<Own>, others: DurableObjectNamespace) {
  const stub = await getAgentByName(agents, "a");
  const { messages } = await stub.getHistory({ sessionId: "s" });
  const role: "user" | "assistant" | "system" | undefined = messages[0]?.role;
  // @ts-expect-error: there is no such operation.
  await stub.getHistori({ sessionId: "s" });
  const other = await getAgentByName(others, "a");
  return [role, await other.getStats(), await other.anything("x")];
}

export async function stubbed(agents: DurableObjectNamespace<Own>, sessionId: string) {
  const stub = await getAgentByName<Own>(agents, "a");
  const events = await stub.loadEvents({ sessionId });
  const again = await stub.loadEvents(sessionId, { limit: 2 });
  const context = buildWorkingContext(events, { systemInstructions: ["Be kind."] });
  buildWorkingContext(again);
  const messages = events.map((event) => eventToMessage(event)).filter((message) => message !== null);
  for (const adapter of [workersAIAdapter, openAIAdapter, anthropicAdapter])
    adapter.toModelMessages(context.systemInstructions, messages);
  const rows = events.map((event) => hydrateEvent(dehydrateEvent(event)));
  await stub.appendEvents({ sessionId, events: messages.map((message) => messageToEvent(sessionId, message)) });
  const { messages: shown } = await stub.getHistory({ sessionId });
  const session = await stub.createSession({ name: "n" });
  await stub.deleteSession(session);
  for (const event of events) {
    if (event.action === "tool_call_request") event.toolCalls.map(({ name }) => name);
    if (event.action === "tool_result") event.toolCallId.length;
    // @ts-expect-error: a message of the user has no call.
    if (event.action === "user_message") event.toolCallId.length;
  }
  return [rows, estimateMessageTokens(truncateOlderMessages(shown, { keepRecent: 2, maxTextChars: 10 }))];
}
