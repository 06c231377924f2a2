// pr-1005, "Context memory".

import { streamText } from "ai";
import {
  AgentContextProvider,
  type BlockMetadata,
  type BlockStore as ContextProvider,
  Context,
  SessionAgent,
  type StoredBlock,
} from "session-agent/worker";
import { type Env, otherTools, workersai } from "../env";

/** Block 7: the five methods, over a map. */
class InMemory implements ContextProvider {
  blocks = new Map<string, StoredBlock>();
  getBlocks(): Record<string, StoredBlock> {
    return Object.fromEntries(this.blocks);
  }
  getBlock(label: string): StoredBlock | null {
    return this.blocks.get(label) ?? null;
  }
  setBlock(label: string, content: string, metadata?: BlockMetadata): void {
    this.blocks.set(label, { ...this.blocks.get(label), ...metadata, label, content });
  }
  deleteBlock(label: string): void {
    this.blocks.delete(label);
  }
  clearBlocks(): void {
    this.blocks.clear();
  }
}

export class Contextual extends SessionAgent<Env> {
  /** Block 1. */
  context = new Context(new AgentContextProvider(this), {
    blocks: [
      { label: "soul", description: "Agent personality", defaultContent: "You are helpful.", readonly: true },
      { label: "todos", description: "User's todo list", maxTokens: 5000 },
      { label: "preferences", description: "Learned user preferences", maxTokens: 2000 },
    ],
  });

  async run() {
    const { context } = this;
    // Block 2: reading blocks.
    const all = context.getBlocks(); // → Record<string, ContextBlock>
    const soul = context.getBlock("soul"); // → ContextBlock | null
    const before = context.toString(); // → formatted text for system prompt injection

    // Block 3: writing blocks.
    context.setBlock("todos", "- Buy milk"); // upsert, returns ContextBlock
    context.appendToBlock("preferences", "\n- likes dark mode");
    context.deleteBlock("old_block");
    const written = context.getBlocks();

    // Block 4: AI tool integration. Its `messages: [...]` is no program.
    const result = streamText({
      model: workersai("@cf/zai-org/glm-4.7-flash"),
      system: context.toString(), // inject blocks into system prompt
      messages: [{ role: "user", content: 'use update_context_block {"label":"todos","content":"- Sleep"}' }],
      tools: {
        ...context.tools(), // AI gets update_context_block tool
        ...otherTools,
      },
    });
    await result.consumeStream();
    const edited = context.getBlock("todos");

    context.clearBlocks(); // clears all, re-inits defaults on next access
    const cleared = context.getBlocks();

    const refused = [
      () => context.setBlock("soul", "You are evil."),
      () => context.appendToBlock("none", "x"),
      () => context.setBlock("todos", "word ".repeat(9000)),
    ].map((work) => {
      try {
        return work();
      } catch (error) {
        return (error as Error).message;
      }
    });
    return { labels: Object.keys(all), soul, before, written, edited, cleared, refused };
  }

  /** The same over a provider of one's own. */
  over() {
    const context = new Context(new InMemory(), {
      blocks: [
        { label: "soul", defaultContent: "You are helpful.", readonly: true },
        { label: "todos", maxTokens: 20 },
        { label: "preferences" },
      ],
    });
    context.setBlock("preferences", "Dark mode.");
    context.setBlock("notes", "New.", { description: "Notes" });
    context.setBlock("todos", "- Buy milk");
    const [labels, text] = [Object.keys(context.getBlocks()), context.toString()];
    const refused = [
      () => context.setBlock("soul", "Evil."),
      () => context.appendToBlock("todos", "word ".repeat(40)),
    ].map((work) => {
      try {
        return work();
      } catch (error) {
        return (error as Error).message;
      }
    });
    context.clearBlocks();
    return { labels, text, refused, cleared: Object.keys(context.getBlocks()) };
  }
}
