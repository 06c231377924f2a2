// Stores outside React that components subscribe to.

/** A store without subscribers is closed after this time: React often subscribes again at once. */
const LINGER_MS = 1000;

export abstract class Store<State> {
  #listeners: Set<() => void> = new Set();
  #state: State;
  #closing: ReturnType<typeof setTimeout> | undefined;
  protected isOpen = false;
  /** Called when the store opens and closes. */
  onToggle: ((isOpen: boolean) => void) | undefined;

  constructor(state: State) {
    this.#state = state;
  }

  readonly get = (): State => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    clearTimeout(this.#closing);
    this.#listeners.add(listener);
    if (!this.isOpen) {
      this.isOpen = true;
      this.onToggle?.(true);
      this.open();
    }
    return () => {
      this.#listeners.delete(listener);
      clearTimeout(this.#closing);
      if (this.#listeners.size === 0) this.#closing = setTimeout(() => this.#close(), LINGER_MS);
    };
  };

  #close(): void {
    this.isOpen = false;
    this.onToggle?.(false);
    this.close();
  }

  protected show(state: State): void {
    this.#state = state;
    for (const listener of [...this.#listeners]) listener();
  }

  protected abstract open(): void;
  protected abstract close(): void;
}

/** Runs `work` one at a time. Each call waits for a run that begins after it. */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const begin = (): Promise<void> => {
    running = work().finally(() => {
      if (next === undefined) running = undefined;
    });
    return running;
  };
  return () => {
    if (running === undefined) return begin();
    next ??= running.then(() => {
      next = undefined;
      return begin();
    });
    return next;
  };
}

export function errorOf(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** Whether the agent did not answer, so that it may answer later. */
export function isUnreached(error: unknown): boolean {
  const { code, status } = (error ?? {}) as { code?: string; status?: number };
  return code === "network_failed" && (status ?? 500) >= 500;
}
