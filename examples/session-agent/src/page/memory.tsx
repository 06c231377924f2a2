// What the agent remembers of its visitor. The visitor may correct it.

import { useEffect, useState } from "react";
import type { Block } from "session-agent";
import type { Agent } from "./main";

export function Memory({ agent, changes }: { agent: Agent; changes: number }) {
  const [blocks, setBlocks] = useState<Block[]>([]);
  const load = async () => setBlocks(await agent.getBlocks());

  useEffect(() => void load(), [agent, changes]);

  async function save(block: Block, content: string) {
    if (content === block.content) return;
    // Whoever was faster keeps the word: the panel then shows what is there.
    await agent.setBlock({ label: block.label, content, expectedVersion: block.version }).catch(() => undefined);
    await load();
  }

  return (
    <aside aria-label="Memory">
      {blocks.map((block) => (
        <section key={`${block.label} ${block.version}`}>
          <h2>{block.label}</h2>
          {block.kind === "writable" ? (
            <textarea
              aria-label={block.label}
              rows={6}
              defaultValue={block.content}
              onBlur={({ target }) => save(block, target.value)}
            />
          ) : (
            <p>{block.content}</p>
          )}
          {block.maxTokens !== null && (
            <small>
              {block.tokens} of {block.maxTokens} tokens
            </small>
          )}
        </section>
      ))}
    </aside>
  );
}
