// Creates a session.

import { useState } from "preact/hooks";
import { Field } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { useWork } from "../ui/work.ts";
import { openAgent } from "../connection.ts";
import { go } from "../route.ts";
import { sessionsOf } from "./sessions.ts";

export function NewSession({ agent, onClose }: { agent: string; onClose: () => void }) {
  const [name, setName] = useState("");
  const [id, setId] = useState("");
  const [isBusy, begin] = useWork();
  const create = () =>
    begin(async () => {
      const session = await openAgent(agent).createSession({
        ...(name.trim() && { name: name.trim() }),
        ...(id.trim() && { id: id.trim() }),
      });
      sessionsOf(agent).put(session);
      onClose();
      go({ view: "session", agent, session: session.id, tab: "conversation" });
    });
  return (
    <Dialog title="New session" onClose={onClose}>
      <Form submit="Create" onSubmit={create} onClose={onClose} isBusy={isBusy}>
        <Field label="Name" value={name} onInput={setName} placeholder="A trip to Oslo" autofocus />
        <Field
          label="ID"
          value={id}
          onInput={setId}
          placeholder="generated if empty"
          hint="Optional: an ID from your own application."
        />
      </Form>
    </Dialog>
  );
}
