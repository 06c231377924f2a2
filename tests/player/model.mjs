// A naive in-memory model of an agent by the contract: sessions whose logs are trees, overlays, and
// context memory. It shares no code with the agent.
//
// An id that the agent generated and that no answer contained is `null` until a read returns it.

export const RUN_ACTIONS = new Set(["agent_message", "tool_call_request", "tool_result"]);
const ROLES = {
  user_message: "user",
  system_instruction: "system",
  agent_message: "assistant",
  tool_call_request: "assistant",
  tool_result: "assistant",
  compaction: "system",
};
const ACTIONS = { user: "user_message", system: "system_instruction", assistant: "agent_message" };

let incarnations = 0;

export class AgentModel {
  sessions = [];
  memory = new Memory();
  /** Whether a search has started an index. */
  isSearched = false;

  find(id) {
    return this.sessions.find((session) => session.id === id);
  }

  create(fields) {
    const session = new SessionModel(fields);
    this.sessions.push(session);
    return session;
  }

  delete(id) {
    const before = this.sessions.length;
    this.sessions = this.sessions.filter((session) => session.id !== id);
    return this.sessions.length < before;
  }

  /**
   * The effect of a purge on frozen prompts: they show their scope's blocks, and all of them show
   * the agent's blocks.
   */
  forgetPrompts(memory) {
    const memories = memory === this.memory ? [memory, ...this.sessions.map((session) => session.memory)] : [memory];
    for (const forgetting of memories) forgetting.frozen = null;
  }

  clone() {
    const copy = new AgentModel();
    copy.isSearched = this.isSearched;
    copy.memory = this.memory.clone();
    copy.sessions = this.sessions.map((session) => session.clone());
    return copy;
  }
}

export class SessionModel {
  /** Each event by its `seq`: `{id, parent, action, content, message?, …}`; parent 0 is a root. */
  events = new Map();
  lastSeq = 0;
  /** The selected leaf's `seq`, until the next append. */
  chosen = null;
  overlays = [];
  usage = { inputTokens: 0, outputTokens: 0, cost: 0 };
  usageIds = new Set();
  settings = {};
  memory = new Memory();
  updatedAt = 0;
  /** Distinguishes this session from a later one of the same id. */
  incarnation = (incarnations += 1);

  constructor({ id, name = null, metadata = null, parentSessionId = null }) {
    Object.assign(this, { id, name, metadata, parentSessionId });
  }

  clone() {
    const copy = new SessionModel(this);
    copy.incarnation = this.incarnation;
    copy.events = new Map([...this.events].map(([seq, event]) => [seq, { ...event }]));
    copy.overlays = this.overlays.map((overlay) => ({ ...overlay }));
    copy.usage = { ...this.usage };
    copy.usageIds = new Set(this.usageIds);
    copy.settings = { ...this.settings };
    copy.memory = this.memory.clone();
    copy.lastSeq = this.lastSeq;
    copy.chosen = this.chosen;
    copy.updatedAt = this.updatedAt;
    return copy;
  }

  get newest() {
    return Math.max(0, ...this.events.keys());
  }

  get leaf() {
    return this.chosen ?? this.newest;
  }

  seqOf(id) {
    for (const [seq, event] of this.events) if (event.id === id) return seq;
    return 0;
  }

  idOf(seq) {
    return seq === 0 ? null : this.events.get(seq).id;
  }

  get ids() {
    return [...this.events.values()].map((event) => event.id);
  }

  path(seq) {
    const path = [];
    for (; seq !== 0; seq = this.events.get(seq).parent) path.unshift(seq);
    return path;
  }

  children(seq) {
    return [...this.events.keys()].filter((child) => this.events.get(child).parent === seq).sort((a, b) => a - b);
  }

  isRun(seq) {
    const event = this.events.get(seq);
    return event !== undefined && event.message === undefined && RUN_ACTIONS.has(event.action);
  }

