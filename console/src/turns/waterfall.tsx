// A turn's steps as rows, each with a bar for its time.

import { Name } from "../ui/basics.tsx";
import { Icon, type IconName } from "../ui/icons.tsx";
import { milliseconds, shownText } from "../text.ts";
import { type Row, SEGMENTS, type Segment, durationOf, type Waterfall as Shown } from "./rows.ts";

const ICONS: Record<Row["kind"], IconName> = { turn: "flow", step: "send", tool: "tool", compaction: "compact" };

/** The minimum width of a bar, in percent. */
const LEAST = 0.6;

export function Waterfall({ shown, label }: { shown: Shown; label: string }) {
  return (
    <div class="table waterfall" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col" class="when">
              <span>0</span>
              <span>{milliseconds(shown.to - shown.from)}</span>
            </th>
            <th scope="col" class="number">
              Duration
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.rows.map((row) => (
            <One key={row.key} row={row} shown={shown} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function One({ row, shown }: { row: Row; shown: Shown }) {
  return (
    <>
      <tr class={`${row.kind} ${row.failure === null ? "" : "failed"}`}>
        <th scope="row">
          <Icon name={ICONS[row.kind]} /> <Name text={row.text} /> <span class="note">{row.note}</span>
        </th>
        <td class="when">
          <span class="track" aria-hidden="true">
            {row.segments.map((segment) => (
              <Bar key={segment.kind} segment={segment} shown={shown} />
            ))}
          </span>
          <span class="hidden">{row.segments.map(labelOf).join(", ")}</span>
        </td>
        <td class="number">{row.isRunning ? `${durationOf(row)} …` : durationOf(row)}</td>
      </tr>
      {row.failure !== null && row.kind !== "turn" && (
        <tr class="failed why">
          <td colSpan={3}>
            <Icon name="warning" /> {row.failure.code !== null && <code class="code-name">{row.failure.code}</code>}{" "}
            {shownText(row.failure.message)}
          </td>
        </tr>
      )}
    </>
  );
}

function Bar({ segment: { kind, from, to }, shown }: { segment: Segment; shown: Shown }) {
  const all = Math.max(1, shown.to - shown.from);
  const left = Math.min(100 - LEAST, Math.max(0, ((from - shown.from) / all) * 100));
  const width = Math.min(100 - left, Math.max(LEAST, ((to - from) / all) * 100));
  return (
    <span class={`bar ${kind}`} style={{ left: `${left}%`, width: `${width}%` }} title={labelOf({ kind, from, to })} />
  );
}

function labelOf({ kind, from, to }: Segment): string {
  return `${SEGMENTS[kind]}: ${milliseconds(to - from)}`;
}

/** The meaning of the colors. */
export function Legend() {
  return (
    <ul class="legend note" aria-hidden="true">
      {(["prepare", "wait", "answer", "tool"] as const).map((kind) => (
        <li key={kind}>
          <span class={`bar ${kind}`} /> {SEGMENTS[kind]}
        </li>
      ))}
    </ul>
  );
}
