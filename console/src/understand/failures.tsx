// The latest failures: those that sessions have recorded, and this page's failed requests.

import type { FailedCallback, Session } from "session-agent";
import { Button, Name } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Icon } from "../ui/icons.tsx";
import { Time } from "../ui/time.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { requests } from "../requests.ts";
import { may } from "../rights.ts";
import { titleOf } from "../sessions/thread.ts";
import { hashOf } from "../route.ts";
import type { TurnRecord } from "../turns/rows.ts";
import { counted, cut, shownName, shownText } from "../text.ts";

/** One request returns the last errors of this many sessions. */
const SESSIONS = 25;
/** Failures of tools are searched in this many sessions, with a request each, and in this many results of each. */
const READ_SESSIONS = 5;
const EVENTS = 20;
const SHOWN = 30;

type LastError = Session["lastCompactionError"] | Session["lastLearningError"];

interface Failure {
  key: string;
  at: number;
  what: string;
  text: string;
  /** The API's code of it. */
  code?: string;
  /** `null`: it concerns the agent's memory. */
  session: { id: string; name: string } | null;
  eventId?: string;
  /** Whether its turn was recorded. */
  isTurn?: boolean;
}

interface Props {
  agent: string;
  /** Callbacks (`onTurnEnd`, `onMemoryChange`) that failed permanently. */
  calls: readonly FailedCallback[];
  /** The total number of failed turns. `null`: unknown. */
  failedTurns: number | null;
}

export function Failures({ agent, calls, failedTurns }: Props) {
  const loaded = useLoad(agent, (signal) => failuresOf(agent, signal));
  const { data, reload } = loaded;
  const failures =
    data && [...data.failures, ...calls.map((call) => failedCall(call, data.names))].toSorted((a, b) => b.at - a.at);
  const refused = requests.value.filter((request) => request.agent === agent && request.error !== null).slice(0, SHOWN);
  return (
    <section aria-labelledby="failures">
      <h2 class="part" id="failures">
        Recent failures <Button kind="quiet" icon="redo" label="Reload failures" onClick={reload} />
      </h2>
      <Pending of={loaded} what="failures" />
      {failures?.length === 0 && refused.length === 0 && failedTurns !== null && failedTurns > 0 && (
        <p class="note">
          {counted(failedTurns, "turn")} failed earlier. {failedTurns === 1 ? "Its record was" : "Their records were"}{" "}
          deleted.
        </p>
      )}
      {failures?.length === 0 && refused.length === 0 && failedTurns === 0 && (
        <p class="fine">
          <Icon name="check" /> <b>No failures.</b>{" "}
          <span class="note">
            This list shows failed turns and webhooks, failed compactions and learning in the {SESSIONS} most recent
            sessions, failed tools in the {READ_SESSIONS} most recent ones, and rejected requests from this page.
          </span>
        </p>
      )}
      <ul class="failures">
        {failures?.slice(0, SHOWN).map(({ key, at, what, text, code, session, eventId, isTurn }) => (
          <li key={key}>
            <Icon name="warning" />
            <div>
              <p>
                <b>{what}</b>{" "}
                {session !== null && (
                  <>
                    in{" "}
                    <a
                      href={hashOf({
                        view: "session",
                        agent,
                        session: session.id,
                        tab: isTurn ? "turns" : "conversation",
                        ...(eventId !== undefined && { at: eventId }),
                      })}
                    >
                      <Name text={session.name} />
                    </a>{" "}
                  </>
                )}
                <Time class="note" at={at} />
              </p>
              <p class="prose">
                {shownText(text)} {code !== undefined && <code class="code-name">{code}</code>}
              </p>
            </div>
          </li>
        ))}
        {refused.map(({ id, operation, at, error }) => (
          <li key={`r${id}`}>
            <Icon name="warning" />
            <div>
              <p>
                <b>{operation}</b> from this page <Time class="note" at={at} />
              </p>
              <p class="prose">{error}</p>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function failedCall(
  { id, sessionId, attempts, failedAt, reason }: FailedCallback,
  names: ReadonlyMap<string, string>,
): Failure {
  return {
    key: `callback/${id}`,
    at: failedAt,
    what: `A webhook for a turn or a memory change failed ${counted(attempts, "time")}`,
    text: reason,
    session: sessionId ? { id: sessionId, name: names.get(sessionId) ?? shownName(sessionId) } : null,
  };
}

async function failuresOf(
  agent: string,
  signal: AbortSignal,
): Promise<{ failures: Failure[]; names: ReadonlyMap<string, string> }> {
  const client = openAgent(agent);
  const [{ sessions }, failed] = await Promise.all([
    client.listSessions({ limit: SESSIONS }, { signal }),
    may("getTurns") ? client.getTurns({ failed: true, limit: SHOWN }, { signal }) : { turns: [] },
  ]);
  const names = new Map(sessions.map((session) => [session.id, titleOf(session)]));
  const turns = failed.turns.map((turn) => failedTurn(turn, names));
  const errors = sessions.flatMap((stored) =>
    lastErrors(stored).flatMap(([what, last]): Failure[] => {
      if (!last) return [];
      const session = { id: stored.id, name: titleOf(stored) };
      return [{ key: `${stored.id}/${what}`, at: last.at, what, text: last.message, code: last.code, session }];
    }),
  );
  const tools = await Promise.all(
    sessions.slice(0, READ_SESSIONS).map(async (stored): Promise<Failure[]> => {
      const session = { id: stored.id, name: titleOf(stored) };
      const results = await client
        .session(stored.id)
        .loadEvents({ actions: ["tool_result"], tail: true, limit: EVENTS }, { signal })
        .catch(() => []);
      return results
        .filter(({ isError }) => isError)
        .map(({ id, createdAt, toolName, content }) => ({
          key: `${stored.id}/${id}`,
          at: createdAt,
          what: `Tool ${toolName ?? ""} failed`,
          text: cut(content, 300),
          session,
          eventId: id,
        }));
    }),
  );
  return { failures: [...turns, ...errors, ...tools.flat()], names };
}

/** The failures that a session records: of compaction and learning. */
function lastErrors(session: Session): readonly [string, LastError][] {
  return [
    ["Compaction failed", session.lastCompactionError],
    ["Learning failed", session.lastLearningError],
  ];
}

function failedTurn(
  { turnId, endedAt, failure, sessionId, messageId }: TurnRecord,
  names: ReadonlyMap<string, string>,
): Failure {
  return {
    key: `turn/${turnId}`,
    at: endedAt,
    what: "Turn failed",
    text: failure?.message ?? "",
    ...(failure && { code: failure.code }),
    session: { id: sessionId, name: names.get(sessionId) ?? shownName(sessionId) },
    ...(messageId != null && { eventId: messageId }),
    isTurn: true,
  };
}
