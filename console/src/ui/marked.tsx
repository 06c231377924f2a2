// A text with highlighted search matches.

import type { ComponentChildren } from "preact";
import { shownText } from "../text.ts";

export function Marked({ text, highlights }: { text: string; highlights: readonly number[][] }) {
  const pieces: ComponentChildren[] = [];
  let at = 0;
  for (const [start = 0, end = 0] of highlights) {
    if (start < at || end > text.length) continue;
    pieces.push(shownText(text.slice(at, start)), <mark key={start}>{shownText(text.slice(start, end))}</mark>);
    at = end;
  }
  return <>{[...pieces, shownText(text.slice(at))]}</>;
}
