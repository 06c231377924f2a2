// Threads of TanStack AI in the sessions of an agent: a thread is the session that has its id.
//
// The library saves whole threads. Here, a save appends only new messages. If the saved thread differs
// from the stored one, a branch begins at the first difference, so the log preserves the replaced messages.

import type { ModelMessage, UIMessage } from "@tanstack/ai";
import type { AgentClient } from "./agent.js";
import { orNull, PAGE, type Path, readPath } from "./branch_path.js";
import { AlreadyExistsError, LeafMovedError, SessionNotFoundError } from "./errors.js";
import type { NewEvent, SessionEvent } from "./operations.js";
import type { SessionClient } from "./session.js";
import {
  eventsOfMessages,
  eventsOfUiMessage,
  METADATA_KEY,
  sameMessage,
  sameUiMessage,
  type Unit,
  uiMessagesOf,
  unitsOf,
} from "./tanstack_messages.js";

/** The fields of a thread besides its messages, stored in its session's metadata. */
export interface ThreadState {
  /** The interrupts that a run waits for. */
  interrupts?: { runId: string; pending: any[] };
  /** The data with which a page continues a run. */
  resume?: any;
  /** The answer that is still being written, and the number of messages before it. */
  draft?: { message: UIMessage; after: number };
}

/** The changes that a save writes. */
interface Change {
  /** The event that the new ones follow. */
  parentId: string | null;
  events: NewEvent[];
}

/** The most times that a save is repeated after other writers. */
const TRIES = 10;
/** Longer thread ids are hashed. The API's limit is 200 characters. */
const LONGEST_ID = 200;

/** The threads of TanStack AI, in an agent. */
export class SessionAgentThreads {
  #agent: AgentClient;
  /** The thread that was read or written last: a run saves it several times. */
  #known: (Path & { threadId: string }) | undefined;

  constructor(agent: AgentClient) {
    this.#agent = agent;
  }

  /** The messages of a thread in the format for models. `[]`: the thread doesn't exist. */
  async loadThread(threadId: string): Promise<ModelMessage[]> {
    this.#known = { threadId, ...(await this.#read(threadId)) };
    return unitsOf(this.#known.events).flatMap(({ messages }) => messages);
  }

  /** Stores a whole thread. Messages that are already stored, even with another id or time, are not changed. */
  async saveThread(threadId: string, messages: ModelMessage[]): Promise<void> {
    await this.#save(threadId, messages.length, (units, leafId) => {
      // A message of a page is preserved whole, or replaced from its beginning.
      const stored = units.flatMap((unit) =>
        unit.messages.map((message, n) => ({
          message,
          event: unit.ui === undefined ? unit.events[n]! : unit.events[0]!,
          from: unit.ui === undefined ? 0 : n,
        })),
      );
      let shared = departureOf(stored, messages, ({ message }) => sameMessage(message), sameMessage);
      if (shared === stored.length && shared === messages.length) return null;
      shared -= stored[shared]?.from ?? 0;
      return {
        parentId: parentAt(stored[shared]?.event, leafId),
        events: eventsOfMessages(messages.slice(shared), messages.slice(0, shared)),
      };
    });
  }

  /** The messages of a thread as a page shows them. */
  async loadUiMessages(threadId: string): Promise<UIMessage[]> {
    const { events } = await this.#read(threadId);
    return unitsOf(events).flatMap(uiMessagesOf);
  }

  async saveUiMessages(threadId: string, messages: UIMessage[]): Promise<void> {
    await this.#save(threadId, messages.length, (units, leafId) => {
      const sameUnit = (unit: Unit): string => uiMessagesOf(unit).map(sameUiMessage).join();
      const shared = departureOf(units, messages, sameUnit, sameUiMessage);
      if (shared === units.length && shared === messages.length) return null;
      return {
        parentId: parentAt(units[shared]?.events[0], leafId),
        events: messages.slice(shared).flatMap(eventsOfUiMessage),
      };
    });
  }

  async loadState(threadId: string): Promise<ThreadState> {
    const session = await (await this.#session(threadId)).getSession();
    return session?.metadata?.[METADATA_KEY] ?? {};
  }

  /** Changes the state's fields, and creates the thread if there is something to store. */
  async saveState(threadId: string, change: ThreadState): Promise<void> {
    const session = await this.#session(threadId);
    const found = await session.getSession();
    const before = found?.metadata?.[METADATA_KEY] ?? {};
    const state = JSON.parse(JSON.stringify({ ...before, ...change }));
    if (JSON.stringify(state) === JSON.stringify(before)) return;
    if (found === null) await createIfMissing(session);
    await session.updateSession({ metadata: { ...found?.metadata, [METADATA_KEY]: state } });
  }

  async deleteThread(threadId: string): Promise<void> {
    this.#known = undefined;
    await this.#agent.deleteSession({ sessionId: await sessionIdOf(threadId) });
  }

  async #session(threadId: string): Promise<SessionClient> {
    return this.#agent.session(await sessionIdOf(threadId));
  }

  async #read(threadId: string): Promise<Path> {
    return await readPath(await this.#session(threadId), Infinity, () => 1);
  }

  /** Writes the changes that `changeOf` returns for `count` messages. Calls it again if another writer was faster. */
  async #save(
    threadId: string,
    count: number,
    changeOf: (stored: Unit[], leafId: string | null) => Change | null,
  ): Promise<void> {
    const session = await this.#session(threadId);
    let known: Path | undefined = this.#known?.threadId === threadId ? this.#known : undefined;
    this.#known = undefined;
    if (count === 0) {
      await orNull(() => session.clearMessages());
      return;
    }
    for (let attempt = 1; ; attempt += 1) {
      const path = known ?? (await this.#read(threadId));
      const change = changeOf(unitsOf(path.events), path.leafId);
      try {
        this.#known = { threadId, ...(change === null ? path : await write(session, change, path)) };
        return;
      } catch (error) {
        // The cached state may be older than another write.
        const isStale = known !== undefined || error instanceof LeafMovedError;
        if (!isStale || attempt >= TRIES) throw error;
        known = undefined;
      }
    }
  }
}

