// The versions of a block, an entry or a document: their authors, a comparison of two versions, and
// a button to restore one.

import { useState } from "preact/hooks";
import type { Version } from "session-agent";
import { Button, Loading, Name, Problem } from "../ui/basics.tsx";
import { Evidence } from "../ui/evidence.tsx";
import { Marks } from "../ui/marks.tsx";
import { Time } from "../ui/time.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { notify, notifyError } from "../notices.ts";
import { may } from "../rights.ts";
import { count, shownText } from "../text.ts";
import type { BlockOf } from "./block.tsx";
import { diff, type DiffRow } from "./diff.ts";
import { Validity } from "./validity.tsx";

interface Props {
  agent: string;
  /** The block, or with `key` the entry or the document. */
  of: BlockOf & { key?: string };
  /** Changes when there is a new version. */
  turn: unknown;
  onChange: () => void;
}

/** The versions of a block, an entry or a document. */
export function Versions({ agent, of, turn, onChange }: Props) {
  const { data, error, reload } = useLoad(
    `${agent}/${of.sessionId ?? ""}/${of.label}/${of.key ?? ""}/${turn}`,
    (signal) => openAgent(agent).getBlockVersions(of, { signal }),
  );
  const [chosen, setChosen] = useState<number | null>(null);
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (data === undefined) return <Loading what="the versions" />;
  const { versions } = data;
  if (versions.length === 0)
    return (
      <p class="note">
        {of.key === undefined ? "Nothing has been written. The block has its default text." : "No versions are stored."}
      </p>
    );
  const index = Math.max(
    0,
    versions.findIndex(({ version }) => version === chosen),
  );
  const after = versions[index]!;
  const before = versions[index + 1];
  const revert = async (version: number) => {
    try {
      await openAgent(agent).revertBlock({ ...of, version });
      notify(`Restored version ${version} as a new version.`);
      setChosen(null);
      reload();
      onChange();
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <section class="versions" aria-label="Versions">
      <h3>Versions</h3>
      <ol>
        {versions.map((version, n) => (
          <li key={version.version}>
            <button type="button" class="version" aria-pressed={n === index} onClick={() => setChosen(version.version)}>
              <b>{version.version}</b>
              <span>{writer(version)}</span>
              {version.deleted && <span class="state output-error">deleted</span>}
              {version.reason && (
                <span class="note">
                  <Name text={version.reason} />
                </span>
              )}
              <Time class="note" at={version.writtenAt} />
            </button>
            {n > 0 && !version.deleted && may("revertBlock") && (
              <Button
                icon="redo"
                onClick={() => void revert(version.version)}
                label={`Restore version ${version.version}`}
              />
            )}
          </li>
        ))}
      </ol>
      <p class="note">
        {before === undefined
          ? `Version ${after.version}, the oldest stored version`
          : `Version ${before.version} on the left, version ${after.version} on the right`}
        : {count(after.tokens)} tokens
      </p>
      <Validity of={after} />
      <Marks of={after} />
      <Evidence agent={agent} events={evidenceOf(after)} />
      <Diff rows={diff(textOf(before), textOf(after))} />
    </section>
  );
}

/** The item that was just deleted, and a button to restore it. */
export function Deleted({
  agent,
  of,
  onChange,
}: {
  agent: string;
  of: BlockOf & { key: string };
  onChange: () => void;
}) {
  return (
    <section class="card" aria-label="Deleted item">
      <p role="status">
        “<Name text={of.key} />” was deleted. To bring it back, restore one of its versions.
      </p>
      <Versions agent={agent} of={of} turn="deleted" onChange={onChange} />
    </section>
  );
}

/** The title of an entry, or the description of a document, above the text. */
function textOf(version: Version | undefined): string {
  return version === undefined ? "" : [version.title ?? "", version.content].filter((text) => text !== "").join("\n");
}

function writer({ writtenBy, sessionId, events = [] }: Version): string {
  if (writtenBy === "operation") return events.length > 0 ? "learned" : "through the API or this console";
  return sessionId === null ? "by the model" : `by the model, in session ${sessionId}`;
}

/** The messages that a learned text comes from, or the answer in which the model wrote it with a tool. */
function evidenceOf({ sessionId, eventId, events = [] }: Version): { sessionId: string; id: string }[] {
  if (sessionId == null) return [];
  const ids = events.length > 0 || eventId == null ? events : [eventId];
  return ids.map((id) => ({ sessionId, id }));
}

const SHOWN = 400;

export function Diff({ rows }: { rows: readonly DiffRow[] }) {
  const [shown, setShown] = useState(SHOWN);
  return (
    <div class="diff" tabIndex={0} role="region" aria-label="Difference">
      <table>
        <thead class="hidden">
          <tr>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map(({ kind, before, after }, n) => (
            <tr key={n} class={kind}>
              <td class={kind === "changed" && before !== null ? "gone" : ""}>
                {kind === "changed" && before !== null && <del>{shownText(before)}</del>}
                {kind === "same" && shownText(before ?? "")}
              </td>
              <td class={kind === "changed" && after !== null ? "come" : ""}>
                {kind === "changed" && after !== null && <ins>{shownText(after)}</ins>}
                {kind === "same" && shownText(after ?? "")}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown && (
        <Button kind="quiet" onClick={() => setShown(rows.length)}>
          Show all {count(rows.length)} lines
        </Button>
      )}
    </div>
  );
}
