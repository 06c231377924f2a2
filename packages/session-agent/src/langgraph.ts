// A checkpoint saver for LangGraph that stores its threads in an agent.
//
// A thread has a session for each checkpoint namespace, and another session for pending writes. In a
// namespace's session, each checkpoint is an event that follows its parent, preceded by the values
// that it changed. The namespace's leaf is its newest checkpoint, so a write based on an older one
// fails. Pending writes have their own session, because an append moves the leaf.

import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  compareWritesSortKeys,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
  WRITES_IDX_MAP,
} from "@langchain/langgraph-checkpoint";
import type { AgentClient } from "./agent.js";
import { base64Of, bytesOf } from "./bytes.js";
import { AlreadyExistsError, MessageNotFoundError, SessionNotFoundError } from "./errors.js";
import type { AppendEventsInput, AppendOutcome, UiMessage } from "./operations.js";

export { SessionAgentStore, type StoreOptions } from "./langgraph_store.js";

export interface SaverOptions {
  serde?: SerializerProtocol;
  /**
   * What to do with a checkpoint whose parent is not the newest of its thread. `refuse`: `put` throws
   * `LeafMovedError`. `fork`: the thread silently gets another branch. Explicit forks, by
   * `updateState` or by replaying a checkpoint, are always possible. Default: `refuse`.
   */
  staleWriters?: "refuse" | "fork";
}

/** A checkpoint as its event stores it. */
interface Stored {
  id: string;
  parent?: string;
  checkpoint: string;
  metadata: string;
  channels: string[];
}

interface Namespace {
  thread: string;
  namespace: string;
}

/** The values that were read for several checkpoints, by the values' ids. */
type Values = Map<string, Promise<UiMessage | null>>;

/** Longer ids are hashed. The API's limit is 200 characters. */
const LONGEST_ID = 200;
const PAGE = 50;
const VERSION_DIGITS = 16;

// Values are written as messages of the user or the system. Adjacent events of an assistant would be
// read as one message.
const CHECKPOINT = "user_message";
const WRITE = "user_message";
const VALUE = "system_instruction";
const NAMESPACE = "system_instruction";

/** Stores LangGraph's threads in an agent. All threads of a saver are in one agent. */
export class SessionAgentSaver extends BaseCheckpointSaver<any> {
  #agent: AgentClient;
  #mayFork: boolean;

  /** `staleWriters`: "refuse" (the default) or "fork", the behavior of most savers. */
  constructor(agent: AgentClient, { serde, staleWriters = "refuse" }: SaverOptions = {}) {
    super(serde);
    this.#agent = agent;
    this.#mayFork = staleWriters === "fork";
  }

  /** Two branches of a thread never give two values the same version. */
  override getNextVersion(current: any): any {
    const next = current === undefined ? 1 : Number.parseInt(String(current), 10) + 1;
    return `${String(next).padStart(VERSION_DIGITS, "0")}.${crypto.randomUUID().slice(0, 8)}`;
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { thread, namespace, checkpointId } = addressOf(config);
    if (thread === undefined) return undefined;
    const session = this.#agent.session(await checkpointsOf(thread, namespace));
    const text = await orUndefined(async () => {
      if (checkpointId !== undefined) return textOf(await session.getMessage({ messageId: await idOf(checkpointId) }));
      const [newest] = await session.loadEvents({ tail: true, limit: 1, actions: [CHECKPOINT] });
      return newest?.content;
    });
    return text ? await this.#tupleOf(thread, namespace, JSON.parse(text), new Map()) : undefined;
  }

