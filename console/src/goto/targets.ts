// The targets that `Ctrl+K` finds.

import type { IconName } from "../ui/icons.tsx";
import { hashOf, SESSION_TABS, type Route } from "../route.ts";
import { seen } from "../seen.ts";
import { sessionsOf } from "../sessions/sessions.ts";
import { titleOf } from "../sessions/thread.ts";
import { addressOf, viewsOf } from "../views.ts";

const SHOWN = 12;

export interface Target {
  key: string;
  /** The kind of the target, after its name. */
  kind: string;
  text: string;
  icon: IconName;
  href: string;
}

/** The targets whose names contain all the words. Those that begin with the first word come first. */
export function targetsOf(at: Route, query: string): Target[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ text, kind, key }: Target) =>
    words.every((word) => `${text} ${kind} ${key}`.toLowerCase().includes(word));
  const begins = ({ text }: Target) => Number(!text.toLowerCase().startsWith(words[0] ?? ""));
  return allOf(at)
    .filter(fits)
    .toSorted((a, b) => begins(a) - begins(b))
    .slice(0, SHOWN);
}

function allOf(at: Route): Target[] {
  const agents = seen.value.map(
    ({ name }): Target => ({
      key: `agent/${name}`,
      kind: "agent",
      text: name,
      icon: "spark",
      href: hashOf({ view: "sessions", agent: name }),
    }),
  );
  const home: Target = { key: "home", kind: "page", text: "All agents", icon: "left", href: "#/" };
  if (at.view === "home") return agents;
  const { agent } = at;
  const tabs =
    at.view === "session"
      ? SESSION_TABS.map(
          (tab): Target => ({
            key: `tab/${tab}`,
            kind: "of this session",
            text: tab[0]!.toUpperCase() + tab.slice(1),
            icon: "right",
            href: hashOf({ view: "session", agent, session: at.session, tab }),
          }),
        )
      : [];
  const views = viewsOf().map(
    (view): Target => ({
      key: `view/${view.view}`,
      kind: "view",
      text: view.text,
      icon: view.icon,
      href: addressOf(view, agent),
    }),
  );
  const sessions = sessionsOf(agent).list.value.map(
    (session): Target => ({
      key: `session/${session.id}`,
      kind: "session",
      text: titleOf(session),
      icon: "chat",
      href: hashOf({ view: "session", agent, session: session.id, tab: "conversation" }),
    }),
  );
  return [...views, ...tabs, ...sessions, ...agents.filter(({ text }) => text !== agent), home];
}
