// The page: a list of sessions, the chat, and what the agent remembers.

import { StrictMode, Suspense, useCallback, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { sessionAgent, type Session } from "session-agent";
import { Chat } from "./chat";
import { Memory } from "./memory";
import { token, visit } from "./visit";

export type Agent = ReturnType<typeof sessionAgent>;

function Page({ name }: { name: string }) {
  const [agent] = useState(() => sessionAgent(location.origin, name, { token }));
  const [sessions, setSessions] = useState<Session[]>([]);
  const [open, setOpen] = useState<string | null>(null);
  // Counts what changed, so that the panels look again.
  const [changes, setChanges] = useState(0);
  const changed = useCallback(() => setChanges((count) => count + 1), []);

  useEffect(() => {
    let isLate = false;
    void agent.listSessions({ limit: 50 }).then((page) => {
      // A list that was asked for before the last change doesn't know of the change.
      if (isLate) return;
      setSessions(page.sessions);
      setOpen((id) => id ?? page.sessions[0]?.id ?? null);
    });
    return () => void (isLate = true);
  }, [agent, changes]);

  async function begin() {
    const session = await agent.createSession({ name: `Chat ${sessions.length + 1}` });
    setOpen(session.id);
    changed();
  }

  async function remove(id: string) {
    await agent.deleteSession({ sessionId: id });
    if (open === id) setOpen(null);
    changed();
  }

  return (
    <div className="page">
      <nav aria-label="Sessions">
        <button onClick={begin}>New chat</button>
        <ul>
          {sessions.map(({ id, name }) => (
            <li key={id} className={id === open ? "open" : ""}>
              <button aria-current={id === open} onClick={() => setOpen(id)}>
                {name ?? id}
              </button>
              <button aria-label={`Delete ${name ?? id}`} onClick={() => remove(id)}>
                ×
              </button>
            </li>
          ))}
        </ul>
      </nav>
      <main>
        {open === null ? (
          <p>Begin a chat.</p>
        ) : (
          <Suspense fallback={<p>Loading …</p>}>
            <Chat key={open} agent={agent} sessionId={open} onTurn={changed} />
          </Suspense>
        )}
      </main>
      <Memory agent={agent} changes={changes} />
    </div>
  );
}

const { agent } = await visit();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Page name={agent} />
  </StrictMode>,
);
