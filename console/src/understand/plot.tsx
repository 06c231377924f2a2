// A small plot of bars, one for each day, and the same numbers as a table.

export interface Bar {
  name: string;
  value: number;
}

const HEIGHT = 120;
const WIDTH = 640;

export function Plot({ title, bars, shown }: { title: string; bars: readonly Bar[]; shown: (value: number) => string }) {
  const most = Math.max(...bars.map(({ value }) => value), 0);
  const step = WIDTH / Math.max(1, bars.length);
  return (
    <figure class="plot">
      <figcaption>{title} <span class="note">at most {shown(most)} a day</span></figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 20}`} role="img" aria-label={`${title}: the table below has the numbers`}>
        <line x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
        {bars.map(({ name, value }, n) => {
          const height = most === 0 ? 0 : (value / most) * (HEIGHT - 8);
          return (
            <g key={name}>
              <rect x={n * step + step * 0.15} y={HEIGHT - height} width={step * 0.7} height={height} rx="2"><title>{`${name}: ${shown(value)}`}</title></rect>
              {(bars.length <= 10 || n % Math.ceil(bars.length / 10) === 0) && <text x={Math.max(20, n * step + step / 2)} y={HEIGHT + 15} text-anchor="middle">{name}</text>}
            </g>
          );
        })}
      </svg>
      <details class="fold">
        <summary>As a table</summary>
        <table>
          <thead><tr><th scope="col">Day</th><th scope="col">{title}</th></tr></thead>
          <tbody>{bars.map(({ name, value }) => <tr key={name}><td>{name}</td><td>{shown(value)}</td></tr>)}</tbody>
        </table>
      </details>
    </figure>
  );
}
