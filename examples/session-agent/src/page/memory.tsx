// What the agent remembers about its visitor. The visitor can correct it.

import { type AgentHandle, useMemory } from "session-agent/react";

export function Memory({ agent }: { agent: AgentHandle }) {
  const { blocks, error, setBlock } = useMemory(agent);

  return (
    <aside aria-label="Memory">
      {error && <p role="alert">{error.message}</p>}
      {blocks.map(({ label, kind, content, version, tokens, maxTokens }) => (
        <section key={`${label} ${version}`}>
          <h2>{label}</h2>
          {kind === "writable" ? (
            <textarea
              aria-label={label}
              rows={6}
              defaultValue={content}
              onBlur={({ target }) => target.value !== content && setBlock(label, target.value)}
            />
          ) : (
            <p>{content}</p>
          )}
          {maxTokens !== null && (
            <small>
              {tokens} of {maxTokens} tokens
            </small>
          )}
        </section>
      ))}
    </aside>
  );
}
