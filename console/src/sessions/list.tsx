// The sidebar with the agent's sessions: a list that loads while scrolling, and a search.

import { useEffect, useRef, useState } from "preact/hooks";
import type { SearchHit, SearchResults, Session } from "session-agent";
import { Button, Empty, Loading, Name, Problem } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { Marked } from "../ui/marked.tsx";
import { Time } from "../ui/time.tsx";
import { Virtual } from "../ui/virtual.tsx";
import { openAgent, reconnections } from "../connection.ts";
import { useEvery } from "../load.ts";
import { may, rights } from "../rights.ts";
import { hashOf, route } from "../route.ts";
import { counted, sessionName, shownName } from "../text.ts";
import { Filtered, FilterDialog } from "./filter.tsx";
import { Import } from "./import.tsx";
import { NewSession } from "./new_session.tsx";
import { sessionsOf } from "./sessions.ts";
import { threadOf, titleOf } from "./thread.ts";

const CHECK_MS = 10_000;
const HITS = 50;
/** The number of tags in a row. The session shows all. */
const TAGS = 2;
/** The pause in typing after which the search runs. */
const PAUSE_MS = 250;
const SHORTEST = 2;

export function SessionList({ agent }: { agent: string }) {
  const sessions = sessionsOf(agent);
  const [dialog, setDialog] = useState<"new" | "import" | "filter" | null>(null);
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<{ of: string; results?: SearchResults; error?: unknown } | null>(null);
  /** Counts searches, so that a late answer is ignored. */
  const searchCount = useRef(0);
  const back = reconnections.value;
  useEffect(() => void sessions.reload(), [agent, back]);
  useEffect(() => {
    searchCount.current += 1;
    setFound(null);
    setQuery("");
  }, [agent]);
  useEvery(CHECK_MS, () => void sessions.loadNewest());

  const search = async (isWhole: boolean) => {
    const of = query.trim();
    searchCount.current += 1;
    const number = searchCount.current;
    if (of === "") return setFound(null);
    // The previous results stay until new ones arrive.
    setFound((now) => (now?.results === undefined ? { of } : { ...now, of }));
    const outcome = await openAgent(agent)
      .search({ ...(isWhole ? { query: of } : { queries: [of, withPrefix(of)] }), limit: HITS, ...sessions.where })
      .then(
        (results) => ({ results }),
        (error) => ({ error }),
      );
    if (number === searchCount.current) setFound({ of, ...outcome });
  };
  // During typing, it runs after each pause.
  useEffect(() => {
    if (query.trim().length < SHORTEST) return;
    const number = searchCount.current;
    const timer = setTimeout(() => number === searchCount.current && void search(false), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [query]);
  const clear = () => {
    searchCount.current += 1;
    setQuery("");
    setFound(null);
  };
  return (
    <div class="sessions">
      {may("search") && (
        <form
          class="search"
          role="search"
          aria-label="Sessions"
          onSubmit={(event) => {
            event.preventDefault();
            void search(true);
          }}
        >
          <Icon name="search" />
          <input
            type="search"
            aria-label="Search all sessions"
            placeholder="Search all sessions"
            value={query}
            onInput={(event) => (event.currentTarget.value === "" ? clear() : setQuery(event.currentTarget.value))}
            onKeyDown={(event) => event.key === "Escape" && clear()}
          />
        </form>
      )}
      {rights.value.session !== null && <p class="hint">Your token is limited to one session.</p>}
      <div class="sessions-actions">
        {rights.value.session === null && may("createSession") && (
          <Button kind="main" icon="add" shortcut="n" onClick={() => setDialog("new")}>
            New session
          </Button>
        )}
        {rights.value.session === null && may("importSession") && (
          <Button icon="upload" label="Import session" onClick={() => setDialog("import")} />
        )}
        {rights.value.session === null && may("listSessions") && (
          <Button
            icon="filter"
            label="Filter sessions"
            pressed={sessions.filter !== null}
            onClick={() => setDialog("filter")}
          />
        )}
      </div>
      <Filtered agent={agent} />
      {found === null ? (
        <All agent={agent} />
      ) : (
        <Found agent={agent} {...found} retry={() => void search(true)} clear={clear} />
      )}
      {dialog === "new" && <NewSession agent={agent} onClose={() => setDialog(null)} />}
      {dialog === "import" && <Import agent={agent} onClose={() => setDialog(null)} />}
      {dialog === "filter" && <FilterDialog agent={agent} onClose={() => setDialog(null)} />}
    </div>
  );
}

/** Makes the last word a prefix, because it may be incomplete. Phrases and prefixes stay unchanged. */
function withPrefix(query: string): string {
  return /[\p{L}\p{N}]$/u.test(query) && !query.includes('"') ? `${query}*` : query;
}

function All({ agent }: { agent: string }) {
  const sessions = sessionsOf(agent);
  const list = sessions.list.value;
  const error = sessions.problem.value;
  if (error !== undefined && list.length === 0) return <Problem error={error} retry={() => void sessions.reload()} />;
  const only = rights.value.session;
  if (sessions.isEmpty.value && only !== null) {
    return (
      <Empty title="No messages yet" icon="chat">
        <p>Your token's session starts with its first message.</p>
        <a class="button main" href={hashOf({ view: "session", agent, session: only, tab: "conversation" })}>
          Open session
        </a>
      </Empty>
    );
  }
  if (sessions.isEmpty.value) {
    return (
      <Empty title="No sessions yet" icon="chat">
        <p>A session is one conversation. Create one here or from your own code.</p>
      </Empty>
    );
  }
  if (list.length === 0 && sessions.isComplete.value) return <p class="hint">No sessions match the filter.</p>;
  if (list.length === 0) return <Loading what="sessions" />;
  // The writes of a thread's tasks before its next checkpoint are a part of the thread.
  const shown = list.filter((session) => threadOf(session)?.kind !== "writes");
  return (
    <nav class="session-links" aria-label="Sessions">
      <Virtual
        label="All sessions"
        items={shown}
        keyOf={({ id }) => id}
        estimate={() => 58}
        render={(session) => <Entry agent={agent} session={session} />}
        onEnd={() => void sessions.loadMore()}
      />
    </nav>
  );
}

function Entry({ agent, session }: { agent: string; session: Session }) {
  // Read here: a row is drawn again when a signal that it reads changes.
  const at = route.value;
  const thread = threadOf(session);
  const isChosen = at.view === "session" && at.session === session.id;
  const { inputTokens, outputTokens } = session.usage;
  const used = inputTokens + outputTokens;
  return (
    <a
      class="session-link"
      href={hashOf({ view: "session", agent, session: session.id, tab: "conversation" })}
      aria-current={isChosen ? "page" : undefined}
    >
      <Name text={titleOf(session)} />
      <span class="note">
        {thread && <span class="badge">LangGraph</span>}
        {session.lastCompactionError && <span class="state output-error">compaction failed</span>}
        {session.tags?.slice(0, TAGS).map((tag) => (
          <span class="badge" key={tag}>
            <Name text={tag} />
          </span>
        ))}
        {used > 0 && <span>{counted(used, "token")}</span>}
        <Time at={session.updatedAt} />
      </span>
    </a>
  );
}

interface FoundProps {
  agent: string;
  of: string;
  results?: SearchResults;
  error?: unknown;
  retry: () => void;
  clear: () => void;
}

function Found({ agent, of, results, error, retry, clear }: FoundProps) {
  if (error !== undefined) return <Problem error={error} retry={retry} />;
  if (results === undefined) return <Loading what="search results" />;
  return (
    <div class="found" role="region" aria-label="Search results" tabIndex={0}>
      <p class="found-head" role="status">
        {counted(results.results.length, "result")} for “{shownName(of)}”
        <Button kind="quiet" icon="close" label="Clear search" onClick={clear} />
      </p>
      {results.pending && (
        <p class="hint">The search index is still being built. Older messages are not included yet.</p>
      )}
      {results.truncated && <p class="hint">SearchResults are incomplete. Use more specific words.</p>}
      {results.results.map((hit) => (
        <HitLink key={`${hit.sessionId}/${hit.id}`} agent={agent} hit={hit} />
      ))}
    </div>
  );
}

function HitLink({ agent, hit }: { agent: string; hit: SearchHit }) {
  return (
    <a
      class="session-link hit"
      href={hashOf({ view: "session", agent, session: hit.sessionId, tab: "conversation", at: hit.id })}
    >
      <bdi class="name">{sessionName({ id: hit.sessionId, name: hit.sessionName })}</bdi>
      <span class="snippet" dir="auto">
        <Marked text={hit.snippet} highlights={hit.highlights} />
      </span>
      <span class="note">
        <span>{hit.role}</span> <Time at={hit.createdAt} />
      </span>
    </a>
  );
}
