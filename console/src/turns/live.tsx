// The running turn, above the composer.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { Icon } from "../ui/icons.tsx";
import type { Conversation } from "../conversation/conversation.ts";
import { milliseconds } from "../text.ts";
import { doing } from "./live.ts";
import { waterfallOfLive } from "./rows.ts";
import { Waterfall } from "./waterfall.tsx";

/** How often the bars of running steps are updated. */
const DRAWN_MS = 250;

/** Whether the waterfall is open. It stays open for the next turn. */
const isOpen = signal(false);

export function LiveTurn({
  conversation,
  isAlwaysOpen = false,
}: {
  conversation: Conversation;
  isAlwaysOpen?: boolean;
}) {
  const live = conversation.live.value;
  const now = useNow(live !== null && live.to === null);
  if (live === null) return null;
  const shown = waterfallOfLive(live, now);
  const prefix = live.isJoined ? "seen for " : "";
  const status = `${doing(live)} · ${prefix}${milliseconds(shown.to - shown.from)}`;
  if (isAlwaysOpen)
    return (
      <section class="card live">
        <p class="pulse">{status}</p>
        <Waterfall shown={shown} label="Running turn" />
      </section>
    );
  return (
    <details class="fold live" open={isOpen.value} onToggle={(event) => void (isOpen.value = event.currentTarget.open)}>
      <summary>
        <Icon name="flow" /> <span class="pulse">{status}</span>
      </summary>
      {isOpen.value && <Waterfall shown={shown} label="Running turn" />}
    </details>
  );
}

function useNow(isOn: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isOn) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), DRAWN_MS);
    return () => clearInterval(timer);
  }, [isOn]);
  return now;
}
