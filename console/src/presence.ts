// Whether anything was ever written to an agent. Reading writes nothing, so a mistyped name shows
// an empty agent.

import { useComputed } from "@preact/signals";
import { openAgent } from "./connection.ts";
import { useLoad } from "./load.ts";
import { requests } from "./requests.ts";
import { may } from "./rights.ts";
import { sessionsOf } from "./sessions/sessions.ts";

/** `unknown`: not checked yet, or the credential doesn't allow the check. */
export type Presence = "written" | "unwritten" | "unknown";

export function usePresence(agent: string): Presence {
  const sessions = sessionsOf(agent);
  const isEmpty = sessions.isEmpty.value;
  const hasSessions = sessions.list.value.length > 0;
  const hasWritten = useComputed(() =>
    requests.value.some((request) => request.agent === agent && (request.rowsWritten ?? 0) > 0),
  ).value;
  // An agent with sessions exists, so its tables, which may be large, are not counted.
  const { data } = useLoad(`${agent}/${isEmpty}`, async (signal) =>
    isEmpty && may("getStats") ? await openAgent(agent, { isQuiet: true }).getStats({}, { signal }) : null,
  );
  if (hasSessions || hasWritten) return "written";
  if (data == null) return "unknown";
  return data.tables.length === 0 ? "unwritten" : "written";
}
