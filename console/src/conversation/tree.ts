// The tree of a session's events: who follows whom. It is read event by event, so it is
// read by itself only where a session is short, and elsewhere when somebody asks for it.

import { signal } from "@preact/signals";
import { PayloadTooLargeError, type SessionClient, type SessionEvent } from "session-agent";
import { cut } from "../text.ts";

/** A session with at most so many events shows its branches without being asked. */
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
  /** There is one reading at a time. */
  #reading: Promise<void> | null = null;
  /** The request that came while a reading was under way, and is read after it. */
  #asked: "nothing" | "what is new" | "all" = "nothing";

  /** `mayBuild`: whether the agent may be asked for the working context. */
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
   * Reads what is new, if the tree was read before. `isAnew`: events may be gone. Waits for
   * no reading that is under way: that one goes on until it has what is asked for here.
   */
  async catchUp(isAnew = false): Promise<void> {
    if (this.#reading !== null) {
      this.#asked = isAnew || this.#asked === "all" ? "all" : "what is new";
    } else if (this.nodes.peek() !== null) {
      await this.#begin(isAnew);
    }
  }

  #begin(isAnew: boolean): Promise<void> {
    this.#reading = this.#read(isAnew).finally(() => {
      this.#reading = null;
      this.isReading.value = false;
    });
    return this.#reading;
  }

  async #read(isAnew: boolean): Promise<void> {
    for (let all = isAnew; ; all = this.#asked === "all") {
      this.#asked = "nothing";
      this.isReading.value = all;
      await this.#readInto(all ? new TreeEvents() : this.#events);
      if (this.#asked === "nothing") return;
    }
  }

  /** The tree before is whole until all is read. */
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
    // A message has its first event's id, and may go on with more events.
    const last = await this.session.getLatestLeaf();
    return last === null ? null : (this.newestLeafBelow(last.id) ?? last.id);
  }

  find(id: string): TreeNode | undefined {
    return this.#events.byId.get(id);
  }

  childrenOf(id: string | null): readonly TreeNode[] {
    return this.#events.children.get(id) ?? [];
  }

  /** The event and those beside it, oldest first. */
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

  /** The ids from an event up to its root. */
  pathTo(id: string | null): Set<string> {
    const path = new Set<string>();
    for (let at = id; at !== null && !path.has(at); at = this.#events.byId.get(at)?.parentId ?? null) path.add(at);
    return path;
  }
}

/** A stretch of events without a branch, drawn as one knot. */
export interface Stretch {
  first: TreeNode;
  last: TreeNode;
  events: number;
  /** The column: 0 is the left one. */
  lane: number;
  /** The row of the stretch that this one goes on. `null`: it begins with a root. */
  above: number | null;
  isOnPath: boolean;
  /** Nothing follows. */
  isEnd: boolean;
}

/**
 * The stretches from the top to the bottom. Branches stand right of what they branch from;
 * the newest branch goes on in its parent's column, below the others.
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

/** As a stack takes them: what comes first is at the end. */
function branchesOf(nodes: readonly TreeNode[], lane: number, above: number | null) {
  return nodes.map((node, index) => ({ node, lane: index === nodes.length - 1 ? lane : lane + 1, above })).reverse();
}
