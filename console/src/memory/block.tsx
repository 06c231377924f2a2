// One block: its text and its versions, or its entries, or its documents.

import { useState } from "preact/hooks";
import { type Block, VersionConflictError } from "session-agent";
import { Meter } from "../ui/bar.tsx";
import { Button, Field, Name, Stored } from "../ui/basics.tsx";
import { openAgent } from "../connection.ts";
import { notify, notifyError } from "../notices.ts";
import { may } from "../rights.ts";
import { count, shownJson, shownText, shownTime } from "../text.ts";
import { Entries } from "./entries.tsx";
import { Skills } from "./skills.tsx";
import { Versions } from "./versions.tsx";

interface Props {
  agent: string;
  session: string | undefined;
  block: Block;
  /** The key of the entry that the address names. */
  entry: string | undefined;
  onChange: () => void;
  onClose: () => void;
}

export function BlockView({ agent, session, block, entry, onChange, onClose }: Props) {
  const { label, kind, description, tokens, maxTokens, source, modelWrites, whenChanged, updatedAt, unavailable } =
    block;
  const isWritten = kind === "writable" && may("setBlock");
  const of = { label, ...(session !== undefined && { sessionId: session }) };
  const remove = async () => {
    try {
      await openAgent(agent).removeBlock(of);
      notify(`Removed ${label}. Its content returns if you define a block with the same label.`);
      onChange();
      onClose();
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <article class="block-view">
      <div class="actions spread">
        <Button icon="back" onClick={onClose}>
          All blocks
        </Button>
        {may("removeBlock") && (
          <Button kind="danger" icon="trash" onClick={() => void remove()}>
            Remove
          </Button>
        )}
      </div>
      <h2>
        <Name text={label} /> <span class={`badge ${kind}`}>{kind}</span>
      </h2>
      {description && (
        <p class="note">
          <Name text={description} />
        </p>
      )}
      {unavailable && (
        <p class="problem" role="alert">
          {unavailable}
        </p>
      )}
      {maxTokens !== null && <Meter label={`Usage of ${label}`} value={tokens} most={maxTokens} />}
      <dl class="facts">
        <dt>Size</dt>
        <dd>
          {count(tokens)}
          {maxTokens !== null && ` of ${count(maxTokens)}`} tokens
        </dd>
        <dt>The model</dt>
        <dd>{modelWrites ? "can read and write" : "can read"}</dd>
        <dt>Stored</dt>
        <dd>{source === null ? "in this agent" : <Name text={shownJson(source)} />}</dd>
        <dt>After a change</dt>
        <dd>
          {whenChanged === "remind"
            ? "the next turn includes the new text"
            : "the model sees it after the prompt is refreshed"}
        </dd>
        {updatedAt !== null && <dt>Changed</dt>}
        {updatedAt !== null && <dd>{shownTime(updatedAt)}</dd>}
      </dl>
      {kind === "searchable" && <Entries agent={agent} of={of} hasVersions={source === null} entry={entry} />}
      {kind === "loadable" && <Skills agent={agent} of={of} hasVersions={source === null} />}
      {isWritten && <Editor key={block.version} agent={agent} of={of} block={block} onChange={onChange} />}
      {!isWritten && (kind === "writable" || kind === "readonly") && (
        <Stored text={shownText(block.content)} label={`Text of ${label}`} />
      )}
      {(kind === "writable" || kind === "readonly") && source === null && (
        <Versions agent={agent} of={of} turn={block.version} onChange={onChange} />
      )}
    </article>
  );
}

export interface BlockOf {
  label: string;
  sessionId?: string;
}

function Editor({ agent, of, block, onChange }: { agent: string; of: BlockOf; block: Block; onChange: () => void }) {
  const [text, setText] = useState(block.content);
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      await openAgent(agent).setBlock({
        ...of,
        content: text,
        ...(block.source === null && { expectedVersion: block.version }),
        ...(reason.trim() && { reason: reason.trim() }),
      });
      notify("Saved as a new version.");
      onChange();
    } catch (error) {
      // Another client has changed the block. The typed text stays, and nothing is overwritten.
      notifyError(
        error instanceof VersionConflictError
          ? new Error("The block was changed by someone else. Copy your text, reload the page, and edit it again.")
          : error,
      );
    }
    setBusy(false);
  };
  const isChanged = text !== block.content;
  return (
    <form
      class="card"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Field
        label="Text"
        rows={Math.min(18, Math.max(4, text.split("\n").length + 1))}
        value={text}
        onInput={setText}
      />
      {isChanged && <Field label="Reason" value={reason} onInput={setReason} placeholder="stored with the version" />}
      {isChanged && (
        <div class="actions">
          <Button onClick={() => setText(block.content)}>Undo</Button>
          <Button type="submit" kind="main" disabled={isBusy}>
            Save
          </Button>
        </div>
      )}
    </form>
  );
}
