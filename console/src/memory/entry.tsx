// One entry: its text, its marks, and its history.

import { useState } from "preact/hooks";
import type { Entry, PastEntry } from "session-agent";
import { Button, Loading, Long, Name, Problem } from "../ui/basics.tsx";
import { Marks } from "../ui/marks.tsx";
import { Time } from "../ui/time.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { may } from "../rights.ts";
import { shownText } from "../text.ts";
import type { BlockOf } from "./block.tsx";
import { isPast, Validity } from "./validity.tsx";
import { Deleted, Versions } from "./versions.tsx";

interface Props {
  agent: string;
  of: BlockOf;
  onTag: (tag: string) => void;
  onEdit: (entry: Entry) => void;
  onDelete: (key: string) => void;
  onChange: () => void;
}

interface CardProps extends Props {
  entry: Entry;
  hasVersions: boolean;
  isOpen?: boolean;
}

export function EntryCard({
  agent,
  of,
  entry,
  hasVersions,
  isOpen = false,
  onTag,
  onEdit,
  onDelete,
  onChange,
}: CardProps) {
  const [isHistoryShown, showHistory] = useState(isOpen);
  const { key, title } = entry;
  return (
    <article class={`card entry ${isPast(entry) ? "past" : ""}`}>
      <header>
        <h3>
          <Name text={title ?? key} />
        </h3>
        {title != null && (
          <span class="note">
            <Name text={key} />
          </span>
        )}
        <Time class="note" at={entry.updatedAt} />
        <div class="actions">
          {hasVersions && (
            <Button
              kind="quiet"
              icon="clock"
              label={`History of ${key}`}
              pressed={isHistoryShown}
              onClick={() => showHistory(!isHistoryShown)}
            />
          )}
          {may("setEntry") && <Button kind="quiet" icon="edit" label={`Change ${key}`} onClick={() => onEdit(entry)} />}
          {may("deleteEntry") && (
            <Button kind="quiet" icon="trash" label={`Delete ${key}`} onClick={() => onDelete(key)} />
          )}
        </div>
      </header>
      <p class="prose" dir="auto">
        <Long text={shownText(entry.content)} />
      </p>
      <Validity of={entry} />
      <Marks of={entry} onTag={onTag} />
      {isHistoryShown && <Versions agent={agent} of={{ ...of, key }} turn={entry.updatedAt} onChange={onChange} />}
    </article>
  );
}

interface NamedProps extends Props {
  entryKey: string;
  /** Changes when the block's entries may have changed. */
  turn: number;
}

/** The entry that the address names, with its history, even if it was deleted. */
export function NamedEntry({ entryKey: key, turn, ...props }: NamedProps) {
  const { agent, of } = props;
  const { data, error, reload } = useLoad(`${agent}/${of.sessionId ?? ""}/${of.label}/${key}/${turn}`, (signal) =>
    openAgent(agent).getEntry({ ...of, key }, { signal }),
  );
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (data === undefined) return <Loading what="the entry" />;
  if (data === null) return <Deleted agent={agent} of={{ ...of, key }} onChange={props.onChange} />;
  return <EntryCard {...props} entry={data} hasVersions isOpen />;
}

/** Facts that match and are no longer true. */
export function Past({ past }: { past: readonly PastEntry[] }) {
  return (
    <section class="card" aria-label="Earlier facts">
      <h3>Earlier facts</h3>
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
