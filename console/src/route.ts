// Parses and builds addresses of views. The address is the part after `#`, so every view is the same
// static file. Each segment is encoded separately, because names may contain any character.

import { signal } from "@preact/signals";

export const SESSION_TABS = ["conversation", "turns", "branches", "events", "changes", "context", "memory"] as const;
export type SessionTab = (typeof SESSION_TABS)[number];

export const MANAGE_PARTS = [
  "proposals",
  "retention",
  "people",
  "tools",
  "tokens",
  "compaction",
  "copies",
  "defaults",
  "agents",
] as const;
export type ManagePart = (typeof MANAGE_PARTS)[number];

export type Route =
  | { view: "home" }
  | { view: "sessions"; agent: string }
  | { view: "session"; agent: string; session: string; tab: SessionTab; at?: string }
  | { view: "memory"; agent: string; label?: string; entry?: string }
  | { view: "activity"; agent: string }
  | { view: "settings"; agent: string }
  | { view: "manage"; agent: string; part: ManagePart };

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [agent, view, name, detail] = path.split("/").map(decoded);
  if (!agent) return { view: "home" };
  const parameters = new URLSearchParams(query);
  if (view === "memory") {
    const entry = parameters.get("entry");
    return { view, agent, ...(name && { label: name, ...(entry !== null && { entry }) }) };
  }
  if (view === "activity" || view === "settings") return { view, agent };
  if (view === "manage") return { view, agent, part: MANAGE_PARTS.find((part) => part === name) ?? "proposals" };
  if (view !== "sessions" || !name) return { view: "sessions", agent };
  const tab = SESSION_TABS.find((tab) => tab === detail) ?? "conversation";
  const at = parameters.get("at");
  return { view: "session", agent, session: name, tab, ...(at && { at }) };
}

export function hashOf(route: Route): string {
  if (route.view === "home") return "#/";
  const pieces = [route.agent, route.view === "session" ? "sessions" : route.view];
  if (route.view === "session") pieces.push(route.session, route.tab);
  if (route.view === "memory" && route.label !== undefined) pieces.push(route.label);
  if (route.view === "manage") pieces.push(route.part);
  return `#/${pieces.map(encoded).join("/")}${queryOf(route)}`;
}

/** The default part of the view. */
function queryOf(route: Route): string {
  if (route.view === "session" && route.at !== undefined) return `?at=${encoded(route.at)}`;
  if (route.view === "memory" && route.entry !== undefined) return `?entry=${encoded(route.entry)}`;
  return "";
}

/** An address can't contain a lone surrogate. */
function encoded(piece: string): string {
  return encodeURIComponent(piece.isWellFormed?.() === false ? piece.toWellFormed() : piece);
}

function decoded(piece: string): string {
  try {
    return decodeURIComponent(piece);
  } catch {
    return piece;
  }
}

export const route = signal<Route>(parseRoute(location.hash));
addEventListener("hashchange", () => (route.value = parseRoute(location.hash)));

export function go(to: Route): void {
  location.hash = hashOf(to);
}
