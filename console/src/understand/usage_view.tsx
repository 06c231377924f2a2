import type { Session } from "session-agent";
import { Button, Loading, Problem } from "../ui/basics.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { cost, count } from "../text.ts";
import { Plot } from "./plot.tsx";
import { usedBy } from "./usage.ts";

/** So many sessions are looked at, the newest first. Each costs some rows. */
export const MOST_SESSIONS = 500;

export function newestSessions(agent: string, signal: AbortSignal): Promise<Session[]> {
  return openAgent(agent).listSessions({ limit: MOST_SESSIONS }, { signal }).then(({ sessions }) => sessions);
}

export function Usage({ agent }: { agent: string }) {
  const { data, error, reload } = useLoad(agent, (signal) => newestSessions(agent, signal));
  const used = data && usedBy(data);
  return (
    <section aria-labelledby="usage">
      <h2 class="part" id="usage">Usage and cost <Button kind="quiet" icon="redo" label="Reload the usage" onClick={reload} /></h2>
      {error !== undefined && <Problem error={error} retry={reload} />}
      {used === undefined && error === undefined && <Loading what="the usage" />}
      {used && (
        <>
          <dl class="numbers">
            <div><dt>Sessions</dt><dd>{count(used.sessions)}{used.sessions === MOST_SESSIONS && "+"}</dd></div>
            <div><dt>Tokens in</dt><dd>{count(used.inputTokens)}</dd></div>
            <div><dt>of them cached</dt><dd>{count(used.cachedInputTokens)}</dd></div>
            <div><dt>Tokens out</dt><dd>{count(used.outputTokens)}</dd></div>
            <div><dt>Cost</dt><dd>{cost(used.allCost)}</dd></div>
          </dl>
          <div class="columns">
            <Plot title="Tokens" bars={used.tokens} shown={count} />
            <Plot title="Cost" bars={used.cost} shown={cost} />
          </div>
          <p class="hint">Of the newest {count(MOST_SESSIONS)} sessions at most. A session counts on the day of its last change.</p>
        </>
      )}
    </section>
  );
}
