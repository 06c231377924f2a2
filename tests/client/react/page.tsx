// A page for react.test.mjs that exposes the hooks: their state as `window.view` and their
// functions as `window.act`.

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { useAgent, useMemory, useProposals, useSession, useSessions, useTurns } from "session-agent/react";

const parameters = new URLSearchParams(location.search);
const sessionId = parameters.get("session") ?? "chat";

async function login() {
  const response = await fetch(`/test/login?agent=${parameters.get("agent")}`);
  if (!response.ok) throw new Error(await response.text());
  return await response.json();
}

function Page() {
  const agent = useAgent({ login });
  const chat = useSession(agent, sessionId);
  const sessions = useSessions(agent);
  const memory = useMemory(agent, { sessionId });
  const proposals = useProposals(agent);
  const turns = useTurns(agent, { sessionId });
  const all = { chat, sessions, memory, proposals, turns };
  Object.assign(window, { view: all, act: all });
  return (
    <ol aria-label="Messages">
      {chat.messages.map(({ id, role, parts, delivery, failure }) => (
        <li key={id} data-role={role} data-delivery={delivery} data-failure={failure?.message}>
          {parts.map((part, n) => (part.type === "text" ? <p key={n}>{part.text}</p> : null))}
        </li>
      ))}
    </ol>
  );
}

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
