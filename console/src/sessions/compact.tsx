// Compacts a conversation. A dry run first shows what would be summarized; nothing is written before
// the user confirms.

import { useState } from "preact/hooks";
import type { CompactOutput } from "session-agent";
import { Button } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Dialog } from "../ui/dialog.tsx";
import type { Conversation } from "../conversation/conversation.ts";
import { useLoad } from "../load.ts";
import { sentence, notify } from "../notices.ts";
import { count, counted, shownName } from "../text.ts";

const REASONS: Record<CompactOutput["reason"], string> = {
  compacted: "Compacted.",
  would_compact: "A summary will replace these messages in the context. They stay in the log and in search results.",
  nothing_to_compact:
    "Nothing to compact: the first and most recent messages are protected, and there are none between them.",
  already_running: "Another compaction of this session is running.",
  changed_meanwhile: "The messages changed during compaction, so nothing was written.",
  summariser_failed: "The model failed, so nothing was written.",
};

export function Compact({ conversation, onClose }: { conversation: Conversation; onClose: () => void }) {
  const [isBusy, setBusy] = useState(false);
  const [done, setDone] = useState<CompactOutput | null>(null);
  const [error, setError] = useState<string | null>(null);
  const plan = useLoad(`${conversation.id}/${done?.tokensAfter ?? ""}`, (signal) =>
    conversation.session.compact({ dryRun: true }, { signal }),
  );
  const run = async () => {
    setBusy(true);
    setError(null);
    try {
      const outcome = await conversation.session.compact();
      if (outcome.reason === "compacted") {
        await conversation.reload();
        if (!outcome.hasMore) {
          notify(`Compacted from ${count(outcome.tokensBefore)} to ${count(outcome.tokensAfter)} tokens.`);
          return onClose();
        }
        setDone(outcome);
      } else {
        setError(`${REASONS[outcome.reason]}${outcome.error ? ` ${outcome.error.message}` : ""}`);
      }
    } catch (error) {
      setError(sentence(error));
    }
    setBusy(false);
  };
  return (
    <Dialog title="Compact conversation" onClose={onClose}>
      <div class="dialog-body">
        <Pending of={plan} what="the preview" />
        {plan.data && <Plan plan={plan.data} />}
        {done && <p class="note">Compacted one part. You can compact more.</p>}
        {error !== null && (
          <p class="problem" role="alert">
            {error}
          </p>
        )}
      </div>
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        {plan.data?.reason === "would_compact" && (
          <Button kind="main" icon="compact" disabled={isBusy} onClick={() => void run()}>
            {isBusy ? "Compacting…" : "Compact now"}
          </Button>
        )}
      </footer>
    </Dialog>
  );
}

function Plan({ plan: { reason, tokensBefore, tokensAfter, covers, hasMore } }: { plan: CompactOutput }) {
  return (
    <>
      <p>{REASONS[reason]}</p>
      {reason === "would_compact" && (
        <dl class="facts">
          <dt>Replaced</dt>
          <dd>
            {covers ? counted(covers.messages, "message") : "some messages"}
            {hasMore && ", more in a second step"}
          </dd>
          {covers && <dt>From</dt>}
          {covers && (
            <dd>
              <bdi class="name">{shownName(covers.fromId)}</bdi>
            </dd>
          )}
          {covers && <dt>To</dt>}
          {covers && (
            <dd>
              <bdi class="name">{shownName(covers.toId)}</bdi>
            </dd>
          )}
          <dt>Context</dt>
          <dd>
            {count(tokensBefore)} tokens now, about {count(tokensAfter)} after compaction
          </dd>
        </dl>
      )}
    </>
  );
}
