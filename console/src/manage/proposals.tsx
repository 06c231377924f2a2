// Proposals: the changes of memory that the agent learned or proposes, each with its evidence. They are
// approved or rejected one by one.

import { useState } from "preact/hooks";
import type { Operations } from "session-agent";
import { diff } from "../memory/diff.ts";
import { Diff } from "../memory/versions.tsx";
import { Button, Check, Empty, Field, Heading, Name, Select } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Evidence } from "../ui/evidence.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { notify } from "../notices.ts";
import { may } from "../rights.ts";
import { hashOf } from "../route.ts";
import { counted, shownName, shownText, shownTime } from "../text.ts";
import { useWork } from "../ui/work.ts";

type Proposal = Operations["getProposals"]["output"]["proposals"][number];
type Change = Proposal["changes"][number];
type Shown = "pending" | "today" | "applied" | "rejected" | "reverted";

const SHOWN: ReadonlyArray<readonly [Shown, string]> = [
  ["pending", "Pending"],
  ["today", "Learned today"],
  ["applied", "Learned"],
  ["rejected", "Rejected"],
  ["reverted", "Reverted"],
];

const ACTIONS: Readonly<Record<string, string>> = {
  add: "New entry",
  replace: "Changed text",
  retire: "No longer true",
  forget: "Delete",
  write: "Block text",
};

const LEARNS: Readonly<Record<string, string>> = {
  turn: "after each turn",
  idle: "when a conversation is idle",
  manual: "on request",
};

const isApplied = ({ status }: Change) => status === "applied";

/** The most calls of one consolidation. Each is a bounded step. */
const MAX_STEPS = 50;

export function Proposals({ agent }: { agent: string }) {
  const [shown, setShown] = useState<Shown>("pending");
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const [isBusy, run] = useWork();
  // A pending proposal may have been applied in part.
  const status = shown === "today" ? {} : { status: shown };
  const cursor = cursors.at(-1);
  const page = useLoad(`${agent}/${shown}/${cursor ?? ""}`, (signal) =>
    openAgent(agent).getProposals({ ...status, ...(cursor !== undefined && { cursor }) }, { signal }),
  );
  const { data, reload } = page;
  const midnight = new Date().setHours(0, 0, 0, 0);
  const proposals = (data?.proposals ?? []).filter(
    ({ changes, decidedAt, createdAt }) =>
      shown !== "today" || (changes.some(isApplied) && (decidedAt ?? createdAt) >= midnight),
  );
  const learn = () =>
    run(async () => {
      const result = await openAgent(agent).learn({});
      notify(`Read ${counted(result.events, "event")} and made ${counted(result.proposals.length, "proposal")}.`);
      reload();
    });
  const consolidate = () =>
    run(async () => {
      for (let step = 0; step < MAX_STEPS; step += 1) {
        const { proposal, complete } = await openAgent(agent).consolidate({});
        if (proposal != null) {
          notify("Created a proposal. Review it below.");
          break;
        }
        if (complete) {
          notify("Found nothing to merge.");
          break;
        }
      }
      reload();
    });
  return (
    <>
      <Heading
        title="Proposals"
        note="Facts that a model suggests for the agent's memory. They are stored when you approve them, or immediately if the settings allow it."
      >
        {may("learn") && (
          <Button icon="spark" onClick={learn} disabled={isBusy}>
            Learn now
          </Button>
        )}
        {may("consolidate") && (
          <Button icon="compact" onClick={consolidate} disabled={isBusy}>
            Consolidate
          </Button>
        )}
      </Heading>
      <div class="card">
        <Select
          label="Show"
          value={shown}
          options={SHOWN}
          onChange={(to) => {
            setShown(to);
            setCursors([]);
          }}
        />
      </div>
      <Pending of={page} what="the proposals" />
      {data && proposals.length === 0 && (
        <Empty title={shown === "pending" ? "No pending proposals" : "No proposals"} icon="check">
          <HowItLearns agent={agent} />
        </Empty>
      )}
      <ul class="rows">
        {proposals.map((proposal) => (
          <ProposalCard
            key={`${proposal.id}/${proposal.decidedAt ?? ""}`}
            agent={agent}
            proposal={proposal}
            onChange={reload}
          />
        ))}
      </ul>
      <div class="actions">
        {cursors.length > 0 && <Button onClick={() => setCursors(cursors.slice(0, -1))}>Newer</Button>}
        {data?.cursor != null && <Button onClick={() => setCursors([...cursors, data.cursor!])}>Older</Button>}
      </div>
    </>
  );
}

