// The frame around every view: the navigation, the view that the address names, and the notices.

import { useEffect } from "preact/hooks";
import { Button, Name } from "./ui/basics.tsx";
import { Icon } from "./ui/icons.tsx";
import { later } from "./ui/later.tsx";
import { credential, isLost, isSignInNeeded, signOut } from "./connection.ts";
import { Above } from "./goto/goto.tsx";
import { above } from "./goto/keys.ts";
import { Home } from "./home.tsx";
import { dismiss, notices, notifyError } from "./notices.ts";
import { requests, type SentRequest } from "./requests.ts";
import { may } from "./rights.ts";
import { UnwrittenAgent } from "./missing.tsx";
import { usePresence } from "./presence.ts";
import { hashOf, route, type Route } from "./route.ts";
import { remember } from "./seen.ts";
import { deleteNow, deleting, undo } from "./sessions/deleting.ts";
import { SessionList } from "./sessions/list.tsx";
import { SessionPage } from "./sessions/session.tsx";
import { sessionsOf } from "./sessions/sessions.ts";
import { SessionsHome } from "./sessions/sessions_home.tsx";
import { SignIn } from "./sign_in.tsx";
import { count, shownName } from "./text.ts";
import { addressOf, type AgentRoute, type AgentView, viewsOf } from "./views.ts";

const Activity = later(({ Activity }) => Activity);
const Manage = later(({ Manage }) => Manage);
const MemoryPage = later(({ MemoryPage }) => MemoryPage);
const Settings = later(({ Settings }) => Settings);

export function App() {
  const at = route.value;
  useEffect(() => {
    document.title = titleOf(at);
  }, [at]);
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to content
      </a>
      {isLost.value && (
        <p class="lost" role="alert">
          Connection lost. The console is reconnecting and will resume where it left off.
        </p>
      )}
      {isSignInNeeded.value ? <SignIn /> : at.view === "home" ? <Home /> : <Agent at={at} key={at.agent} />}
      <Deletions />
      <Notices />
      {!isSignInNeeded.value && <Above />}
    </>
  );
}

function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function titleOf(at: Route): string {
  return at.view === "home" ? "Session Agent" : `${shownName(at.agent)} · Session Agent`;
}

function Agent({ at }: { at: AgentRoute }) {
  const isList = at.view === "sessions";
  const presence = usePresence(at.agent);
  // A mistyped name is not remembered. If the credential can't check whether the agent exists, the
  // name is remembered anyway.
  const isKnown = presence === "written" || !may("getStats");
  useEffect(() => {
    if (isKnown) remember(at.agent);
  }, [at.agent, isKnown]);
  return (
    <div class={`frame ${isList ? "on-list" : ""}`}>
      <aside class="side">
        <header class="brand">
          <a href="#/" aria-label="All agents">
            <img src="/icon.svg" alt="" width="28" height="28" />
          </a>
          <p>
            <span class="note">Agent</span>
            <b>
              <Name text={at.agent} />
            </b>
          </p>
          <Button kind="quiet" icon="search" label="Go to…" onClick={() => (above.value = "goto")} />
          <Button kind="quiet" icon="code" label="This view as an API call" onClick={() => (above.value = "snippet")} />
          {credential.value !== null && <Button kind="quiet" icon="key" label="Sign out" onClick={signOut} />}
        </header>
        <nav class="main-links" aria-label="Agent">
          {viewsOf().map((view) => (
            <ViewLink key={view.view} at={at} to={view} />
          ))}
        </nav>
        {presence === "unwritten" && isList && <UnwrittenAgent agent={at.agent} />}
        <SessionList agent={at.agent} />
        <LastRequest agent={at.agent} />
      </aside>
      <main id="main" tabIndex={-1}>
        {presence === "unwritten" && !isList && <UnwrittenAgent agent={at.agent} />}
        <View at={at} />
      </main>
    </div>
  );
}

function ViewLink({ at, to }: { at: AgentRoute; to: AgentView }) {
  const isHere = at.view === to.view || (at.view === "session" && to.view === "sessions");
  return (
    <a href={addressOf(to, at.agent)} aria-current={isHere ? "true" : undefined}>
      <Icon name={to.icon} /> {to.text}
    </a>
  );
}

function View({ at }: { at: AgentRoute }) {
  if (at.view === "session")
    return <SessionPage key={`${at.agent}/${at.session}`} agent={at.agent} id={at.session} tab={at.tab} at={at.at} />;
  if (at.view === "memory") return <MemoryPage agent={at.agent} label={at.label} entry={at.entry} />;
  if (at.view === "activity") return <Activity agent={at.agent} />;
  if (at.view === "settings") return <Settings agent={at.agent} />;
  if (at.view === "manage") return <Manage agent={at.agent} part={at.part} />;
  return <SessionsHome agent={at.agent} />;
}

/** The cost of the last request, always visible. */
function LastRequest({ agent }: { agent: string }) {
  const last = requests.value[0];
  return (
    <a class="last-request" href={hashOf({ view: "activity", agent })} title="Last request. Click to see all requests.">
      {last === undefined ? "No requests yet" : describe(last)}
    </a>
  );
}

/** One text node, so that the layout doesn't shift when the numbers change. */
function describe({ operation, ms, rowsRead, rowsWritten, error }: SentRequest): string {
  const rows = rowsRead === null ? [] : [`${count(rowsRead)} read`, `${count(rowsWritten ?? 0)} written`];
  return [operation, ms === null ? "…" : `${Math.round(ms)} ms`, ...rows, ...(error === null ? [] : ["failed"])].join(
    " · ",
  );
}

function Deletions() {
  if (deleting.value.length === 0) return null;
  return (
    <section class="deletions" aria-label="Sessions to delete">
      {deleting.value.map((session) => (
        <div key={`${session.agent}/${session.id}`} role="status">
          <p>
            “<Name text={session.name} />” will be deleted when you leave this page.
          </p>
          <Button onClick={() => undo(session)}>Undo</Button>
          <Button
            kind="quiet"
            onClick={() => void deleteNow(session).then(() => sessionsOf(session.agent).drop(session.id), notifyError)}
          >
            Delete now
          </Button>
        </div>
      ))}
    </section>
  );
}

function Notices() {
  return (
    <div class="notices" role="log" aria-label="Notifications">
      {notices.value.map(({ id, text, kind }) => (
        <div key={id} class={`notice ${kind}`}>
          <Icon name={kind === "done" ? "check" : "warning"} />
          <p>{text}</p>
          <Button kind="quiet" icon="close" label="Close" onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
