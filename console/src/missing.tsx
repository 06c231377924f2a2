// The view for an address whose target doesn't exist, with suggestions.

import { Name } from "./ui/basics.tsx";
import { Icon } from "./ui/icons.tsx";
import { openAgent } from "./connection.ts";
import { useLoad } from "./load.ts";
import { byNearness } from "./near.ts";
import { hashOf } from "./route.ts";
import { seen } from "./seen.ts";
import { sessionsOf } from "./sessions/sessions.ts";
import { titleOf } from "./sessions/thread.ts";

const OFFERED = 5;
/** The number of agents of the directory that are compared. */
const LISTED = 1000;

export function UnwrittenAgent({ agent }: { agent: string }) {
  const listed = useLoad(agent, (signal) => existingAgents(agent, signal));
  const names = new Set([...(listed.data ?? []), ...seen.value.map(({ name }) => name)]);
  names.delete(agent);
  const offered = byNearness(agent, [...names]).slice(0, OFFERED);
  return (
    <div class="missing" role="status">
      <Icon name="search" />
      <div>
        <p>
          <b>
            There is no agent called “
            <Name text={agent} />
            ”.
          </b>{" "}
          The first write creates it. Viewing it does not.
        </p>
        <p class="offers">
          {offered.length > 0 ? "Did you mean " : "Wrong name? "}
          {offered.map((name) => (
            <a key={name} class="button" href={hashOf({ view: "sessions", agent: name })}>
              <Name text={name} />
            </a>
          ))}
          <a class="button quiet" href="#/">
            All agents
          </a>
        </p>
      </div>
    </div>
  );
}

/** The agents of the directory, if the Worker has one and the credential allows listing it. */
async function existingAgents(agent: string, signal: AbortSignal): Promise<string[]> {
  try {
    const { agents } = await openAgent(agent, { isQuiet: true }).listAgents(
      { limit: LISTED },
      { signal, retry: false },
    );
    return agents.map(({ name }) => name);
  } catch {
    return [];
  }
}

export function UnknownSession({ agent, id }: { agent: string; id: string }) {
  const sessions = sessionsOf(agent).list.value;
  const byId = new Map(sessions.map((session) => [session.id, session]));
  const byName = new Map(sessions.map((session) => [session.name ?? session.id, session]));
  const names = byNearness(id, [...new Set([...byId.keys(), ...byName.keys()])]);
  const offered = new Set(names.map((name) => byId.get(name) ?? byName.get(name)!));
  return (
    <div class="missing" role="status">
      <Icon name="search" />
      <div>
        <p>
          <b>
            There is no session “
            <Name text={id} />
            ”.
          </b>{" "}
          Its first message creates it.
        </p>
        {offered.size > 0 && (
          <p class="offers">
            Did you mean{" "}
            {[...offered].slice(0, OFFERED).map((session) => (
              <a
                key={session.id}
                class="button"
                href={hashOf({ view: "session", agent, session: session.id, tab: "conversation" })}
              >
                <Name text={titleOf(session)} />
              </a>
            ))}
          </p>
        )}
      </div>
    </div>
  );
}
