// src/live_chat.tsx
import { useAgentChat } from "agents/chat/react";
import { useAgent } from "agents/react";
import { type FormEvent, Suspense, useEffect, useState } from "react";
import { Messages } from "./parts";
import { sentenceOf, visit } from "./visit";

export function LiveChatPage() {
  const [opened, setOpened] = useState<{ agent: string }>();
  const [failed, setFailed] = useState<Error>();
  useEffect(() => void visit().then(setOpened, setFailed), []);
  if (failed) return <p role="alert">{sentenceOf(failed)}</p>;
  return <Suspense fallback={<p>Loading…</p>}>{opened && <LiveChat name={opened.agent} />}</Suspense>;
}

async function query() {
  const { sessionId, token } = await visit();
  return { sessionId, token };
}

function LiveChat({ name }: { name: string }) {
  const agent = useAgent({ agent: "SessionAgent", name, query });
  const { messages, sendMessage, addToolApprovalResponse, status, stop, error } = useAgentChat({ agent });
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
        {isBusy ? <button type="button" onClick={() => stop()}>Stop</button> : <button>Send</button>}
      </form>
    </main>
  );
}
