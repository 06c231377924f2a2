// What stands beside the list of sessions before one is opened.

import { Empty } from "../ui/basics.tsx";
import { sessionsOf } from "./sessions.ts";

export function SessionsHome({ agent }: { agent: string }) {
  const isEmpty = sessionsOf(agent).isEmpty.value;
  return (
    <div class="filling">
      <h1 class="hidden">Sessions</h1>
      <Empty title={isEmpty ? "This agent has no sessions" : "Choose a session"} icon="chat">
        {isEmpty ? (
          <>
            <p>Begin one with the button on the left, or write one from your own program:</p>
            <pre class="code">{`curl ${location.origin}/agents/session-agent/${encodeURIComponent(agent)}/rpc/createSession -d '{"name": "first"}'`}</pre>
          </>
        ) : (
          <p>Or search all of them: what was said, what tools were asked, and what they answered.</p>
        )}
      </Empty>
    </div>
  );
}