  async *list(
    config: RunnableConfig,
    { limit, before, filter }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { thread, namespace, checkpointId } = addressOf(config ?? {});
    const earlierThan = before?.configurable?.checkpoint_id;
    const wanted = Object.entries(filter ?? {}).filter(([, value]) => value !== undefined);
    let left = limit ?? Infinity;
    for await (const found of this.#namespaces(thread)) {
      if (namespace !== undefined && hasNamespace(config) && found.namespace !== namespace) continue;
      // A value that several checkpoints share is read once.
      const values: Values = new Map();
      for await (const stored of this.#checkpointsDown(found)) {
        if (left <= 0) return;
        if (checkpointId !== undefined && stored.id !== checkpointId) continue;
        if (earlierThan !== undefined && stored.id >= earlierThan) continue;
        const metadata = await this.#decode(stored.metadata);
        if (!wanted.every(([key, value]) => metadata?.[key] === value)) continue;
        yield await this.#tupleOf(found.thread, found.namespace, stored, values);
        left -= 1;
      }
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: Record<string, string | number>,
  ): Promise<RunnableConfig> {
    const thread = needed(config, "thread_id");
    const { namespace, checkpointId: parent } = addressOf(config);
    const { channel_values: values = {}, ...rest } = checkpoint;
    const stored: Stored = {
      id: checkpoint.id,
      ...(parent !== undefined && { parent }),
      checkpoint: await this.#encode(rest),
      metadata: await this.#encode(metadata),
      channels: Object.keys(values),
    };
    const changed = Object.keys(newVersions).filter((channel) => values[channel] !== undefined);
    const events: AppendEventsInput["events"] = await Promise.all(
      changed.map(async (channel) => ({
        id: await valueId(channel, newVersions[channel]),
        action: VALUE,
        content: await this.#encode(values[channel]),
      })),
    );
    events.push({ id: await idOf(checkpoint.id), action: CHECKPOINT, content: JSON.stringify(stored) });
    const parentId = parent === undefined ? null : await idOf(parent);
    const isFork =
      parent === undefined || this.#mayFork || metadata?.source === "fork" || metadata?.source === "update";
    await this.#append(thread, namespace, { events, parentId, ...(!isFork && { expectedLeafId: parentId }) });
    return configOf(thread, namespace, checkpoint.id);
  }

  async putWrites(
    config: RunnableConfig,
    writes: PendingWrite[],
    taskId: string,
    taskPath: string = "",
  ): Promise<void> {
    const [thread, checkpointId] = [needed(config, "thread_id"), needed(config, "checkpoint_id")];
    const { namespace } = addressOf(config);
    const marker = await markerOf(namespace, checkpointId);
    const events = await Promise.all(
      writes.map(async ([channel, value], n) => {
        const index = WRITES_IDX_MAP[channel] ?? n;
        const content = JSON.stringify({
          task: taskId,
          path: taskPath,
          index,
          channel,
          value: await this.#encode(value),
        });
        return {
          id: await idOf(namespace, checkpointId, taskId, index),
          parentId: marker,
          action: WRITE,
          content,
        } as const;
      }),
    );
    const session = this.#agent.session(await writesOf(thread));
    const append = () =>
      session.appendEvents({ events: [{ id: marker, parentId: null, action: VALUE, content: "" }, ...events] });
    const outcome = await append().catch(async (error) => {
      if (!(error instanceof SessionNotFoundError)) throw error;
      await this.#create(await writesOf(thread), { langgraph: "writes", thread });
      return await append();
    });
    // A task's writes are kept. An error or an interrupt of a retry replaces the first one.
    const known = outcome.events
      .slice(1)
      .flatMap(({ inserted }, n) => (inserted || WRITES_IDX_MAP[writes[n]![0]] === undefined ? [] : [events[n]!]));
    for (const { id, content } of known)
      await session.updateMessage({ message: { id, role: "user", parts: [{ type: "text", text: content }] } });
  }

  /**
   * Deletes checkpoints of these threads, as LangGraph's `prune` does: `keep_latest` keeps the
   * newest of each namespace with the values that it uses, `delete` none. Needs the Worker's
   * secret. `retention: {runsKept}` does the same by itself.
   */
  async prune(
    threadIds: string[],
    { strategy = "keep_latest" }: { strategy?: "keep_latest" | "delete" } = {},
  ): Promise<void> {
    for (const thread of threadIds) {
      if (strategy === "delete") {
        await this.deleteThread(thread);
        continue;
      }
      for await (const { namespace } of this.#namespaces(thread)) {
        const sessionId = await checkpointsOf(thread, namespace);
        let cursor: string | undefined;
        do {
          const input = { sessionId, retention: { runsKept: 1 }, ...(cursor !== undefined && { cursor }) };
          cursor = (await orUndefined(() => this.#agent.applyRetention(input)))?.cursor ?? undefined;
        } while (cursor !== undefined);
      }
    }
  }

  async deleteThread(threadId: string): Promise<void> {
    const thread = String(threadId);
    for await (const { namespace } of this.#namespaces(thread))
      await this.#agent.deleteSession({ sessionId: await checkpointsOf(thread, namespace) });
    // It lists the others, so it is deleted last.
    await this.#agent.deleteSession({ sessionId: await writesOf(thread) });
  }

  async #tupleOf(thread: string, namespace: string, stored: Stored, values: Values): Promise<CheckpointTuple> {
    const checkpoint = await this.#decode(stored.checkpoint);
    const session = this.#agent.session(await checkpointsOf(thread, namespace));
    const read = async (channel: string): Promise<[string, string | undefined]> => {
      const id = await valueId(channel, checkpoint.channel_versions[channel]);
      if (!values.has(id)) values.set(id, session.getMessage({ messageId: id }));
      return [channel, textOf((await values.get(id)) ?? null)];
    };
    const [writes, sends, ...channels] = await Promise.all([
      this.#writesAt(thread, namespace, stored.id),
      checkpoint.v < 4 && stored.parent !== undefined ? this.#writesAt(thread, namespace, stored.parent) : [],
      ...stored.channels.map(read),
    ]);
    const found = channels.filter((channel): channel is [string, string] => channel[1] !== undefined);
    checkpoint.channel_values = Object.fromEntries(
      await Promise.all(found.map(async ([channel, text]) => [channel, await this.#decode(text)])),
    );
    if (checkpoint.v < 4 && stored.parent !== undefined) this.#moveSends(checkpoint, sends);
    return {
      config: configOf(thread, namespace, stored.id),
      checkpoint,
      metadata: await this.#decode(stored.metadata),
      ...(stored.parent !== undefined && { parentConfig: configOf(thread, namespace, stored.parent) }),
      pendingWrites: writes,
    };
  }

  /** Before version 4, a checkpoint's tasks were among its parent's writes. */
  #moveSends(checkpoint: Checkpoint, writes: Array<[string, string, unknown]>): void {
    const versions = (checkpoint.channel_versions ??= {});
    checkpoint.channel_values[TASKS] = writes.filter(([, channel]) => channel === TASKS).map(([, , value]) => value);
    versions[TASKS] =
      Object.keys(versions).length > 0
        ? maxChannelVersion(...(Object.values(versions) as string[]))
        : this.getNextVersion(undefined);
  }

  /** The pending writes of a checkpoint, in the order in which a superstep applies them. */
  async #writesAt(thread: string, namespace: string, checkpointId: string): Promise<Array<[string, string, unknown]>> {
    const session = this.#agent.session(await writesOf(thread));
    const messageId = await markerOf(namespace, checkpointId);
    const messages = (await orUndefined(async () => (await session.getBranches({ messageId })).messages)) ?? [];
    const writes: any[] = messages.map((message) => JSON.parse(textOf(message) ?? ""));
    writes.sort((one, other) =>
      compareWritesSortKeys([one.path, one.task, one.index], [other.path, other.task, other.index]),
    );
    return await Promise.all(
      writes.map(
        async ({ task, channel, value }): Promise<[string, string, unknown]> => [
          task,
          channel,
          await this.#decode(value),
        ],
      ),
    );
  }

  /** The namespaces of a thread, or of all threads. */
  async *#namespaces(thread: string | undefined): AsyncGenerator<Namespace, void, undefined> {
    if (thread === undefined) {
      for await (const { metadata } of this.#agent.sessions()) {
        if (metadata?.langgraph === "writes") yield* this.#namespaces(metadata.thread);
      }
      return;
    }
    const session = this.#agent.session(await writesOf(thread));
    try {
      for await (const { content } of session.events({ actions: [NAMESPACE] })) {
        if (content !== "") yield { thread, namespace: JSON.parse(content) };
      }
    } catch (error) {
      if (!(error instanceof SessionNotFoundError)) throw error;
    }
  }

  /** The stored checkpoints of a namespace, from the newest to the oldest. */
  async *#checkpointsDown({ thread, namespace }: Namespace): AsyncGenerator<Stored, void, undefined> {
    const session = this.#agent.session(await checkpointsOf(thread, namespace));
    for (let beforeSeq: number | undefined; ; ) {
      const page =
        (await orUndefined(() => session.loadEvents({ tail: true, limit: PAGE, actions: [CHECKPOINT], beforeSeq }))) ??
        [];
      for (const { content } of page.slice().reverse()) yield JSON.parse(content);
      if (page.length === 0) return;
      beforeSeq = page[0]!.seq;
    }
  }

  /** Appends to a namespace. The first checkpoint creates its session. */
  async #append(
    thread: string,
    namespace: string,
    input: Omit<AppendEventsInput, "sessionId">,
  ): Promise<AppendOutcome> {
    const session = this.#agent.session(await checkpointsOf(thread, namespace));
    try {
      return await session.appendEvents(input);
    } catch (error) {
      if (!(error instanceof SessionNotFoundError)) throw error;
    }
    await this.#create(await writesOf(thread), { langgraph: "writes", thread });
    // The thread lists its namespaces before they have content.
    const named: AppendEventsInput["events"][number] = {
      id: await idOf("namespace", namespace),
      parentId: null,
      action: NAMESPACE,
      content: JSON.stringify(namespace),
    };
    await this.#agent.session(await writesOf(thread)).appendEvents({ events: [named] });
    await this.#create(await checkpointsOf(thread, namespace), { langgraph: "checkpoints", thread, namespace });
    return await session.appendEvents(input);
  }

  /** Creates a session, unless it exists. */
  async #create(id: string, metadata: object): Promise<void> {
    await this.#agent.createSession({ id, metadata }).catch((error) => {
      if (!(error instanceof AlreadyExistsError)) throw error;
    });
  }

  /** `serde`'s text or bytes as one text: its type, a colon, then the text or base64. */
  async #encode(value: unknown): Promise<string> {
    const [type, data] = await this.serde.dumpsTyped(value);
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    return `${type}:${type === "json" ? new TextDecoder().decode(bytes) : base64Of(bytes)}`;
  }

  async #decode(text: string): Promise<any> {
    const at = text.indexOf(":");
    const [type, data] = [text.slice(0, at), text.slice(at + 1)] as const;
    return await this.serde.loadsTyped(type, type === "json" ? data : bytesOf(data));
  }
}

