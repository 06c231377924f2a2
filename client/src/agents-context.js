// Providers for the context blocks of the Agents SDK (`agents/context`). Each keeps its
// content in a block of an agent or of a session, and nothing in itself.

import { BlockNotFoundError } from "./errors.js";

/** The entries that one search gives. */
const RESULTS = 10;

/**
 * A provider. `owner`: an agent, or `agent.session(id)`. The block has the label that
 * the Agents SDK gives the provider, unless there is a `label`.
 */
export function contextProvider(owner, { kind = "writable", label, description, maxTokens } = {}) {
  const block = new Block(owner, { kind, label, description, maxTokens });
  const reads = { init: (given) => block.call(given), get: () => block.read() };
  switch (kind) {
    case "readonly":
      return reads;
    case "writable":
      return { ...reads, set: (content) => block.write("setBlock", { content }) };
    case "searchable":
      return { ...reads, search: (query) => block.search(query), set: (key, content) => block.write("setEntry", { key, content }) };
    default:
      throw new TypeError(`A context block's kind is readonly, writable or searchable, not \`${kind}\`.`);
  }
}

class Block {
  #owner;
  #definition;

  constructor(owner, definition) {
    this.#owner = owner;
    this.#definition = definition;
  }

  /** The Agents SDK says here which block the provider is for. */
  call(label) {
    this.#definition.label ??= label;
  }

  get #label() {
    return this.#definition.label ?? fail();
  }

  async read() {
    const block = await this.#owner.getBlock({ label: this.#label });
    if (block?.unavailable) throw new Error(`Block \`${this.#label}\` is unavailable: ${block.unavailable}`);
    return block?.content || null;
  }

  async search(query) {
    if (query.trim() === "") return null;
    const { results } = await this.#defined(() => this.#owner.searchContext({ label: this.#label, query, limit: RESULTS }));
    return results.length === 0 ? null : results.map(({ key, content }) => `[${key}]\n${content}`).join("\n\n");
  }

  async write(operation, input) {
    await this.#defined(() => this.#owner[operation]({ label: this.#label, ...input }));
  }

  /** Runs `work`. A block that is missing is defined first. */
  async #defined(work) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof BlockNotFoundError)) throw error;
    }
    await this.#owner.defineBlock(this.#definition);
    return await work();
  }
}

function fail() {
  throw new TypeError("This provider has no label yet. Give it one: contextProvider(agent, { label: \"memory\" }).");
}
