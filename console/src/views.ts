// The views of an agent: what the navigation shows and what `Ctrl+K` finds. A new view is a
// line here, a case of `View` in app.tsx and one of `Route` in route.ts.

import type { IconName } from "./ui/icons.tsx";
import { may } from "./rights.ts";
import { hashOf, type Route } from "./route.ts";

export type AgentRoute = Exclude<Route, { view: "home" }>;

export interface AgentView {
  view: Exclude<AgentRoute["view"], "session">;
  text: string;
  icon: IconName;
  /** The operation without which the view shows nothing. */
  needs?: string;
}

const VIEWS: readonly AgentView[] = [
  { view: "sessions", text: "Sessions", icon: "chat" },
  { view: "memory", text: "Memory", icon: "book", needs: "getBlocks" },
  { view: "activity", text: "Activity", icon: "chart" },
  { view: "settings", text: "Settings", icon: "settings", needs: "getConfig" },
];

/** Those that the credential opens. */
export function viewsOf(): readonly AgentView[] {
  return VIEWS.filter(({ needs }) => needs === undefined || may(needs));
}

export function addressOf({ view }: AgentView, agent: string): string {
  return hashOf({ view, agent });
}
