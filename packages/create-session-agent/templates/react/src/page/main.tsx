// The page: the visitor's chats, the chat that is open, and what the agent remembers.

import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { useAgent, useSessions } from "session-agent/react";
import { Chat } from "./chat";
import { Memory } from "./memory";

/** Asks the Worker for the visitor's agent and a token. The hooks ask again before the token expires. */
async function login() {
  const response = await fetch("/api/login", { method: "POST" });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

function Page() {
  const agent = useAgent({ login });
  const { sessions, isLoading, error, hasMore, loadMore, rename } = useSessions(agent);
  const open = useIdInAddress();

  if (isLoading && error) return <p role="alert">{error.message}</p>;
  return (
    <>
      <nav aria-label="Chats">
        <h1>PROJECT_NAME</h1>
        <button type="button" onClick={() => location.assign(`#${crypto.randomUUID()}`)}>
          New chat
        </button>
        <ul>
          {sessions.map(({ id, name }) => (
            <li key={id}>
              <a href={`#${id}`} aria-current={id === open ? "page" : undefined}>
                {name ?? "New chat"}
              </a>
            </li>
          ))}
        </ul>
        {hasMore && (
          <button type="button" onClick={loadMore}>
            Older chats
          </button>
        )}
      </nav>
      <Chat
        key={open}
        agent={agent}
        sessionId={open}
        isUnnamed={sessions.some(({ id, name }) => id === open && name === null)}
        rename={rename}
      />
      <Memory agent={agent} />
    </>
  );
}

/** The open chat's id is in the address, so that it is open again after a reload. */
function useIdInAddress(): string {
  const [id, setId] = useState(idInAddress);
  useEffect(() => {
    const change = () => setId(idInAddress());
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return id;
}

function idInAddress(): string {
  if (location.hash.length < 2) history.replaceState(null, "", `#${crypto.randomUUID()}`);
  return location.hash.slice(1);
}

createRoot(document.getElementById("root")!).render(<Page />);
