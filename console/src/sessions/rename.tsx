import { useState } from "preact/hooks";
import type { Session } from "session-agent";
import { Field } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { useWork } from "../ui/work.ts";
import type { Conversation } from "../conversation/conversation.ts";

interface Props {
  conversation: Conversation;
  session: Session;
  onClose: () => void;
  onDone: (session: Session) => void;
}

export function Rename({ conversation, session, onClose, onDone }: Props) {
  const [name, setName] = useState(session.name ?? "");
  const [isBusy, begin] = useWork();
  const save = () =>
    begin(async () => {
      onDone(await conversation.session.updateSession({ name: name.trim() === "" ? null : name.trim() }));
      onClose();
    });
  return (
    <Dialog title="Rename the session" onClose={onClose}>
      <Form submit="Rename" onSubmit={save} onClose={onClose} isBusy={isBusy}>
        <Field label="Name" value={name} onInput={setName} autofocus />
      </Form>
    </Dialog>
  );
}
