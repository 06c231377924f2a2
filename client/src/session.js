// One session: the operations on sessions with its id given, its history, events and
// changes as async iterators, chat, and the AI SDK's turn.

import { promptOf, toolsOf } from "./ai_sdk.js";
import { itemsOfMessages, nameItems, readTurn, writeItems } from "./ai_sdk_turn.js";
import { chat, resumeChat } from "./chat.js";
import { OPERATIONS } from "./operations.js";
import { eventsOf, changesOf, historyPagesOf, historyOf, pagesOf } from "./pages.js";
import { exportLines, exportSession, importSession } from "./transfer.js";

/** The most events that one context is built from. */
const MOST_EVENTS = 1000;

export class SessionClient {
  #connection;
  #operate;
  /** Where the turn of the last `modelInput` goes. */
  #place = {};

  constructor(connection, id, operate) {
    if (typeof id !== "string" || id === "") throw new TypeError("A session is named by its id, a text.");
    this.#connection = connection;
    this.#operate = operate;
    this.id = id;
  }

  /** Any operation by its name, with this session's id. */
  call(operation, input = {}, options) {
    return this.#operate(this.#connection, operation, { ...input, sessionId: this.id }, options);
  }

  /** Creates the session under this id. */
  create(input = {}, options) {
    return this.#operate(this.#connection, "createSession", { ...input, id: this.id }, options);
  }

  /** The newest messages of the conversation, as chat clients load them. */
  async getMessages(options = {}) {
    const path = `/get-messages?sessionId=${encodeURIComponent(this.id)}`;
    const response = await this.#connection.request("getMessages", path, {}, { ...options, isRepeatable: true });
    return await response.json();
  }

  /** The messages of a branch from the newest to the oldest. */
  history(options) {
    return historyOf(this, options);
  }

  /** The same in pages. Each page reads from the older to the newer. */
  historyPages(options) {
    return historyPagesOf(this, options);
  }

  /** The events of the log in the order of their numbers. */
  events(options) {
    return eventsOf(this, options);
  }

  /** What changes in the session, from now on or since a cursor, until the signal is aborted. */
  changes(options) {
    return changesOf(this, options);
  }

  entries(input, options) {
    return pagesOf((cursor) => this.listEntries({ ...input, cursor }, options), ({ entries }) => entries);
  }

  skills(input, options) {
    return pagesOf((cursor) => this.listSkills({ ...input, cursor }, options), ({ skills }) => skills);
  }

  /** Runs a chat turn; the chunks of the answer as they come. */
  chat(input, options) {
    return chat(this.#connection, this.id, input, options);
  }

  /** The chunks of the turn that runs, from its beginning. None, if no turn runs. */
  resumeChat(options) {
    return resumeChat(this.#connection, this.id, options);
  }

  /** What the AI SDK's `streamText` needs of this session: `{ system, messages, tools }`, and the leaf. */
  async modelInput({ systemInstructions, maxTokens, limit, keepMedia, leafId, signal, retry } = {}) {
    const options = { signal, retry };
    // Who says how much fits means the tokens, and not a number of events.
    const most = limit ?? (maxTokens === undefined ? undefined : MOST_EVENTS);
    const context = await this.buildWorkingContext({ systemInstructions, maxTokens, limit: most, keepMedia, leafId, memory: true }, options);
    // A turn after an older message is a branch, and no other write is in its way.
    this.#place = leafId === undefined ? { expectedLeafId: context.leafId } : { parentId: leafId };
    return { ...promptOf(context), tools: this.#toolsOf(context.tools, options), leafId: context.leafId };
  }

  /** The agent's tools on its memory, as tools of the AI SDK. */
  async tools(options) {
    const { tools } = await this.getTools({}, options);
    return this.#toolsOf(tools, options);
  }

  #toolsOf(listed, options) {
    return toolsOf(listed, (name, input, signal) => this.callTool({ name, arguments: input }, { ...options, signal: signal ?? options?.signal }));
  }

  /** Writes a turn of the AI SDK where the last `modelInput` ended. Safe to repeat. */
  async persist(turn, { expectedLeafId, parentId, signal, retry } = {}) {
    const place = parentId !== undefined ? { parentId } : expectedLeafId !== undefined ? { expectedLeafId } : this.#place;
    const { messages, usage } = await readTurn(turn);
    const items = itemsOfMessages(messages);
    const after = place.parentId ?? place.expectedLeafId ?? null;
    if (items.length === 0) return { events: [], leafId: after };
    const name = await nameItems(items, after);
    const outcome = await writeItems(this, items, place, { signal, retry });
    if (usage !== undefined) await this.addUsage({ id: name, ...usage }, { signal, retry });
    return outcome;
  }

  /** The whole session as a stream of JSON lines. */
  exportSession(options) {
    return exportSession(this.#connection, this.id, options);
  }

  /** The same, as values: one for each line. */
  exportLines(options) {
    return exportLines(this.#connection, this.id, options);
  }

  /** Reads an exported session in, under this id. */
  importSession(file, options) {
    return importSession(this.#connection, this.id, file, options);
  }
}

for (const [operation, { ofSession }] of Object.entries(OPERATIONS)) {
  if (!ofSession) continue;
  SessionClient.prototype[operation] ??= function (input, options) {
    return this.call(operation, input, options);
  };
}
