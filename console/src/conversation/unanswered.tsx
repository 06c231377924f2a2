// A message without an answer: the reason, and a button to request one.

import type { UiMessage } from "session-agent";
import { Button } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { may } from "../rights.ts";
import { hashOf } from "../route.ts";
import { shownText } from "../text.ts";
import type { TurnRecord } from "../turns/rows.ts";
import type { Conversation } from "./conversation.ts";

interface Props {
  conversation: Conversation;
  message: UiMessage;
  /** The turn that failed here. */
  turn: TurnRecord | undefined;
}

/** The end of the conversation, if no turn is running. */
export function Unanswered({ conversation, message, turn }: Props) {
  const isIdle = conversation.state.value === "idle" && conversation.queued.value.length === 0;
  if (!isIdle || (message.role !== "user" && turn === undefined)) return null;
  // The error of the last failure is shown above.
  return <NoAnswer {...{ conversation, message, turn }} isShownAbove={conversation.problem.value !== null} />;
}

/** A failed turn at a message that other messages follow. */
export function FailedHere({ conversation, message }: Omit<Props, "turn">) {
  const turn = conversation.failed.value.get(message.id);
  const isLast = conversation.messages.value.at(-1)?.id === message.id;
  return turn === undefined || isLast ? null : <NoAnswer {...{ conversation, message, turn }} />;
}

function NoAnswer({ conversation, message, turn, isShownAbove }: Props & { isShownAbove?: boolean }) {
  const failure = turn?.failure;
  const isOpen = message.role === "user";
  const isLast = conversation.messages.value.at(-1)?.id === message.id;
  const retry = () => {
    if (!isOpen) conversation.regenerate(message.id);
    else if (isLast) conversation.retry(message.id);
    else conversation.answer(message.id);
  };
  const isBusy = conversation.state.value !== "idle" || conversation.decision.value !== null;
  return (
    <div class={`unanswered ${failure ? "failed" : ""}`} role="group" aria-label="No answer">
      <Icon name={failure ? "warning" : "clock"} />
      <p>
        {failure ? (
          <>
            <b>{isOpen ? "The turn failed." : "The turn failed before the answer was complete."}</b>{" "}
            {!isShownAbove && shownText(failure.message)} <code class="code-name">{failure.code}</code>
          </>
        ) : (
          <>
            <b>No answer yet.</b> No turn is running for this message.
          </>
        )}
      </p>
      {failure && (
        <a
          class="button quiet"
          href={hashOf({ view: "session", agent: conversation.agentName, session: conversation.id, tab: "turns" })}
        >
          View details
        </a>
      )}
      {may("chat") && (
        <Button kind="main" icon="redo" disabled={isBusy} onClick={retry}>
          {failure ? "Try again" : "Answer"}
        </Button>
      )}
    </div>
  );
}
