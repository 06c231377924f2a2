// The agents in the Worker's directory. They can be searched, and erased with a receipt.

import { useState } from "preact/hooks";
import { NotConfiguredError, type Operations } from "session-agent";
import { Button, Empty, Field, Heading, Name } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { notify } from "../notices.ts";
import { hashOf } from "../route.ts";
import { erasedText, shownText, shownTime } from "../text.ts";
import { keepReceipt, Receipts } from "./receipts.tsx";
import { useWork } from "../ui/work.ts";

type Found = Operations["searchAgents"]["output"];

export function Agents({ agent }: { agent: string }) {
  const [prefix, setPrefix] = useState("");
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const [query, setQuery] = useState("");
  const [hits, setHits] = useState<Found | null>(null);
  const [isErasing, setErasing] = useState(false);
  const [isBusy, run] = useWork();
  const cursor = cursors.at(-1);
  const page = useLoad(`${agent}/${prefix}/${cursor ?? ""}`, (signal) =>
    openAgent(agent).listAgents({ prefix, ...(cursor !== undefined && { cursor }) }, { signal }),
  );
  const { data, error } = page;
  if (error instanceof NotConfiguredError) {
    return (
      <Empty title="This Worker has no agent directory" icon="chat">
        <p>
          Cloudflare has no API to list objects from a Worker. To list agents here, add the binding{" "}
          <code>DIRECTORY</code> to wrangler.toml and deploy. Each agent registers on its next request.
        </p>
      </Empty>
    );
  }
  return (
    <>
      <Heading
        title="Agents"
        note="The agents in the directory. Give all agents of a user names with the same prefix, such as user:42:."
      >
        <Button icon="redo" onClick={page.reload}>
          Reload
        </Button>
      </Heading>
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy && prefix !== "" && query.trim() !== "")
            run(async () => setHits(await openAgent(agent).searchAgents({ prefix, query: query.trim() })));
        }}
      >
        <Field
          label="Name prefix"
          value={prefix}
          placeholder="all agents"
          onInput={(text) => {
            setPrefix(text);
            setCursors([]);
            setHits(null);
          }}
        />
        <Field
          label="Search their conversations"
          value={query}
          onInput={setQuery}
          hint="Searches up to 32 agents with this prefix."
        />
        <div class="actions">
          <Button type="submit" icon="search" disabled={isBusy || prefix === "" || query.trim() === ""}>
            Search
          </Button>
          <Button kind="danger" icon="trash" disabled={prefix === ""} onClick={() => setErasing(true)}>
            Erase these agents
          </Button>
        </div>
      </form>
      {hits !== null && <Hits hits={hits} />}
      <Pending of={page} what="the agents" />
      {data?.agents.length === 0 && <p class="hint">No agent has this prefix.</p>}
      {data && data.agents.length > 0 && (
        <ul class="seen" aria-label="Agents">
          {data.agents.map(({ name, ...listed }) => (
            <li key={name}>
              <a href={hashOf({ view: "sessions", agent: name })}>
                <Name text={name} />
                <span class="note">{shownTime((listed as { createdAt?: number }).createdAt)}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
      <div class="actions">
        {cursors.length > 0 && <Button onClick={() => setCursors(cursors.slice(0, -1))}>Previous</Button>}
        {data?.cursor != null && <Button onClick={() => setCursors([...cursors, data.cursor!])}>More</Button>}
      </div>
      <Receipts agent={agent} />
      {isErasing && (
        <Erase
          agent={agent}
          prefix={prefix}
          onClose={() => setErasing(false)}
          onDone={() => (setErasing(false), page.reload())}
        />
      )}
    </>
  );
}

function Hits({ hits }: { hits: Found }) {
  const results = hits.results as unknown as ReadonlyArray<{
    agent: string;
    sessionId: string;
    id: string;
    snippet: string;
  }>;
  return (
    <section aria-label="Results" role="status">
      <p class="note">
        {results.length} results in {hits.agents.length} agents
        {hits.more && "; more agents match: use a longer prefix to search the rest"}
        {hits.failed.length > 0 && `; no answer from ${hits.failed.join(", ")}`}
      </p>
      <ul class="rows">
        {results.map((hit) => (
          <li class="card entry" key={`${hit.agent}/${hit.sessionId}/${hit.id}`}>
            <header>
              <Name text={hit.agent} />
              <a
                class="note"
                href={hashOf({
                  view: "session",
                  agent: hit.agent,
                  session: hit.sessionId,
                  tab: "conversation",
                  at: hit.id,
                })}
              >
                Open
              </a>
            </header>
            <p class="prose">{shownText(hit.snippet)}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface EraseProps {
  agent: string;
  prefix: string;
  onClose: () => void;
  onDone: () => void;
}

function Erase({ agent, prefix, onClose, onDone }: EraseProps) {
  const [confirm, setConfirm] = useState("");
  const [homes, setHomes] = useState("");
  const [isBusy, run] = useWork();
  const erase = () =>
    run(async () => {
      if (confirm !== prefix) throw new Error("Type the name prefix exactly as it appears above.");
      const named = homes
        .split("\n")
        .map((name) => name.trim())
        .filter((name) => name !== "");
      let receipt: Operations["eraseAgents"]["output"]["receipt"] | undefined;
      let count = 0;
      for (;;) {
        const result: Operations["eraseAgents"]["output"] = await openAgent(agent).eraseAgents({
          prefix,
          confirm,
          ...(named.length > 0 && { homes: named }),
          ...(receipt !== undefined && { receipt }),
        } as never);
        ({ receipt } = result);
        count += result.agents.length;
        if (result.agents.length === 0 && result.failed.length > 0)
          throw new Error(`These agents didn't respond and were not erased: ${result.failed.join(", ")}. Try again.`);
        if (result.more || result.failed.length > 0) continue;
        const stored = keepReceipt(receipt!);
        const others =
          result.homesLeft.length > 0
            ? ` Not erased because other agents share their memory: ${result.homesLeft.join(", ")}.`
            : "";
        notify(`Erased ${count} agents: ${erasedText(stored.erased)}.${others}`);
        return onDone();
      }
    });
  return (
    <Dialog title="Erase agents" onClose={onClose}>
      <Form onSubmit={erase} onClose={onClose} submit="Erase" kind="danger" isBusy={isBusy}>
        <p>
          This erases every agent whose name begins with <Name text={prefix} />, with all its data. You can't undo this.
        </p>
        <Field label="Type the name prefix to confirm" value={confirm} onInput={setConfirm} required autofocus />
        <Field
          label="Other agents that store the shared memory of these agents"
          value={homes}
          onInput={setHomes}
          rows={2}
          hint="One per line. They are erased last. The agent whose name is the prefix without its final colon is always erased."
        />
      </Form>
    </Dialog>
  );
}
