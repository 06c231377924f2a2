// What went wrong lately: what the sessions have on record, and what was refused here.

import { Button, Empty, Loading, Name, Problem } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { requests } from "../requests.ts";
import { hashOf } from "../route.ts";
import { cut, sessionName, shownText, shownTime } from "../text.ts";

/** Tools' failures are looked for in so many sessions, and so many events of each. */
const SESSIONS = 25;
const EVENTS = 20;
const SHOWN = 30;

interface Failure {
  key: string;
  at: number;
  what: string;
  text: string;
  session: { id: string; name: string };
  eventId?: string;
}

export function Failures({ agent }: { agent: string }) {
  const { data, error, reload } = useLoad(agent, (signal) => failuresOf(agent, signal));
  const refused = requests.value.filter((request) => request.agent === agent && request.error !== null).slice(0, SHOWN);
  return (
    <section aria-labelledby="failures">
      <h2 class="part" id="failures">The last failures <Button kind="quiet" icon="redo" label="Look for failures again" onClick={reload} /></h2>
      {error !== undefined && <Problem error={error} retry={reload} />}
      {data === undefined && error === undefined && <Loading what="failures" />}
      {data?.length === 0 && refused.length === 0 && <Empty title="Nothing has failed" icon="check"><p>Failed tools and compactions of the newest {SESSIONS} sessions would stand here, and what was refused to this page.</p></Empty>}
      <ul class="failures">
        {data?.slice(0, SHOWN).map(({ key, at, what, text, session, eventId }) => (
          <li key={key}>
            <Icon name="warning" />
            <div>
              <p><b>{what}</b> in <a href={hashOf({ view: "session", agent, session: session.id, tab: "conversation", ...(eventId !== undefined && { at: eventId }) })}><Name text={session.name} /></a> <time class="note">{shownTime(at)}</time></p>
              <p class="prose">{shownText(text)}</p>
            </div>
          </li>
        ))}
        {refused.map(({ id, operation, at, error }) => (
          <li key={`r${id}`}>
            <Icon name="warning" />
            <div>
              <p><b>{operation}</b> of this page <time class="note">{shownTime(at)}</time></p>
              <p class="prose">{error}</p>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

async function failuresOf(agent: string, signal: AbortSignal): Promise<Failure[]> {
  const client = openAgent(agent);
  const { sessions } = await client.listSessions({ limit: SESSIONS }, { signal });
  const found = await Promise.all(
    sessions.map(async (stored): Promise<Failure[]> => {
      const session = { id: stored.id, name: sessionName(stored) };
      const failures: Failure[] = [];
      const last = stored.lastCompactionError;
      if (last) failures.push({ key: `${stored.id}/compaction`, at: last.at, what: "Compaction failed", text: `${last.code}: ${last.message}`, session });
      const results = await client.session(stored.id).loadEvents({ actions: ["tool_result"], tail: true, limit: EVENTS }, { signal }).catch(() => []);
      for (const { id, createdAt, toolName, content, isError } of results) {
        if (isError) failures.push({ key: `${stored.id}/${id}`, at: createdAt, what: `Tool ${toolName ?? ""} failed`, text: cut(content, 300), session, eventId: id });
      }
      return failures;
    }),
  );
  return found.flat().toSorted((a, b) => b.at - a.at);
}
