// A person's data: finds mentions, downloads them, and erases them with a receipt.

import { useState } from "preact/hooks";
import type { Operations } from "session-agent";
import { Button, Check, Empty, Field, Heading, Name } from "../ui/basics.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { openAgent } from "../connection.ts";
import { notify } from "../notices.ts";
import { may } from "../rights.ts";
import { hashOf } from "../route.ts";
import { counted, erasedText, shownText } from "../text.ts";
import { save } from "./files.ts";
import { keepReceipt, Receipts } from "./receipts.tsx";
import { useWork } from "../ui/work.ts";

type Mention = Operations["findMentions"]["output"]["places"][number];

/** The most pages of one search. A page scans 20,000 rows. */
const MAX_PAGES = 200;
const PAGE = 100;
/** The most mentions per erasure. */
const ERASED_AT_ONCE = 100;

const KINDS: Readonly<Record<string, string>> = {
  event: "message",
  summary: "summary",
  session: "session name",
  block: "block definition",
  version: "version",
  entry: "entry",
  document: "document",
  loadedDocument: "loaded document",
  prompt: "frozen prompt",
  report: "turn report",
};

const keyOf = ({ snippet: _, ...mention }: Mention): string => JSON.stringify(mention);

/** The whole text of a mention, if an operation returns it. `null`: only the snippet is available. */
async function textOf(agent: string, { kind, sessionId, id, label, key }: Mention): Promise<unknown> {
  const client = openAgent(agent);
  const of = { ...(sessionId != null && { sessionId }), ...(label != null && { label }), ...(key != null && { key }) };
  try {
    if (kind === "event" && sessionId != null && id != null)
      return await client.session(sessionId).getMessage({ messageId: id });
    if (label != null) return await client.getBlockVersions(of as never);
  } catch {
    // If the text was deleted in the meantime or is stored elsewhere, the snippet is shown.
  }
  return null;
}

export function People({ agent }: { agent: string }) {
  const [query, setQuery] = useState("");
  const [searched, setSearched] = useState("");
  const [mentions, setMentions] = useState<readonly Mention[] | null>(null);
  const [isWhole, setWhole] = useState(true);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [isErasing, setErasing] = useState(false);
  const [isBusy, run] = useWork();
  const find = () =>
    run(async () => {
      const found: Mention[] = [];
      let cursor: string | null = null;
      let pages = 0;
      do {
        const page: Operations["findMentions"]["output"] = await openAgent(agent).findMentions({
          query: query.trim(),
          limit: PAGE,
          ...(cursor !== null && { cursor }),
        });
        found.push(...page.places);
        ({ cursor } = page);
        pages += 1;
        setMentions([...found]);
      } while (cursor !== null && pages < MAX_PAGES);
      setSearched(query.trim());
      setWhole(cursor === null);
      setLeft(new Set());
    });
  const saveAll = () =>
    run(async () => {
      const whole = [];
      for (const mention of mentions ?? []) whole.push({ ...mention, text: await textOf(agent, mention) });
      const file = { agent, query: searched, at: Date.now(), places: whole };
      save(`${agent} ${searched}.json`, JSON.stringify(file, null, 2));
    });
  const chosen = (mentions ?? []).filter((mention) => !left.has(keyOf(mention)));
  const toggle = (mention: Mention, isOn: boolean) => {
    const next = new Set(left);
    if (isOn) next.delete(keyOf(mention));
    else next.add(keyOf(mention));
    setLeft(next);
  };
  return (
    <>
      <Heading
        title="Personal data"
        note="Finds every mention of a person, by a text, in conversations, all versions of memory, summaries and prompts. You can save the results as a file, or erase them and get a receipt."
      />
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy && query.trim() !== "") find();
        }}
      >
        <Field
          label="Name, email address or number"
          value={query}
          onInput={setQuery}
          required
          hint="Finds this exact text, ignoring case. Search for each spelling separately."
        />
        <div class="actions">
          <Button type="submit" kind="main" icon="search" disabled={isBusy}>
            Find
          </Button>
        </div>
      </form>
      {mentions !== null && mentions.length === 0 && !isBusy && (
        <Empty title={`No mentions of “${shownText(searched)}”`} icon="check">
          <p>Try another spelling, or search the person's other agents.</p>
        </Empty>
      )}
      {mentions !== null && mentions.length > 0 && (
        <section aria-labelledby="found">
          <Heading title={<span id="found">{counted(mentions.length, "mention")}</span>}>
            <Button icon="download" disabled={isBusy} onClick={saveAll}>
              Save as a file
            </Button>
            {may("erase") && (
              <Button kind="danger" icon="trash" disabled={chosen.length === 0} onClick={() => setErasing(true)}>
                Erase {counted(chosen.length, "mention")}
              </Button>
            )}
          </Heading>
          {!isWhole && <p class="hint">There are more results. Erase these, then search again.</p>}
          <ul class="rows">
            {mentions.map((mention) => (
              <MentionRow
                key={keyOf(mention)}
                agent={agent}
                mention={mention}
                isOn={!left.has(keyOf(mention))}
                onChange={(isOn) => toggle(mention, isOn)}
              />
            ))}
          </ul>
        </section>
      )}
      <Receipts agent={agent} />
      {isErasing && (
        <Erase
          agent={agent}
          mentions={chosen}
          onClose={() => setErasing(false)}
          onDone={() => {
            setErasing(false);
            setMentions((mentions ?? []).filter((mention) => left.has(keyOf(mention))));
          }}
        />
      )}
    </>
  );
}

