// One agent of a page: its client, the stores of its hooks, and the topics whose changes make them read
// again. A `BroadcastChannel` notifies the page's other tabs.

import { type AgentClient, sessionAgent } from "../agent.js";
import { Login, type UseAgentOptions } from "./login.js";
import type { Store } from "./store.js";
import type { ToolsOf } from "./types.js";

/** What may have changed. `online`: anything may have, because the connection was restored. */
export type Topic = "sessions" | "memory" | "proposals" | "turns" | "online";

type Listener = (topic: Topic) => void;

export class AgentHandle<Class = unknown> {
  /** Never set: it passes the types of the class's tools to the hooks. */
  declare readonly tools?: ToolsOf<Class>;
  readonly key: string;
  readonly url: string;
  readonly login: Login;
  #client: Promise<AgentClient> | undefined;
  #stores: Map<string, Store<any>> = new Map();
  #listeners: Set<Listener> = new Set();
  #channel: BroadcastChannel | undefined;

  constructor(options: UseAgentOptions) {
    this.key = keyOf(options);
    this.url = (options.url ?? originOfPage()).replace(/\/+$/, "");
    this.login = new Login(options);
  }

  /** The agent's client, for everything that the hooks don't cover. */
  readonly client = async (): Promise<AgentClient> => {
    this.#client ??= this.login.get().then(({ name }) => sessionAgent(this.url, name, { fetch: this.login.fetch }));
    try {
      return await this.#client;
    } catch (error) {
      this.#client = undefined;
      throw error;
    }
  };

  store<Shared extends Store<any>>(key: string, make: () => Shared): Shared {
    const known = this.#stores.get(key);
    if (known !== undefined) return known as Shared;
    const store = make();
    this.#stores.set(key, store);
    store.onToggle = (isOpen) => void (isOpen ? this.#stores.set(key, store) : this.#stores.delete(key));
    return store;
  }

  get isVisible(): boolean {
    return typeof document === "undefined" || document.visibilityState === "visible";
  }

  subscribe(listener: Listener): () => void {
    if (this.#listeners.size === 0) this.#listen();
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#stopListening();
    };
  }

  /** Announces changes here and in the page's other tabs. */
  notify(topics: readonly Topic[]): void {
    for (const topic of topics) {
      this.#emit(topic);
      this.#channel?.postMessage(topic);
    }
  }

  #emit(topic: Topic): void {
    for (const listener of [...this.#listeners]) listener(topic);
  }

  #onReconnected = (): void => {
    if (this.isVisible) this.#emit("online");
  };

  #listen(): void {
    globalThis.addEventListener?.("online", this.#onReconnected);
    globalThis.document?.addEventListener("visibilitychange", this.#onReconnected);
    if (typeof BroadcastChannel === "undefined" || typeof document === "undefined") return;
    void this.login.get().then(
      ({ name }) => {
        if (this.#listeners.size === 0 || this.#channel !== undefined) return;
        this.#channel = new BroadcastChannel(`session-agent ${this.url} ${name}`);
        this.#channel.onmessage = ({ data }) => this.#emit(data as Topic);
      },
      // The stores' own requests report failures.
      () => {},
    );
  }

  #stopListening(): void {
    globalThis.removeEventListener?.("online", this.#onReconnected);
    globalThis.document?.removeEventListener("visibilitychange", this.#onReconnected);
    this.#channel?.close();
    this.#channel = undefined;
  }
}

/** The key that identifies an agent. */
export function keyOf({ url, name }: UseAgentOptions): string {
  return JSON.stringify([url ?? null, name ?? null]);
}

function originOfPage(): string {
  return typeof location === "undefined" ? "" : location.origin;
}
