// The labeled texts of an agent's `Context`: read and written synchronously, shown to a model as XML, and edited by
// one tool.

import { type MemoryTool, toolsOf } from "../ai_sdk.js";
import { estimateStringTokens } from "../compact.js";
import type { Block } from "../operations.js";
import { AgentContextProvider as BlockProvider } from "./providers.js";

/** A text as a provider stores it. */
export interface StoredBlock {
  label: string;
  content: string;
  description?: string;
  maxTokens?: number;
  readonly?: boolean;
  [field: string]: any;
}

export interface BlockMetadata {
  description?: string;
  maxTokens?: number;
  readonly?: boolean;
}

export interface ContextBlock extends StoredBlock {
  tokens: number;
}

/** A block that exists from the beginning. */
export interface PredefinedBlock extends BlockMetadata {
  label: string;
  defaultContent?: string;
}

/** Stores the texts of a `Context`. */
export interface BlockStore {
  getBlocks(): Record<string, StoredBlock>;
  getBlock(label: string): StoredBlock | null;
  setBlock(label: string, content: string, metadata?: BlockMetadata): unknown;
  deleteBlock(label: string): unknown;
  clearBlocks(): unknown;
}

/** Blocks of the object itself. Also a provider of one of them, for a `Session`. */
export class AgentContextProvider extends BlockProvider implements BlockStore {
  /** Defines blocks of a `Context`, as fields of the class do. */
  define(blocks: PredefinedBlock[]): void {
    for (const { readonly, ...block } of blocks) {
      const made = this.inside.hooked.addBlock({ ...block, kind: readonly ? "readonly" : "writable" });
      if (made !== null) reported(this.inside.call("defineBlock", made));
    }
  }

  getBlocks(): Record<string, StoredBlock> {
    const blocks: Block[] = this.inside.now("getBlocks", {});
    return Object.fromEntries(blocks.map((block) => [block.label, storedOf(block)]));
  }

  getBlock(label: string): StoredBlock | null {
    const block = this.inside.now("getBlock", { label });
    return block === null ? null : storedOf(block);
  }

  async setBlock(label: string, content: string, metadata?: BlockMetadata): Promise<void> {
    const { readonly: _, ...more } = metadata ?? {};
    const isNew = metadata !== undefined || this.getBlock(label) === null;
    // Both have run when this method returns: there is no await in between.
    await Promise.all([
      ...(isNew ? [this.inside.call("defineBlock", { label, kind: "writable", ...more })] : []),
      this.inside.call("setBlock", { label, content }),
    ]);
  }

  async deleteBlock(label: string): Promise<void> {
    await this.inside.call("removeBlock", { label });
  }

  async clearBlocks(): Promise<void> {
    await this.inside.call("clearBlocks", {});
  }
}

/** Labeled texts, over the store of your choice. */
export class Context {
  #store: BlockStore;
  #predefined: PredefinedBlock[];

  constructor(store: BlockStore, { blocks = [] }: { blocks?: PredefinedBlock[] } = {}) {
    this.#store = store;
    this.#predefined = blocks;
    if (store instanceof AgentContextProvider) store.define(blocks);
  }

