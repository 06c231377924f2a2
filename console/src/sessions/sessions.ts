// The sessions of one agent, the newest activity first, page by page.

import { computed, signal } from "@preact/signals";
import type { Session } from "session-agent";
import { openAgent } from "../connection.ts";
import { may, rights } from "../rights.ts";
import { isDeleting } from "./deleting.ts";

const PAGE = 100;
const NEWEST = 10;

export class Sessions {
  readonly #all = signal<readonly Session[]>([]);
  readonly #cursor = signal<string | null | undefined>(undefined);
  readonly isLoading = signal(false);
  readonly problem = signal<unknown>(undefined);
  #turn = 0;

  constructor(readonly agent: string) {}

  readonly list = computed(() => this.#all.value.filter(({ id }) => !isDeleting(this.agent, id)));
  readonly isComplete = computed(() => this.#cursor.value === null);
  readonly isEmpty = computed(() => this.isComplete.value && this.list.value.length === 0);

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
    if (session === null || may("listSessions"))
      return await agent.listSessions({ limit: PAGE, ...(cursor !== undefined && { cursor }) });
    const own = await agent.session(session).getSession();
    return { sessions: own === null ? [] : [own], cursor: null };
  }

  /** Looks at the newest alone, and puts them on top. */
  async look(): Promise<void> {
    if (this.isLoading.peek() || this.#cursor.peek() === undefined || !may("listSessions")) return;
    const turn = this.#turn;
    const page = await openAgent(this.agent, { isQuiet: true })
      .listSessions({ limit: NEWEST }, { retry: false })
      .catch(() => null);
    if (page === null || turn !== this.#turn) return;
    const before = this.#all.peek();
    const isSame = page.sessions.every(
      (session, n) => before[n]?.id === session.id && before[n]?.updatedAt === session.updatedAt,
    );
    if (!isSame) this.#all.value = merged(page.sessions, before);
  }

  put(session: Session): void {
    this.#all.value = merged([session], this.#all.peek());
  }

  drop(id: string): void {
    this.#all.value = this.#all.peek().filter((session) => session.id !== id);
    // What was asked for before may still have it.
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
