// The usage: by day, by model, by turn.

import type { UsageEntry } from "session-agent";
import { Button, Name, Select } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Table } from "../ui/table.tsx";
import { openAgent } from "../connection.ts";
import { type Loaded, useLoad } from "../load.ts";
import { may } from "../rights.ts";
import { hashOf } from "../route.ts";
import { chooseCurrency, cost, CURRENCIES, currency } from "../currency.ts";
import { count, shownTime } from "../text.ts";
import { Time } from "../ui/time.tsx";
import { Plot } from "./plot.tsx";
import { barsByDay, DAYS, firstDay, tokensOf, totalOf } from "./usage.ts";

/** The number of recent turns shown. */
const TURNS = 50;

const NAMES = CURRENCIES.map((name) => [name, name] as const);

export interface LoadedUsage {
  days: readonly UsageEntry[];
  models: readonly UsageEntry[];
  turns: readonly UsageEntry[];
}

/** `null`: the credential doesn't allow it. */
export function useUsage(agent: string): Loaded<LoadedUsage | null> {
  return useLoad(agent, async (signal) => {
    if (!may("getUsage")) return null;
    const ask = openAgent(agent);
    const [days, models, turns] = await Promise.all([
      ask.getUsage({ by: "day", since: firstDay(), limit: DAYS }, { signal }),
      ask.getUsage({ by: "model" }, { signal }),
      ask.getUsage({ by: "turn", limit: TURNS }, { signal }),
    ]);
    return { days: days.usage, models: models.usage, turns: turns.usage };
  });
}

export function Usage({ agent, usage }: { agent: string; usage: Loaded<LoadedUsage | null> }) {
  const { data, reload } = usage;
  return (
    <section aria-labelledby="usage">
      <h2 class="part" id="usage">
        Usage and cost <Button kind="quiet" icon="redo" label="Reload usage" onClick={reload} />
      </h2>
      <Pending of={usage} what="the usage" />
      {data && <Total models={data.models} />}
      {data && (
        <div class="columns">
          <Plot
            title="Tokens"
            each="day"
            bars={barsByDay(data.days, tokensOf)}
            shown={count}
            empty={`No tokens were used in the last ${DAYS} days.`}
          />
          <Plot
            title="Cost"
            each="day"
            bars={barsByDay(data.days, ({ cost }) => cost)}
            shown={cost}
            empty={
              data.days.length > 0
                ? "Costs are not available: no prices are set. Add them in the settings."
                : `No costs in the last ${DAYS} days.`
            }
          />
        </div>
      )}
      {data && data.models.length > 0 && <Models models={data.models} />}
      {data && data.turns.length > 0 && <Turns agent={agent} turns={data.turns} />}
      <p class="hint">
        Days start at midnight UTC. The earlier usage of an imported session is shown in that session, but not counted
        here. Costs use the currency of the agent's prices.
      </p>
      <Select label="Currency" value={currency.value} options={NAMES} onChange={chooseCurrency} />
    </section>
  );
}

function Total({ models }: { models: readonly UsageEntry[] }) {
  const { turns, failedTurns, inputTokens, cachedInputTokens, outputTokens, cost: amount } = totalOf(models);
  return (
    <dl class="numbers">
      <div>
        <dt>Turns</dt>
        <dd>{count(turns)}</dd>
      </div>
      <div>
        <dt>Failed turns</dt>
        <dd>{count(failedTurns)}</dd>
      </div>
      <div>
        <dt>Input tokens</dt>
        <dd>{count(inputTokens)}</dd>
      </div>
      <div>
        <dt>Cached input tokens</dt>
        <dd>{count(cachedInputTokens)}</dd>
      </div>
      <div>
        <dt>Output tokens</dt>
        <dd>{count(outputTokens)}</dd>
      </div>
      <div>
        <dt>Total cost</dt>
        <dd>{cost(amount)}</dd>
      </div>
    </dl>
  );
}

function Models({ models }: { models: readonly UsageEntry[] }) {
  const most = Math.max(...models.map(tokensOf));
  return (
    <>
      <h3>By model</h3>
      <Table label="Usage by model" columns={["Model", "Tokens", { number: "Turns" }, ...NUMBERS]} isCard>
        {models.map((used) => (
          <tr key={used.model}>
            <td>{used.model == null ? "unknown" : <Name text={used.model} />}</td>
            <td class="share">
              <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                <rect width={most === 0 ? 0 : (tokensOf(used) / most) * 100} height="8" />
              </svg>
            </td>
            <td class="number">{count(used.turns ?? 0)}</td>
            <Used used={used} />
          </tr>
        ))}
      </Table>
    </>
  );
}

function Turns({ agent, turns }: { agent: string; turns: readonly UsageEntry[] }) {
  const bars = turns
    .toReversed()
    .map((turn, n) => ({ key: turn.eventId ?? String(n), name: shownTime(turn.endedAt), value: tokensOf(turn) }));
  return (
    <Plot title="Recent turns" each="turn" bars={bars} shown={count} empty="Recent turns used no tokens.">
      <Table label="Recent turns by turn" columns={["Ended", "Session", "Model", ...NUMBERS]}>
        {turns.map((turn) => (
          <tr key={turn.eventId}>
            <td>
              <Time at={turn.endedAt} />
            </td>
            <td>
              <a
                href={hashOf({
                  view: "session",
                  agent,
                  session: turn.sessionId ?? "",
                  tab: "conversation",
                  ...(turn.eventId && { at: turn.eventId }),
                })}
              >
                <Name text={turn.sessionId ?? ""} />
              </a>
            </td>
            <td>{turn.model == null ? "unknown" : <Name text={turn.model} />}</td>
            <Used used={turn} />
          </tr>
        ))}
      </Table>
    </Plot>
  );
}

/** The columns that `Used` fills. */
const NUMBERS = ["In", "Cached", "Out", "Cost"].map((number) => ({ number }));

function Used({ used }: { used: UsageEntry }) {
  return (
    <>
      <td class="number">{count(used.inputTokens)}</td>
      <td class="number">{count(used.cachedInputTokens)}</td>
      <td class="number">{count(used.outputTokens)}</td>
      <td class="number">{cost(used.cost)}</td>
    </>
  );
}
