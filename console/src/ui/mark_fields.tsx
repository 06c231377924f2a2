// Form fields for tags and metadata.

import { Field } from "./basics.tsx";

interface Props {
  tags: string;
  onTags: (text: string) => void;
  metadata: string;
  onMetadata: (text: string) => void;
}

export function MarkFields({ tags, onTags, metadata, onMetadata }: Props) {
  return (
    <>
      <Field label="Tags" rows={2} value={tags} onInput={onTags} hint="One per line." />
      <Field
        label="Metadata"
        rows={3}
        value={metadata}
        onInput={onMetadata}
        hint="A JSON object that you can filter by. Optional."
      />
    </>
  );
}
