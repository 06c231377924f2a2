// Hooks for React with live data: an agent's sessions, a session with its turns, the memory, proposals
// and turns. Only this module imports React.
//
//   const agent = useAgent<typeof Assistant>({ login });
//   const { messages, send, stop, retry, approve, answer } = useSession(agent, "chat");

import { useEffect, useState, useSyncExternalStore } from "react";
import type {
  CreateSessionInput,
  DecideProposalInput,
  Entry,
  Block,
  Proposal,
  Session,
  CompletedTurn,
} from "./operations.js";
import type { InputAnswers } from "./input_request.js";
import { AgentHandle, keyOf } from "./react/handle.js";
import {
  type MemoryOptions,
  MemoryStore,
  type ProposalsOptions,
  ProposalsStore,
  type SessionsOptions,
  SessionsStore,
  type TurnsOptions,
  TurnsStore,
} from "./react/lists.js";
import type { UseAgentOptions } from "./react/login.js";
import { SessionStore } from "./react/session.js";
import type { SendOptions, SessionView } from "./react/session_view.js";
import type { Store } from "./react/store.js";
import type { ToolsOf } from "./react/types.js";
import type { SetBlock, SetEntry } from "./writes.js";

export type { AgentHandle } from "./react/handle.js";
export type { MemoryOptions, ProposalsOptions, SessionsOptions, TurnsOptions } from "./react/lists.js";
export type { LoginAnswer, UseAgentOptions } from "./react/login.js";
export { type InputFormProps, InputRequestForm } from "./react/input_form.js";
export { Markdown, visibleInput } from "./react/markdown.js";
export type { SendOptions, SessionView } from "./react/session_view.js";
export type {
  ChatFailure,
  ChatMessage,
  ChatPart,
  ToolApproval,
  ToolCallPart,
  ToolInput,
  ToolOutput,
  ToolsOf,
} from "./react/types.js";

/** The state that each hook except `useSession` returns. */
export interface Live {
  /** Whether nothing was read yet. */
  isLoading: boolean;
  /** The error of the last action or the last read. */
  error: Error | null;
  clearError: () => void;
  refresh: () => Promise<void>;
}

/** The additional fields of lists. */
export interface LiveList extends Live {
  hasMore: boolean;
  loadMore: () => Promise<void>;
}

/**
 * Returns an agent. It connects when a hook first needs it, and stays the same while `url` and `name`
 * do. With `useAgent<typeof Assistant>`, messages have the types of the class's tools.
 */
export function useAgent<Class = unknown>(options: UseAgentOptions): AgentHandle<Class> {
  const [current, setCurrent] = useState(() => new AgentHandle<Class>(options));
  let handle = current;
  if (current.key !== keyOf(options)) {
    handle = new AgentHandle<Class>(options);
    setCurrent(handle);
  }
  useEffect(() => {
    handle.login.options = options;
  });
  return handle;
}

/** The result of `useSession`. */
export interface SessionHook<Tools> extends SessionView<Tools> {
  /** Whether a turn is running or requested. */
  isBusy: boolean;
  /** Sends a message and returns its id. The message is queued during another turn, and while offline. */
  send: (message: string | { id?: string; parts: any[]; metadata?: any }, more?: SendOptions) => string;
  /** Requests an answer to a message again, or replaces an answer with another. Default: the newest message. */
  retry: (messageId?: string) => void;
  /** Stops the turn. With a message's id: withdraws a message that is queued or could not be sent. */
  stop: (messageId?: string) => Promise<void>;
  /** Approves or declines a call, by the `approval.id` of its part. */
  approve: (approvalId: string, approved: boolean, reason?: string) => void;
  /** Answers the questions of a call's tool, by the `data.toolCallId` of a part `data-input-request`. */
  answer: (toolCallId: string, answers: InputAnswers) => void;
  /** Switches to the branch that begins with a message. */
  switchTo: (messageId: string) => Promise<void>;
  loadMore: () => Promise<void>;
  clearError: () => void;
}

