// The turns of a session: outcome, steps, and failure of each.

import { useEffect, useState } from "preact/hooks";
import { Shares } from "../ui/bar.tsx";
import { Button, Empty, Heading, Loading, Name, Problem } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { Time } from "../ui/time.tsx";
import type { Conversation } from "../conversation/conversation.ts";
import { cost } from "../currency.ts";
import { hashOf } from "../route.ts";
import { count, counted, fullTime, milliseconds, shownText } from "../text.ts";
import { LiveTurn } from "./live.tsx";
import { finishText, type TurnRecord, waterfallOf } from "./rows.ts";
import { Legend, Waterfall } from "./waterfall.tsx";

const PAGE = 20;
/** A page may be empty without being the last one. */
const PAGES_AT_ONCE = 5;

/** `at`: the message whose turn is opened. Otherwise the newest is. */
export function Turns({ conversation, at }: { conversation: Conversation; at: string | undefined }) {
  const state = conversation.state.value;
  const [turns, setTurns] = useState<readonly TurnRecord[] | null>(null);
  const [cursor, setCursor] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(undefined);
  const load = async (from: string | null, known: readonly TurnRecord[]) => {
    setError(undefined);
    try {
      let [found, next] = [known, from];
      for (let pages = 0; pages < PAGES_AT_ONCE; pages += 1) {
        const page = await conversation.session.getTurns({ limit: PAGE, ...(next !== null && { cursor: next }) });
        found = [...found, ...page.turns];
        next = page.cursor;
        if (next === null || found.length - known.length >= PAGE) break;
      }
      setTurns(found);
      setCursor(next);
    } catch (error) {
      setError(error);
    }
  };
  // A turn that is over has its record.
  useEffect(() => {
    if (state === "idle") void load(null, []);
  }, [conversation, state]);
  const opened = turns?.find(({ messageId }) => at !== undefined && messageId === at) ?? turns?.[0];
  return (
    <section class="tab-page scrolls">
      <Heading title="Turns" note="When each model request and tool call started, and how long it took.">
        <Button icon="redo" onClick={() => void load(null, [])}>
          Reload
        </Button>
      </Heading>
      <LiveTurn conversation={conversation} isAlwaysOpen />
      {error !== undefined && <Problem error={error} retry={() => void load(cursor, turns ?? [])} />}
      {turns === null && error === undefined && state === "idle" && <Loading what="the turns" />}
      {turns?.length === 0 && (
        <Empty title="No turns yet" icon="flow">
          <p>A turn starts with a message and ends with the agent's answer.</p>
          <a
            class="button main"
            href={hashOf({
              view: "session",
              agent: conversation.agentName,
              session: conversation.id,
              tab: "conversation",
            })}
          >
            Write a message
          </a>
        </Empty>
      )}
      {turns !== null && turns.length > 0 && <Legend />}
      {turns?.map((turn) => (
        <One key={turn.turnId} conversation={conversation} turn={turn} isOpen={turn === opened} />
      ))}
      {cursor !== null && <Button onClick={() => void load(cursor, turns ?? [])}>Older turns</Button>}
    </section>
  );
}

function One({ conversation, turn, isOpen }: { conversation: Conversation; turn: TurnRecord; isOpen: boolean }) {
  const [isShown, setShown] = useState(isOpen);
  const { usage, failure } = turn;
  return (
    <details class="card fold turn" open={isOpen} onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>
        <span class={`state ${failure ? "output-error" : "output-available"}`}>
          {failure ? failure.code : (finishText(turn.finishReason) ?? "Completed")}
        </span>
        <Time at={turn.endedAt} />
        {turn.durationMs != null && <b>{milliseconds(turn.durationMs)}</b>}
        <Name text={turn.model ?? ""} />
        <span class="note">
          {count(usage.inputTokens)} in, {count(usage.outputTokens)} out
          {usage.cost > 0 && ` · ${cost(usage.cost)}`}
        </span>
      </summary>
      {isShown && <Whole conversation={conversation} turn={turn} />}
    </details>
  );
}

function Whole({ conversation, turn }: { conversation: Conversation; turn: TurnRecord }) {
  const { failure, messageId, askedBy, traceId, isRecorded } = turn;
  const context = turn.steps.findLast(({ context }) => context != null)?.context;
  return (
    <div class="turn-body">
      {failure && (
        <p class="problem">
          <Icon name="warning" />
          <span>
            {shownText(failure.message)} <code class="code-name">{failure.code}</code>
          </span>
        </p>
      )}
      {isRecorded ? (
        <Waterfall shown={waterfallOf(turn)} label={`The turn's steps, ${fullTime(turn.endedAt)}`} />
      ) : (
        <p class="note">Timing data is not available. This turn ran on an older version.</p>
      )}
      {turn.omittedSteps > 0 && (
        <p class="note">Timing data is not available for {counted(turn.omittedSteps, "earlier request")}.</p>
      )}
      {context && (
        <>
          <h3>
            Contents of the last request{" "}
            <span class="note">
              {count(context.total)} of {count(context.windowTokens)} tokens, {counted(context.sentMessages, "message")}
              {context.shortenedMessages > 0 && `, ${count(context.shortenedMessages)} of them shortened`}
              {context.leftOutMessages > 0 && `, about ${count(context.leftOutMessages)} older ones omitted`}
            </span>
          </h3>
          <Shares
            label="Tokens"
            shares={[
              { name: "system prompt", value: context.systemPrompt },
              { name: "tools", value: context.tools },
              { name: "messages", value: context.messages },
              { name: "reminder", value: context.reminder },
            ]}
          />
        </>
      )}
      <p class="ids">
        {askedBy && (
          <span>requested by {askedBy.kind === "token" ? `a token ${askedBy.holder ?? ""}` : "the operator"}</span>
        )}
        {traceId && (
          <span>
            trace <bdi>{traceId}</bdi>
          </span>
        )}
        {messageId && (
          <a
            href={hashOf({
              view: "session",
              agent: conversation.agentName,
              session: conversation.id,
              tab: "conversation",
              at: messageId,
            })}
          >
            View message
          </a>
        )}
      </p>
    </div>
  );
}
