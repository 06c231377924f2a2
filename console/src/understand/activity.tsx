// Activity and costs: this page's requests, recorded failures, usage, and the state of the object.

import type { Stats } from "session-agent";
import { Button, Heading } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Table } from "../ui/table.tsx";
import { openAgent } from "../connection.ts";
import { type Loaded, useLoad } from "../load.ts";
import { requests } from "../requests.ts";
import { may } from "../rights.ts";
import { bytes, count, shownTime } from "../text.ts";
import { Failures } from "./failures.tsx";
import { totalOf } from "./usage.ts";
import { Usage, useUsage } from "./usage_view.tsx";

const SHOWN = 100;

/** The operations that this view calls. */
const SECTIONS = ["listSessions", "getUsage", "getStats"];

export function Activity({ agent }: { agent: string }) {
  const stats = useLoad(agent, async (signal) =>
    may("getStats") ? await openAgent(agent).getStats({}, { signal }) : null,
  );
  const usage = useUsage(agent);
  return (
    <section class="page">
      <Heading isFirst title="Activity" note="Failures, usage, and the cost of each request from this page." />
      {!SECTIONS.every(may) && (
        <p class="hint banner">Your token can't read everything on this page. Some sections are hidden.</p>
      )}
      {may("listSessions") && (
        <Failures
          agent={agent}
          calls={stats.data?.callbacks.failed ?? []}
          failedTurns={usage.data == null ? null : totalOf(usage.data.models).failedTurns}
        />
      )}
      {may("getUsage") && <Usage agent={agent} usage={usage} />}
      <Requests />
      {may("getStats") && <State stats={stats} />}
    </section>
  );
}

function Requests() {
  const all = requests.value;
  const sum = (of: (request: (typeof all)[number]) => number | null) =>
    all.reduce((sum, request) => sum + (of(request) ?? 0), 0);
  return (
    <section aria-labelledby="requests">
      <h2 class="part" id="requests">
        Requests from this page{" "}
        <span class="note">
          {count(all.length)} requests: {count(sum(({ rowsRead }) => rowsRead))} rows read,{" "}
          {count(sum(({ rowsWritten }) => rowsWritten))} written
        </span>
      </h2>
      <Table
        label="Requests"
        columns={[
          "Operation",
          "Time",
          { number: "Duration" },
          { number: "Rows read" },
          { number: "Rows written" },
          "Result",
        ]}
      >
        {all.slice(0, SHOWN).map(({ id, operation, at, ms, rowsRead, rowsWritten, status, error }) => (
          <tr key={id} class={error === null ? "" : "failed"}>
            <td>{operation}</td>
            <td>{new Date(at).toLocaleTimeString("en-GB")}</td>
            <td class="number">{ms === null ? "" : `${Math.round(ms)} ms`}</td>
            <td class="number">{rowsRead === null ? "" : count(rowsRead)}</td>
            <td class="number">{rowsWritten === null ? "" : count(rowsWritten)}</td>
            <td>{error ?? status ?? ""}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function State({ stats }: { stats: Loaded<Stats | null> }) {
  const { data, reload } = stats;
  return (
    <section aria-labelledby="state">
      <h2 class="part" id="state">
        Durable Object <Button kind="quiet" icon="redo" label="Reload state" onClick={reload} />
      </h2>
      <Pending of={stats} what="the state" />
      {data && (
        <div class="columns">
          <dl class="facts card">
            <dt>Database</dt>
            <dd>{bytes(data.databaseBytes)}</dd>
            <dt>Events</dt>
            <dd>up to {count(data.eventsAtMost)}</dd>
            <dt>Search index</dt>
            <dd>{data.searchIndex}</dd>
            <dt>Running turns</dt>
            <dd>
              {count(data.turns.running)} of {count(data.limits.runningTurns)}, {bytes(data.turns.heldBytes)} in memory
            </dd>
            <dt>Memory used by requests</dt>
            <dd>
              {bytes(data.requests.heldBytes)} of {bytes(data.requests.maxBytes)}
            </dd>
            <dt>Wasm memory</dt>
            <dd>
              {bytes(data.memory.inUseBytes)} in use, {bytes(data.memory.inUsePeakBytes)} peak, of{" "}
              {bytes(data.memory.wasmBytes)}
            </dd>
            <dt>Updated</dt>
            <dd>{shownTime(Date.now())}</dd>
          </dl>
          <Table label="Tables" columns={["Table", { number: "Rows" }]} isCard>
            {data.tables.map(({ name, rows, isAtLeast }) => (
              <tr key={name}>
                <td>{name}</td>
                <td class="number">
                  {count(rows)}
                  {isAtLeast && " or more"}
                </td>
              </tr>
            ))}
          </Table>
        </div>
      )}
    </section>
  );
}
