import { useState } from "preact/hooks";
import type { Session } from "session-agent";
import { Field } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import type { Conversation } from "../conversation/conversation.ts";
import { tellError } from "../notices.ts";

interface Props {
  conversation: Conversation;
  session: Session;
  onClose: () => void;
  onDone: (session: Session) => void;
}

export function Rename({ conversation, session, onClose, onDone }: Props) {
  const [name, setName] = useState(session.name ?? "");
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      onDone(await conversation.session.updateSession({ name: name.trim() === "" ? null : name.trim() }));
      onClose();
    } catch (error) {
      tellError(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Rename the session" onClose={onClose}>
      <Form submit="Rename" onSubmit={() => void save()} onClose={onClose} isBusy={isBusy}>
        <Field label="Name" value={name} onInput={setName} autofocus />
      </Form>
    </Dialog>
  );
}
