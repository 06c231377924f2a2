// The conversation view: its messages, and the composer.

import { useEffect, useState } from "preact/hooks";
import type { UiMessage } from "session-agent";
import { Virtual } from "../ui/virtual.tsx";
import { Button, Empty, Loading, Problem } from "../ui/basics.tsx";
import { UnknownSession } from "../missing.tsx";
import { may } from "../rights.ts";
import { counted, cut, shownText } from "../text.ts";
import { Composer } from "./composer.tsx";
import type { Conversation } from "./conversation.ts";
import { BranchOff } from "./decision.tsx";
import { failuresByMessage, useFailures } from "../turns/failures.ts";
import { LiveTurn } from "../turns/live.tsx";
import { Message } from "./message.tsx";
import { FailedHere, Unanswered } from "./unanswered.tsx";

/** The characters of a queued message that are shown. */
const GLANCE = 300;

interface Props {
  conversation: Conversation;
  /** The message or event to show. */
  at: string | undefined;
  fork: (atId: string) => void;
}

export function ConversationView({ conversation, at, fork }: Props) {
  const messages = conversation.messages.value;
  const state = conversation.state.value;
  const found = useFound(conversation, at);
  const last = messages.at(-1);
  const isWanted = state === "idle" && last !== undefined && may("getTurns");
  const failures = useFailures(conversation, `${last?.id}/${conversation.problem.value === null}`, isWanted);
  useEffect(() => void (conversation.failed.value = failuresByMessage(messages, failures)), [messages, failures]);
  useEffect(() => {
    if (state === "idle") void conversation.tree.readIfShort().catch(() => {});
  }, [conversation, state]);
  return (
    <section class="talk">
      {found === "looking" && <Loading what="the message" />}
      {found === "missing" && (
        <p class="hint banner">
          This message is not on the current branch. To see the whole session, open the Branches or Events tab.
        </p>
      )}
      {messages.length === 0 ? (
        <Beginning conversation={conversation} />
      ) : (
        <Virtual
          label="Messages"
          items={messages}
          keyOf={({ id }) => id}
          estimate={estimate}
          follows
          show={typeof found === "object" ? found?.id : undefined}
          onTop={conversation.hasMore.value ? () => void conversation.loadOlder() : undefined}
          render={(message) => (
            <>
              <Message conversation={conversation} message={message} fork={fork} />
              <FailedHere conversation={conversation} message={message} />
            </>
          )}
        />
      )}
      <Answering conversation={conversation} />
      {last !== undefined && (
        <Unanswered conversation={conversation} message={last} turn={conversation.failed.value.get(last.id)} />
      )}
      <QueuedMessages conversation={conversation} />
      <Composer conversation={conversation} />
      <BranchOff conversation={conversation} />
    </section>
  );
}

function Beginning({ conversation }: { conversation: Conversation }) {
  if (conversation.state.value === "loading")
    return (
      <div class="filling">
        <Loading what="messages" />
      </div>
    );
  if (conversation.state.value !== "idle") return <div class="filling" />;
  return (
    <div class="filling">
      {conversation.isUnknown.value && <UnknownSession agent={conversation.agentName} id={conversation.id} />}
      <Empty title="Start the conversation" icon="chat">
        <p>
          The agent remembers what you write. If no model is configured, a built-in rule-based demo answers and shows
          what an agent can do.
        </p>
        {may("chat") && (
          <div class="actions suggestions">
            {["What can you do?", "Remember that I like window seats.", "What do you remember?"].map((text) => (
              <Button key={text} onClick={() => void conversation.send(text)}>
                {text}
              </Button>
            ))}
          </div>
        )}
      </Empty>
    </div>
  );
}

/** The state of the answer, also for screen readers. */
function Answering({ conversation }: { conversation: Conversation }) {
  const problem = conversation.problem.value;
  const state = conversation.state.value;
  return (
    <div class="answering">
      <p class="hidden" role="status">
        {state === "answering" ? "The agent is answering." : ""}
      </p>
      <LiveTurn conversation={conversation} />
      {problem !== null && (
        <div class="answering-problem">
          <Problem error={problem} />
          <Button kind="quiet" icon="close" label="Dismiss" onClick={() => conversation.dismissProblem()} />
        </div>
      )}
    </div>
  );
}

/** The messages that this page has sent or queued. */
function QueuedMessages({ conversation }: { conversation: Conversation }) {
  const queued = conversation.queued.value;
  if (queued.length === 0) return null;
  return (
    <section class="waiting" aria-label="Queued messages">
      <p class="note" role="status">
        {counted(queued.length, "message")} waiting for the current answer
      </p>
      <ol>
        {queued.map(({ id, text }) => (
          <li key={id}>
            <p class="prose" dir="auto">
              {shownText(cut(text, GLANCE))}
            </p>
            {may("cancelTurn") && (
              <Button kind="quiet" onClick={() => void conversation.withdraw(id)}>
                Cancel
              </Button>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** The message that the address names. */
function useFound(conversation: Conversation, at: string | undefined): "looking" | "missing" | { id: string } | null {
  const [found, setFound] = useState<"looking" | "missing" | { id: string } | null>(null);
  const isLoaded = conversation.state.value !== "loading";
  useEffect(() => {
    setFound(at === undefined ? null : "looking");
    if (at === undefined || !isLoaded) return;
    let isStale = false;
    void conversation.find(at).then((id) => !isStale && setFound(id === null ? "missing" : { id }));
    return () => void (isStale = true);
  }, [conversation, at, isLoaded]);
  return found;
}

/** The estimated height of a message that was not rendered yet. */
function estimate(message: UiMessage): number {
  let height = 72;
  for (const part of message.parts) {
    if (typeof part?.text === "string") height += 24 * Math.ceil(Math.min(part.text.length, 20_000) / 90);
    else if (part?.type === "file") height += 240;
    else if (part?.type !== "step-start") height += 48;
  }
  return height;
}
