// The views of an agent, for the navigation and `Ctrl+K`. A new view needs a line here, a case of
// `View` in app.tsx, and one of `Route` in route.ts.

import type { IconName } from "./ui/icons.tsx";
import { may } from "./rights.ts";
import { hashOf, type Route } from "./route.ts";

export type AgentRoute = Exclude<Route, { view: "home" }>;

export interface AgentView {
  view: Exclude<AgentRoute["view"], "session">;
  text: string;
  icon: IconName;
  /** The view requires one of these operations. */
  needs?: readonly string[];
}

const VIEWS: readonly AgentView[] = [
  { view: "sessions", text: "Sessions", icon: "chat" },
  { view: "memory", text: "Memory", icon: "book", needs: ["getBlocks"] },
  { view: "activity", text: "Activity", icon: "chart" },
  { view: "settings", text: "Settings", icon: "settings", needs: ["getConfig"] },
  { view: "manage", text: "Manage", icon: "tool", needs: ["getProposals", "listTools"] },
];

/** The views that the credential allows. */
export function viewsOf(): readonly AgentView[] {
  return VIEWS.filter(({ needs }) => needs === undefined || needs.some(may));
}

export function addressOf({ view }: AgentView, agent: string): string {
  return hashOf(view === "manage" ? { view, agent, part: "proposals" } : { view, agent });
}