function MentionRow({
  agent,
  mention,
  isOn,
  onChange,
}: {
  agent: string;
  mention: Mention;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}) {
  const { kind, sessionId, label, key, version, snippet } = mention;
  const where = [label, key, version != null && `version ${version}`].filter(Boolean).join(" / ");
  const link =
    sessionId != null
      ? hashOf({ view: "session", agent, session: sessionId, tab: label == null ? "conversation" : "memory" })
      : label != null
        ? hashOf({ view: "memory", agent, label })
        : null;
  return (
    <li class="card entry">
      <header>
        <Check label={KINDS[kind] ?? kind} isOn={isOn} onChange={onChange} />
        {where !== "" && <Name text={where} />}
        {link !== null && (
          <a class="note" href={link}>
            {sessionId == null ? "in the agent's memory" : <>in session {<Name text={sessionId} />}</>}
          </a>
        )}
      </header>
      {snippet != null && <p class="prose">{shownText(snippet)}</p>}
    </li>
  );
}

interface EraseProps {
  agent: string;
  mentions: readonly Mention[];
  onClose: () => void;
  onDone: () => void;
}

function Erase({ agent, mentions, onClose, onDone }: EraseProps) {
  const [isBusy, run] = useWork();
  const [erased, setErased] = useState(0);
  const erase = () =>
    run(async () => {
      for (let from = 0; from < mentions.length; from += ERASED_AT_ONCE) {
        const part = mentions.slice(from, from + ERASED_AT_ONCE).map(({ snippet: _, ...mention }) => mention);
        const receipt = keepReceipt(await openAgent(agent).erase({ places: part } as never));
        setErased(from + part.length);
        notify(`Erased: ${erasedText(receipt.erased)}. The receipt is below.`);
      }
      onDone();
    });
  return (
    <Dialog title={`Erase ${counted(mentions.length, "mention")}?`} onClose={onClose}>
      <Form onSubmit={erase} onClose={onClose} submit="Erase" kind="danger" isBusy={isBusy}>
        <p>
          You can't undo this. It also erases earlier versions, summaries of the erased messages, and frozen prompts.
          For 30 days, Cloudflare's point-in-time recovery can still restore the erased data.
        </p>
        {isBusy && erased > 0 && (
          <p class="note" role="status">
            {erased} of {mentions.length}
          </p>
        )}
      </Form>
    </Dialog>
  );
}
