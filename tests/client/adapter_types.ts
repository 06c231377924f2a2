// The adapters match the frameworks' types, and the compiler refuses unsupported uses.
// documents.test.mjs compiles this file.

import type { MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";
import type { BaseSessionService } from "@google/adk";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { ChatMiddleware } from "@tanstack/ai";
import type { ChatClientPersistence, StreamConnectionHandlers } from "@tanstack/ai-client";
import type { Session, SessionHistoryTransactionAwareSession } from "@openai/agents-core";
import type { SearchProvider, WritableContextProvider } from "agents/context";
import { sessionAgent } from "session-agent";
import { SessionAgentSessionService } from "session-agent/adk";
import { contextProvider } from "session-agent/agents-context";
import { memoryHandlers } from "session-agent/anthropic-memory";
import { SessionAgentSaver } from "session-agent/langgraph";
import { SessionAgentSession } from "session-agent/openai-agents";
import { chatStorage, hydrateThread, withSessionAgent } from "session-agent/tanstack-ai";

const agent = sessionAgent("https://memory.example.com", "alice");

export const saver: BaseCheckpointSaver<any> = new SessionAgentSaver(agent, { staleWriters: "fork" });
export const session: Session = new SessionAgentSession(agent.session("s"));
export const transactions: SessionHistoryTransactionAwareSession = new SessionAgentSession(agent.session("s"));
export const middleware: ChatMiddleware = withSessionAgent(agent, { history: "stored" });
export const persistence: ChatClientPersistence = chatStorage(agent);
export const connection: StreamConnectionHandlers = { hydrate: (threadId) => hydrateThread(agent, threadId) };
export const sessionService: BaseSessionService = new SessionAgentSessionService(agent);
export const handlers: MemoryToolHandlers = memoryHandlers(agent, { label: "files" });
export const writable: WritableContextProvider = contextProvider(agent.session("s"));
export const searchable: SearchProvider = contextProvider(agent, { kind: "searchable" });

// @ts-expect-error: there is no such choice
new SessionAgentSaver(agent, { staleWriters: "ignore" });
// @ts-expect-error: an agent, not its session
new SessionAgentSessionService(agent.session("s"));
// @ts-expect-error: there is no such history
withSessionAgent(agent, { history: "both" });
// @ts-expect-error: the session of a client, not its id
new SessionAgentSession("s");
// @ts-expect-error: a searchable provider is not written as a whole
contextProvider(agent, { kind: "searchable" }).set("a text");
