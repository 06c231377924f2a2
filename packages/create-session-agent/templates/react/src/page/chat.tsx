// One chat: the AI SDK's `useChat` over the agent's own stream.

import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { type FormEvent, useEffect, useMemo, useRef, useState } from "react";
import { type Agent, sentenceOf } from "./agent";

interface Props {
  agent: Agent;
  sessionId: string;
  history: UIMessage[];
}

export function Chat({ agent, sessionId, history }: Props) {
  const transport = useMemo(
    () =>
      new DefaultChatTransport({
        api: agent.api,
        fetch: agent.fetch,
        // The agent has the others.
        prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({
          body: { id, message: messages.at(-1), trigger, messageId },
        }),
      }),
    [agent],
  );
  const { messages, sendMessage, regenerate, addToolApprovalResponse, status, error, clearError } = useChat({
    id: sessionId,
    messages: history,
    // A page that is loaded in the middle of an answer hears all of it.
    resume: true,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    list.current?.lastElementChild?.scrollIntoView({ block: "end" });
  }, [messages]);
  const [text, setText] = useState("");
  const [failed, setFailed] = useState<unknown>();
  const isBusy = status === "submitted" || status === "streaming";
  const wrong = failed ?? error;

  function submit(event: FormEvent) {
    event.preventDefault();
    if (text.trim() === "" || isBusy) return;
    clearError();
    setFailed(undefined);
    void sendMessage({ text });
    setText("");
  }

  /** Ends the turn itself. To stop reading would let it go on without the page. */
  function stop() {
    agent.client.cancelTurn({ sessionId }).catch(setFailed);
  }

  return (
    <>
      <ol ref={list} className="messages" aria-label="Messages" aria-live="polite">
        {messages.map((message) => (
          <li key={message.id} className={message.role}>
            {message.parts.map((part, n) => (
              <Part key={n} part={part} decide={addToolApprovalResponse} />
            ))}
          </li>
        ))}
      </ol>
      {wrong !== undefined && wrong !== null && <p role="alert">{sentenceOf(wrong)}</p>}
      <form onSubmit={submit}>
        <input
          aria-label="Message"
          placeholder="Say something"
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        {isBusy ? (
          <button type="button" onClick={stop}>
            Stop
          </button>
        ) : (
          <button type="submit">Send</button>
        )}
        <button
          type="button"
          disabled={isBusy || messages.at(-1)?.role !== "assistant"}
          onClick={() => void regenerate()}
        >
          Answer anew
        </button>
      </form>
    </>
  );
}

interface PartProps {
  part: { type: string; [field: string]: any };
  decide: (answer: { id: string; approved: boolean }) => unknown;
}

function Part({ part, decide }: PartProps) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (!part.type.startsWith("tool-")) return null;
  const outcome = part.errorText ?? part.output;
  return (
    <>
      <details>
        <summary>
          {part.type.slice("tool-".length)} {visible(part.input)}
        </summary>
        <pre>{typeof outcome === "string" ? outcome : JSON.stringify(outcome, null, 2)}</pre>
      </details>
      {part.state === "approval-requested" && (
        <p className="approval">
          Allow this?
          <button type="button" onClick={() => decide({ id: part.approval.id, approved: true })}>
            Allow
          </button>
          <button type="button" onClick={() => decide({ id: part.approval.id, approved: false })}>
            Refuse
          </button>
        </p>
      )}
      {part.state === "output-denied" && <p className="approval">You refused this.</p>}
    </>
  );
}

/** The input with each character that can't be seen written out: a person decides about it. */
function visible(input: unknown): string {
  const hidden = /(?! )[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0e\u{e0000}-\u{e0fff}]/gu;
  const text = JSON.stringify(input) ?? "";
  return text.replace(hidden, (character) => `\\u{${character.codePointAt(0)!.toString(16).toUpperCase()}}`);
}
