// The entries of a searchable block.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Entry, FoundEntries } from "session-agent";
import { Button, Empty, Field, Loading, Name, Problem } from "../ui/basics.tsx";
import { Marked } from "../ui/marked.tsx";
import { Marks } from "../ui/marks.tsx";
import { openAgent } from "../connection.ts";
import { notifyError } from "../notices.ts";
import { may } from "../rights.ts";
import { hashOf } from "../route.ts";
import { counted, shownTime, timeOf } from "../text.ts";
import type { BlockOf } from "./block.tsx";
import { EntryCard, NamedEntry, Past } from "./entry.tsx";
import { EntryForm } from "./entry_form.tsx";
import { Validity } from "./validity.tsx";
import { Deleted } from "./versions.tsx";

const PAGE = 50;

interface Props {
  agent: string;
  of: BlockOf;
  hasVersions: boolean;
  /** The key of the entry that the address names. */
  entry: string | undefined;
}

export function Entries({ agent, of, hasVersions, entry: named }: Props) {
  const client = openAgent(agent);
  const [entries, setEntries] = useState<readonly Entry[] | null>(null);
  const [cursor, setCursor] = useState<string | null>(null);
  const [found, setFound] = useState<FoundEntries | null>(null);
  const [asOf, setAsOf] = useState("");
  const [query, setQuery] = useState("");
  const [tag, setTag] = useState("");
  const [error, setError] = useState<unknown>(undefined);
  const [deleted, setDeleted] = useState<string | null>(null);
  const [changed, setChanged] = useState<Entry | "new" | null>(null);
  /** Counts how often the first page was loaded. */
  const [turn, setTurn] = useState(0);
  /** Counts requests, so that the answer to an earlier one is ignored. */
  const searches = useRef(0);
  const loads = useRef(0);

  const where = tag === "" ? {} : { where: { tags: { all: [tag] } } };
  const load = async (from: string | null) => {
    const turn = (loads.current += 1);
    try {
      const page = await client.listEntries({ ...of, limit: PAGE, ...where, ...(from !== null && { cursor: from }) });
      if (turn !== loads.current) return;
      if (from === null) setTurn(turn);
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
      notifyError(error);
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
      notifyError(error);
    }
  };
  const shared = {
    agent,
    of,
    onTag: setTag,
    onEdit: setChanged,
    onDelete: (key: string) => void remove(key),
    onChange: () => void load(null),
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
            label="Search entries"
            isLabelHidden
            type="search"
            placeholder="Search entries"
            value={query}
            onInput={(text) => (setQuery(text), text === "" && clear())}
          />
          <Field label="As of" type="datetime-local" value={asOf} onInput={setAsOf} />
          <Button type="submit" icon="search">
            Search
          </Button>
        </form>
        {may("setEntry") && (
          <Button icon="add" onClick={() => setChanged("new")}>
            Add entry
          </Button>
        )}
      </div>
      {named !== undefined && (
        <>
          <NamedEntry key={named} entryKey={named} turn={turn} {...shared} />
          <p>
            <a href={hashOf({ view: "memory", agent, label: of.label })}>Show all entries</a>
          </p>
        </>
      )}
      {error !== undefined && <Problem error={error} retry={() => void load(null)} />}
      {entries === null && error === undefined && <Loading what="entries" />}
      {tag !== "" && (
        <p class="note" role="status">
          Entries tagged <Name text={tag} />{" "}
          <Button kind="quiet" icon="close" label="Show all entries" onClick={() => setTag("")} />
        </p>
      )}
      {found !== null && (
        <p class="note" role="status">
          {counted(found.results.length, "result")}
          {asOf !== "" && `, as of ${shownTime(timeOf(asOf))}`}
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
          <p>The model adds facts to look up later. You can add entries too.</p>
          {may("setEntry") && (
            <Button kind="main" onClick={() => setChanged("new")}>
              Add the first entry
            </Button>
          )}
        </Empty>
      )}
      {found === null &&
        entries?.map((entry) => <EntryCard key={entry.key} entry={entry} hasVersions={hasVersions} {...shared} />)}
      {found === null && cursor !== null && <Button onClick={() => void load(cursor)}>Show more</Button>}
      {changed !== null && (
        <EntryForm
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
