// One chat, live: `useSession` returns its messages, including those from other tabs.

import { type FormEvent, useEffect, useRef, useState } from "react";
import type { InputAnswers } from "session-agent";
import {
  type AgentHandle,
  type ChatMessage,
  InputRequestForm,
  Markdown,
  useSession,
  visibleInput,
} from "session-agent/react";

/** A chat's title is the beginning of its first message. */
const TITLE_CHARS = 60;

interface Props {
  agent: AgentHandle;
  sessionId: string;
  /** Whether the chat is in the list but has no title yet. */
  isUnnamed: boolean;
  rename: (sessionId: string, name: string) => unknown;
}

export function Chat({ agent, sessionId, isUnnamed, rename }: Props) {
  const chat = useSession(agent, sessionId);
  const { messages, isBusy, connection, error, branches, send, stop, retry, approve, answer } = chat;
  const [text, setText] = useState("");

  const title = titleOf(messages[0]);
  const isNamed = useRef(false);
  useEffect(() => {
    if (!isUnnamed || title === "" || isNamed.current) return;
    isNamed.current = true;
    rename(sessionId, title);
  }, [isUnnamed, title, rename, sessionId]);

  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    list.current?.lastElementChild?.scrollIntoView({ block: "end" });
  }, [messages]);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() === "") return;
    send(text);
    setText("");
  }

  return (
    <main>
      {chat.hasMore && (
        <button type="button" onClick={chat.loadMore}>
          Older messages
        </button>
      )}
      <ol ref={list} aria-label="Messages" aria-live="polite">
        {messages.map((message) => (
          <li key={message.id} className={message.role}>
            {message.parts.map((part, n) => (
              <Part
                key={"toolCallId" in part ? part.toolCallId : n}
                part={part}
                isMarkdown={message.role === "assistant"}
                approve={approve}
                answer={answer}
              />
            ))}
            {message.delivery && <small>{message.delivery === "waiting" ? "Queued" : "Sending…"}</small>}
            {message.failure && (
              <p className="notice">
                <span>{message.failure.message}</span>
                <button type="button" disabled={isBusy} onClick={() => retry(message.id)}>
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
              type="button"
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
        <button type="submit">Send</button>
        {isBusy ? (
          <button key="stop" type="button" onClick={() => stop()}>
            Stop
          </button>
        ) : (
          <button
            key="regenerate"
            type="button"
            disabled={messages.at(-1)?.role !== "assistant"}
            onClick={() => retry()}
          >
            Regenerate
          </button>
        )}
      </form>
    </main>
  );
}

interface PartProps {
  part: ChatMessage["parts"][number];
  isMarkdown: boolean;
  approve: (approvalId: string, approved: boolean) => void;
  answer: (toolCallId: string, answers: InputAnswers) => void;
}

function Part({ part, isMarkdown, approve, answer }: PartProps) {
  if (part.type === "text") return isMarkdown ? <Markdown text={part.text} /> : <p>{part.text}</p>;
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
        <p className="notice">
          Allow this?
          <button type="button" onClick={() => approve(part.approval.id, true)}>
            Allow
          </button>
          <button type="button" onClick={() => approve(part.approval.id, false)}>
            Refuse
          </button>
        </p>
      )}
      {part.state === "output-denied" && <p className="notice">You refused this.</p>}
    </>
  );
}

function titleOf(message: ChatMessage | undefined): string {
  const text = message?.parts.map((part) => (part.type === "text" ? part.text : "")).join(" ") ?? "";
  return [...text.trim()].slice(0, TITLE_CHARS).join("");
}
