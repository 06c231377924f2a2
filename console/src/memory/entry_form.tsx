// The form for an entry: its text, its validity, and its marks.

import { useState } from "preact/hooks";
import type { Entry } from "session-agent";
import { Field } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { useWork } from "../ui/work.ts";
import { openAgent } from "../connection.ts";
import { fieldOf, timeOf } from "../text.ts";
import type { BlockOf } from "./block.tsx";
import { MarkFields } from "../ui/mark_fields.tsx";
import { metadataOf, metadataText, tagsOf } from "../ui/marks.tsx";

interface Props {
  agent: string;
  of: BlockOf;
  /** `null`: a new one. */
  entry: Entry | null;
  onClose: () => void;
  onDone: () => void;
}

export function EntryForm({ agent, of, entry, onClose, onDone }: Props) {
  const [key, setKey] = useState(entry?.key ?? "");
  const [title, setTitle] = useState(entry?.title ?? "");
  const [content, setContent] = useState(entry?.content ?? "");
  const [validFrom, setValidFrom] = useState(fieldOf(entry?.validFrom));
  const [validUntil, setValidUntil] = useState(fieldOf(entry?.validUntil));
  const [supersedes, setSupersedes] = useState((entry?.supersedes ?? []).join("\n"));
  const [tags, setTags] = useState((entry?.tags ?? []).join("\n"));
  const [metadata, setMetadata] = useState(metadataText(entry?.metadata));
  const [isBusy, begin] = useWork();
  const save = () =>
    begin(async () => {
      const [from, until] = [timeOf(validFrom), timeOf(validUntil)];
      await openAgent(agent).setEntry({
        ...of,
        key,
        content,
        ...(title.trim() && { title: title.trim() }),
        // A field shows only minutes. An unchanged time stays exact.
        ...(from !== null && { validFrom: validFrom === fieldOf(entry?.validFrom) ? entry?.validFrom : from }),
        ...(until !== null && { validUntil: validUntil === fieldOf(entry?.validUntil) ? entry?.validUntil : until }),
        supersedes: supersedes.split("\n").filter((key) => key !== ""),
        tags: tagsOf(tags),
        metadata: metadataOf(metadata),
      });
      onDone();
      onClose();
    });
  return (
    <Dialog title={entry === null ? "Add entry" : "Edit entry"} onClose={onClose}>
      <Form submit="Save" onSubmit={save} onClose={onClose} isBusy={isBusy}>
        {entry === null && (
          <Field
            label="Key"
            value={key}
            onInput={setKey}
            required
            autofocus
            hint="If an entry has this key, it is replaced."
          />
        )}
        <Field label="Title" value={title} onInput={setTitle} />
        <Field label="Text" rows={6} value={content} onInput={setContent} required />
        <Field label="Valid from" type="datetime-local" value={validFrom} onInput={setValidFrom} />
        <Field label="Valid until" type="datetime-local" value={validUntil} onInput={setValidUntil} />
        <Field
          label="Replaces"
          rows={2}
          value={supersedes}
          onInput={setSupersedes}
          hint="Keys of entries that are no longer true, one per line."
        />
        <MarkFields tags={tags} onTags={setTags} metadata={metadata} onMetadata={setMetadata} />
      </Form>
    </Dialog>
  );
}
