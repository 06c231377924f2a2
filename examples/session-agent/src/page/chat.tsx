// One session: the messages, the stock hooks of the Agents SDK, and the answers that were
// given to the same question before.

import { useAgentChat } from "agents/chat/react";
import { useAgent } from "agents/react";
import { type FormEvent, useEffect, useState } from "react";
import type { UiMessage } from "session-agent";
import type { Agent } from "./main";
import { token } from "./visit";

interface Props {
  agent: Agent;
  sessionId: string;
  onTurn: () => void;
}

export function Chat({ agent, sessionId, onTurn }: Props) {
  const socket = useAgent({
    agent: "SessionAgent",
    name: agent.name,
    query: async () => ({ sessionId, token: await token() }),
    queryDeps: [sessionId],
  });
  const { messages, setMessages, sendMessage, regenerate, addToolApprovalResponse, status, stop, error } = useAgentChat(
    { agent: socket },
  );
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

  /** The newest event of the branch that begins with this one: an answer may be many events. */
  async function endOf(first: string) {
    const branch = new Set([first]);
    let end = first;
    for await (const { id, parentId } of agent.session(sessionId).events()) {
      if (parentId === null || !branch.has(parentId)) continue;
      branch.add(id);
      end = id;
    }
    return end;
  }

  async function show(answer: UiMessage) {
    await agent.setLeaf({ sessionId, id: await endOf(answer.id) });
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
        {messages
          .filter(({ role }) => role !== "system")
          .map((message) => (
            <li key={message.id} className={message.role}>
              {message.parts.map((part, n) => (
                <Part key={n} part={part} decide={addToolApprovalResponse} />
              ))}
            </li>
          ))}
      </ol>
      {answers.length > 1 && (
        <p className="branches">
          {answers.map((answer, n) => (
            <button
              key={answer.id}
              aria-pressed={answer.id === last?.id}
              disabled={isBusy}
              onClick={() => show(answer)}
            >
              Answer {n + 1}
            </button>
          ))}
        </p>
      )}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={submit}>
        <input
          aria-label="Message"
          placeholder="Say something"
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        {isBusy ? (
          <button type="button" onClick={() => stop()}>
            Stop
          </button>
        ) : (
          <button>Send</button>
        )}
        <button type="button" disabled={isBusy || last?.role !== "assistant"} onClick={() => regenerate()}>
          Answer anew
        </button>
      </form>
    </section>
  );
}

interface PartProps {
  part: { type: string; [field: string]: any };
  decide: (answer: { id: string; approved: boolean }) => unknown;
}

/** The input with each character that can't be seen written out: a person decides about it. */
function visible(input: unknown): string {
  const hidden = /(?! )[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0e\u{e0000}-\u{e0fff}]/gu;
  const text = JSON.stringify(input) ?? "";
  return text.replace(hidden, (character) => `\\u{${character.codePointAt(0)!.toString(16).toUpperCase()}}`);
}

function Part({ part, decide }: PartProps) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (!part.type.startsWith("tool-") && part.type !== "dynamic-tool") return null;
  const name = part.toolName ?? part.type.slice("tool-".length);
  const outcome = part.errorText ?? part.output;
  return (
    <>
      <details>
        <summary>
          {name} {visible(part.input)}
        </summary>
        <pre>{typeof outcome === "string" ? outcome : JSON.stringify(outcome, null, 2)}</pre>
      </details>
      {part.state === "approval-requested" && (
        <p className="approval">
          Allow this?
          <button onClick={() => decide({ id: part.approval.id, approved: true })}>Allow</button>
          <button onClick={() => decide({ id: part.approval.id, approved: false })}>Refuse</button>
        </p>
      )}
    </>
  );
}
