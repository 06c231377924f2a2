// The documents of a loadable block.

import { useState } from "preact/hooks";
import type { Skill } from "session-agent";
import { Button, Empty, Field, Loading, Name, Problem } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { useWork } from "../ui/work.ts";
import { Code } from "../conversation/parts.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { notifyError } from "../notices.ts";
import { may } from "../rights.ts";
import { bytes, count, shownTime } from "../text.ts";
import type { BlockOf } from "./block.tsx";
import { Deleted, Versions } from "./versions.tsx";

/** The documents per page. */
const MOST = 1000;

export function Skills({ agent, of, hasVersions }: { agent: string; of: BlockOf; hasVersions: boolean }) {
  const client = openAgent(agent);
  const [query, setQuery] = useState("");
  const [isAdding, setAdding] = useState(false);
  const [deleted, setDeleted] = useState<string | null>(null);
  const loaded = useLoad(`${agent}/${of.sessionId ?? ""}/${of.label}`, async (signal) => {
    const skills: Skill[] = [];
    for await (const skill of client.skills(of, { signal })) if (skills.push(skill) >= MOST) break;
    return skills;
  });
  const { data, reload } = loaded;
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const shown = data?.filter(({ key, description }) =>
    words.every((word) => `${key} ${description ?? ""}`.toLowerCase().includes(word)),
  );
  return (
    <section class="entries" aria-label="Documents">
      <div class="actions spread">
        <Field
          label="Search documents"
          isLabelHidden
          type="search"
          placeholder="Search keys and descriptions"
          value={query}
          onInput={setQuery}
        />
        {may("putSkill") && (
          <Button icon="add" onClick={() => setAdding(true)}>
            Add document
          </Button>
        )}
      </div>
      <Pending of={loaded} what="documents" />
      {data?.length === 0 && (
        <Empty title="No documents yet" icon="book">
          <p>The model sees one line per document and loads the documents it needs.</p>
          {may("putSkill") && (
            <Button kind="main" onClick={() => setAdding(true)}>
              Add the first document
            </Button>
          )}
        </Empty>
      )}
      {shown?.map((skill) => (
        <Document
          key={skill.key}
          agent={agent}
          of={of}
          skill={skill}
          hasVersions={hasVersions}
          onChange={reload}
          onDelete={() => (setDeleted(hasVersions ? skill.key : null), reload())}
        />
      ))}
      {deleted !== null && (
        <Deleted
          key={deleted}
          agent={agent}
          of={{ ...of, key: deleted }}
          onChange={() => (setDeleted(null), reload())}
        />
      )}
      {isAdding && <Add agent={agent} of={of} onClose={() => setAdding(false)} onDone={reload} />}
    </section>
  );
}

interface DocumentProps {
  agent: string;
  of: BlockOf;
  skill: Skill;
  hasVersions: boolean;
  onChange: () => void;
  onDelete: () => void;
}

function Document({ agent, of, skill, hasVersions, onChange, onDelete }: DocumentProps) {
  const [isOpen, setOpen] = useState(false);
  const [showsVersions, setShowsVersions] = useState(false);
  const remove = async () => {
    try {
      await openAgent(agent).deleteSkill({ ...of, key: skill.key });
      onDelete();
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <details class="card fold document" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="book" />{" "}
        <b>
          <Name text={skill.key} />
        </b>
        {skill.description && (
          <span class="note">
            <Name text={skill.description} />
          </span>
        )}
        <span class="note">
          {skill.bytes !== null && bytes(skill.bytes)}
          {skill.updatedAt !== null && ` · ${shownTime(skill.updatedAt)}`}
        </span>
      </summary>
      {isOpen && <Text agent={agent} of={of} skill={skill} />}
      <div class="actions">
        {hasVersions && (
          <Button pressed={showsVersions} onClick={() => setShowsVersions(!showsVersions)}>
            Versions
          </Button>
        )}
        {may("deleteSkill") && (
          <Button kind="danger" icon="trash" onClick={() => void remove()}>
            Delete
          </Button>
        )}
      </div>
      {isOpen && showsVersions && (
        <Versions agent={agent} of={{ ...of, key: skill.key }} turn={skill.updatedAt} onChange={onChange} />
      )}
    </details>
  );
}

/**
 * The document. Without a session, reading it doesn't load it into a context. A document of a session
 * can only be read by loading it, so the user must request it.
 */
function Text({ agent, of, skill }: { agent: string; of: BlockOf; skill: Skill }) {
  const [isWanted, setWanted] = useState(of.sessionId === undefined);
  if (isWanted) return <Read agent={agent} of={of} skill={skill} />;
  return (
    <Button icon="down" onClick={() => setWanted(true)}>
      Load into the session's context and show
    </Button>
  );
}

function Read({ agent, of, skill: { key, updatedAt } }: { agent: string; of: BlockOf; skill: Skill }) {
  const { data, error, reload } = useLoad(`${agent}/${of.sessionId ?? ""}/${of.label}/${key}/${updatedAt}`, (signal) =>
    openAgent(agent).loadSkill({ ...of, key }, { signal }),
  );
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (data === undefined) return <Loading what="the document" />;
  return (
    <>
      <p class="note">{count(data.tokens)} tokens</p>
      <Code text={data.content} />
    </>
  );
}

function Add({ agent, of, onClose, onDone }: { agent: string; of: BlockOf; onClose: () => void; onDone: () => void }) {
  const [key, setKey] = useState("");
  const [description, setDescription] = useState("");
  const [content, setContent] = useState("");
  const [isBusy, begin] = useWork();
  const save = () =>
    begin(async () => {
      await openAgent(agent).putSkill({
        ...of,
        key,
        content,
        ...(description.trim() && { description: description.trim() }),
      });
      onDone();
      onClose();
    });
  return (
    <Dialog title="Add document" onClose={onClose}>
      <Form submit="Save" onSubmit={save} onClose={onClose} isBusy={isBusy}>
        <Field
          label="Key"
          value={key}
          onInput={setKey}
          required
          autofocus
          hint="If a document has this key, it is replaced."
        />
        <Field
          label="Description"
          value={description}
          onInput={setDescription}
          hint="The line that the model sees in the list."
        />
        <Field label="Text" rows={10} value={content} onInput={setContent} required />
      </Form>
    </Dialog>
  );
}
