// Links to the messages that a text comes from.

import { hashOf } from "../route.ts";

interface Props {
  agent: string;
  events: readonly { sessionId: string; id: string }[];
}

export function Evidence({ agent, events }: Props) {
  if (events.length === 0) return null;
  return (
    <p class="note">
      Based on{" "}
      {events.map(({ sessionId, id }, n) => (
        <span key={id}>
          {n > 0 && ", "}
          <a href={hashOf({ view: "session", agent, session: sessionId, tab: "conversation", at: id })}>
            message {n + 1}
          </a>
        </span>
      ))}
    </p>
  );
}
