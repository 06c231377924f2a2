// When conversations are compacted by themselves, for the agent or for one session.

import { useLayoutEffect, useState } from "preact/hooks";
import { Button, Field, Heading } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { tell } from "../notices.ts";
import { useWork } from "../ui/work.ts";

const FIELDS = [
  ["compactAfter", "Compact when a conversation has so many tokens", "never by itself"],
  ["protectHead", "First messages that always stay", ""],
  ["tailTokenBudget", "Tokens of the newest messages that stay", ""],
  ["minTailMessages", "Newest messages that stay at least", ""],
] as const;

export function Compaction({ agent }: { agent: string }) {
  const [session, setSession] = useState("");
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [isBusy, run] = useWork();
  const of = session.trim() === "" ? {} : { sessionId: session.trim() };
  // Without a setting, the operation changes nothing, and says what holds.
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
      tell("Set.");
      reload();
    });
  return (
    <>
      <Heading
        title="Compaction"
        note="A summary takes the place of what was said long ago. Nothing is deleted: the originals are under the summary."
      />
      <form
        class="settings"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) set();
        }}
      >
        <fieldset class="card">
          <legend>When and what</legend>
          <Field label="Session" value={session} onInput={setSession} placeholder="the whole agent" />
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
            Set
          </Button>
        </footer>
      </form>
    </>
  );
}
