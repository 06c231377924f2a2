// Copies a branch into a new session.

import { useState } from "preact/hooks";
import { Field } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { useWork } from "../ui/work.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { go } from "../route.ts";
import { sessionsOf } from "./sessions.ts";

interface Props {
  conversation: Conversation;
  /** The last message of the copy. Left out: the newest. */
  atId: string | undefined;
  name: string | null;
  onClose: () => void;
}

export function Fork({ conversation, atId, name: original, onClose }: Props) {
  const [name, setName] = useState(original === null ? "" : `${original} (fork)`);
  const [isBusy, begin] = useWork();
  const fork = () =>
    begin(async () => {
      const session = await conversation.session.forkSession({
        ...(atId !== undefined && { atId }),
        ...(name.trim() && { name: name.trim() }),
      });
      sessionsOf(conversation.agentName).put(session);
      onClose();
      go({ view: "session", agent: conversation.agentName, session: session.id, tab: "conversation" });
    });
  return (
    <Dialog title="Fork session" onClose={onClose}>
      <Form submit="Fork" onSubmit={fork} onClose={onClose} isBusy={isBusy}>
        <p class="hint">
          Creates a session with a copy of this branch{atId === undefined ? "" : " up to the selected message"}. This
          session does not change.
        </p>
        <Field label="Name of the new session" value={name} onInput={setName} autofocus />
      </Form>
    </Dialog>
  );
}
