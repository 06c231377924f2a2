// The stores of the hooks except `useSession`, with optimistic updates.

import type { AgentClient } from "../agent.js";
import type {
  Block,
  CreateSessionInput,
  DecideProposalInput,
  Entry,
  GetProposalsInput,
  GetTurnsInput,
  ListSessionsInput,
  Proposal,
  Session,
  CompletedTurn,
} from "../operations.js";
import type { SetBlock, SetEntry } from "../writes.js";
import type { AgentHandle } from "./handle.js";
import { LiveStore } from "./live.js";

/** A paginated list. */
interface Paged<Item> {
  items: Item[];
  cursor: string | null;
}

const NO_ITEMS: Paged<never> = { items: [], cursor: null };

/** After a turn, the agent learns: proposals and facts follow some seconds later. */
const LEARNING_MS: readonly number[] = [2000, 6000, 15_000];

const same = <Data>(data: Data): Data => data;

/** The newest items, as many as are shown. */
const limitFor = (given: number | undefined, standard: number, { items }: Paged<unknown>): number =>
  Math.min(Math.max(given ?? standard, items.length), 100);

export interface SessionsOptions extends Pick<ListSessionsInput, "limit" | "where"> {}

export class SessionsStore extends LiveStore<Paged<Session>> {
  readonly #options: SessionsOptions;

  constructor(handle: AgentHandle<any>, options: SessionsOptions) {
    super(handle, {
      empty: NO_ITEMS,
      topics: ["sessions"],
      load: async (client, before) => {
        const page = await client.listSessions({ ...options, limit: limitFor(options.limit, 50, before) });
        return { items: page.sessions, cursor: page.cursor };
      },
    });
    this.#options = options;
  }