  getBlocks(): Record<string, ContextBlock> {
    const found = Object.values(this.#store.getBlocks());
    const isDefined = ({ label }: StoredBlock) => this.#predefined.some((block) => block.label === label);
    // In the order of the definitions, so that the prompt's order doesn't depend on the writes.
    const defined = this.#predefined.map(
      (block) => found.find(({ label }) => label === block.label) ?? defaultOf(block),
    );
    const others = found.filter((block) => !isDefined(block));
    return Object.fromEntries([...defined, ...others].map((block) => [block.label, this.#whole(block)]));
  }

  getBlock(label: string): ContextBlock | null {
    const found = this.#store.getBlock(label) ?? this.#predefinedOf(label);
    return found === null ? null : this.#whole(found);
  }

  /** Writes a text. Creates the block if it is missing. */
  setBlock(label: string, content: string, metadata?: BlockMetadata): ContextBlock {
    const before = this.getBlock(label);
    if (before?.readonly) throw new Error(`Block \`${label}\` is readonly.`);
    const most = metadata?.maxTokens ?? before?.maxTokens;
    const tokens = estimateStringTokens(content);
    if (most !== undefined && tokens > most)
      throw new Error(`Block \`${label}\` would have ${tokens} tokens; its budget is ${most}.`);
    reported(this.#store.setBlock(label, content, metadata));
    return { ...before, ...metadata, label, content, tokens };
  }

  /** Adds to a text. The block must exist. */
  appendToBlock(label: string, content: string): ContextBlock {
    const before = this.getBlock(label);
    if (before === null) throw new Error(`There is no block \`${label}\`.`);
    return this.setBlock(label, before.content + content);
  }

  deleteBlock(label: string): void {
    reported(this.#store.deleteBlock(label));
  }

  /** Resets writable blocks to their default texts. */
  clearBlocks(): void {
    reported(this.#store.clearBlocks());
  }

  /** Renders the blocks for a model. */
  toString(): string {
    return Object.values(this.getBlocks())
      .filter(({ content, readonly }) => content !== "" || !readonly)
      .map(({ label, description, readonly, content }) => {
        const attributes = [
          `label="${escaped(label)}"`,
          ...(description ? [`description="${escaped(description)}"`] : []),
          ...(readonly ? ['readonly="true"'] : []),
        ];
        // A content can't close its element.
        return `<context_block ${attributes.join(" ")}>\n${content.replaceAll(/<(?=\/?context_block)/gi, "&lt;")}\n</context_block>`;
      })
      .join("\n\n");
  }

  /** The tool that edits writable blocks, for the AI SDK. */
  tools(): { [name: string]: MemoryTool } {
    const labels = Object.values(this.getBlocks())
      .filter(({ readonly }) => !readonly)
      .map(({ label, description }) => ({ label, description }));
    if (labels.length === 0) return {};
    const listed = labels.map(({ label, description }) => `- ${label}${description ? `: ${description}` : ""}`);
    const tool = {
      name: "update_context_block",
      description: `Replace the text of a block of your memory, or append to it. The blocks:\n${listed.join("\n")}`,
      parameters: {
        type: "object",
        properties: {
          label: { type: "string", enum: labels.map(({ label }) => label) },
          content: { type: "string" },
          action: { type: "string", enum: ["replace", "append"] },
        },
        required: ["label", "content"],
      },
    };
    return toolsOf([tool], async (_, { label, content, action }) => {
      try {
        const { tokens } = action === "append" ? this.appendToBlock(label, content) : this.setBlock(label, content);
        return { output: `Written: \`${label}\` now has ${tokens} tokens.`, isError: false };
      } catch (error) {
        return { output: String((error as Error)?.message ?? error), isError: true };
      }
    });
  }

  #predefinedOf(label: string): StoredBlock | null {
    const found = this.#predefined.find((block) => block.label === label);
    return found === undefined ? null : defaultOf(found);
  }

  /** A stored block with the fields of its definition here. */
  #whole(block: StoredBlock): ContextBlock {
    const { defaultContent: _, ...defined } = this.#predefined.find(({ label }) => label === block.label) ?? {};
    return { ...defined, ...block, tokens: estimateStringTokens(block.content) };
  }
}

const defaultOf = ({ defaultContent = "", ...block }: PredefinedBlock): StoredBlock => ({
  ...block,
  content: defaultContent,
});

function storedOf({ label, content, description, maxTokens, kind }: Block): StoredBlock {
  return {
    label,
    content,
    ...(description && { description }),
    ...(maxTokens !== null && { maxTokens }),
    ...(kind === "readonly" && { readonly: true }),
  };
}

/** If a store fails later, only the log shows it. */
function reported(work: unknown): void {
  if (work instanceof Promise) work.catch((error) => console.error("session-agent: a block was not written", error));
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
