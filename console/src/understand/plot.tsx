// A small plot of bars, and the same numbers as a table.

import type { ComponentChildren } from "preact";

export interface Bar {
  /** Where two bars may have one name. */
  key?: string;
  name: string;
  value: number;
}

interface Props {
  title: string;
  /** What a bar stands for. */
  each: "day" | "turn";
  bars: readonly Bar[];
  shown: (value: number) => string;
  /** A table that says more than the bars. */
  children?: ComponentChildren;
}

const HEIGHT = 120;
const WIDTH = 640;
const NAMES = 10;
/** A bar of one turn is no wall. */
const WIDEST = 40;

export function Plot({ title, each, bars, shown, children }: Props) {
  const most = Math.max(...bars.map(({ value }) => value), 0);
  const step = Math.min(WIDEST, WIDTH / Math.max(1, bars.length));
  return (
    <figure class="plot">
      <figcaption>{title} <span class="note">at most {shown(most)} a {each}</span></figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 20}`} role="img" aria-label={`${title}: the table below has the numbers`}>
        <line x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
        {bars.map(({ key, name, value }, n) => {
          const height = most === 0 ? 0 : (value / most) * (HEIGHT - 8);
          return (
            <g key={key ?? name}>
              <rect x={n * step + step * 0.15} y={HEIGHT - height} width={step * 0.7} height={height} rx="2"><title>{`${name}: ${shown(value)}`}</title></rect>
              {each === "day" && n % Math.ceil(bars.length / NAMES) === 0 && <text x={Math.max(20, n * step + step / 2)} y={HEIGHT + 15} text-anchor="middle">{name}</text>}
            </g>
          );
        })}
        {each === "turn" && <text x="0" y={HEIGHT + 15}>{bars[0]?.name}</text>}
        {each === "turn" && bars.length > 1 && <text x={WIDTH} y={HEIGHT + 15} text-anchor="end">{bars.at(-1)?.name}</text>}
      </svg>
      <details class="fold">
        <summary>As a table</summary>
        <div class="table" tabIndex={0} role="region" aria-label={`${title} by ${each}`}>
          {children ?? (
            <table>
              <thead><tr><th scope="col">Day</th><th scope="col">{title}</th></tr></thead>
              <tbody>{bars.map(({ name, value }) => <tr key={name}><td>{name}</td><td>{shown(value)}</td></tr>)}</tbody>
            </table>
          )}
        </div>
      </details>
    </figure>
  );
}
