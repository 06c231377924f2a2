// A summary that replaces a range of messages, and the original messages.

import { useState } from "preact/hooks";
import { PayloadTooLargeError, type Compaction, type SessionEvent, type UiMessage } from "session-agent";
import { Button, Loading, Problem } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { Time } from "../ui/time.tsx";
import { useLoad } from "../load.ts";
import { notifyError } from "../notices.ts";
import { may } from "../rights.ts";
import { count, counted } from "../text.ts";
import type { Conversation } from "./conversation.ts";
import { EventBody } from "./events.tsx";
import { Prose } from "./parts.tsx";

const PAGE = 50;

export function Overlay({ conversation, message }: { conversation: Conversation; message: UiMessage }) {
  const [isOpen, setOpen] = useState(false);
  const text = message.parts.map((part) => part.text ?? "").join("\n");
  return (
    <article class="message overlay" aria-label="Summary of earlier messages">
      <details class="fold" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <Icon name="compact" /> <b>Summary of earlier messages</b> <Time at={message.createdAt} />
        </summary>
        <Prose text={text} />
        {isOpen && <Originals conversation={conversation} compactionId={message.id.slice("compaction_".length)} />}
      </details>
    </article>
  );
}

function Originals({ conversation, compactionId }: { conversation: Conversation; compactionId: string }) {
  const [isWanted, setWanted] = useState(false);
  const found = useLoad(`${compactionId}/found`, async (signal) => {
    const { compactions } = await conversation.session.getCompactions({}, { signal });
    return compactions.find(({ id }) => id === compactionId) ?? null;
  });
  if (found.error) return <Problem error={found.error} retry={found.reload} />;
  if (!found.data) return found.isLoading ? <Loading what="the summary" /> : null;
  const { tokensBefore, tokensAfter } = found.data;
  const drop = async () => {
    try {
      await conversation.session.deleteCompaction({ compactionId });
      await conversation.reload();
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <>
      {tokensBefore !== null && tokensAfter !== null && (
        <p class="note">
          The context shrank from {count(tokensBefore)} to {count(tokensAfter)} tokens.
        </p>
      )}
      <div class="actions">
        {!isWanted && (
          <Button icon="down" onClick={() => setWanted(true)}>
            Show original messages
          </Button>
        )}
        {may("deleteCompaction") && (
          <Button icon="trash" onClick={() => void drop()}>
            Remove summary
          </Button>
        )}
      </div>
      {isWanted && <Range conversation={conversation} compaction={found.data} />}
    </>
  );
}

function Range({ conversation, compaction }: { conversation: Conversation; compaction: Compaction }) {
  const [shown, setShown] = useState(PAGE);
  const { data, error, reload } = useLoad(`${compaction.id}/range`, () => originalsOf(conversation, compaction));
  if (error) return <Problem error={error} retry={reload} />;
  if (!data) return <Loading what="original messages" />;
  return (
    <div class="originals">
      <p class="note">{counted(data.length, "event")} replaced by this summary</p>
      {data.slice(0, shown).map((event) => (
        <EventBody key={event.id} event={event} />
      ))}
      {shown < data.length && (
        <Button kind="quiet" onClick={() => setShown(shown + PAGE)}>
          Show more ({count(data.length - shown)} left)
        </Button>
      )}
    </div>
  );
}

/** The events of the path between the two ends of the summary. */
async function originalsOf({ tree, session }: Conversation, { fromId, toId }: Compaction): Promise<SessionEvent[]> {
  if (tree.nodes.peek() === null) await tree.read();
  const above = tree.pathTo(tree.find(fromId)?.parentId ?? null);
  const ids = tree.pathTo(toId);
  for (const id of above) ids.delete(id);
  const [from, to] = [tree.find(fromId)?.seq ?? 0, tree.find(toId)?.seq ?? 0];
  const events: SessionEvent[] = [];
  for (let [after, limit] = [from - 1, 500]; after < to; ) {
    const page = await session.loadEvents({ afterSeq: after, beforeSeq: to + 1, limit }).catch((error) => {
      if (!(error instanceof PayloadTooLargeError) || limit === 1) throw error;
      return null;
    });
    if (page === null) {
      limit = Math.max(1, limit >> 2);
      continue;
    }
    events.push(...page.filter(({ id }) => ids.has(id)));
    const last = page.at(-1);
    if (last === undefined) break;
    after = last.seq;
  }
  return events;
}
