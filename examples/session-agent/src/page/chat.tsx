// One session: the messages, the stock hooks of the Agents SDK, and the answers that were
// given to the same question before.

import { useAgentChat } from "agents/chat/react";
import { useAgent } from "agents/react";
import { type FormEvent, useEffect, useState } from "react";
import type { UiMessage } from "session-agent";
import type { Agent } from "./main";

interface Props {
  agent: Agent;
  visit: { agent: string; token: string };
  sessionId: string;
  onTurn: () => void;
}

export function Chat({ agent, visit, sessionId, onTurn }: Props) {
  const socket = useAgent({ agent: "SessionAgent", name: visit.agent, query: { sessionId, token: visit.token } });
  const { messages, setMessages, sendMessage, regenerate, status, stop, error } = useAgentChat({ agent: socket });
  const [text, setText] = useState("");
  const [answers, setAnswers] = useState<UiMessage[]>([]);
  const isBusy = status === "submitted" || status === "streaming";
  const last = messages.at(-1);
  const question = messages.findLast(({ role }) => role === "user");

  useEffect(() => {
    if (isBusy || question === undefined || last?.role !== "assistant") return setAnswers([]);
    onTurn();
    void agent.getBranches({ sessionId, messageId: question.id }).then((branches) => setAnswers(branches.messages));
  }, [agent, sessionId, isBusy, question?.id, last?.id, last?.role, onTurn]);

  async function show(answer: UiMessage) {
    await agent.setLeaf({ sessionId, id: answer.id });
    const { messages: path } = await agent.getHistory({ sessionId });
    setMessages(path as typeof messages);
  }

  function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() === "" || isBusy) return;
    void sendMessage({ text });
    setText("");
  }

  return (
    <section aria-label="Chat">
      <ol className="messages" aria-live="polite">
        {messages.filter(({ role }) => role !== "system").map((message) => (
          <li key={message.id} className={message.role}>
            {message.parts.map((part, n) => <Part key={n} part={part} />)}
          </li>
        ))}
      </ol>
      {answers.length > 1 && (
        <p className="branches">
          {answers.map((answer, n) => (
            <button key={answer.id} aria-pressed={answer.id === last?.id} disabled={isBusy} onClick={() => show(answer)}>
              Answer {n + 1}
            </button>
          ))}
        </p>
      )}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={submit}>
        <input aria-label="Message" placeholder="Say something" value={text} onChange={({ target }) => setText(target.value)} />
        {isBusy ? <button type="button" onClick={() => stop()}>Stop</button> : <button>Send</button>}
        <button type="button" disabled={isBusy || last?.role !== "assistant"} onClick={() => regenerate()}>Answer anew</button>
      </form>
    </section>
  );
}

function Part({ part }: { part: { type: string; [field: string]: any } }) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (!part.type.startsWith("tool-") && part.type !== "dynamic-tool") return null;
  const name = part.toolName ?? part.type.slice("tool-".length);
  const outcome = part.errorText ?? part.output;
  return (
    <details>
      <summary>{name} {JSON.stringify(part.input)}</summary>
      <pre>{typeof outcome === "string" ? outcome : JSON.stringify(outcome, null, 2)}</pre>
    </details>
  );
}
