// The page: a list of sessions, the chat, and what the agent remembers.

import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { useAgent, useSessions } from "session-agent/react";
import { Chat } from "./chat";
import { Memory } from "./memory";

/** The visitor's agent and a token. The hooks ask again before it expires. */
async function login() {
  const response = await fetch("/api/token", { method: "POST" });
  if (!response.ok) throw new Error(`The server returned no token (${response.status}).`);
  return await response.json();
}

function Page() {
  const agent = useAgent({ login });
  const { sessions, error, create, remove } = useSessions(agent);
  const [chosen, setChosen] = useState<string | null>(null);
  const open = sessions.some(({ id }) => id === chosen) ? chosen : (sessions[0]?.id ?? null);

  return (
    <div className="page">
      <nav aria-label="Sessions">
        <button onClick={() => setChosen(create({ name: `Chat ${sessions.length + 1}` }).id)}>New chat</button>
        {error && <p role="alert">{error.message}</p>}
        <ul>
          {sessions.map(({ id, name }) => (
            <li key={id} className={id === open ? "open" : ""}>
              <button aria-current={id === open} onClick={() => setChosen(id)}>
                {name ?? id}
              </button>
              <button aria-label={`Delete ${name ?? id}`} onClick={() => remove(id)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      </nav>
      <main>{open === null ? <p>Begin a chat.</p> : <Chat key={open} agent={agent} sessionId={open} />}</main>
      <Memory agent={agent} />
    </div>
  );
}

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
