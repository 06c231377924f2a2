// Who wrote what into a block, two versions side by side, and the way back.

import { useState } from "preact/hooks";
import type { Block, Version } from "session-agent";
import { Button, Loading, Name, Problem } from "../ui/basics.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { tell, tellError } from "../notices.ts";
import { count, shownText, shownTime } from "../text.ts";
import type { BlockOf } from "./block.tsx";
import { diff, type DiffRow } from "./diff.ts";

interface Props {
  agent: string;
  of: BlockOf;
  block: Block;
  onChange: () => void;
}

export function BlockVersions({ agent, of, block, onChange }: Props) {
  const { data, error, reload } = useLoad(`${agent}/${of.sessionId ?? ""}/${of.label}/${block.version}`, (signal) => openAgent(agent).getBlockVersions(of, { signal }));
  const [chosen, setChosen] = useState<number | null>(null);
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (data === undefined) return <Loading what="the versions" />;
  const { versions } = data;
  if (versions.length === 0) return <p class="note">The text was never written: it is the block's default.</p>;
  const index = Math.max(0, versions.findIndex(({ version }) => version === chosen));
  const after = versions[index]!;
  const before = versions[index + 1];
  const revert = async (version: number) => {
    try {
      await openAgent(agent).revertBlock({ ...of, version });
      tell(`Version ${version} is back, as a new version.`);
      setChosen(null);
      onChange();
    } catch (error) {
      tellError(error);
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
              {version.reason && <span class="note"><Name text={version.reason} /></span>}
              <time class="note">{shownTime(version.writtenAt)}</time>
            </button>
            {version.version !== block.version && <Button icon="redo" onClick={() => void revert(version.version)} label={`Go back to version ${version.version}`} />}
          </li>
        ))}
      </ol>
      <p class="note">
        {before === undefined ? `Version ${after.version}, the oldest that is kept` : `Version ${before.version} on the left, version ${after.version} on the right`}: {count(after.tokens)} tokens
      </p>
      <Diff rows={diff(before?.content ?? "", after.content)} />
    </section>
  );
}

function writer({ writtenBy, sessionId }: Version): string {
  if (writtenBy === "operation") return "by a program or this console";
  return sessionId === null ? "by the model" : `by the model, in session ${sessionId}`;
}

const SHOWN = 400;

export function Diff({ rows }: { rows: readonly DiffRow[] }) {
  const [shown, setShown] = useState(SHOWN);
  return (
    <div class="diff" tabIndex={0} role="region" aria-label="Difference">
      <table>
        <thead class="hidden"><tr><th scope="col">Before</th><th scope="col">After</th></tr></thead>
        <tbody>
          {rows.slice(0, shown).map(({ kind, before, after }, n) => (
            <tr key={n} class={kind}>
              <td class={kind === "changed" && before !== null ? "gone" : ""}>{kind === "changed" && before !== null && <del>{shownText(before)}</del>}{kind === "same" && shownText(before ?? "")}</td>
              <td class={kind === "changed" && after !== null ? "come" : ""}>{kind === "changed" && after !== null && <ins>{shownText(after)}</ins>}{kind === "same" && shownText(after ?? "")}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown && <Button kind="quiet" onClick={() => setShown(rows.length)}>Show all {count(rows.length)} lines</Button>}
    </div>
  );
}
