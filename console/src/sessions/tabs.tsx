// The tabs of a session besides its conversation.

import { Branches } from "../conversation/branches.tsx";
import { Changes } from "../conversation/changes.tsx";
import type { Conversation } from "../conversation/conversation.ts";
import { Events } from "../conversation/events.tsx";
import { Context } from "../memory/context.tsx";
import { Memory } from "../memory/memory.tsx";
import type { SessionTab } from "../route.ts";
import { Turns } from "../turns/turns.tsx";
import { Heading } from "../ui/basics.tsx";

interface Props {
  conversation: Conversation;
  tab: Exclude<SessionTab, "conversation">;
  at: string | undefined;
}

export function FurtherTab({ conversation, tab, at }: Props) {
  switch (tab) {
    case "turns":
      return <Turns conversation={conversation} at={at} />;
    case "branches":
      return <Branches conversation={conversation} />;
    case "events":
      return <Events conversation={conversation} />;
    case "changes":
      return <Changes conversation={conversation} />;
    case "context":
      return <Context conversation={conversation} />;
    case "memory":
      return <OwnMemory conversation={conversation} />;
  }
}

function OwnMemory({ conversation }: { conversation: Conversation }) {
  return (
    <section class="tab-page scrolls">
      <Heading
        title="Session memory"
        note="Blocks that only this session uses. The prompt also includes the agent's blocks."
      />
      <Memory agent={conversation.agentName} session={conversation.id} label={undefined} />
    </section>
  );
}
