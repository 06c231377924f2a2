// The page next to the list of sessions before one is opened.

import { useState } from "preact/hooks";
import { Button, Empty } from "../ui/basics.tsx";
import { above } from "../goto/keys.ts";
import { may, rights } from "../rights.ts";
import { Import } from "./import.tsx";
import { NewSession } from "./new_session.tsx";
import { sessionsOf } from "./sessions.ts";

export function SessionsHome({ agent }: { agent: string }) {
  const [dialog, setDialog] = useState<"new" | "import" | null>(null);
  const isEmpty = sessionsOf(agent).isEmpty.value;
  const mayBegin = rights.value.session === null && may("createSession");
  return (
    <div class="filling">
      <h1 class="hidden">Sessions</h1>
      <Empty title={isEmpty ? "This agent has no sessions" : "Choose a session"} icon="chat">
        {isEmpty ? (
          <p>A session is one conversation. Create one here or from your own code, or import one.</p>
        ) : (
          <p>Or search the messages, tool calls and tool results of all sessions.</p>
        )}
        <div class="actions suggestions">
          {isEmpty && mayBegin && (
            <Button kind="main" icon="add" onClick={() => setDialog("new")}>
              Start a session
            </Button>
          )}
          {isEmpty && mayBegin && may("importSession") && (
            <Button icon="upload" onClick={() => setDialog("import")}>
              Import one
            </Button>
          )}
          {!isEmpty && (
            <Button icon="search" onClick={() => (above.value = "goto")}>
              Go to a session
            </Button>
          )}
          <Button icon="code" onClick={() => (above.value = "snippet")}>
            Use the API
          </Button>
        </div>
      </Empty>
      {dialog === "new" && <NewSession agent={agent} onClose={() => setDialog(null)} />}
      {dialog === "import" && <Import agent={agent} onClose={() => setDialog(null)} />}
    </div>
  );
}
