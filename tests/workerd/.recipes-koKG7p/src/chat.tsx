// src/chat.tsx
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { type FormEvent, useEffect, useState } from "react";
import { Messages } from "./parts";
import { loadHistory, sentenceOf, stopTurn, visit } from "./visit";

export function ChatPage() {
  const [opened, setOpened] = useState<{ agent: string; sessionId: string; history: UIMessage[] }>();
  const [failed, setFailed] = useState<Error>();
  useEffect(() => {
    Promise.all([visit(), loadHistory()])
      .then(([{ agent, sessionId }, history]) => setOpened({ agent, sessionId, history: history as UIMessage[] }))
      .catch(setFailed);
  }, []);
  if (failed) return <p role="alert">{sentenceOf(failed)}</p>;
  return opened ? <Chat {...opened} /> : <p>Loading…</p>;
}

function Chat({ agent, sessionId, history }: { agent: string; sessionId: string; history: UIMessage[] }) {
  const { messages, sendMessage, addToolApprovalResponse, status, stop, error } = useChat({
    id: sessionId,
    messages: history,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    transport: new DefaultChatTransport({
      api: `/agents/session-agent/${encodeURIComponent(agent)}/chat`,
      headers: async () => ({ authorization: `Bearer ${(await visit()).token}` }),
    }),
  });
  const [text, setText] = useState("");
  const isBusy = status === "submitted" || status === "streaming";

  function submit(event: FormEvent) {
    event.preventDefault();
    void sendMessage({ text });
    setText("");
  }

  return (
    <main>
      <Messages messages={messages} decide={addToolApprovalResponse} />
      {error && <p role="alert">{sentenceOf(error)}</p>}
      <form onSubmit={submit}>
        <input aria-label="Message" value={text} onChange={({ target }) => setText(target.value)} />
        {isBusy ? <button type="button" onClick={() => stopTurn().finally(stop)}>Stop</button> : <button>Send</button>}
      </form>
    </main>
  );
}
