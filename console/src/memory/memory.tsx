// The blocks of an agent or a session: their size and their content.

import { useState } from "preact/hooks";
import type { Block, BlockKind } from "session-agent";
import { Meter } from "../ui/bar.tsx";
import { Button, Empty, Field, Loading, Name, Problem, Select } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { useWork } from "../ui/work.ts";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { may } from "../rights.ts";
import { go } from "../route.ts";
import { count, cut, shownText } from "../text.ts";
import { BlockView } from "./block.tsx";

const GLANCE = 240;

interface Props {
  agent: string;
  session: string | undefined;
  /** The block that the address names. */
  label: string | undefined;
  /** The key of the entry of it that the address names. */
  entry?: string | undefined;
}

export function Memory({ agent, session, label, entry }: Props) {
  const [isDefining, setDefining] = useState(false);
  const [opened, setOpened] = useState<string | undefined>(undefined);
  const of = session === undefined ? {} : { sessionId: session };
  const {
    data: blocks,
    error,
    reload,
  } = useLoad(`${agent}/${session ?? ""}`, (signal) => openAgent(agent).getBlocks(of, { signal }));
  const chosen = session === undefined ? label : opened;
  const choose = (label: string | undefined) =>
    session === undefined ? go({ view: "memory", agent, ...(label !== undefined && { label }) }) : setOpened(label);
  if (error !== undefined && blocks === undefined) return <Problem error={error} retry={reload} />;
  if (blocks === undefined) return <Loading what="the memory" />;
  const block = blocks.find((block) => block.label.toLowerCase() === chosen?.toLowerCase());
  if (block !== undefined)
    return (
      <BlockView
        key={block.label}
        agent={agent}
        session={session}
        block={block}
        entry={entry}
        onChange={reload}
        onClose={() => choose(undefined)}
      />
    );
  return (
    <>
      <div class="actions spread">
        {may("defineBlock") && (
          <Button kind={blocks.length === 0 ? "main" : "plain"} icon="add" onClick={() => setDefining(true)}>
            Define block
          </Button>
        )}
        <Button icon="redo" onClick={reload}>
          Reload
        </Button>
      </div>
      {blocks.length === 0 && (
        <Empty title="No memory yet" icon="book">
          <p>A block is a labeled text in the system prompt. The model reads it and, if you allow it, updates it.</p>
        </Empty>
      )}
      <ul class="blocks">
        {blocks.map((block) => (
          <li key={block.label}>
            <Card block={block} open={() => choose(block.label)} />
          </li>
        ))}
      </ul>
      {isDefining && <Define agent={agent} session={session} onClose={() => setDefining(false)} onDone={reload} />}
    </>
  );
}

function Card({ block, open }: { block: Block; open: () => void }) {
  const { label, kind, description, tokens, maxTokens, content, unavailable } = block;
  return (
    <button type="button" class="card block" onClick={open}>
      <span class="block-head">
        <b>
          <Name text={label} />
        </b>
        <span class={`badge ${kind}`}>{kind}</span>
      </span>
      {description && (
        <span class="note">
          <Name text={description} />
        </span>
      )}
      <span class="block-text" dir="auto">
        {shownText(cut(content, GLANCE))}
        {content.length > GLANCE && " …"}
      </span>
      {unavailable && (
        <span class="state output-error">
          <Icon name="warning" /> {unavailable}
        </span>
      )}
      <span class="block-size">
        {maxTokens !== null && <Meter label={`Usage of ${label}`} value={tokens} most={maxTokens} />}
        <span class="note">
          {count(tokens)}
          {maxTokens !== null && ` of ${count(maxTokens)}`} tokens
        </span>
      </span>
    </button>
  );
}

const KINDS: ReadonlyArray<readonly [BlockKind, string]> = [
  ["writable", "writable: text that the model can update"],
  ["readonly", "readonly: text that the model can only read"],
  ["searchable", "searchable: entries that the model can search"],
  ["loadable", "loadable: documents that the model can load"],
];

function Define({
  agent,
  session,
  onClose,
  onDone,
}: {
  agent: string;
  session: string | undefined;
  onClose: () => void;
  onDone: () => void;
}) {
  const [label, setLabel] = useState("");
  const [kind, setKind] = useState<BlockKind>("writable");
  const [description, setDescription] = useState("");
  const [maxTokens, setMaxTokens] = useState("");
  const [content, setContent] = useState("");
  const [isBusy, begin] = useWork();
  const hasText = kind === "readonly" || kind === "writable";
  const define = () =>
    begin(async () => {
      await openAgent(agent).defineBlock({
        label,
        kind,
        ...(session !== undefined && { sessionId: session }),
        ...(description.trim() && { description: description.trim() }),
        ...(maxTokens.trim() && { maxTokens: Number(maxTokens) }),
        ...(hasText && content !== "" && { defaultContent: content }),
      });
      onDone();
      onClose();
    });
  return (
    <Dialog title="Define block" onClose={onClose}>
      <Form submit="Define" onSubmit={define} onClose={onClose} isBusy={isBusy}>
        <Field label="Label" value={label} onInput={setLabel} required autofocus placeholder="memory" />
        <Select label="Kind" value={kind} options={KINDS} onChange={setKind} />
        <Field
          label="Description"
          value={description}
          onInput={setDescription}
          hint="One line that the model sees above the block."
        />
        {hasText && (
          <Field label="Token limit" type="number" value={maxTokens} onInput={setMaxTokens} placeholder="no limit" />
        )}
        {hasText && <Field label="Default text" rows={4} value={content} onInput={setContent} />}
      </Form>
    </Dialog>
  );
}
