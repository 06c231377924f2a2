// Loads the sessions of an agent page by page, the most recently active first.

import { computed, signal } from "@preact/signals";
import type { Operations, Session } from "session-agent";
import { openAgent } from "../connection.ts";
import { may, rights } from "../rights.ts";
import { isDeleting } from "./deleting.ts";

const PAGE = 100;
const NEWEST = 10;
/** A filtered page may be empty without being the last one. */
const PAGES_AT_ONCE = 20;

/** Which sessions are listed and searched. */
export type Filter = NonNullable<Operations["listSessions"]["input"]["where"]>;

export class Sessions {
  readonly #all = signal<readonly Session[]>([]);
  readonly #cursor = signal<string | null | undefined>(undefined);
  readonly #filter = signal<Filter | null>(null);
  readonly isLoading = signal(false);
  readonly problem = signal<unknown>(undefined);
  #turn = 0;

  constructor(readonly agent: string) {}

  readonly list = computed(() => this.#all.value.filter(({ id }) => !isDeleting(this.agent, id)));
  readonly isComplete = computed(() => this.#cursor.value === null);
  /** There is no session, whatever is filtered. */
  readonly isEmpty = computed(
    () => this.isComplete.value && this.list.value.length === 0 && this.#filter.value === null,
  );

  get filter(): Filter | null {
    return this.#filter.value;
  }

  /** `null`: all sessions. */
  async narrow(filter: Filter | null): Promise<void> {
    this.#filter.value = filter;
    this.#all.value = [];
    this.#cursor.value = undefined;
    await this.reload();
  }

  /** The filter of a request that lists or searches sessions. */
  get where(): { where?: Filter } {
    const filter = this.#filter.peek();
    return filter === null ? {} : { where: filter };
  }

  async reload(): Promise<void> {
    this.#turn += 1;
    this.isLoading.value = false;
    await this.#load(undefined);
  }

  async loadMore(): Promise<void> {
    const cursor = this.#cursor.peek();
    if (typeof cursor === "string" && !this.isLoading.peek()) await this.#load(cursor);
  }

  async #load(cursor: string | undefined): Promise<void> {
    const turn = this.#turn;
    this.isLoading.value = true;
    try {
      const page = await this.#page(cursor);
      if (turn !== this.#turn) return;
      this.#all.value = cursor === undefined ? page.sessions : merged(this.#all.peek(), page.sessions);
      this.#cursor.value = page.cursor;
      this.problem.value = undefined;
    } catch (error) {
      if (turn === this.#turn) this.problem.value = error;
    } finally {
      if (turn === this.#turn) this.isLoading.value = false;
    }
  }

  async #page(cursor: string | undefined): Promise<{ sessions: Session[]; cursor: string | null }> {
    const agent = openAgent(this.agent);
    const { session } = rights.peek();
    if (session === null || may("listSessions")) {
      let page = { sessions: [] as Session[], cursor: cursor ?? null };
      for (let pages = 0; pages < PAGES_AT_ONCE; pages += 1) {
        page = await agent.listSessions({
          limit: PAGE,
          ...this.where,
          ...(page.cursor !== null && { cursor: page.cursor }),
        });
        if (page.sessions.length > 0 || page.cursor === null) break;
      }
      return page;
    }
    const own = await agent.session(session).getSession();
    return { sessions: own === null ? [] : [own], cursor: null };
  }

  /** Loads only the newest sessions, and puts them at the top. */
  async loadNewest(): Promise<void> {
    if (this.isLoading.peek() || this.#cursor.peek() === undefined || !may("listSessions")) return;
    const turn = this.#turn;
    const page = await openAgent(this.agent, { isQuiet: true })
      .listSessions({ limit: NEWEST, ...this.where }, { retry: false })
      .catch(() => null);
    if (page === null || turn !== this.#turn) return;
    const before = this.#all.peek();
    const isSame = page.sessions.every(
      (session, n) => before[n]?.id === session.id && before[n]?.updatedAt === session.updatedAt,
    );
    if (!isSame) this.#all.value = merged(page.sessions, before);
  }

  put(session: Session): void {
    // Only the agent can apply the filter.
    if (this.#filter.peek() !== null) return void this.reload();
    this.#all.value = merged([session], this.#all.peek());
  }

  drop(id: string): void {
    this.#all.value = this.#all.peek().filter((session) => session.id !== id);
    // The answer to an earlier request may still have it.
    if (this.isLoading.peek()) void this.reload();
    else this.#turn += 1;
  }
}

function merged(first: readonly Session[], then: readonly Session[]): Session[] {
  const ids = new Set(first.map(({ id }) => id));
  return [...first, ...then.filter(({ id }) => !ids.has(id))];
}

const opened = new Map<string, Sessions>();

export function sessionsOf(agent: string): Sessions {
  let sessions = opened.get(agent);
  if (sessions === undefined) opened.set(agent, (sessions = new Sessions(agent)));
  return sessions;
}
