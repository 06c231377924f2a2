// The live change feed, as a client that stores a copy receives it.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Change, SessionEvent } from "session-agent";
import { Virtual } from "../ui/virtual.tsx";
import { Empty, Heading, Problem } from "../ui/basics.tsx";
import { openAgent, reconnections } from "../connection.ts";
import { Time } from "../ui/time.tsx";
import { count, cut, shownName, shownText } from "../text.ts";
import type { Conversation } from "./conversation.ts";
import { EventTexts } from "./event_texts.ts";

const PAGE = 1000;
const PAUSE_MS = 1000;
/** The newest changes that the page keeps. */
const MAX_CHANGES = 5000;
/** The characters of an event's text that are shown. */
const GLANCE = 200;

export function Changes({ conversation }: { conversation: Conversation }) {
  const [changes, setChanges] = useState<readonly Change[]>([]);
  const [seen, setSeen] = useState(0);
  const [error, setError] = useState<unknown>(undefined);
  const [turn, setTurn] = useState(0);
  const back = reconnections.value;
  const events = useMemo(() => new EventTexts(conversation), [conversation]);

  useEffect(() => {
    const stopping = new AbortController();
    const session = openAgent(conversation.agentName, { isQuiet: true }).session(conversation.id);
    setChanges([]);
    setSeen(0);
    setError(undefined);
    const follow = async () => {
      for (let cursor = 0; !stopping.signal.aborted; ) {
        const page = await session.getChanges({ since: cursor, limit: PAGE }, { signal: stopping.signal });
        cursor = page.cursor;
        for (const { type, id } of page.changes) if (type === "update" && id !== null) void events.renew(id);
        if (page.changes.length > 0) {
          setChanges((before) => [...page.changes.toReversed(), ...before].slice(0, MAX_CHANGES));
          setSeen((before) => before + page.changes.length);
        }
        if (page.changes.length < PAGE) await pause(PAUSE_MS, stopping.signal);
      }
    };
    follow().catch((error) => !stopping.signal.aborted && setError(error));
    return () => stopping.abort();
  }, [conversation, turn, back]);

  return (
    <section class="tab-page">
      <Heading title="Change feed" note="Live: changes appear within a second, newest first.">
        <span class="pulse">{count(seen)} so far</span>
      </Heading>
      {error !== undefined && <Problem error={error} retry={() => setTurn(turn + 1)} />}
      {changes.length === 0 && error === undefined && (
        <Empty title="No changes yet" icon="bolt">
          <p>Appends, updates and deletions appear here as they happen.</p>
        </Empty>
      )}
      {changes.length > 0 && (
        <Virtual
          label="Changes"
          items={changes}
          keyOf={({ cursor }) => String(cursor)}
          estimate={() => 62}
          render={(change) => <Row change={change} events={events} />}
        />
      )}
    </section>
  );
}

const WHOLE: Record<string, string> = {
  clear: "All messages were deleted.",
  compaction: "The summaries changed.",
};

/** A change names an event. The time and the text shown are the event's current ones. */
function Row({ change: { cursor, type, id }, events }: { change: Change; events: EventTexts }) {
  const event = id === null ? undefined : events.get(id).value;
  return (
    <div class="change">
      <span class={`badge ${type}`}>{type}</span>
      <p class="change-text" dir="auto">
        {event === undefined
          ? (WHOLE[type] ?? "")
          : event === null
            ? "The event was deleted."
            : shownText(cut(textOf(event), GLANCE))}
      </p>
      {event && <Time at={event.createdAt} />}
      <p class="ids">
        <span>
          {cursor} · <bdi class="name">{id === null ? "entire session" : shownName(id)}</bdi>
        </span>
      </p>
    </div>
  );
}

function textOf({ action, content, toolName, toolCalls }: SessionEvent): string {
  if (toolCalls?.length) return toolCalls.map(({ name }) => `calls ${name}`).join(", ");
  return toolName && action === "tool_result" ? `${toolName}: ${content}` : content;
}

/** Waits, and pauses while the page is hidden. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  do await new Promise((resolve) => setTimeout(resolve, ms));
  while (document.visibilityState === "hidden" && !signal.aborted);
}