  readonly loadMore = async (): Promise<void> => {
    const { cursor } = this.get().data;
    if (cursor === null) return;
    await this.more(
      (client) => client.listSessions({ ...this.#options, cursor }),
      (data, page) => ({ items: joined(data.items, page.sessions), cursor: page.cursor }),
    );
  };

  /** Creates a session, which is shown immediately. Returns its id before the agent has answered. */
  readonly create = (input: CreateSessionInput = {}): { id: string; created: Promise<Session | undefined> } => {
    const id = input.id ?? crypto.randomUUID();
    const now = Date.now();
    const shown = { name: null, parentSessionId: null, metadata: null, ...input, id, createdAt: now, updatedAt: now };
    const created = this.change(
      (data) => ({ ...data, items: joined([shown as unknown as Session], data.items) }),
      (client) => client.createSession({ ...input, id }),
    );
    return { id, created };
  };

  readonly rename = async (sessionId: string, name: string | null): Promise<boolean> =>
    (await this.change(
      (data) => ({ ...data, items: data.items.map((one) => (one.id === sessionId ? { ...one, name } : one)) }),
      (client) => client.updateSession({ sessionId, name }),
    )) !== undefined;

  readonly remove = async (sessionId: string): Promise<boolean> =>
    (await this.change(
      (data) => ({ ...data, items: data.items.filter(({ id }) => id !== sessionId) }),
      (client) => client.deleteSession({ sessionId }),
    )) !== undefined;
}

export interface MemoryOptions {
  /** The session whose blocks are shown with the agent's. Default: only the agent's. */
  sessionId?: string;
  /** The searchable blocks whose entries are loaded. Default: all. */
  entriesOf?: readonly string[];
  /** The most entries per block. Default: 50. */
  limit?: number;
}

export interface MemoryData {
  blocks: Block[];
  /** The newest entries of searchable blocks, by the blocks' labels. */
  entries: { [label: string]: Entry[] };
}

export class MemoryStore extends LiveStore<MemoryData> {
  readonly #scope: { sessionId?: string };

  constructor(handle: AgentHandle<any>, { sessionId, entriesOf, limit = 50 }: MemoryOptions) {
    const scope = sessionId === undefined ? {} : { sessionId };
    super(handle, {
      empty: { blocks: [], entries: {} },
      topics: ["memory", "turns"],
      laterMs: LEARNING_MS,
      load: async (client) => {
        const own = sessionId === undefined ? [] : await client.getBlocks(scope).catch(noneOfUnknown);
        // A session's block hides the agent's block with the same label.
        const agents = (await client.getBlocks()).filter(({ label }) => !own.some((block) => block.label === label));
        const blocks = [...agents, ...own];
        const searchable = blocks.filter(
          ({ kind, label, source }) => kind === "searchable" && source === null && (entriesOf?.includes(label) ?? true),
        );
        const lists = searchable.map(async (block) => {
          const blockScope = block.scope === "session" ? scope : {};
          return [
            block.label,
            (await client.listEntries({ ...blockScope, label: block.label, limit })).entries,
          ] as const;
        });
        return { blocks, entries: Object.fromEntries(await Promise.all(lists)) };
      },
    });
    this.#scope = scope;
  }

  #scopeOf(label: string): { sessionId?: string } {
    return this.get().data.blocks.find((block) => block.label === label)?.scope === "session" ? this.#scope : {};
  }

  /** Replaces a block's text, unless it has changed since it was loaded. */
  readonly setBlock = async (
    label: string,
    content: string,
    more: Omit<SetBlock, "label" | "content"> = {},
  ): Promise<boolean> => {
    const shown = this.get().data.blocks.find((block) => block.label === label);
    const expected = shown === undefined ? {} : { expectedVersion: shown.version };
    return await this.#write(
      (data) => ({
        ...data,
        blocks: data.blocks.map((block) => (block.label === label ? { ...block, content } : block)),
      }),
      (client) => client.setBlock({ ...this.#scopeOf(label), ...expected, ...more, label, content }),
    );
  };

  /** Writes an entry. Without a `key`, it is a new one. */
  readonly setEntry = async (entry: SetEntry): Promise<boolean> => {
    const key = entry.key ?? crypto.randomUUID();
    const now = Date.now();
    return await this.#write(
      (data) => {
        const entries = data.entries[entry.label] ?? [];
        const known = entries.find((one) => one.key === key);
        const shown = {
          title: null,
          createdAt: now,
          events: [],
          source: "user",
          ...known,
          ...entry,
          key,
          updatedAt: now,
        };
        const rest = entries.filter((one) => one.key !== key);
        return { ...data, entries: { ...data.entries, [entry.label]: [shown as Entry, ...rest] } };
      },
      (client) => client.setEntry({ ...this.#scopeOf(entry.label), ...entry, key }),
    );
  };

  readonly removeEntry = async (label: string, key: string): Promise<boolean> =>
    await this.#write(
      (data) => ({
        ...data,
        entries: { ...data.entries, [label]: (data.entries[label] ?? []).filter((one) => one.key !== key) },
      }),
      (client) => client.deleteEntry({ ...this.#scopeOf(label), label, key }),
    );

  async #write(overlay: (data: MemoryData) => MemoryData, work: (client: AgentClient) => Promise<unknown>) {
    return (await this.change(overlay, async (client) => ({ answer: await work(client) }), ["memory"])) !== undefined;
  }
}

export interface ProposalsOptions extends Pick<GetProposalsInput, "limit" | "sessionId" | "status"> {}

export class ProposalsStore extends LiveStore<Paged<Proposal>> {
  readonly #options: ProposalsOptions;

  /** Default: the proposals with pending changes. */
  constructor(handle: AgentHandle<any>, options: ProposalsOptions) {
    const applied: ProposalsOptions = { status: "pending", ...options };
    super(handle, {
      empty: NO_ITEMS,
      topics: ["proposals", "turns"],
      laterMs: LEARNING_MS,
      load: async (client, before) => {
        const page = await client.getProposals({ ...applied, limit: limitFor(options.limit, 20, before) });
        return { items: page.proposals, cursor: page.cursor };
      },
    });
    this.#options = applied;
  }

  readonly loadMore = async (): Promise<void> => {
    const { cursor } = this.get().data;
    if (cursor === null) return;
    await this.more(
      (client) => client.getProposals({ ...this.#options, cursor }),
      (data, page) => ({ items: joined(data.items, page.proposals), cursor: page.cursor }),
    );
  };

  readonly approve = (id: string, changes?: DecideProposalInput["changes"]): Promise<boolean> =>
    this.#decide(id, changes, (client) => client.decideProposal({ id, approve: true, changes: changes ?? null }));

  readonly reject = (id: string, changes?: DecideProposalInput["changes"]): Promise<boolean> =>
    this.#decide(id, changes, (client) => client.decideProposal({ id, reject: true, changes: changes ?? null }));

  /** Reverts the changes of an approved proposal. */
  readonly revert = async (id: string): Promise<boolean> =>
    (await this.change(same, (client) => client.revertProposal({ id }), ["proposals", "memory"])) !== undefined;

  async #decide(id: string, changes: unknown, work: (client: AgentClient) => Promise<Proposal>): Promise<boolean> {
    // The undecided changes of a proposal stay pending.
    const leaves = this.#options.status === "pending" && changes == null;
    const overlay = (data: Paged<Proposal>) =>
      leaves ? { ...data, items: data.items.filter((one) => one.id !== id) } : data;
    return (await this.change(overlay, work, ["proposals", "memory"])) !== undefined;
  }
}

export interface TurnsOptions extends Pick<GetTurnsInput, "limit" | "sessionId" | "failed"> {}

export class TurnsStore extends LiveStore<Paged<CompletedTurn>> {
  readonly #options: TurnsOptions;

  constructor(handle: AgentHandle<any>, options: TurnsOptions) {
    super(handle, {
      empty: NO_ITEMS,
      topics: ["turns"],
      load: async (client, before) => {
        const page = await client.getTurns({ ...options, limit: limitFor(options.limit, 20, before) });
        return { items: page.turns, cursor: page.cursor };
      },
    });
    this.#options = options;
  }

  readonly loadMore = async (): Promise<void> => {
    const { cursor } = this.get().data;
    if (cursor === null) return;
    await this.more(
      (client) => client.getTurns({ ...this.#options, cursor }),
      (data, page) => ({ items: [...data.items, ...page.turns], cursor: page.cursor }),
    );
  };
}

/** A chat without messages doesn't exist as a session yet. */
function noneOfUnknown(error: { code?: string }): Block[] {
  if (error.code !== "session_not_found") throw error;
  return [];
}

/** Appends items without duplicates. */
function joined<Item extends { id: string }>(items: Item[], more: Item[]): Item[] {
  const known = new Set(items.map(({ id }) => id));
  return [...items, ...more.filter(({ id }) => !known.has(id))];
}