  /**
   * Whether an event continues the message of its parent: both belong to a run, the event has no
   * sibling, and no summary starts or ends between them. A tool's result may have siblings outside
   * a run: a user continued before it arrived.
   */
  continues(seq) {
    const { parent, action } = this.events.get(seq);
    if (!this.isRun(seq) || !this.isRun(parent)) return false;
    if (this.overlays.some(({ from, to }) => from === seq || to === parent)) return false;
    const siblings = this.children(parent).filter((child) => child !== seq);
    return action === "tool_result" ? !siblings.some((child) => this.isRun(child)) : siblings.length === 0;
  }

  /** The first event of the message that an event is in. */
  messageStart(seq) {
    while (this.continues(seq)) seq = this.events.get(seq).parent;
    return seq;
  }

  /** The events of the message that begins at `seq`. */
  messageAt(seq) {
    const events = [seq];
    for (;;) {
      const next = this.children(events.at(-1)).find((child) => this.continues(child));
      if (next === undefined) return events;
      events.push(next);
    }
  }

  append(parent, event) {
    this.lastSeq += 1;
    this.events.set(this.lastSeq, { ...event, parent });
    this.chosen = null;
    return this.lastSeq;
  }

  /** Appends events as the operation of that name; returns what it should answer. */
  appendEvents(events, parentId, answer) {
    let parent = parentId === undefined ? this.leaf : parentId === null ? 0 : this.seqOf(parentId);
    const outcomes = events.map((event, at) => {
      const known = event.id === undefined ? 0 : this.seqOf(event.id);
      if (known !== 0) {
        if (parentId !== undefined) parent = known;
        return { id: event.id, seq: known, inserted: false };
      }
      const { parentId: own, ...fields } = event;
      if (own !== undefined) parent = own === null ? 0 : this.seqOf(own);
      parent = this.append(parent, { content: "", ...fields, id: event.id ?? answer?.events[at]?.id ?? null });
      return { id: this.idOf(parent), seq: parent, inserted: true };
    });
    return { events: outcomes, leafId: this.idOf(this.leaf) };
  }

  /**
   * Deletes events. The children of a deleted event move to the nearest remaining event above it.
   */
  delete(seqs) {
    const deleted = new Set(seqs);
    const surviving = (seq) => {
      while (deleted.has(seq)) seq = this.events.get(seq).parent;
      return seq;
    };
    for (const [seq, event] of this.events) if (!deleted.has(seq)) event.newParent = surviving(event.parent);
    for (const overlay of this.overlays) {
      overlay.to = surviving(overlay.to);
      overlay.above = surviving(overlay.above);
    }
    if (this.chosen !== null) this.chosen = surviving(this.chosen) || null;
    for (const seq of deleted) this.events.delete(seq);
    for (const event of this.events.values()) {
      event.parent = event.newParent;
      delete event.newParent;
    }
    this.overlays = this.overlays.filter(({ from, to }) => to >= from);
    for (const overlay of this.overlays) {
      if (!this.events.has(overlay.from)) overlay.from = this.path(overlay.to).find((seq) => seq > overlay.above);
    }
  }

  /** Deletes events, and the summaries that covered one of them: they may contain its text. */
  purge(seqs) {
    const covers = ({ from, to }) => {
      const path = this.path(to);
      return seqs.some((seq) => from <= seq && seq <= to && path.includes(seq));
    };
    this.overlays = this.overlays.filter((overlay) => !covers(overlay));
    this.delete(seqs);
  }

  clear() {
    this.events.clear();
    this.overlays = [];
    this.chosen = null;
  }

  /** Replaces the events of a message by one event with this message. */
  replace(run, message) {
    const [first, ...rest] = run;
    if (rest.length > 0) this.delete(rest);
    const event = this.events.get(first);
    this.events.set(first, {
      id: event.id,
      parent: event.parent,
      createdAt: event.createdAt,
      action: ACTIONS[message.role],
      content: textOf(message),
      message,
    });
  }

