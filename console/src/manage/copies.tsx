// Copies of the whole agent: backups in the Worker's bucket, by hand and on a schedule, and
// the platform's own point-in-time recovery.

import { useState } from "preact/hooks";
import { NotConfiguredError, type Operations } from "session-agent";
import { Button, Empty, Field, Heading, Loading, Name, Problem } from "../ui/basics.tsx";
import { Table } from "../ui/table.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { sentence, tell } from "../notices.ts";
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
      tell(`Backed up: ${bytes(written.bytes)}, ${count(written.sessions)} sessions.`);
      reload();
    });
  const plan = (backups: object | null, said: string) =>
    run(async () => {
      await openAgent(agent).configureAgent({ backups } as never);
      tell(said);
      reload();
    });
  return (
    <>
      <Heading
        title="Copies"
        note="A backup is the file of the whole agent: settings, memory with its versions, all sessions."
      >
        {data && (
          <Button kind="main" icon="download" onClick={backUp} disabled={isBusy}>
            Back up now
          </Button>
        )}
      </Heading>
      {error instanceof NotConfiguredError && (
        <Empty title="This Worker has no bucket for backups" icon="download">
          <p>
            Make a bucket, add the binding <code>BACKUP_BUCKET</code> to wrangler.toml, and deploy. Or take the file out
            by hand: <code>npx session-agent export {agent} FILE</code>.
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
              plan(
                { everyHours: Number(every), keep: Number(keep) },
                "The schedule is set. The first backup begins now.",
              );
            }}
          >
            <p>
              {data.nextAt == null ? "No schedule." : `The next backup begins ${shownTime(data.nextAt) || "soon"}.`}
              {data.failure != null && ` The last one failed: ${data.failure}`}
            </p>
            <div class="columns">
              <Field label="Every so many hours" type="number" value={every} onInput={setEvery} required />
              <Field label="Keep the newest" type="number" value={keep} onInput={setKeep} required />
            </div>
            <div class="actions">
              {data.nextAt != null && (
                <Button onClick={() => plan({}, "The schedule is lifted.")} disabled={isBusy}>
                  Stop
                </Button>
              )}
              <Button type="submit" disabled={isBusy}>
                Set the schedule
              </Button>
            </div>
          </form>
          {data.backups.length === 0 && <p class="hint">No backup yet.</p>}
          {data.backups.length > 0 && (
            <Table label="Backups" columns={["Begun", { number: "Size" }, "Key"]}>
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
            To restore one, open an agent that is empty and run <code>npx session-agent restore AGENT --from KEY</code>.
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
      const told = await openAgent(agent).restoreBookmark({ bookmark: found!.bookmark, confirm: confirm ?? "" });
      tell(`Restored. To undo it, restore the bookmark ${told.undo}.`);
      setConfirm(null);
    });
  return (
    <section aria-labelledby="recovery">
      <h2 class="part" id="recovery">
        Back to a time <span class="note">by the platform, within the last 30 days</span>
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
            Find the state
          </Button>
          {found !== null && (
            <Button kind="danger" onClick={() => setConfirm("")}>
              Bring it back
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
        <Dialog title="Bring the state back" onClose={() => setConfirm(null)}>
          <Form onSubmit={restore} onClose={() => setConfirm(null)} submit="Bring back" kind="danger" isBusy={isBusy}>
            <p>All that came after {shownTime(found?.at)} is gone then, in the whole agent. Turns that run end.</p>
            <Field label="The agent's name" value={confirm} onInput={setConfirm} required autofocus />
          </Form>
        </Dialog>
      )}
    </section>
  );
}