const hasNamespace = (config: RunnableConfig | undefined): boolean => config?.configurable?.checkpoint_ns !== undefined;

/** The thread, namespace and checkpoint that a config names. */
function addressOf({ configurable }: RunnableConfig = {}): {
  thread: string | undefined;
  namespace: string;
  checkpointId: string | undefined;
} {
  const { thread_id: thread, checkpoint_ns: namespace = "", checkpoint_id: checkpointId } = configurable ?? {};
  return {
    thread: thread === undefined ? undefined : String(thread),
    namespace,
    checkpointId: checkpointId || undefined,
  };
}

/** A field of a config that is required for a write. */
function needed(config: RunnableConfig, field: "thread_id" | "checkpoint_id"): string {
  const value = config?.configurable?.[field];
  if (value === undefined)
    throw new TypeError(
      `The config has no \`configurable.${field}\`. Name the thread, as in { configurable: { thread_id: "1" } }.`,
    );
  return String(value);
}

const configOf = (thread: string, namespace: string, id: string): RunnableConfig => ({
  configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: id },
});

const checkpointsOf = (thread: string, namespace: string) => idOf("checkpoints", thread, namespace);
const writesOf = (thread: string) => idOf("writes", thread);
const markerOf = (namespace: string, checkpointId: string) => idOf("at", namespace, checkpointId);
const valueId = (channel: string, version: string | number | undefined) => idOf("value", channel, version);

/** A unique id for several names. */
async function idOf(...names: Array<string | number | undefined>): Promise<string> {
  const id = JSON.stringify(names);
  if (id.length <= LONGEST_ID) return id;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(id));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A missing thread has nothing to read. */
async function orUndefined<Answer>(read: () => Promise<Answer>): Promise<NonNullable<Answer> | undefined> {
  try {
    return (await read()) ?? undefined;
  } catch (error) {
    if (error instanceof SessionNotFoundError || error instanceof MessageNotFoundError) return undefined;
    throw error;
  }
}

const textOf = (message: UiMessage | null): string | undefined => message?.parts[0]?.text;