  /** The rows of a history: overlays and messages, oldest first. */
  history(leaf, { withOverlays = true } = {}) {
    const units = [];
    for (let seq = leaf; seq !== 0; ) {
      const ending = withOverlays ? this.overlays.filter((overlay) => overlay.to === seq) : [];
      if (ending.length > 0) {
        const overlay = ending.reduce((best, other) =>
          other.from < best.from || (other.from === best.from && other.number > best.number) ? other : best,
        );
        units.unshift({ overlay });
        seq = overlay.above;
      } else {
        units.unshift({ seq });
        seq = this.events.get(seq).parent;
      }
    }
    const messages = [];
    for (const { overlay, seq } of units) {
      const last = messages.at(-1);
      if (overlay) messages.push({ overlay, id: `compaction_${overlay.id}`, text: overlay.summary });
      else if (last?.seqs && this.continues(seq)) last.seqs.push(seq);
      else messages.push({ seqs: [seq], id: this.idOf(seq) });
    }
    return messages.map((message) => (message.overlay ? message : { ...message, ...this.view(message.seqs) }));
  }

  /**
   * How a message of these events is shown: its role, its text, and its calls with their results.
   */
  view(seqs) {
    const events = seqs.map((seq) => this.events.get(seq));
    const [first] = events;
    if (first.message !== undefined)
      return { role: first.message.role, text: textOf(first.message), calls: callsOf(first.message) };
    // If calls share an id, the newest event's result counts; within one event, the first call's.
    const calls = [];
    for (const event of events) {
      if (event.action === "tool_call_request")
        calls.push(...event.toolCalls.map(({ id, name, arguments: input }) => ({ id, name, input, event })));
      if (event.action === "tool_result") {
        const open = calls.filter(({ id, output }) => id === event.toolCallId && output === undefined);
        const answered = open.find((call) => call.event === open.at(-1).event);
        if (answered) answered.output = event.content;
        else calls.push({ id: event.toolCallId, name: event.toolName, output: event.content });
      }
    }
    const texts = events.filter(({ action }) => action !== "tool_result").map(({ content }) => content ?? "");
    return { role: ROLES[first.action], text: texts.join(""), calls };
  }

  fork(at, id, name, metadata) {
    const fork = new SessionModel({ id, name, metadata, parentSessionId: this.id });
    const seqs = new Map([[0, 0]]);
    for (const seq of this.path(at)) {
      const event = this.events.get(seq);
      seqs.set(seq, fork.append(seqs.get(event.parent), { ...event }));
    }
    for (const overlay of this.overlays) {
      if (!seqs.has(overlay.to)) continue;
      fork.overlays.push({
        ...overlay,
        from: seqs.get(overlay.from),
        to: seqs.get(overlay.to),
        above: seqs.get(overlay.above),
      });
    }
    fork.settings = { ...this.settings };
    fork.memory = this.memory.clone();
    return fork;
  }

  /** The same session, imported under another id. */
  copy(id) {
    const copy = this.clone();
    copy.id = id;
    copy.incarnation = incarnations += 1;
    copy.usageIds = new Set();
    copy.updatedAt = 0;
    return copy;
  }
}

/** The blocks of an agent or of a session, by their labels in lower case. */
export class Memory {
  blocks = new Map();
  /** The contents of blocks, even after they were removed. */
  contents = new Map();
  frozen = null;

  clone() {
    const copy = new Memory();
    copy.blocks = structuredClone(this.blocks);
    copy.contents = structuredClone(this.contents);
    copy.frozen = this.frozen;
    return copy;
  }

  holds(label) {
    const key = label.toLowerCase();
    if (!this.contents.has(key)) this.contents.set(key, { version: 0, texts: [], items: new Map() });
    return this.contents.get(key);
  }

  block(label) {
    return this.blocks.get(label.toLowerCase());
  }

  text(label) {
    const stored = this.holds(label);
    return stored.version === 0 ? (this.block(label)?.defaultContent ?? "") : stored.texts.at(-1);
  }

  /** An unchanged text is not written again. */
  write(label, text) {
    const stored = this.holds(label);
    if (this.text(label) === text && stored.version > 0) return;
    if (stored.version === 0 && this.text(label) === text) return;
    stored.version += 1;
    stored.texts.push(text);
  }
}

export function textOf(message) {
  return message.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("");
}

export function callsOf(message) {
  return message.parts
    .filter((part) => part.type.startsWith("tool-") || part.type === "dynamic-tool")
    .map((part) => ({
      id: part.toolCallId,
      name: part.toolName ?? part.type.slice(5),
      input: part.input,
      output: part.output ?? part.errorText,
    }));
}
