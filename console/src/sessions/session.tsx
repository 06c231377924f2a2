// One session: its name, its actions, and its tabs.

import { useEffect, useMemo, useState } from "preact/hooks";
import type { Session } from "session-agent";
import { Button, Empty, Heading, Name, Problem } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { later } from "../ui/later.tsx";
import { Marks } from "../ui/marks.tsx";
import { Menu } from "../ui/menu.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { Conversation } from "../conversation/conversation.ts";
import { ConversationView } from "../conversation/view.tsx";
import { reconnections } from "../connection.ts";
import { useEvery, useLoad } from "../load.ts";
import { UnknownSession } from "../missing.tsx";
import { may } from "../rights.ts";
import { go, hashOf, SESSION_TABS, type SessionTab } from "../route.ts";
import { cost } from "../currency.ts";
import { counted, sessionName } from "../text.ts";
import { Compact } from "./compact.tsx";
import { deleteLater } from "./deleting.ts";
import { Export } from "./export.tsx";
import { Fork } from "./fork.tsx";
import { Naming } from "./naming.tsx";
import { sessionsOf } from "./sessions.ts";
import { type Thread, threadOf, titleOf } from "./thread.ts";

const FurtherTab = later(({ FurtherTab }) => FurtherTab);
const ThreadView = later(({ ThreadView }) => ThreadView);

const CHECK_MS = 3000;

const TABS: Record<SessionTab, string> = {
  conversation: "Conversation",
  turns: "Turns",
  branches: "Branches",
  events: "Events",
  changes: "Changes",
  context: "Context",
  memory: "Memory",
};

/** The operation without which a tab shows nothing. */
const ASKS: Record<SessionTab, string> = {
  conversation: "getHistory",
  turns: "getTurns",
  branches: "loadEvents",
  events: "loadEvents",
  changes: "getChanges",
  context: "estimateTokens",
  memory: "getBlocks",
};

type Doing = { what: "name" | "compact" | "export" } | { what: "fork"; atId?: string };

export function SessionPage({
  agent,
  id,
  tab,
  at,
}: {
  agent: string;
  id: string;
  tab: SessionTab;
  at: string | undefined;
}) {
  const conversation = useMemo(() => new Conversation(agent, id), [agent, id]);
  const [doing, setDoing] = useState<Doing | null>(null);
  const shown = useLoad(`${agent}/${id}`, (signal) => conversation.session.getSession({}, { signal }));
  const back = reconnections.value;
  useEffect(() => {
    void conversation.open();
    return () => conversation.close();
  }, [conversation]);
  useEffect(() => {
    if (back > 0) void conversation.checkForChanges();
  }, [back]);
  useEvery(CHECK_MS, () => void conversation.checkForChanges());
  // A turn changes the usage and, in a new session, everything.
  const state = conversation.state.value;
  useEffect(() => {
    if (state === "idle") shown.reload();
  }, [state]);

  const session = shown.data ?? undefined;
  const close = () => setDoing(null);
  const remove = () => {
    deleteLater({ agent, id, name: sessionName(session ?? { id }) });
    go({ view: "sessions", agent });
  };
  const changed = (session: Session) => {
    sessionsOf(agent).put(session);
    shown.reload();
  };
  const narrow = (tag: string) => {
    void sessionsOf(agent).narrow({ tags: { all: [tag] } });
    go({ view: "sessions", agent });
  };
  if (shown.error !== undefined && session === undefined) {
    return (
      <section class="page">
        <Heading isFirst title={<Name text={id} />} />
        <Problem error={shown.error} retry={shown.reload} />
      </section>
    );
  }
  return (
    <section class="session">
      <header class="session-head">
        <a class="button quiet bare to-list" href={hashOf({ view: "sessions", agent })} aria-label="All sessions">
          <Icon name="back" />
        </a>
        <div class="session-title">
          <h1>
            <Name text={session === undefined ? id : titleOf(session)} />
          </h1>
          <Usage session={session} />
          {session && (
            <Marks
              of={threadOf(session) === null ? session : { tags: session.tags ?? [] }}
              what="sessions"
              onTag={may("listSessions") ? narrow : undefined}
            />
          )}
        </div>
        <div class={`actions ${session === undefined ? "unseen" : ""}`}>
          {may("forkSession") && (
            <Button icon="fork" onClick={() => setDoing({ what: "fork" })}>
              Fork
            </Button>
          )}
          <Menu
            label="Session actions"
            items={[
              { text: "Name and tags", icon: "edit", needs: "updateSession", run: () => setDoing({ what: "name" }) },
              { text: "Compact", icon: "compact", needs: "compact", run: () => setDoing({ what: "compact" }) },
              { text: "Export", icon: "download", needs: "exportSession", run: () => setDoing({ what: "export" }) },
              { text: "Delete", icon: "trash", needs: "deleteSession", isDanger: true, run: remove },
            ]}
          />
        </div>
      </header>
      <Tabs
        label="Views of this session"
        tabs={SESSION_TABS.filter((name) => may(ASKS[name])).map((name) => ({
          text: TABS[name],
          href: hashOf({ view: "session", agent, session: id, tab: name }),
          isOpen: name === tab,
        }))}
      />
      {conversation.isUnknown.value && tab !== "conversation" ? (
        <Empty title="This session doesn't exist yet" icon="chat">
          <UnknownSession agent={agent} id={id} />
          <a class="button main" href={hashOf({ view: "session", agent, session: id, tab: "conversation" })}>
            Start the session
          </a>
        </Empty>
      ) : (
        <Tab
          conversation={conversation}
          tab={tab}
          at={at}
          thread={session === undefined ? null : threadOf(session)}
          fork={(atId) => setDoing({ what: "fork", atId })}
        />
      )}
      {doing?.what === "name" && session && (
        <Naming conversation={conversation} session={session} onClose={close} onDone={changed} />
      )}
      {doing?.what === "compact" && <Compact conversation={conversation} onClose={close} />}
      {doing?.what === "export" && (
        <Export conversation={conversation} name={sessionName(session ?? { id })} onClose={close} />
      )}
      {doing?.what === "fork" && (
        <Fork conversation={conversation} atId={doing.atId} name={session?.name ?? null} onClose={close} />
      )}
    </section>
  );
}

function Tab({
  conversation,
  tab,
  at,
  thread,
  fork,
}: {
  conversation: Conversation;
  tab: SessionTab;
  at: string | undefined;
  thread: Thread | null;
  fork: (atId: string) => void;
}) {
  if (tab !== "conversation") return <FurtherTab conversation={conversation} tab={tab} at={at} />;
  if (thread?.kind === "checkpoints") return <ThreadView conversation={conversation} thread={thread} />;
  return <ConversationView conversation={conversation} at={at} fork={fork} />;
}

/** It is rendered even if empty, so that the layout doesn't shift. */
function Usage({ session }: { session: Session | undefined }) {
  if (session === undefined) return <p class="note" />;
  const { inputTokens, outputTokens, cachedInputTokens, cost: amount } = session.usage;
  if (inputTokens + outputTokens === 0 && !session.lastCompactionError) return <p class="note">No tokens used yet</p>;
  return (
    <p class="note">
      {counted(inputTokens, "token")} in
      {cachedInputTokens ? `, ${counted(cachedInputTokens, "of them", "of them")} cached` : ""} ·{" "}
      {counted(outputTokens, "token")} out{amount > 0 && ` · cost ${cost(amount)}`}
      {session.lastCompactionError && (
        <span class="state output-error"> compaction failed: {session.lastCompactionError.code}</span>
      )}
    </p>
  );
}
