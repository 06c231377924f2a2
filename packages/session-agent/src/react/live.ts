// Data that is read from the agent, and read again when it may have changed. The page's own changes are
// optimistic: an overlay is applied to the data until a later read includes the change, and removed if
// the agent refuses it.

import type { AgentClient } from "../agent.js";
import type { AgentHandle, Topic } from "./handle.js";
import { errorOf, isUnreached, oneAtATime, Store } from "./store.js";

export interface LiveState<Data> {
  data: Data;
  /** Whether nothing was read yet. */
  isLoading: boolean;
  /** The error of the last read or the last action. */
  error: Error | null;
}

/** How often a visible page polls data without notifications. */
const REFRESH_MS = 30_000;

/** The pauses before a failed read is repeated. */
const RETRY_MS: readonly number[] = [1000, 2000, 5000, 10_000];

export interface Source<Data> {
  empty: Data;
  load: (client: AgentClient, before: Data) => Promise<Data>;
  /** The topics that trigger a read. */
  topics: readonly Topic[];
  /** The delays of further reads after a notification: learning after a turn takes some seconds. */
  laterMs?: readonly number[];
}

export class LiveStore<Data> extends Store<LiveState<Data>> {
  readonly handle: AgentHandle;
  readonly #source: Source<Data>;
  #read: Data;
  #isLoading = true;
  #loadError: Error | null = null;
  #actionError: Error | null = null;
  #overlays: Array<(data: Data) => Data> = [];
  #failures = 0;
  /** The store's own notification, which it ignores. */
  #isNotifying = false;
  #timers: Set<ReturnType<typeof setTimeout>> = new Set();
  #leave: (() => void) | undefined;

  constructor(handle: AgentHandle, source: Source<Data>) {
    super({ data: source.empty, isLoading: true, error: null });
    this.handle = handle;
    this.#source = source;
    this.#read = source.empty;
  }

  protected open(): void {
    const { topics, laterMs = [] } = this.#source;
    this.#leave = this.handle.subscribe((topic) => {
      if (this.#isNotifying || (topic !== "online" && !topics.includes(topic))) return;
      void this.refresh();
      for (const ms of topic === "online" ? [] : laterMs) this.#later(ms);
    });
    this.#schedulePoll();
    void this.refresh();
  }

  protected close(): void {
    this.#leave?.();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #later(ms: number, work: () => void = () => void this.refresh()): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms);
    this.#timers.add(timer);
  }

  #schedulePoll(): void {
    this.#later(REFRESH_MS, () => {
      if (this.handle.isVisible) void this.refresh();
      this.#schedulePoll();
    });
  }

  /** Reads again. The read begins after this call, so it shows everything that was written before. */
  readonly refresh: () => Promise<void> = oneAtATime(() => this.#load());

  async #load(): Promise<void> {
    try {
      this.#read = await this.#source.load(await this.handle.client(), this.#read);
      this.#isLoading = false;
      this.#loadError = null;
      this.#failures = 0;
    } catch (error) {
      this.#loadError = errorOf(error);
      if (isUnreached(error) && this.isOpen) this.#later(RETRY_MS[Math.min(this.#failures++, RETRY_MS.length - 1)]!);
    }
    this.#show();
  }

  #show(): void {
    const data = this.#overlays.reduce((shown, overlay) => overlay(shown), this.#read);
    this.show({ data, isLoading: this.#isLoading, error: this.#actionError ?? this.#loadError });
  }

  /**
   * Shows a change and requests it. Returns the agent's answer, or `undefined` after a failure, which is in
   * `error`. `topics` are announced to the page's other stores and tabs.
   */
  async change<Answer>(
    overlay: (data: Data) => Data,
    work: (client: AgentClient) => Promise<Answer>,
    topics: readonly Topic[] = this.#source.topics,
  ): Promise<Answer | undefined> {
    this.#overlays = [...this.#overlays, overlay];
    this.#actionError = null;
    this.#show();
    try {
      const answer = await work(await this.handle.client());
      await this.refresh();
      this.#isNotifying = true;
      this.handle.notify(topics);
      this.#isNotifying = false;
      return answer;
    } catch (error) {
      this.#actionError = errorOf(error);
      // The agent's state may differ from the page's.
      void this.refresh();
      return undefined;
    } finally {
      this.#overlays = this.#overlays.filter((other) => other !== overlay);
      this.#show();
    }
  }

  /** Replaces the data, for example when another page was loaded. */
  protected put(change: (data: Data) => Data): void {
    this.#read = change(this.#read);
    this.#show();
  }

  /** Loads the next page of a list, which `add` appends. */
  async more<Page>(
    load: (client: AgentClient) => Promise<Page>,
    add: (data: Data, page: Page) => Data,
  ): Promise<boolean> {
    try {
      const page = await load(await this.handle.client());
      this.put((data) => add(data, page));
      return true;
    } catch (error) {
      this.#actionError = errorOf(error);
      this.#show();
      return false;
    }
  }

  readonly clearError = (): void => {
    this.#actionError = null;
    this.#loadError = null;
    this.#show();
  };
}
