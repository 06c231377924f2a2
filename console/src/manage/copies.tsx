// Copies of the whole agent: manual and scheduled backups in the Worker's bucket, and the
// platform's point-in-time recovery.

import { useState } from "preact/hooks";
import { NotConfiguredError, type Operations } from "session-agent";
import { Button, Empty, Field, Heading, Loading, Name, Problem } from "../ui/basics.tsx";
import { Table } from "../ui/table.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { sentence, notify } from "../notices.ts";
import { bytes, count, fieldOf, shownTime, timeOf } from "../text.ts";
import { useWork } from "../ui/work.ts";

export function Copies({ agent }: { agent: string }) {
  const { data, error, reload } = useLoad(agent, (signal) => openAgent(agent).listBackups({}, { signal }));
  const [every, setEvery] = useState("24");
  const [keep, setKeep] = useState("7");
  const [isBusy, run] = useWork();
  const backUp = () =>
    run(async () => {
      const written = await openAgent(agent).backup({});
      notify(`Backed up: ${bytes(written.bytes)}, ${count(written.sessions)} sessions.`);
      reload();
    });
  const plan = (backups: object | null, notice: string) =>
    run(async () => {
      await openAgent(agent).configureAgent({ backups } as never);
      notify(notice);
      reload();
    });
  return (
    <>
      <Heading
        title="Backups"
        note="A backup contains the whole agent: its settings, all versions of its memory, and all sessions."
      >
        {data && (
          <Button kind="main" icon="download" onClick={backUp} disabled={isBusy}>
            Back up now
          </Button>
        )}
      </Heading>
      {error instanceof NotConfiguredError && (
        <Empty title="This Worker has no backup bucket" icon="download">
          <p>
            Create an R2 bucket, add the binding <code>BACKUP_BUCKET</code> to wrangler.toml, and deploy. Or export the
            agent manually: <code>npx session-agent export {agent} FILE</code>.
          </p>
        </Empty>
      )}
      {error !== undefined && !(error instanceof NotConfiguredError) && <Problem error={error} retry={reload} />}
      {data === undefined && error === undefined && <Loading what="the backups" />}
      {data && (
        <>
          <form
            class="card"
            onSubmit={(event) => {
              event.preventDefault();
              plan({ everyHours: Number(every), keep: Number(keep) }, "Schedule saved. The first backup starts now.");
            }}
          >
            <p>
              {data.nextAt == null
                ? "No backups are scheduled."
                : `The next backup starts ${shownTime(data.nextAt) || "soon"}.`}
              {data.failure != null && ` The last backup failed: ${data.failure}`}
            </p>
            <div class="columns">
              <Field label="Interval in hours" type="number" value={every} onInput={setEvery} required />
              <Field label="Number of backups to keep" type="number" value={keep} onInput={setKeep} required />
            </div>
            <div class="actions">
              {data.nextAt != null && (
                <Button onClick={() => plan({}, "Scheduled backups are off.")} disabled={isBusy}>
                  Turn off
                </Button>
              )}
              <Button type="submit" disabled={isBusy}>
                Save schedule
              </Button>
            </div>
          </form>
          {data.backups.length === 0 && <p class="hint">No backups yet.</p>}
          {data.backups.length > 0 && (
            <Table label="Backups" columns={["Started", { number: "Size" }, "Key"]}>
              {data.backups.map(({ key, at, bytes: size }) => (
                <tr key={key}>
                  <td>{shownTime(at)}</td>
                  <td class="number">{bytes(size)}</td>
                  <td>
                    <Name text={key} />
                  </td>
                </tr>
              ))}
            </Table>
          )}
          <p class="hint">
            To restore a backup into an empty agent, run <code>npx session-agent restore AGENT --from KEY</code>.
          </p>
        </>
      )}
      <Recovery agent={agent} />
    </>
  );
}

type Bookmark = Operations["getBookmark"]["output"];

function Recovery({ agent }: { agent: string }) {
  const [at, setAt] = useState(() => fieldOf(Date.now() - 3_600_000));
  const [found, setFound] = useState<Bookmark | null>(null);
  const [why, setWhy] = useState<string | null>(null);
  const [confirm, setConfirm] = useState<string | null>(null);
  const [isBusy, run] = useWork();
  const find = () =>
    run(async () => {
      setWhy(null);
      const time = timeOf(at);
      try {
        setFound(await openAgent(agent).getBookmark(time === null ? {} : { at: time }));
      } catch (error) {
        if (!(error instanceof NotConfiguredError)) throw error;
        setWhy(sentence(error));
      }
    });
  const restore = () =>
    run(async () => {
      const result = await openAgent(agent).restoreBookmark({ bookmark: found!.bookmark, confirm: confirm ?? "" });
      notify(`Restored. To undo this, restore the bookmark ${result.undo}.`);
      setConfirm(null);
    });
  return (
    <section aria-labelledby="recovery">
      <h2 class="part" id="recovery">
        Point-in-time recovery{" "}
        <span class="note">to any time in the last 30 days: find the bookmark of that time, then restore it</span>
      </h2>
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) find();
        }}
      >
        <Field label="Time" type="datetime-local" value={at} onInput={setAt} />
        <div class="actions">
          <Button type="submit" icon="clock" disabled={isBusy}>
            Find bookmark
          </Button>
          {found !== null && (
            <Button kind="danger" onClick={() => setConfirm("")}>
              Restore
            </Button>
          )}
        </div>
        {why !== null && (
          <p class="hint" role="status">
            {why}
          </p>
        )}
        {found !== null && (
          <p class="note" role="status">
            <Name text={found.bookmark} />
          </p>
        )}
      </form>
      {confirm !== null && (
        <Dialog title="Restore the agent" onClose={() => setConfirm(null)}>
          <Form onSubmit={restore} onClose={() => setConfirm(null)} submit="Restore" kind="danger" isBusy={isBusy}>
            <p>This discards everything the agent stored after {shownTime(found?.at)} and stops running turns.</p>
            <Field label="Type the agent's name to confirm" value={confirm} onInput={setConfirm} required autofocus />
          </Form>
        </Dialog>
      )}
    </section>
  );
}
