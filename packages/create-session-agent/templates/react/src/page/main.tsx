// The page: one chat, whose id stands in the address, so that it is there again after a reload.

import type { UIMessage } from "ai";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { SessionNotFoundError } from "session-agent";
import { type Agent, agentOf, sentenceOf } from "./agent";
import { Chat } from "./chat";

interface Opened {
  sessionId: string;
  agent: Agent;
  history: UIMessage[];
}

/** The chat that the address names, with its messages. A new one has none. */
async function open(sessionId: string): Promise<Opened> {
  const agent = await agentOf(sessionId);
  const read = agent.client.getHistory({ sessionId });
  const { messages } = await read.catch((error) => {
    if (error instanceof SessionNotFoundError) return { messages: [] };
    throw error;
  });
  return { sessionId, agent, history: messages as unknown as UIMessage[] };
}

function Page() {
  const [sessionId, setSessionId] = useState(idInAddress);
  const [opened, setOpened] = useState<Opened>();
  const [failed, setFailed] = useState<unknown>();

  useEffect(() => {
    const change = () => setSessionId(idInAddress());
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);

  useEffect(() => {
    let isLate = false;
    setFailed(undefined);
    open(sessionId).then(
      (chat) => isLate || setOpened(chat),
      (error) => isLate || setFailed(error),
    );
    return () => {
      isLate = true;
    };
  }, [sessionId]);

  return (
    <main>
      <header>
        <h1>PROJECT_NAME</h1>
        <button type="button" onClick={() => location.assign(`#${crypto.randomUUID()}`)}>
          New chat
        </button>
      </header>
      {failed !== undefined && <p role="alert">{sentenceOf(failed)}</p>}
      {opened?.sessionId === sessionId && <Chat key={sessionId} {...opened} />}
    </main>
  );
}

function idInAddress(): string {
  if (location.hash.length < 2) history.replaceState(null, "", `#${crypto.randomUUID()}`);
  return location.hash.slice(1);
}

createRoot(document.getElementById("root")!).render(<Page />);
