// The entries of a searchable block.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Entry, FoundEntries, PastEntry } from "session-agent";
import { Button, Empty, Field, Loading, Long, Name, Problem } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { Marked } from "../ui/marked.tsx";
import { useWork } from "../ui/work.ts";
import { openAgent } from "../connection.ts";
import { tellError } from "../notices.ts";
import { may } from "../rights.ts";
import { counted, fieldOf, shownText, shownTime, timeOf } from "../text.ts";
import type { BlockOf } from "./block.tsx";
import { Marks, metadataOf, tagsOf } from "./marks.tsx";
import { isPast, Validity } from "./validity.tsx";
import { Deleted, Versions } from "./versions.tsx";

const PAGE = 50;

export function Entries({ agent, of, hasVersions }: { agent: string; of: BlockOf; hasVersions: boolean }) {
  const client = openAgent(agent);
  const [entries, setEntries] = useState<readonly Entry[] | null>(null);
  const [cursor, setCursor] = useState<string | null>(null);
  const [found, setFound] = useState<FoundEntries | null>(null);
  const [asOf, setAsOf] = useState("");
  const [query, setQuery] = useState("");
  const [tag, setTag] = useState("");
  const [error, setError] = useState<unknown>(undefined);
  const [deleted, setDeleted] = useState<string | null>(null);
  const [opened, setOpened] = useState<string | null>(null);
  const [changed, setChanged] = useState<Entry | "new" | null>(null);
  /** Count what was asked for. An answer to what was asked for earlier comes too late. */
  const searches = useRef(0);
  const loads = useRef(0);

  const where = tag === "" ? {} : { where: { tags: { all: [tag] } } };
  const load = async (from: string | null) => {
    const turn = (loads.current += 1);
    try {
      const page = await client.listEntries({ ...of, limit: PAGE, ...where, ...(from !== null && { cursor: from }) });
      if (turn !== loads.current) return;
      setEntries((before) => (from === null ? page.entries : [...(before ?? []), ...page.entries]));
      setCursor(page.cursor);
      setError(undefined);
    } catch (error) {
      if (turn === loads.current) setError(error);
    }
  };
  useEffect(() => void load(null), [agent, of.label, tag]);
  const search = async () => {
    const turn = (searches.current += 1);
    if (query.trim() === "") return setFound(null);
    try {
      const at = timeOf(asOf);
      const found = await client.searchContext({ ...of, query, limit: 50, ...where, ...(at !== null && { asOf: at }) });
      if (turn === searches.current) setFound(found);
    } catch (error) {
      tellError(error);
    }
  };
  const clear = () => {
    searches.current += 1;
    setFound(null);
  };
  const remove = async (key: string) => {
    try {
      await client.deleteEntry({ ...of, key });
      if (hasVersions) setDeleted(key);
      await load(null);
    } catch (error) {
      tellError(error);
    }
  };
  return (
    <section class="entries" aria-label="Entries">
      <div class="actions spread">
        <form
          role="search"
          aria-label="Entries"
          class="inline"
          onSubmit={(event) => {
            event.preventDefault();
            void search();
          }}
        >
          <Field
            label="Search the entries"
            isLabelHidden
            type="search"
            placeholder="Search the entries"
            value={query}
            onInput={(text) => (setQuery(text), text === "" && clear())}
          />
          <Field label="What held on" type="datetime-local" value={asOf} onInput={setAsOf} />
          <Button type="submit" icon="search">
            Search
          </Button>
        </form>
        {may("setEntry") && (
          <Button icon="add" onClick={() => setChanged("new")}>
            Add an entry
          </Button>
        )}
      </div>
      {error !== undefined && <Problem error={error} retry={() => void load(null)} />}
      {entries === null && error === undefined && <Loading what="entries" />}
      {tag !== "" && (
        <p class="note" role="status">
          Only entries with the tag <Name text={tag} />{" "}
          <Button kind="quiet" icon="close" label="Show all entries" onClick={() => setTag("")} />
        </p>
      )}
      {found !== null && (
        <p class="note" role="status">
          {counted(found.results.length, "hit")}
          {asOf !== "" && `, of what held on ${shownTime(timeOf(asOf))}`}
        </p>
      )}
      {found?.results.map((hit) => (
        <article class="card entry" key={hit.key ?? hit.content}>
          <h3>
            <Name text={hit.title ?? hit.key ?? "Entry"} />
          </h3>
          <p class="prose" dir="auto">
            <Marked text={hit.snippet} highlights={hit.highlights} />
          </p>
          <Validity of={hit} />
          <Marks of={hit} onTag={setTag} />
        </article>
      ))}
      {found?.past !== undefined && found.past.length > 0 && <Past past={found.past} />}
      {deleted !== null && (
        <Deleted
          key={deleted}
          agent={agent}
          of={{ ...of, key: deleted }}
          onChange={() => (setDeleted(null), void load(null))}
        />
      )}
      {found === null && entries?.length === 0 && (
        <Empty title="No entries yet" icon="search">
          <p>The model adds what it wants to find again. You can, too.</p>
        </Empty>
      )}
      {found === null &&
        entries?.map((entry) => (
          <article class={`card entry ${isPast(entry) ? "past" : ""}`} key={entry.key}>
            <header>
              <h3>
                <Name text={entry.title ?? entry.key} />
              </h3>
              <span class="note">
                <Name text={entry.key} /> · {shownTime(entry.updatedAt)}
              </span>
              <div class="actions">
                {hasVersions && (
                  <Button
                    kind="quiet"
                    icon="clock"
                    label={`Versions of ${entry.key}`}
                    pressed={opened === entry.key}
                    onClick={() => setOpened(opened === entry.key ? null : entry.key)}
                  />
                )}
                {may("setEntry") && (
                  <Button kind="quiet" icon="edit" label={`Change ${entry.key}`} onClick={() => setChanged(entry)} />
                )}
                {may("deleteEntry") && (
                  <Button
                    kind="quiet"
                    icon="trash"
                    label={`Delete ${entry.key}`}
                    onClick={() => void remove(entry.key)}
                  />
                )}
              </div>
            </header>
            <p class="prose" dir="auto">
              <Long text={shownText(entry.content)} />
            </p>
            <Validity of={entry} />
            <Marks of={entry} onTag={setTag} />
            {opened === entry.key && (
              <Versions
                agent={agent}
                of={{ ...of, key: entry.key }}
                turn={entry.updatedAt}
                onChange={() => void load(null)}
              />
            )}
          </article>
        ))}
      {found === null && cursor !== null && <Button onClick={() => void load(cursor)}>Show more</Button>}
      {changed !== null && (
        <Change
          agent={agent}
          of={of}
          entry={changed === "new" ? null : changed}
          onClose={() => setChanged(null)}
          onDone={() => void load(null)}
        />
      )}
    </section>
  );
}