/** A live session: its messages, the running turn, and the user's actions. */
export function useSession<Class>(agent: AgentHandle<Class>, sessionId: string): SessionHook<ToolsOf<Class>> {
  const store = agent.store(`session ${sessionId}`, () => new SessionStore(agent, sessionId));
  const view = useStore(store);
  const { send, retry, stop, approve, answer, switchTo, loadMore, clearError } = store;
  const isBusy = view.status === "submitted" || view.status === "streaming";
  const hook = { ...view, isBusy, send, retry, stop, approve, answer, switchTo, loadMore, clearError };
  return hook as unknown as SessionHook<ToolsOf<Class>>;
}

export interface SessionsHook extends LiveList {
  sessions: Session[];
  /** Creates a session. Returns its id immediately; `created` is fulfilled when the agent has it. */
  create: (input?: CreateSessionInput) => { id: string; created: Promise<Session | undefined> };
  rename: (sessionId: string, name: string | null) => Promise<boolean>;
  remove: (sessionId: string) => Promise<boolean>;
}

/** The agent's sessions, the most recently active first. */
export function useSessions(agent: AgentHandle<any>, options: SessionsOptions = {}): SessionsHook {
  const store = agent.store(keyFor("sessions", options), () => new SessionsStore(agent, options));
  const { data, ...live } = useStore(store);
  const { create, rename, remove } = store;
  return { ...live, ...listOf(store), sessions: data.items, hasMore: data.cursor !== null, create, rename, remove };
}

export interface MemoryHook extends Live {
  blocks: Block[];
  /** The newest entries of searchable blocks, by label. */
  entries: { [label: string]: Entry[] };
  /** Replaces a block's text. `false`: the text has changed in the meantime, or the agent refused; see `error`. */
  setBlock: (label: string, content: string, more?: Omit<SetBlock, "label" | "content">) => Promise<boolean>;
  setEntry: (entry: SetEntry) => Promise<boolean>;
  removeEntry: (label: string, key: string) => Promise<boolean>;
}

/** The agent's memory: its blocks, and the entries of searchable blocks. */
export function useMemory(agent: AgentHandle<any>, options: MemoryOptions = {}): MemoryHook {
  const store = agent.store(keyFor("memory", options), () => new MemoryStore(agent, options));
  const { data, ...live } = useStore(store);
  const { setBlock, setEntry, removeEntry, refresh, clearError } = store;
  return { ...live, ...data, setBlock, setEntry, removeEntry, refresh, clearError };
}

export interface ProposalsHook extends LiveList {
  proposals: Proposal[];
  approve: (id: string, changes?: DecideProposalInput["changes"]) => Promise<boolean>;
  reject: (id: string, changes?: DecideProposalInput["changes"]) => Promise<boolean>;
  revert: (id: string) => Promise<boolean>;
}

/** The agent's proposals. By default, those with pending changes. */
export function useProposals(agent: AgentHandle<any>, options: ProposalsOptions = {}): ProposalsHook {
  const store = agent.store(keyFor("proposals", options), () => new ProposalsStore(agent, options));
  const { data, ...live } = useStore(store);
  const { approve, reject, revert } = store;
  return { ...live, ...listOf(store), proposals: data.items, hasMore: data.cursor !== null, approve, reject, revert };
}

export interface TurnsHook extends LiveList {
  turns: CompletedTurn[];
}

/** The turns of an agent or of one session, the newest first: models, tokens, tools, failures. */
export function useTurns(agent: AgentHandle<any>, options: TurnsOptions = {}): TurnsHook {
  const store = agent.store(keyFor("turns", options), () => new TurnsStore(agent, options));
  const { data, ...live } = useStore(store);
  return { ...live, ...listOf(store), turns: data.items, hasMore: data.cursor !== null };
}

const keyFor = (name: string, options: object): string => `${name} ${JSON.stringify(options)}`;

const listOf = ({
  loadMore,
  refresh,
  clearError,
}: {
  loadMore: () => Promise<void>;
  refresh: () => Promise<void>;
  clearError: () => void;
}) => ({ loadMore, refresh, clearError });

function useStore<State>(store: Store<State>): State {
  return useSyncExternalStore(store.subscribe, store.get, store.get);
}
