// Imports an exported session.

import { useRef, useState } from "preact/hooks";
import { Field } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { sentence, notify } from "../notices.ts";
import { go } from "../route.ts";
import { bytes, counted, cut } from "../text.ts";
import { upload } from "../upload.ts";
import { sessionsOf } from "./sessions.ts";

const FIRST_LINE = 64 * 1024;

export function Import({ agent, onClose }: { agent: string; onClose: () => void }) {
  const [file, setFile] = useState<File | null>(null);
  const [id, setId] = useState("");
  const [sent, setSent] = useState<number | null>(null);
  const [error, setError] = useState<string | null>(null);
  const suggested = useRef("");
  const latest = useRef<File | null>(null);
  const choose = async (file: File | null) => {
    latest.current = file;
    setFile(file);
    setError(null);
    if (file === null) return;
    const found = await idIn(file);
    if (file !== latest.current) return;
    const before = suggested.current;
    suggested.current = found;
    // An id that was written in the meantime stays.
    setId((id) => (id === before ? found : id));
  };
  const send = async () => {
    if (file === null || id === "") return;
    setSent(0);
    setError(null);
    try {
      const { imported, skipped } = await upload(agent, id, file, setSent);
      notify(`Imported ${counted(imported, "event")}${skipped > 0 ? `, skipped ${skipped} existing` : ""}.`);
      void sessionsOf(agent).reload();
      onClose();
      go({ view: "session", agent, session: id, tab: "conversation" });
    } catch (error) {
      setSent(null);
      setError(sentence(error));
    }
  };
  return (
    <Dialog title="Import session" onClose={onClose}>
      <Form
        submit="Import"
        onSubmit={() => void send()}
        onClose={onClose}
        isBusy={sent !== null || file === null || id.trim() === ""}
      >
        <div class="field">
          <label for="import-file">File</label>
          <input
            id="import-file"
            type="file"
            accept=".ndjson,.jsonl,application/x-ndjson"
            onChange={(event) => void choose(event.currentTarget.files?.[0] ?? null)}
          />
          <p class="hint">An exported NDJSON file. Either all of it is imported or none of it.</p>
        </div>
        <Field label="ID of the new session" value={id} onInput={setId} required />
        {sent !== null && file && <Progress sent={sent} of={file.size} />}
        {error !== null && (
          <p class="problem" role="alert">
            {error}
          </p>
        )}
      </Form>
    </Dialog>
  );
}

export function Progress({ sent, of }: { sent: number; of: number | null }) {
  return (
    <div class="progress" role="status">
      <progress max={of ?? 1} value={of === null ? undefined : sent} aria-label="Progress" />
      <span>
        {bytes(sent)}
        {of !== null && ` of ${bytes(of)}`}
      </span>
    </div>
  );
}

/** The id that the file's first line names. */
async function idIn(file: File): Promise<string> {
  const [line = ""] = (await file.slice(0, FIRST_LINE).text()).split("\n");
  try {
    const { session, id } = JSON.parse(line);
    return cut(String(session?.id ?? id ?? ""), 200) || crypto.randomUUID();
  } catch {
    return crypto.randomUUID();
  }
}
