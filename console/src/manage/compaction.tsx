// The settings of automatic compaction, for the agent or for one session.

import { useLayoutEffect, useState } from "preact/hooks";
import { Button, Field, Heading } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { notify } from "../notices.ts";
import { useWork } from "../ui/work.ts";

const FIELDS = [
  ["compactAfter", "Compact when a conversation exceeds this many tokens", "off"],
  ["protectHead", "First messages that are never summarized", ""],
  ["tailTokenBudget", "Tokens of recent messages that are never summarized", ""],
  ["minTailMessages", "Minimum number of recent messages that are never summarized", ""],
] as const;

export function Compaction({ agent }: { agent: string }) {
  const [session, setSession] = useState("");
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [isBusy, run] = useWork();
  const of = session.trim() === "" ? {} : { sessionId: session.trim() };
  // Without a setting, the operation changes nothing and returns the current settings.
  const loaded = useLoad(`${agent}/${session.trim()}`, (signal) =>
    openAgent(agent).configureCompaction(of, { signal }),
  );
  const { data, reload } = loaded;
  const known = data as Readonly<Record<string, number | null>> | undefined;
  useLayoutEffect(() => {
    setTexts(Object.fromEntries(FIELDS.map(([field]) => [field, known?.[field]?.toString() ?? ""])));
  }, [data]);
  const set = () =>
    run(async () => {
      const changed = FIELDS.filter(([field]) => (texts[field] ?? "") !== (known?.[field]?.toString() ?? ""));
      const input = Object.fromEntries(
        changed.map(([field]) => [field, texts[field]!.trim() === "" ? null : Number(texts[field])]),
      );
      await openAgent(agent).configureCompaction({ ...of, ...input } as never);
      notify("Saved.");
      reload();
    });
  return (
    <>
      <Heading
        title="Compaction"
        note="Replaces older messages in the context with a summary. Nothing is deleted: you can open the summary to read the original messages."
      />
      <form
        class="settings"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) set();
        }}
      >
        <fieldset class="card">
          <legend>Rules</legend>
          <Field label="Session" value={session} onInput={setSession} placeholder="entire agent" />
          {known &&
            FIELDS.map(([field, label, placeholder]) => (
              <Field
                key={field}
                label={label}
                type="number"
                value={texts[field] ?? ""}
                placeholder={placeholder}
                onInput={(text) => setTexts((before) => ({ ...before, [field]: text }))}
              />
            ))}
        </fieldset>
        <Pending of={loaded} what="the settings" />
        <footer>
          <Button type="submit" kind="main" disabled={isBusy || known === undefined}>
            Save
          </Button>
        </footer>
      </form>
    </>
  );
}
