// A small plot of bars, and the same numbers as a table.

import type { ComponentChildren } from "preact";
import { Table } from "../ui/table.tsx";

export interface Bar {
  /** A key, if two bars may have the same name. */
  key?: string;
  name: string;
  value: number;
}

interface Props {
  title: string;
  /** The unit of a bar. */
  each: "day" | "turn";
  bars: readonly Bar[];
  shown: (value: number) => string;
  /** The text that is shown if there is nothing to draw. */
  empty: string;
  /** A table with more details. */
  children?: ComponentChildren;
}

/** The units of the drawing, which is stretched to its container. */
const HEIGHT = 100;
const WIDTH = 640;
/** The minimum number of bars, so that a single bar doesn't fill the plot. */
const WIDEST = 40;

export function Plot({ title, each, bars, shown, empty, children }: Props) {
  const most = Math.max(...bars.map(({ value }) => value), 0);
  if (most === 0)
    return (
      <figure class="plot">
        <figcaption>{title}</figcaption>
        <p class="note">{empty}</p>
        {children && <AsTable>{children}</AsTable>}
      </figure>
    );
  const step = Math.min(WIDEST, WIDTH / Math.max(1, bars.length));
  return (
    <figure class="plot">
      <figcaption>
        {title}{" "}
        <span class="note">
          up to {shown(most)} a {each}
        </span>
      </figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}. The table below contains the values.`}
      >
        {bars.map(({ key, name, value }, n) => {
          const height = (value / most) * (HEIGHT - 4);
          return (
            <rect key={key ?? name} x={n * step + step * 0.15} y={HEIGHT - height} width={step * 0.7} height={height}>
              <title>{`${name}: ${shown(value)}`}</title>
            </rect>
          );
        })}
      </svg>
      <p class="plot-names note" aria-hidden="true">
        {namesOf(bars, step === WIDEST).map((name, n) => (
          <span key={n}>{name}</span>
        ))}
      </p>
      <AsTable>
        {children ?? (
          <Table label={`${title} by ${each}`} columns={["Day", title]}>
            {bars.map(({ name, value }) => (
              <tr key={name}>
                <td>{name}</td>
                <td>{shown(value)}</td>
              </tr>
            ))}
          </Table>
        )}
      </AsTable>
    </figure>
  );
}

function AsTable({ children }: { children: ComponentChildren }) {
  return (
    <details class="fold">
      <summary>Show as table</summary>
      {children}
    </details>
  );
}

/** The names of the first bar, of one in the middle and of the last. `isShort`: the bars leave room at the end. */
function namesOf(bars: readonly Bar[], isShort: boolean): string[] {
  if (isShort) return [[...new Set([bars[0]!.name, bars.at(-1)!.name])].join(" – ")];
  return [bars[0]!, bars[bars.length >> 1]!, bars.at(-1)!].map(({ name }) => name);
}
