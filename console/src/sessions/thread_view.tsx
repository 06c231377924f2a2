// A LangGraph thread: its checkpoints, the changes of each, and the messages in them.

import { useState } from "preact/hooks";
import type { SessionEvent } from "session-agent";
import { Button, Empty, Heading, Loading, Name, Problem } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { Time } from "../ui/time.tsx";
import type { Conversation } from "../conversation/conversation.ts";
import { Code } from "../conversation/parts.tsx";
import { useLoad } from "../load.ts";
import { Markdown } from "../markdown/view.tsx";
import { hashOf } from "../route.ts";
import { counted, shownJson } from "../text.ts";
import { sessionsOf } from "./sessions.ts";
import { type Checkpoint, checkpointsOf, messagesIn, type Thread, threadOf } from "./thread.ts";

const PAGE = 200;

export function ThreadView({ conversation, thread }: { conversation: Conversation; thread: Thread }) {
  const [pages, setPages] = useState(1);
  const { data, error, reload } = useLoad(`${conversation.id}/${pages}`, (signal) =>
    newest(conversation, pages * PAGE, signal),
  );
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (data === undefined) return <Loading what="the thread" />;
  const checkpoints = checkpointsOf(data);
  const others = sessionsOf(conversation.agentName).list.value.filter((session) => {
    const other = threadOf(session);
    return other?.thread === thread.thread && session.id !== conversation.id;
  });
  return (
    <section class="tab-page scrolls">
      <Heading
        title="LangGraph thread"
        note={`${counted(checkpoints.length, "checkpoint")}, newest first. Only the graph writes to this thread.`}
      >
        {others.map((session) => (
          <a
            key={session.id}
            class="button"
            href={hashOf({ view: "session", agent: conversation.agentName, session: session.id, tab: "events" })}
          >
            {threadOf(session)?.kind === "writes" ? "Pending writes" : (threadOf(session)?.namespace ?? "")}
          </a>
        ))}
        <Button icon="redo" onClick={reload}>
          Reload
        </Button>
      </Heading>
      {checkpoints.length === 0 && (
        <Empty title="No checkpoints yet" icon="flow">
          <p>The first step of the graph writes one.</p>
        </Empty>
      )}
      {checkpoints.map((checkpoint) => (
        <One key={checkpoint.eventId} checkpoint={checkpoint} />
      ))}
      {data.length === pages * PAGE && <Button onClick={() => setPages(pages + 1)}>Older checkpoints</Button>}
    </section>
  );
}

async function newest(conversation: Conversation, limit: number, signal: AbortSignal): Promise<SessionEvent[]> {
  return await conversation.session.loadEvents({ tail: true, limit: Math.min(limit, 1000) }, { signal });
}

function One({ checkpoint: { step, source, createdAt, changed, channels, id } }: { checkpoint: Checkpoint }) {
  return (
    <article class="card checkpoint" aria-label={`Checkpoint ${step ?? id}`}>
      <header>
        <Icon name="flow" /> <b>{step === null ? "Checkpoint" : `Step ${step}`}</b> <span class="badge">{source}</span>
        <Time at={createdAt} />
      </header>
      {changed.map(({ channel, value }) => (
        <Changed key={channel} channel={channel} value={value} />
      ))}
      <p class="ids">
        <span>
          id <Name text={id} />
        </span>
        {channels.length > 0 && (
          <span>
            channels <Name text={channels.join(", ")} />
          </span>
        )}
      </p>
    </article>
  );
}

function Changed({ channel, value }: { channel: string; value: unknown }) {
  const messages = messagesIn(value);
  return (
    <details class="fold" open={messages.length > 0}>
      <summary>
        <Name text={channel} /> <span class="note">{messages.length > 0 && counted(messages.length, "message")}</span>
      </summary>
      {messages.map(({ role, text }, n) => (
        <div class="thread-message" key={n}>
          <b>
            <Name text={role} />
          </b>
          <Markdown text={text} />
        </div>
      ))}
      {messages.length === 0 && <Code text={shownJson(value)} />}
    </details>
  );
}
