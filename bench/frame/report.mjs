// Results as a table and as a plot: `results/NAME.md` and `results/NAME.svg`.

import { mkdir, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";

const RESULTS = new URL("../results/", import.meta.url);

/** Writes `lines` to `results/NAME.md`, plots to `results/NAME.svg` and so on, and prints the lines. */
export async function report(name, lines, plots = {}) {
  await mkdir(RESULTS, { recursive: true });
  for (const [suffix, svg] of Object.entries(plots)) await writeFile(new URL(`${name}${suffix}.svg`, RESULTS), svg);
  await writeFile(new URL(`${name}.md`, RESULTS), `${lines.join("\n")}\n`);
  console.log(`${lines.join("\n")}\n`);
}

/** What a reader must know about measured times. */
export function machine() {
  return `Measured on a machine of ${availableParallelism()} cores that had other work, too: compare figures of one table with each other, and ratios with ratios.`;
}

/** Rows of cells as a table. */
export function table(heads, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(heads), `|${heads.map(() => "---|").join("")}`, ...rows.map(line)];
}

export const whole = (number) => Math.round(number).toLocaleString("en");
export const ms = (number) => (number < 10 ? number.toFixed(2) : number < 100 ? number.toFixed(1) : whole(number));
export const ratio = (number) => (number < 10 ? number.toFixed(2) : number.toFixed(1));
export const withSpread = ({ median, low, high }, show = ratio) => `${show(median)} (${show(low)}–${show(high)})`;

const COLORS = ["#8d99ae", "#2a6f97", "#d98324", "#5a9367", "#9d4edd", "#b56576"];
const WIDTH = 760;
const LABEL = 210;
const BAR = 13;
const GAP = 12;

/**
 * A plot of horizontal bars. `groups` has entries `{ name, bars: [number | undefined] }`, with one
 * bar per entry of `series`. `scale: "log"` is for figures of different orders of magnitude.
 */
export function bars({ title, unit, series, groups, scale = "linear", show = whole, aims = [] }) {
  const values = groups.flatMap((group) => group.bars.filter((value) => value > 0));
  const [low, high] = [Math.min(...values), Math.max(...values, ...aims.filter(Boolean))];
  const room = WIDTH - LABEL - 90;
  const floor = Math.log10(low) - 0.3;
  const length = (value) =>
    scale === "log" ? (room * (Math.log10(value) - floor)) / (Math.log10(high) - floor) : (room * value) / high;
  const parts = [];
  let y = 58 + 18 * Math.ceil(series.length / 4);
  for (const [index, group] of groups.entries()) {
    const shown = group.bars.map((value, at) => ({ value, at })).filter(({ value }) => value > 0);
    const middle = y + (shown.length * BAR) / 2 + 4;
    parts.push(`<text x="${LABEL - 8}" y="${middle}" text-anchor="end">${escape(group.name)}</text>`);
    const top = y;
    for (const { value, at } of shown) {
      parts.push(
        `<rect x="${LABEL}" y="${y}" width="${length(value).toFixed(1)}" height="${BAR - 2}" fill="${COLORS[at]}"/>`,
        `<text x="${(LABEL + length(value) + 5).toFixed(1)}" y="${y + BAR - 3}" class="n">${show(value)}</text>`,
      );
      y += BAR;
    }
    if (aims[index]) {
      const x = (LABEL + length(aims[index])).toFixed(1);
      parts.push(
        `<line x1="${x}" x2="${x}" y1="${top - 3}" y2="${y + 1}" stroke="currentColor" stroke-dasharray="3 2"/>`,
      );
    }
    y += GAP;
  }
  const legend = series.map((name, at) => {
    const [x, line] = [20 + (at % 4) * 185, 46 + 18 * Math.floor(at / 4)];
    return `<rect x="${x}" y="${line}" width="11" height="11" fill="${COLORS[at]}"/><text x="${x + 16}" y="${line + 10}">${escape(name)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y + 8}" width="${WIDTH}" role="img" aria-label="${escape(title)}">`,
    "<style>svg{color:#222;background:#fff}text{font:12px system-ui,sans-serif;fill:#222}.t{font-size:15px;font-weight:600}.n{font-size:10px;fill:#555}</style>",
    `<text x="20" y="24" class="t">${escape(title)}</text><text x="20" y="39" class="n">${escape(unit)}</text>`,
    ...legend,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}

function escape(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