/** Whether the agent learns automatically, and the setting for it. */
function HowItLearns({ agent }: { agent: string }) {
  const { data } = useLoad(agent, async (signal) =>
    may("getConfig") ? await openAgent(agent).getConfig({}, { signal }) : null,
  );
  if (data == null) return null;
  const { learn } = data;
  const settings = hashOf({ view: "settings", agent });
  if (learn?.into == null)
    return (
      <>
        <p>Learning is off for this agent. To turn it on, choose a block for the facts it learns.</p>
        <a class="button main" href={settings}>
          Set up learning
        </a>
      </>
    );
  return (
    <p>
      The agent stores facts in{" "}
      <a href={hashOf({ view: "memory", agent, label: learn.into })}>{shownName(learn.into)}</a>{" "}
      {LEARNS[learn.after] ?? learn.after}. <a href={settings}>Change settings</a>.
    </p>
  );
}

function ProposalCard({ agent, proposal, onChange }: { agent: string; proposal: Proposal; onChange: () => void }) {
  const { id, kind, sessionId, model, createdAt, refused, changes } = proposal;
  const pending = changes.filter((change) => change.status === "pending");
  const [unchecked, setUnchecked] = useState<ReadonlySet<number>>(new Set());
  const [texts, setTexts] = useState<ReadonlyMap<number, string>>(new Map());
  const [isBusy, run] = useWork();
  const chosen = pending.filter(({ index }) => !unchecked.has(index));
  const decide = (approve: boolean) =>
    run(async () => {
      const decided = chosen.map(({ index, content }) => {
        const text = texts.get(index);
        return { index, ...(approve && text !== undefined && text !== content && { content: text }) };
      });
      await openAgent(agent).decideProposal({
        id,
        ...(approve ? { approve: true } : { reject: true }),
        changes: decided,
      } as never);
      notify(approve ? `Approved ${counted(decided.length, "change")}.` : "Rejected.");
      onChange();
    });
  const revert = () =>
    run(async () => {
      await openAgent(agent).revertProposal({ id });
      notify("Reverted.");
      onChange();
    });
  return (
    <li class="card">
      <header class="heading">
        <div>
          <h2>{kind === "consolidate" ? "Consolidation" : "Learning"}</h2>
          <p class="note">
            {shownTime(createdAt)}
            {model != null && (
              <>
                {" by "}
                <Name text={model} />
              </>
            )}
            {sessionId != null && (
              <>
                {", from "}
                <a href={hashOf({ view: "session", agent, session: sessionId, tab: "conversation" })}>a conversation</a>
              </>
            )}
            {refused > 0 && `, ${counted(refused, "invalid change")} omitted`}
          </p>
        </div>
        <div class="actions">
          {pending.length > 0 && may("decideProposal") && (
            <>
              <Button disabled={isBusy || chosen.length === 0} onClick={() => decide(false)}>
                Reject
              </Button>
              <Button kind="main" icon="check" disabled={isBusy || chosen.length === 0} onClick={() => decide(true)}>
                Approve
              </Button>
            </>
          )}
          {changes.some(isApplied) && may("revertProposal") && (
            <Button disabled={isBusy} onClick={revert}>
              Revert
            </Button>
          )}
        </div>
      </header>
      <ul class="rows">
        {changes.map((change) => (
          <ChangeRow
            key={change.index}
            agent={agent}
            change={change}
            isOn={!unchecked.has(change.index)}
            text={texts.get(change.index) ?? change.content ?? ""}
            onText={(text) => setTexts(new Map(texts).set(change.index, text))}
            onChoose={(isOn) => {
              const next = new Set(unchecked);
              if (isOn) next.delete(change.index);
              else next.add(change.index);
              setUnchecked(next);
            }}
          />
        ))}
      </ul>
    </li>
  );
}

interface ChangeProps {
  agent: string;
  change: Change;
  isOn: boolean;
  text: string;
  onText: (text: string) => void;
  onChoose: (isOn: boolean) => void;
}

function ChangeRow({ agent, change, isOn, text, onText, onChoose }: ChangeProps) {
  const { action, label, key, content, before, events, source, status, reason, supersedes } = change;
  const isPending = status === "pending";
  const name = `${label}${key == null ? "" : ` / ${key}`}`;
  return (
    <li class="entry proposed">
      <header>
        {isPending ? (
          <Check label={ACTIONS[action] ?? action} isOn={isOn} onChange={onChoose} />
        ) : (
          <b>{ACTIONS[action] ?? action}</b>
        )}
        <a href={hashOf({ view: "memory", agent, label, ...(key != null && { entry: key }) })}>
          <Name text={name} />
        </a>
        <span class="note">
          from {source}
          {!isPending && `, ${status}`}
        </span>
      </header>
      {before != null && content != null && <Diff rows={diff(before.content, text)} />}
      {before != null && content == null && <p class="prose">{shownText(before.content)}</p>}
      {isPending && content != null && may("decideProposal") ? (
        <Field label={`Text of ${name}`} isLabelHidden value={text} onInput={onText} rows={2} />
      ) : (
        content != null && before == null && <p class="prose">{shownText(content)}</p>
      )}
      {supersedes != null && supersedes.length > 0 && <p class="note">Replaces {supersedes.join(", ")}.</p>}
      {reason != null && <p class="hint">{shownText(reason)}</p>}
      <Evidence agent={agent} events={events} />
    </li>
  );
}
