// The form for a session's name, tags and metadata.

import { useState } from "preact/hooks";
import type { Operations, Session } from "session-agent";
import { Field } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { MarkFields } from "../ui/mark_fields.tsx";
import { metadataOf, metadataText, tagsOf } from "../ui/marks.tsx";
import { useWork } from "../ui/work.ts";
import type { Conversation } from "../conversation/conversation.ts";

type Input = Omit<Operations["updateSession"]["input"], "sessionId">;

interface Props {
  conversation: Conversation;
  session: Session;
  onClose: () => void;
  onDone: (session: Session) => void;
}

export function Naming({ conversation, session, onClose, onDone }: Props) {
  const [name, setName] = useState(session.name ?? "");
  const [tags, setTags] = useState((session.tags ?? []).join("\n"));
  const [metadata, setMetadata] = useState(metadataText(session.metadata));
  const [isBusy, begin] = useWork();
  const save = () =>
    begin(async () => {
      const changed = {
        name: name.trim() === "" ? null : name.trim(),
        ...(tags !== (session.tags ?? []).join("\n") && { tags: tagsOf(tags) }),
        ...(metadata !== metadataText(session.metadata) && { metadata: metadataOf(metadata) }),
      };
      onDone(await conversation.session.updateSession(changed as Input));
      onClose();
    });
  return (
    <Dialog title="Name and tags" onClose={onClose}>
      <Form submit="Save" onSubmit={save} onClose={onClose} isBusy={isBusy}>
        <Field label="Name" value={name} onInput={setName} autofocus />
        <MarkFields tags={tags} onTags={setTags} metadata={metadata} onMetadata={setMetadata} />
      </Form>
    </Dialog>
  );
}
