// A session of OpenAI's Agents SDK, kept in a session of an agent.
//
// The items are the events of the default branch. A transaction that replaces the end of
// the history begins a branch, so the log keeps what was replaced. It appends a mark before
// its items, which has the transaction's name as its id: a repetition finds the mark.

import { AlreadyExistsError, LeafMovedError, MessageNotFoundError, SessionNotFoundError } from "./errors.js";
import { canonical, eventOfItem, itemsOfEvent } from "./openai_items.js";

const PAGE = 200;
/** As many writers may come in between before a transaction gives up. */
const TRIES = 10;
const MARK = "openaiOperation";

export class SessionAgentSession {
  #session;

  /** `session`: `agent.session(id)`. It is created with the first item. */
  constructor(session) {
    this.#session = session;
  }

  async getSessionId() {
    return this.#session.id;
  }

  /** The newest `limit` items, or all, from the oldest to the newest. */
  async getItems(limit = Infinity) {
    if (limit <= 0) return [];
    const { events } = await this.#path(limit);
    const items = events.flatMap(itemsOfEvent);
    return limit === Infinity ? items : items.slice(-limit);
  }

  async addItems(items) {
    const events = items.map((item) => ({ id: crypto.randomUUID(), ...eventOfItem(item) }));
    while (events.length > 0) await this.#append({ events: events.splice(0, PAGE) });
  }

  async popItem() {
    for (;;) {
      const { events } = await this.#path(1);
      const event = events[0];
      if (event === undefined) return undefined;
      const items = itemsOfEvent(event);
      if (items.length > 1) {
        // An event of another framework's: what it said besides stays.
        if (await this.#replaceEnd(event, items.slice(0, -1))) return items.at(-1);
      } else if ((await this.#session.deleteEvents({ eventIds: [event.id] })).deleted > 0) {
        return items[0];
      }
    }
  }

  async clearSession() {
    try {
      await this.#session.clearMessages();
    } catch (error) {
      if (!(error instanceof SessionNotFoundError)) throw error;
    }
  }

  /** Appends items, or replaces the newest ones: at once, and once for each `operationId`. */
  async applyHistoryTransaction({ operationId, transaction }) {
    if (typeof operationId !== "string" || operationId.trim() === "") throw new TypeError("A transaction's `operationId` is a text that is not empty.");
    const { type } = transaction;
    if (type !== "append_items" && type !== "replace_suffix") throw new TypeError(`A transaction's type is \`append_items\` or \`replace_suffix\`, not \`${type}\`.`);
    const name = `op-${await digestOf(operationId)}`;
    const digest = await digestOf(canonical(transaction));
    for (let attempt = 1; ; attempt += 1) {
      if (await this.#isApplied(name, digest)) return;
      const { expectedSuffix = [], replacement = transaction.items } = transaction;
      const end = await this.#cut(expectedSuffix);
      const items = [...end.kept, ...replacement].map((item, n) => ({ id: `${name}-${n + 1}`, ...eventOfItem(item) }));
      const mark = { id: name, action: "system_instruction", content: "", metadata: { [MARK]: digest } };
      try {
        await this.#append({ events: [mark, ...items], parentId: end.parentId, expectedLeafId: end.leafId });
        return;
      } catch (error) {
        if (!(error instanceof LeafMovedError) || attempt >= TRIES) throw error;
      }
    }
  }

  async #isApplied(name, digest) {
    const mark = await orNothing(() => this.#session.getMessage({ messageId: name }));
    if (!mark) return false;
    if (mark.metadata?.[MARK] === digest) return true;
    throw new Error("This `operationId` was used already, for another transaction.");
  }

  /** Where the history ends without `suffix`. `kept` are items of an event that the cut goes through. */
  async #cut(suffix) {
    const { events, leafId } = await this.#path(suffix.length);
    if (suffix.length === 0) return { leafId, parentId: leafId, kept: [] };
    const placed = events.flatMap((event) => itemsOfEvent(event).map((item, n) => ({ event, item, n })));
    const end = placed.slice(-suffix.length);
    if (end.length < suffix.length || end.some(({ item }, n) => canonical(item) !== canonical(suffix[n]))) {
      throw new Error("The history does not end with the items that the transaction expects.");
    }
    const [{ event, n }] = end;
    return { leafId, parentId: event.parentId, kept: itemsOfEvent(event).slice(0, n) };
  }

  /** Puts `items` in the place of the event that the branch ends with. `false`: somebody was faster. */
  async #replaceEnd(event, items) {
    const events = items.map((item) => ({ id: crypto.randomUUID(), ...eventOfItem(item) }));
    try {
      await this.#session.appendEvents({ events, parentId: event.parentId, expectedLeafId: event.id });
      return true;
    } catch (error) {
      if (error instanceof LeafMovedError) return false;
      throw error;
    }
  }

  /** The events with the newest `count` items of the default branch, and where the branch ends. */
  async #path(count) {
    const found = [];
    const context = await orNothing(() => this.#session.buildWorkingContext({ limit: 1 }));
    const leafId = context?.leafId ?? null;
    let wanted = leafId;
    let items = 0;
    for (let beforeSeq; wanted !== null && items < count; ) {
      const page = await this.#session.loadEvents({ tail: true, limit: PAGE, ...(beforeSeq !== undefined && { beforeSeq }) });
      for (const event of page.toReversed()) {
        // What is not on the way up belongs to another branch.
        if (event.id !== wanted || items >= count) continue;
        wanted = event.parentId;
        const more = itemsOfEvent(event).length;
        items += more;
        if (more > 0) found.unshift(event);
      }
      if (page.length === 0) break;
      beforeSeq = page[0].seq;
    }
    return { events: found, leafId };
  }

  async #append(input) {
    try {
      return await this.#session.appendEvents(input);
    } catch (error) {
      if (!(error instanceof SessionNotFoundError)) throw error;
    }
    await this.#session.create().catch((error) => {
      if (!(error instanceof AlreadyExistsError)) throw error;
    });
    return await this.#session.appendEvents(input);
  }
}

async function orNothing(read) {
  try {
    return await read();
  } catch (error) {
    if (error instanceof SessionNotFoundError || error instanceof MessageNotFoundError) return null;
    throw error;
  }
}

async function digestOf(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
