// Loads the events of a list when they become visible: reads the log backward from its end until all requested events
// are found.

import { type Signal, signal } from "@preact/signals";
import { PayloadTooLargeError, type SessionEvent } from "session-agent";
import type { Conversation } from "./conversation.ts";

/** Events that become visible within this time are read together. */
const WAIT_MS = 30;
const PAGE = 250;
/** The most events that are read. */
const PAGES = 20;

type Known = SessionEvent | null | undefined;

export class EventTexts {
  /** `undefined`: not read yet. `null`: the log has no such event. */
  readonly #events = new Map<string, Signal<Known>>();
  readonly #wanted = new Set<string>();
  #isReading = false;
  #newest = 0;
  /** The start of the part of the log that was read. `null`: the start of the log. */
  #oldest: number | null = Number.MAX_SAFE_INTEGER;
  #pages = 0;

  constructor(readonly conversation: Conversation) {}

  get(id: string): Signal<Known> {
    const event = this.#of(id);
    if (event.peek() === undefined && !this.#wanted.has(id)) this.#want(id);
    return event;
  }

  /** Reads a changed event again. */
  async renew(id: string): Promise<void> {
    const event = this.#events.get(id);
    const seq = event?.peek()?.seq;
    if (event === undefined || seq === undefined) return;
    const [found] = await this.#load({ afterSeq: seq - 1, beforeSeq: seq + 1 });
    event.value = found?.id === id ? found : null;
  }

  #of(id: string): Signal<Known> {
    let event = this.#events.get(id);
    if (event === undefined) this.#events.set(id, (event = signal<Known>(undefined)));
    return event;
  }

  #want(id: string): void {
    this.#wanted.add(id);
    if (this.#isReading) return;
    this.#isReading = true;
    setTimeout(() => void this.#read().finally(() => (this.#isReading = false)), WAIT_MS);
  }

  async #read(): Promise<void> {
    // First the events since the last read, then older ones.
    if (this.#pages > 0) this.#take(await this.#load({ afterSeq: this.#newest }));
    while (this.#wanted.size > 0 && this.#oldest !== null && this.#pages < PAGES) {
      const page = await this.#load({ tail: true, ...(this.#pages > 0 && { beforeSeq: this.#oldest }) });
      this.#pages += 1;
      this.#oldest = page[0]?.seq ?? null;
      this.#take(page);
    }
    for (const id of this.#wanted) if (this.#oldest === null) this.#of(id).value = null;
    this.#wanted.clear();
  }

  #take(events: readonly SessionEvent[]): void {
    for (const event of events) {
      this.#newest = Math.max(this.#newest, event.seq);
      this.#wanted.delete(event.id);
      this.#of(event.id).value = event;
    }
  }

  /** Very long events are read in shorter pages. */
  async #load(of: { afterSeq?: number; beforeSeq?: number; tail?: boolean }): Promise<readonly SessionEvent[]> {
    for (let limit = PAGE; ; limit = Math.max(1, limit >> 2)) {
      try {
        return await this.conversation.session.loadEvents({ ...of, limit });
      } catch (error) {
        if (!(error instanceof PayloadTooLargeError) || limit === 1) return [];
      }
    }
  }
}
