// One session, live: the messages, and the answers that were given to the same question before.

import { type FormEvent, useState } from "react";
import type { InputAnswers } from "session-agent";
import {
  type AgentHandle,
  type ChatPart,
  InputRequestForm,
  Markdown,
  useSession,
  visibleInput,
} from "session-agent/react";

export function Chat({ agent, sessionId }: { agent: AgentHandle; sessionId: string }) {
  const chat = useSession(agent, sessionId);
  const { messages, branches, isBusy, connection, error } = chat;
  const [text, setText] = useState("");

  function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() === "") return;
    chat.send(text);
    setText("");
  }

  return (
    <section aria-label="Chat">
      <ol className="messages" aria-live="polite">
        {messages.map(({ id, role, parts, failure }) => (
          <li key={id} className={role}>
            {parts.map((part, n) => (
              <Part
                key={"toolCallId" in part ? part.toolCallId : n}
                part={part}
                approve={chat.approve}
                answer={chat.answer}
              />
            ))}
            {failure && (
              <p className="approval">
                {failure.message}
                <button disabled={isBusy} onClick={() => chat.retry(id)}>
                  Try again
                </button>
              </p>
            )}
          </li>
        ))}
      </ol>
      {branches.length > 1 && (
        <p className="branches">
          {branches.map(({ id }, n) => (
            <button
              key={id}
              aria-pressed={messages.some((message) => message.id === id)}
              disabled={isBusy}
              onClick={() => chat.switchTo(id)}
            >
              Answer {n + 1}
            </button>
          ))}
        </p>
      )}
      {connection === "offline" && (
        <p role="alert">The agent can't be reached. Messages will be sent when the connection returns.</p>
      )}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={submit}>
        <input
          aria-label="Message"
          placeholder="Write a message"
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <button>Send</button>
        {isBusy ? (
          <button key="stop" type="button" onClick={() => chat.stop()}>
            Stop
          </button>
        ) : (
          <button
            key="regenerate"
            type="button"
            disabled={messages.at(-1)?.role !== "assistant"}
            onClick={() => chat.retry()}
          >
            Regenerate
          </button>
        )}
      </form>
    </section>
  );
}

interface PartProps {
  part: ChatPart;
  approve: (approvalId: string, approved: boolean) => void;
  answer: (toolCallId: string, answers: InputAnswers) => void;
}

function Part({ part, approve, answer }: PartProps) {
  if (part.type === "text") return <Markdown text={part.text} />;
  if (part.type === "data-input-request") {
    return <InputRequestForm request={part.data} onAnswer={(answers) => answer(part.data.toolCallId, answers)} />;
  }
  if (!("state" in part)) return null;
  const outcome = part.state === "output-error" ? part.errorText : part.state === "output-available" && part.output;
  return (
    <>
      <details>
        <summary>
          {part.type.slice("tool-".length)} {visibleInput(part.input)}
        </summary>
        {outcome && <pre>{typeof outcome === "string" ? outcome : JSON.stringify(outcome, null, 2)}</pre>}
      </details>
      {part.state === "approval-requested" && (
        <p className="approval">
          Allow this?
          <button onClick={() => approve(part.approval.id, true)}>Allow</button>
          <button onClick={() => approve(part.approval.id, false)}>Refuse</button>
        </p>
      )}
    </>
  );
}
