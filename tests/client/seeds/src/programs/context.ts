// pr-1005, "Context memory".

import { streamText } from "ai";
import { AgentContextProvider, Context, SessionAgent } from "session-agent/worker";
import { type Env, otherTools, workersai } from "../env";

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
}
