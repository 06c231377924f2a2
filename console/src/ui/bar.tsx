// Bars for a fill level, and for shares of a whole.

import { count } from "../text.ts";

export function Meter({ label, value, most }: { label: string; value: number; most: number }) {
  const share = most > 0 ? value / most : 0;
  const state = share > 1 ? "over" : share > 0.85 ? "near" : "";
  return (
    <div
      class={`meter ${state}`}
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={most}
      aria-valuenow={Math.min(value, most)}
      aria-valuetext={`${count(value)} of ${count(most)} tokens`}
    >
      <span style={{ width: `${Math.min(100, share * 100)}%` }} />
    </div>
  );
}

const COLORS = 8;

export interface Share {
  name: string;
  value: number;
}

/** One bar of several shares, and a list that explains them. */
export function Shares({ label, shares }: { label: string; shares: readonly Share[] }) {
  const all = shares.reduce((sum, { value }) => sum + value, 0);
  return (
    <figure class="shares">
      <div
        class="shares-bar"
        role="img"
        aria-label={`${label}: ${shares.map(({ name, value }) => `${name} ${count(value)}`).join(", ")}`}
      >
        {shares.map(
          ({ name, value }, n) =>
            value > 0 && <span key={name} class={`share-${n % COLORS}`} style={{ width: `${(value / all) * 100}%` }} />,
        )}
      </div>
      <figcaption>
        <ul>
          {shares.map(({ name, value }, n) => (
            <li key={name}>
              <span class={`dot share-${n % COLORS}`} aria-hidden="true" />
              {name} <b>{count(value)}</b>
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}
