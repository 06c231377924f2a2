// The entries of a searchable block.

import { useEffect, useState } from "preact/hooks";
import type { Entry, FoundEntry } from "session-agent";
import { Button, Empty, Field, Loading, Name, Problem } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { Marked } from "../ui/marked.tsx";
import { useWork } from "../ui/work.ts";
import { openAgent } from "../connection.ts";
import { tellError } from "../notices.ts";
import { counted, shownText, shownTime } from "../text.ts";
import type { BlockOf } from "./block.tsx";

const PAGE = 50;

export function Entries({ agent, of }: { agent: string; of: BlockOf }) {
  const client = openAgent(agent);
  const [entries, setEntries] = useState<readonly Entry[] | null>(null);
  const [cursor, setCursor] = useState<string | null>(null);
  const [found, setFound] = useState<readonly FoundEntry[] | null>(null);
  const [query, setQuery] = useState("");
  const [error, setError] = useState<unknown>(undefined);
  const [changed, setChanged] = useState<Entry | "new" | null>(null);

  const load = async (from: string | null) => {
    try {
      const page = await client.listEntries({ ...of, limit: PAGE, ...(from !== null && { cursor: from }) });
      setEntries((before) => (from === null ? page.entries : [...(before ?? []), ...page.entries]));
      setCursor(page.cursor);
      setError(undefined);
    } catch (error) {
      setError(error);
    }
  };
  useEffect(() => void load(null), [agent, of.label]);
  const search = async () => {
    if (query.trim() === "") return setFound(null);
    try {
      setFound((await client.searchContext({ ...of, query, limit: 50 })).results);
    } catch (error) {
      tellError(error);
    }
  };
  const remove = async (key: string) => {
    try {
      await client.deleteEntry({ ...of, key });
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
          <Field label="Search the entries" isLabelHidden type="search" placeholder="Search the entries" value={query} onInput={(text) => (setQuery(text), text === "" && setFound(null))} />
          <Button type="submit" icon="search">Search</Button>
        </form>
        <Button icon="add" onClick={() => setChanged("new")}>Add an entry</Button>
      </div>
      {error !== undefined && <Problem error={error} retry={() => void load(null)} />}
      {entries === null && error === undefined && <Loading what="entries" />}
      {found !== null && <p class="note" role="status">{counted(found.length, "hit")}</p>}
      {found?.map((hit) => (
        <article class="card entry" key={hit.key ?? hit.content}>
          <h3><Name text={hit.title ?? hit.key ?? "Entry"} /></h3>
          <p class="prose" dir="auto"><Marked text={hit.snippet} highlights={hit.highlights} /></p>
        </article>
      ))}
      {found === null && entries?.length === 0 && <Empty title="No entries yet" icon="search"><p>The model adds what it wants to find again. You can, too.</p></Empty>}
      {found === null && entries?.map((entry) => (
        <article class="card entry" key={entry.key}>
          <header>
            <h3><Name text={entry.title ?? entry.key} /></h3>
            <span class="note"><Name text={entry.key} /> · {shownTime(entry.updatedAt)}</span>
            <div class="actions">
              <Button kind="quiet" icon="edit" label={`Change ${entry.key}`} onClick={() => setChanged(entry)} />
              <Button kind="quiet" icon="trash" label={`Delete ${entry.key}`} onClick={() => void remove(entry.key)} />
            </div>
          </header>
          <p class="prose" dir="auto">{shownText(entry.content.slice(0, 4000))}</p>
        </article>
      ))}
      {found === null && cursor !== null && <Button onClick={() => void load(cursor)}>Show more</Button>}
      {changed !== null && <Change agent={agent} of={of} entry={changed === "new" ? null : changed} onClose={() => setChanged(null)} onDone={() => void load(null)} />}
    </section>
  );
}

function Change({ agent, of, entry, onClose, onDone }: { agent: string; of: BlockOf; entry: Entry | null; onClose: () => void; onDone: () => void }) {
  const [key, setKey] = useState(entry?.key ?? "");
  const [title, setTitle] = useState(entry?.title ?? "");
  const [content, setContent] = useState(entry?.content ?? "");
  const [isBusy, begin] = useWork();
  const save = () => begin(async () => {
    await openAgent(agent).setEntry({ ...of, key, content, ...(title.trim() && { title: title.trim() }) });
    onDone();
    onClose();
  });
  return (
    <Dialog title={entry === null ? "Add an entry" : "Change the entry"} onClose={onClose}>
      <Form submit="Save" onSubmit={save} onClose={onClose} isBusy={isBusy}>
        {entry === null && <Field label="Key" value={key} onInput={setKey} required autofocus hint="An entry with the same key is replaced." />}
        <Field label="Title" value={title} onInput={setTitle} />
        <Field label="Text" rows={6} value={content} onInput={setContent} required />
      </Form>
    </Dialog>
  );
}
