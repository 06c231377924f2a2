// What the agent remembers about its visitor, live. The visitor can correct it.

import { type AgentHandle, useMemory, useProposals } from "session-agent/react";

export function Memory({ agent }: { agent: AgentHandle }) {
  const { blocks, entries, error, setBlock, removeEntry } = useMemory(agent);
  const { proposals, approve, reject } = useProposals(agent);

  return (
    <aside aria-label="Memory">
      <h2>Memory</h2>
      {error && <p role="alert">{error.message}</p>}
      {blocks
        .filter(({ kind }) => kind === "writable")
        .map(({ label, description, content, version }) => (
          // The key makes React replace the field when there is a newer version.
          <label key={`${label} ${version}`}>
            {description ?? label}
            <textarea
              aria-label={label}
              rows={6}
              defaultValue={content}
              onBlur={({ target }) => target.value !== content && setBlock(label, target.value)}
            />
          </label>
        ))}
      {Object.entries(entries).map(([label, found]) => (
        <ul key={label} aria-label={label}>
          {found.map(({ key, content }) => (
            <li key={key}>
              {content}
              <button type="button" aria-label={`Forget: ${content}`} onClick={() => removeEntry(label, key)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      ))}
      {proposals.map(({ id, changes }) => (
        <p key={id} className="notice">
          {changes.map(({ action, content, key }) => `${action}: ${content ?? key}`).join(", ")}?
          <button type="button" onClick={() => approve(id)}>
            Yes
          </button>
          <button type="button" onClick={() => reject(id)}>
            No
          </button>
        </p>
      ))}
    </aside>
  );
}
