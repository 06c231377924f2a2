// The session's log: all events in the order in which they were written.

import { useEffect, useState } from "preact/hooks";
import { PayloadTooLargeError, type SessionEvent } from "session-agent";
import { Virtual } from "../ui/virtual.tsx";
import { Button, Empty, Heading, Loading, Problem } from "../ui/basics.tsx";
import { Time } from "../ui/time.tsx";
import { reconnections } from "../connection.ts";
import { shownJson, shownName } from "../text.ts";
import type { Conversation } from "./conversation.ts";
import { Code } from "./parts.tsx";

const PAGE = 100;

const ACTIONS: Record<string, string> = {
  user_message: "user message",
  agent_message: "agent message",
  tool_call_request: "tool call",
  tool_result: "tool result",
  system_instruction: "system instruction",
  compaction: "compaction",
};

/** The newest events first. Scrolling loads older ones. */
export function Events({ conversation }: { conversation: Conversation }) {
  const [events, setEvents] = useState<readonly SessionEvent[]>([]);
  const [before, setBefore] = useState<number | null | undefined>(undefined);
  const [state, setState] = useState<{ isLoading: boolean; error: unknown }>({ isLoading: false, error: undefined });
  const { session } = conversation;

  const load = async (beforeSeq: number | undefined, known: readonly SessionEvent[]) => {
    setState({ isLoading: true, error: undefined });
    try {
      const page = await newestBefore(session, beforeSeq);
      setEvents([...known, ...page.toReversed()]);
      setBefore(page.length === 0 || page[0]!.seq <= 1 ? null : page[0]!.seq);
      setState({ isLoading: false, error: undefined });
    } catch (error) {
      setState({ isLoading: false, error });
    }
  };
  const back = reconnections.value;
  useEffect(() => void load(undefined, []), [session, back]);

  const onEnd = () => {
    if (typeof before === "number" && !state.isLoading && !state.error) void load(before, events);
  };
  return (
    <section class="tab-page">
      <Heading title="Event log" note="Every event as it was written, newest first.">
        <Button icon="redo" onClick={() => void load(undefined, [])}>
          Reload
        </Button>
      </Heading>
      {state.error !== undefined && (
        <Problem error={state.error} retry={() => void load(before ?? undefined, events)} />
      )}
      {events.length === 0 && before === null && (
        <Empty title="No events yet" icon="chat">
          <p>The session's first message will appear here.</p>
        </Empty>
      )}
      {events.length === 0 && before === undefined && state.isLoading && <Loading what="events" />}
      {events.length > 0 && (
        <Virtual
          label="Events"
          items={events}
          keyOf={({ id }) => id}
          estimate={() => 84}
          render={(event) => <EventBody event={event} />}
          onEnd={onEnd}
        />
      )}
    </section>
  );
}

async function newestBefore(session: Conversation["session"], beforeSeq: number | undefined): Promise<SessionEvent[]> {
  for (let limit = PAGE; ; limit = Math.max(1, limit >> 2)) {
    try {
      return await session.loadEvents({ tail: true, limit, ...(beforeSeq !== undefined && { beforeSeq }) });
    } catch (error) {
      if (!(error instanceof PayloadTooLargeError) || limit === 1) throw error;
    }
  }
}

export function EventBody({ event }: { event: SessionEvent }) {
  const { seq, id, parentId, action, content, toolCalls, toolCallId, toolName, isError, metadata, createdAt } = event;
  return (
    <article class={`event ${isError ? "failed" : ""}`} aria-label={`Event ${seq}`}>
      <header>
        <span class="seq">{seq}</span>
        <span class={`badge ${action}`}>{ACTIONS[action] ?? action}</span>
        {toolName && <bdi class="name">{shownName(toolName)}</bdi>}
        {isError && <span class="state output-error">failed</span>}
        <Time at={createdAt} />
      </header>
      {content !== "" && <Code text={content} />}
      {toolCalls?.map((call) => (
        <Code key={call.id} text={`${call.name} ${shownJson(call.arguments)}`} />
      ))}
      <p class="ids">
        <span>
          id <bdi>{shownName(id)}</bdi>
        </span>
        <span>
          after <bdi>{parentId === null ? "nothing" : shownName(parentId)}</bdi>
        </span>
        {toolCallId && (
          <span>
            call <bdi>{shownName(toolCallId)}</bdi>
          </span>
        )}
      </p>
      {metadata && (
        <details class="fold">
          <summary>Metadata</summary>
          <Code text={shownJson(metadata)} />
        </details>
      )}
    </article>
  );
}
