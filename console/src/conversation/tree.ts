// The tree of a session's events. Because it takes all events, it loads automatically only for a
// short session, and otherwise on request.

import { signal } from "@preact/signals";
import { PayloadTooLargeError, type SessionClient, type SessionEvent } from "session-agent";
import { cut } from "../text.ts";

/** The tree of a session with at most this many events loads automatically. */
const SHORT = 2000;
const PAGE = 500;
const TEXT = 90;

export interface TreeNode {
  id: string;
  parentId: string | null;
  seq: number;
  action: SessionEvent["action"];
  text: string;
}

class TreeEvents {
  readonly byId = new Map<string, TreeNode>();
  readonly children = new Map<string | null, TreeNode[]>();
  lastSeq = 0;

  add({ id, parentId, seq, action, content, toolCalls }: SessionEvent): void {
    if (this.byId.has(id)) return;
    const text = content || (toolCalls?.map(({ name }) => name).join(", ") ?? "");
    const node = { id, parentId, seq, action, text: cut(text, TEXT) };
    this.lastSeq = seq;
    this.byId.set(id, node);
    const siblings = this.children.get(parentId);
    if (siblings) siblings.push(node);
    else this.children.set(parentId, [node]);
  }
}

export class EventTree {
  /** All events, oldest first. `null`: not read yet. */
  readonly nodes = signal<readonly TreeNode[] | null>(null);
  readonly leafId = signal<string | null>(null);
  readonly isReading = signal(false);
  #events = new TreeEvents();
  #mayBuild: boolean;
  /** The read in progress; there is at most one. */
  #reading: Promise<void> | null = null;
  /** The read that was requested during another read, and follows it. */
  #queuedRead: "nothing" | "newer" | "all" = "nothing";

  /** `mayBuild`: whether the caller may run `buildWorkingContext`. */
  constructor(
    readonly session: SessionClient,
    mayBuild = true,
  ) {
    this.#mayBuild = mayBuild;
  }

  async readIfShort(): Promise<void> {
    if (this.nodes.peek() !== null) return;
    if (this.#reading !== null) return await this.#reading;
    const [newest] = await this.session.loadEvents({ tail: true, limit: 1 });
    if ((newest?.seq ?? 0) <= SHORT) await this.read();
  }

  async read(): Promise<void> {
    await (this.#reading ?? this.#begin(true));
  }

  /**
   * Reads new events, if the tree was read before. `fromStart`: reads all, because events may have been
   * deleted. If a read is in progress, that read continues until it includes this request.
   */
  async catchUp(fromStart = false): Promise<void> {
    if (this.#reading !== null) {
      this.#queuedRead = fromStart || this.#queuedRead === "all" ? "all" : "newer";
    } else if (this.nodes.peek() !== null) {
      await this.#begin(fromStart);
    }
  }

  #begin(fromStart: boolean): Promise<void> {
    this.#reading = this.#read(fromStart).finally(() => {
      this.#reading = null;
      this.isReading.value = false;
    });
    return this.#reading;
  }

  async #read(fromStart: boolean): Promise<void> {
    for (let all = fromStart; ; all = this.#queuedRead === "all") {
      this.#queuedRead = "nothing";
      this.isReading.value = all;
      await this.#readInto(all ? new TreeEvents() : this.#events);
      if (this.#queuedRead === "nothing") return;
    }
  }

  /** The previous tree stays until all events are read. */
  async #readInto(events: TreeEvents): Promise<void> {
    for (let [after, limit] = [events.lastSeq, PAGE]; ; ) {
      const page = await this.session.loadEvents({ afterSeq: after, limit }).catch((error) => {
        if (!(error instanceof PayloadTooLargeError) || limit === 1) throw error;
        return null;
      });
      if (page === null) {
        limit = Math.max(1, limit >> 2);
        continue;
      }
      for (const event of page) events.add(event);
      const last = page.at(-1);
      if (last === undefined) break;
      after = last.seq;
    }
    this.#events = events;
    this.leafId.value = await this.#readLeaf();
    this.nodes.value = [...events.byId.values()];
  }

  async #readLeaf(): Promise<string | null> {
    if (this.#mayBuild) return (await this.session.buildWorkingContext({ limit: 1 })).leafId;
    // A message has the id of its first event, and may have more events.
    const last = await this.session.getLatestLeaf();
    return last === null ? null : (this.newestLeafBelow(last.id) ?? last.id);
  }

  find(id: string): TreeNode | undefined {
    return this.#events.byId.get(id);
  }

  childrenOf(id: string | null): readonly TreeNode[] {
    return this.#events.children.get(id) ?? [];
  }

  /** The event and its siblings, oldest first. */
  siblingsOf(id: string): readonly TreeNode[] {
    const node = this.#events.byId.get(id);
    return node === undefined ? [] : this.childrenOf(node.parentId);
  }

  newestLeafBelow(id: string): string | undefined {
    let newest: TreeNode | undefined;
    for (const open = [id]; open.length > 0; ) {
      const next = open.pop()!;
      const children = this.childrenOf(next);
      const node = this.#events.byId.get(next);
      if (children.length === 0 && node !== undefined && node.seq > (newest?.seq ?? 0)) newest = node;
      open.push(...children.map((child) => child.id));
    }
    return newest?.id;
  }

  /** The ids of an event and its ancestors. */
  pathTo(id: string | null): Set<string> {
    const path = new Set<string>();
    for (let at = id; at !== null && !path.has(at); at = this.#events.byId.get(at)?.parentId ?? null) path.add(at);
    return path;
  }
}

/** A series of events without a branch, drawn as one node. */
export interface Stretch {
  first: TreeNode;
  last: TreeNode;
  events: number;
  /** The column: 0 is the left one. */
  lane: number;
  /** The row of the parent node. `null`: it begins with a root. */
  above: number | null;
  isOnPath: boolean;
  /** Whether it is a leaf. */
  isEnd: boolean;
}

/**
 * The nodes from top to bottom. Branches are to the right of their parent; the newest branch
 * continues in its parent's column, below the others.
 */
export function stretchesOf(tree: EventTree): Stretch[] {
  const path = tree.pathTo(tree.leafId.peek());
  const rows: Stretch[] = [];
  const open = branchesOf(tree.childrenOf(null), 0, null);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    let last = next.node;
    let events = 1;
    let children = tree.childrenOf(last.id);
    while (children.length === 1) {
      last = children[0]!;
      events += 1;
      children = tree.childrenOf(last.id);
    }
    rows.push({
      first: next.node,
      last,
      events,
      lane: next.lane,
      above: next.above,
      isOnPath: path.has(next.node.id),
      isEnd: children.length === 0,
    });
    open.push(...branchesOf(children, next.lane, rows.length - 1));
  }
  return rows;
}

/** In the order of a stack: the first item is last. */
function branchesOf(nodes: readonly TreeNode[], lane: number, above: number | null) {
  return nodes.map((node, index) => ({ node, lane: index === nodes.length - 1 ? lane : lane + 1, above })).reverse();
}
