// Stores TanStack AI's conversations in an agent: a middleware for `chat`, the data that a page loads
// from the server, and the storage of `useChat` and `ChatClient`.

import type { ChatMiddleware, ChatMiddlewareContext, ModelMessage, UIMessage } from "@tanstack/ai";
import type { AgentClient } from "./agent.js";
import { wait } from "./retry.js";
import { dated, isPlaceholder } from "./tanstack_messages.js";
import { asStored, newMessages } from "./tanstack_history.js";
import { SessionAgentThreads, type ThreadState } from "./tanstack_threads.js";

export { SessionAgentThreads } from "./tanstack_threads.js";

export interface MiddlewareOptions {
  /**
   * The source of the conversation so far. `request`: the messages passed to `chat`, or the stored ones
   * if there are none. `stored`: the stored messages; of those passed to `chat`, only new user messages
   * and new tool results are added. Default: `request`.
   */
  history?: "request" | "stored";
}

/** The data that `useChat` with `persistence: true` loads. */
export interface HydratedThread {
  messages: UIMessage[];
  activeRun: null;
  interrupts: { runId: string; pending: any[] } | null;
}

/** The data that `ChatClient` stores for a thread. */
export interface StoredChat {
  messages: any[];
  resume?: any;
}

export interface ChatStorage {
  getItem(threadId: string): Promise<StoredChat | null>;
  setItem(threadId: string, state: StoredChat): void;
  removeItem(threadId: string): void;
  /** Waits until everything is written. */
  settled(): Promise<void>;
}

export interface ChatStorageOptions {
  /** Called if a write fails. TanStack AI itself ignores such errors. */
  onError?: (error: unknown) => void;
  /** The pause between two writes of an answer that is still being written. Default: 1000. */
  pauseMs?: number;
}

const PAUSE_MS = 1000;

/**
 * A middleware that stores the thread of `chat`: its messages before the model is called and after
 * each step, and the interrupts that a run waits for. Give `chat` a `threadId`.
 */
export function withSessionAgent(agent: AgentClient, { history = "request" }: MiddlewareOptions = {}): ChatMiddleware {
  const threads = new SessionAgentThreads(agent);
  /** The runs whose messages are the conversation. A run that was refused earlier has only its input. */
  const started = new WeakSet<object>();
  const save = async (context: ChatMiddlewareContext, more: ModelMessage[] = []): Promise<void> => {
    const messages = [...context.messages, ...more].filter((message) => !isPlaceholder(message));
    await threads.saveThread(context.threadId, messages);
  };
  // A text that was cut short is part of the conversation, because the user has seen it.
  const saveCutShort = async (context: ChatMiddlewareContext): Promise<void> => {
    if (!started.has(context)) return;
    const { accumulatedContent: content, currentMessageId: id, messages } = context;
    const isNew = content !== "" && !messages.some((message) => message.role === "assistant" && message.id === id);
    await save(context, isNew ? [{ role: "assistant", content, ...(id !== null && { id }) }] : []);
  };
  return {
    name: "session-agent",
    async onConfig(context, config) {
      if (context.phase !== "init") return;
      const stored = await threads.loadThread(context.threadId);
      if (history === "request" && config.messages.length > 0) return { messages: asStored(stored, config.messages) };
      return { messages: [...stored, ...newMessages(stored, config.messages)] };
    },
    async onStart(context) {
      started.add(context);
      await save(context);
    },
    async onIteration(context, { iteration }) {
      if (iteration > 0) await save(context);
    },
    // A run that waits for the user ends here, and must be stored before the page is notified.
    async onChunk(context, chunk) {
      const { outcome } = chunk as { outcome?: { type: string; interrupts?: any[] } };
      if (chunk.type !== "RUN_FINISHED" || outcome?.type !== "interrupt") return;
      await save(context);
      await threads.saveState(context.threadId, {
        interrupts: { runId: context.runId, pending: outcome.interrupts ?? [] },
      });
    },
    async onFinish(context) {
      await save(context);
      await threads.saveState(context.threadId, { interrupts: undefined });
    },
    onAbort: saveCutShort,
    onError: saveCutShort,
  };
}

/**
 * Loads the data for a page with `persistence: true`: the messages of a thread, and the interrupts that
 * its run waits for. Serve it only to users who may read the thread.
 */
export async function hydrateThread(agent: AgentClient, threadId: string): Promise<HydratedThread> {
  if (threadId === "") return { messages: [], activeRun: null, interrupts: null };
  const threads = new SessionAgentThreads(agent);
  const [messages, { interrupts = null }] = await Promise.all([
    threads.loadUiMessages(threadId),
    threads.loadState(threadId),
  ]);
  return { messages, activeRun: null, interrupts };
}

/** The storage of `useChat` and `ChatClient`, their `persistence`: a page's threads in an agent. */
export function chatStorage(
  agent: AgentClient,
  { onError = () => {}, pauseMs = PAUSE_MS }: ChatStorageOptions = {},
): ChatStorage {
  const threads = new SessionAgentThreads(agent);
  /** The newest state of each thread that is not written yet. `null`: the thread is removed. */
  const waiting = new Map<string, StoredChat | null>();
  let writing: Promise<void> | undefined;
  let pause = new AbortController();
  let waiters = 0;

  const put = (threadId: string, state: StoredChat | null): void => {
    waiting.delete(threadId);
    waiting.set(threadId, state);
    if (draftOf(state) === undefined) pause.abort();
    writing ??= drain().finally(() => {
      writing = undefined;
    });
  };
  const drain = async (): Promise<void> => {
    for (let next = waiting.entries().next(); !next.done; next = waiting.entries().next()) {
      const [threadId, state] = next.value;
      pause = new AbortController();
      await store(threads, threadId, state).catch(onError);
      // It can be read here until the agent has stored it.
      if (waiting.get(threadId) === state) waiting.delete(threadId);
      if (draftOf(state) !== undefined && waiters === 0) await wait(pauseMs, pause.signal).catch(() => {});
    }
  };
  return {
    async getItem(threadId) {
      const unwritten = waiting.get(threadId);
      if (unwritten !== undefined) return unwritten;
      const [messages, { resume, draft }] = await Promise.all([
        threads.loadUiMessages(threadId),
        threads.loadState(threadId),
      ]);
      // A draft that became a message has not been removed yet.
      if (draft?.after === messages.length) messages.push(dated(draft.message));
      if (messages.length === 0 && resume === undefined) return null;
      return { messages, ...(resume !== undefined && { resume }) };
    },
    // `ChatClient` waits for each write before the next one, and writes once per chunk.
    setItem: put,
    removeItem: (threadId) => put(threadId, null),
    async settled() {
      waiters += 1;
      pause.abort();
      while (writing !== undefined) await writing;
      waiters -= 1;
    },
  };
}

async function store(threads: SessionAgentThreads, threadId: string, state: StoredChat | null): Promise<void> {
  if (state === null) return await threads.deleteThread(threadId);
  const draft = draftOf(state);
  const messages = draft === undefined ? state.messages : state.messages.slice(0, -1);
  const change: ThreadState = {
    resume: state.resume,
    draft: draft && { message: draft, after: messages.length },
  };
  if (messages.length > 0 || draft === undefined) await threads.saveUiMessages(threadId, messages);
  await threads.saveState(threadId, change);
}

/** The answer of a run that continues or waits. It becomes an event when the run is over. */
function draftOf(state: StoredChat | null): UIMessage | undefined {
  const last = state?.messages.at(-1);
  return state?.resume !== undefined && last?.role === "assistant" ? last : undefined;
}
