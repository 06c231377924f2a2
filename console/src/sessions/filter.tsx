// Filters the list and the search of sessions by tags and metadata.

import { useState } from "preact/hooks";
import { Button, Field, Name } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { metadataOf, metadataText, tagsOf } from "../ui/marks.tsx";
import { useWork } from "../ui/work.ts";
import { type Filter, sessionsOf } from "./sessions.ts";

interface Props {
  agent: string;
  onClose: () => void;
}

export function FilterDialog({ agent, onClose }: Props) {
  const sessions = sessionsOf(agent);
  const [tags, setTags] = useState((sessions.filter?.tags?.all ?? []).join("\n"));
  const [metadata, setMetadata] = useState(metadataText(sessions.filter?.metadata));
  const [isBusy, begin] = useWork();
  const narrow = () =>
    begin(async () => {
      const filter = filterOf(tagsOf(tags), metadataOf(metadata));
      await sessions.narrow(filter);
      onClose();
    });
  return (
    <Dialog title="Filter sessions" onClose={onClose}>
      <Form submit="Filter" onSubmit={narrow} onClose={onClose} isBusy={isBusy}>
        <Field
          label="Tags"
          rows={2}
          value={tags}
          onInput={setTags}
          hint="One per line. A session must have all of them."
          autofocus
        />
        <Field
          label="Metadata"
          rows={3}
          value={metadata}
          onInput={setMetadata}
          placeholder='{"channel": "web"}'
          hint='A JSON object, for example {"channel": "web"}. Instead of a value, you can use {"in": […]}, {"gt": …} or {"lt": …}.'
        />
      </Form>
    </Dialog>
  );
}

/** `null`: the filter is empty, so all sessions are shown. */
function filterOf(tags: readonly string[], metadata: object | null): Filter | null {
  if (tags.length === 0 && metadata === null) return null;
  return {
    ...(tags.length > 0 && { tags: { all: [...tags] } }),
    ...(metadata !== null && { metadata: metadata as NonNullable<Filter["metadata"]> }),
  };
}

/** The current filter, above the list, with a button to clear it. */
export function Filtered({ agent }: { agent: string }) {
  const sessions = sessionsOf(agent);
  const { filter } = sessions;
  if (filter === null) return null;
  const tags = filter.tags?.all ?? [];
  const fields = Object.entries(filter.metadata ?? {}).map(([name, test]) => `${name}: ${JSON.stringify(test)}`);
  return (
    <p class="found-head" role="status">
      <span>
        Filter: <Name text={[...tags, ...fields].join(", ")} />
      </span>
      <Button kind="quiet" icon="close" label="Show all sessions" onClick={() => void sessions.narrow(null)} />
    </p>
  );
}