/** Writes a change. Returns the thread's path after it. */
async function write(
  session: SessionClient,
  { parentId, events }: Change,
  { events: path, leafId }: Path,
): Promise<Path> {
  const prefix = path.slice(0, path.findIndex(({ id }) => id === parentId) + 1);
  if (events.length === 0) {
    // Messages were removed from the end. They remain in the log as a branch.
    await session.setLeaf({ id: parentId! });
    return { events: prefix, leafId: parentId };
  }
  const named = events.map((event) => ({ id: crypto.randomUUID(), ...event }));
  let position = { parentId, expectedLeafId: leafId };
  for (let from = 0; from < named.length; from += PAGE) {
    const page = named.slice(from, from + PAGE);
    await append(session, { events: page, ...position });
    const last = page.at(-1)!.id;
    position = { parentId: last, expectedLeafId: last };
  }
  const written = named.map((event, n) => ({ ...event, parentId: named[n - 1]?.id ?? parentId }));
  return { events: [...prefix, ...(written as SessionEvent[])], leafId: position.parentId };
}

async function append(session: SessionClient, input: Parameters<SessionClient["appendEvents"]>[0]): Promise<void> {
  try {
    await session.appendEvents(input);
  } catch (error) {
    if (!(error instanceof SessionNotFoundError)) throw error;
    await createIfMissing(session);
    await session.appendEvents(input);
  }
}

async function createIfMissing(session: SessionClient): Promise<void> {
  await session.create().catch((error) => {
    if (!(error instanceof AlreadyExistsError)) throw error;
  });
}

/** How many messages two lists have in common at their beginning. */
function departureOf<Stored, Message>(
  stored: Stored[],
  messages: Message[],
  ofStored: (stored: Stored) => string,
  ofMessage: (message: Message) => string,
): number {
  const at = messages.findIndex((message, n) => n >= stored.length || ofStored(stored[n]!) !== ofMessage(message));
  return at < 0 ? messages.length : at;
}

/** The parent for replacements of `event`. Without an `event`, the branch continues at its end. */
const parentAt = (event: SessionEvent | undefined, leafId: string | null): string | null =>
  event === undefined ? leafId : event.parentId;

async function sessionIdOf(threadId: string): Promise<string> {
  if (threadId.length <= LONGEST_ID) return threadId;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(threadId));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
