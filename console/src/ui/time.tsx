// A short time, with the full time as a tooltip.

import { fullTime, shortTime } from "../text.ts";

export function Time({ at, class: name }: { at: unknown; class?: string }) {
  const short = shortTime(at);
  if (short === "") return null;
  return (
    <time class={name} title={fullTime(at)} dateTime={new Date(at as number).toISOString()}>
      {short}
    </time>
  );
}