/** What matches and holds no longer. */
function Past({ past }: { past: readonly PastEntry[] }) {
  return (
    <section class="card" aria-label="What held before">
      <h3>What held before</h3>
      {past.map((entry) => (
        <div class="past" key={entry.key}>
          <p>
            <b>
              <Name text={entry.title ?? entry.key} />
            </b>{" "}
            <span class="note">
              <Name text={entry.key} />
            </span>
          </p>
          <Validity of={entry} />
        </div>
      ))}
    </section>
  );
}

function Change({
  agent,
  of,
  entry,
  onClose,
  onDone,
}: {
  agent: string;
  of: BlockOf;
  entry: Entry | null;
  onClose: () => void;
  onDone: () => void;
}) {
  const [key, setKey] = useState(entry?.key ?? "");
  const [title, setTitle] = useState(entry?.title ?? "");
  const [content, setContent] = useState(entry?.content ?? "");
  const [validFrom, setValidFrom] = useState(fieldOf(entry?.validFrom));
  const [validUntil, setValidUntil] = useState(fieldOf(entry?.validUntil));
  const [supersedes, setSupersedes] = useState((entry?.supersedes ?? []).join("\n"));
  const [tags, setTags] = useState((entry?.tags ?? []).join("\n"));
  const [metadata, setMetadata] = useState(entry?.metadata == null ? "" : JSON.stringify(entry.metadata, null, 2));
  const [isBusy, begin] = useWork();
  const save = () =>
    begin(async () => {
      const [from, until] = [timeOf(validFrom), timeOf(validUntil)];
      await openAgent(agent).setEntry({
        ...of,
        key,
        content,
        ...(title.trim() && { title: title.trim() }),
        // A field shows minutes. A time that was not changed stays exact.
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
    <Dialog title={entry === null ? "Add an entry" : "Change the entry"} onClose={onClose}>
      <Form submit="Save" onSubmit={save} onClose={onClose} isBusy={isBusy}>
        {entry === null && (
          <Field
            label="Key"
            value={key}
            onInput={setKey}
            required
            autofocus
            hint="An entry with the same key is replaced."
          />
        )}
        <Field label="Title" value={title} onInput={setTitle} />
        <Field label="Text" rows={6} value={content} onInput={setContent} required />
        <Field label="Holds from" type="datetime-local" value={validFrom} onInput={setValidFrom} />
        <Field label="Holds until" type="datetime-local" value={validUntil} onInput={setValidUntil} />
        <Field
          label="Replaces"
          rows={2}
          value={supersedes}
          onInput={setSupersedes}
          hint="The keys of entries that hold no longer, one on each line."
        />
        <Field label="Tags" rows={2} value={tags} onInput={setTags} hint="One on each line." />
        <Field
          label="Metadata"
          rows={3}
          value={metadata}
          onInput={setMetadata}
          hint="A JSON object, to find the entry by. Empty: none."
        />
      </Form>
    </Dialog>
  );
}
