// A message without an answer: why, and the way to ask again.

import { Button } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { may } from "../rights.ts";
import { hashOf } from "../route.ts";
import { shownText } from "../text.ts";
import { useLastFailure } from "../turns/last_failure.ts";
import type { Conversation } from "./conversation.ts";

export function Unanswered({ conversation }: { conversation: Conversation }) {
  const last = conversation.messages.value.at(-1);
  const problem = conversation.problem.value;
  const isOpen = last?.role === "user";
  const isIdle = conversation.state.value === "idle" && conversation.waiting.value.length === 0;
  const isWanted = isIdle && last !== undefined && may("getTurns");
  const failed = useLastFailure(conversation, `${last?.id}/${problem === null}`, isWanted);
  if (!isIdle || last === undefined) return null;
  // A failure that is older than the message is another message's.
  const failure = failed !== null && failed.endedAt >= (last.createdAt ?? 0) ? failed.failure : null;
  if (!isOpen && failure === null) return null;
  // The sentence of what failed just now stands above.
  const retry = () => (isOpen ? conversation.retry(last.id) : conversation.regenerate(last.id));
  return (
    <div class={`unanswered ${failure === null ? "" : "failed"}`} role="group" aria-label="No answer">
      <Icon name={failure ? "warning" : "clock"} />
      <p>
        {failure ? (
          <>
            <b>{isOpen ? "The turn failed." : "The turn failed before its answer was whole."}</b>{" "}
            {problem === null && shownText(failure.message)} <code class="code-name">{failure.code}</code>
          </>
        ) : (
          <>
            <b>No answer yet.</b> Nobody answers this message now.
          </>
        )}
      </p>
      {failure && (
        <a
          class="button quiet"
          href={hashOf({ view: "session", agent: conversation.agentName, session: conversation.id, tab: "turns" })}
        >
          What happened
        </a>
      )}
      {may("chat") && (
        <Button kind="main" icon="redo" disabled={conversation.decision.value !== null} onClick={retry}>
          {failure ? "Try again" : "Answer it"}
        </Button>
      )}
    </div>
  );
}
