// How long texts are kept, for the agent, a session or a block, and what would go.

import { useLayoutEffect, useState } from "preact/hooks";
import type { Operations } from "session-agent";
import { Button, Check, Field, Heading, Loading, Problem, Select } from "../ui/basics.tsx";
import { Table } from "../ui/table.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { tell } from "../notices.ts";
import { count, counted, shownTime } from "../text.ts";
import { useWork } from "../ui/work.ts";

type Applied = Operations["applyRetention"]["output"];
type Rules = Readonly<Record<string, number | null | undefined>>;
type Level = "agent" | "session" | "block";

const RULES = [
  ["sessionsIdleDays", "Days after which an idle session goes"],
  ["eventsDays", "Days after which an event goes"],
  ["versionsDays", "Days that an earlier version stays"],
  ["deletedDays", "Days that a deleted entry can be brought back"],
  ["entriesDays", "Days after which an entry that nobody writes goes"],
  ["runsKept", "Newest checkpoints of a LangGraph thread that stay"],
] as const;

const OF_BLOCKS: readonly string[] = ["versionsDays", "deletedDays", "entriesDays"];

const KINDS = [
  ["sessions", "idle sessions"],
  ["events", "events"],
  ["summaries", "summaries over them"],
  ["runs", "checkpoints"],
  ["versions", "earlier versions"],
  ["deleted", "traces of deleted entries"],
  ["entries", "entries"],
] as const;

export function Retention({ agent }: { agent: string }) {
  const [level, setLevel] = useState<Level>("agent");
  const [session, setSession] = useState("");
  const [label, setLabel] = useState("");
  const blocks = useLoad(agent, (signal) => openAgent(agent).getBlocks({ contents: false }, { signal }));
  const labels = blocks.data?.map(({ label }) => label) ?? [];
  const block = label || labels[0] || "";
  const name = level === "agent" ? "" : level === "session" ? session.trim() : block;
  return (
    <>
      <Heading
        title="Retention"
        note="How long texts are kept. The nearest rule holds: a block's before its session's, and that before the agent's."
      />
      <div class="card">
        <div class="columns">
          <Select
            label="The rules of"
            value={level}
            options={[
              ["agent", "the whole agent"],
              ["session", "one session"],
              ["block", "one block"],
            ]}
            onChange={setLevel}
          />
          {level === "session" && (
            <Field label="Session's id" value={session} onInput={setSession} placeholder="as in its address" />
          )}
          {level === "block" && (
            <Select
              label="Block"
              value={block}
              options={labels.map((label) => [label, label] as const)}
              onChange={setLabel}
            />
          )}
        </div>
      </div>
      {level === "session" && name === "" && <p class="hint">Name a session to see its rules.</p>}
      {level === "block" && name === "" && <p class="hint">This agent has no block of its own.</p>}
      {(level === "agent" || name !== "") && (
        <RulesOf key={`${level}/${name}`} agent={agent} level={level} name={name} />
      )}
    </>
  );
}

interface Place {
  rules: Rules;
  origin: string;
  isPinned: boolean;
  kind?: string;
}

async function read(agent: string, level: Level, name: string, signal: AbortSignal): Promise<Place> {
  const client = openAgent(agent);
  if (level === "agent") {
    const { retention, origins } = await client.getConfig({}, { signal });
    const origin =
      origins.retention === "agent" ? "set for this agent" : origins.retention === "defaults" ? "deployed" : "built in";
    return { rules: (retention ?? {}) as Rules, origin, isPinned: false };
  }
  if (level === "session") {
    const session = await client.session(name).getSession({}, { signal });
    if (session === null) throw new Error("There is no session of this id. Look at its address in the list.");
    return { rules: (session.retention ?? {}) as Rules, origin: "of this session", isPinned: session.pinned === true };
  }
  const block = await client.getBlock({ label: name }, { signal });
  return {
    rules: (block?.retention ?? {}) as Rules,
    origin: "of this block",
    isPinned: false,
    ...(block && { kind: block.kind }),
  };
}

function RulesOf({ agent, level, name }: { agent: string; level: Level; name: string }) {
  const place = useLoad(`${agent}/${level}/${name}`, (signal) => read(agent, level, name, signal));
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [isPinned, setPinned] = useState(false);
  const [found, setFound] = useState<Applied | null>(null);
  const [isBusy, run] = useWork();
  const { data } = place;
  useLayoutEffect(() => {
    setTexts(Object.fromEntries(RULES.map(([field]) => [field, data?.rules[field]?.toString() ?? ""])));
    setPinned(data?.isPinned ?? false);
  }, [data]);
  const maySet = level !== "block" || data?.kind === "searchable" || data?.kind === "loadable";
  const fields = RULES.filter(([field]) => level !== "block" || OF_BLOCKS.includes(field));
  /** An empty field is left out, but `null` where it lifts a rule from further out. */
  const rules = (): Rules => {
    const rules: Record<string, number | null> = {};
    for (const [field] of fields) {
      const text = texts[field]?.trim() ?? "";
      if (text !== "") rules[field] = Number(text);
      else if (data?.rules[field] === null) rules[field] = null;
    }
    return rules;
  };
  const of = { ...(level === "session" && { sessionId: name }), ...(level === "block" && { label: name }) };
  const dry = () =>
    run(async () =>
      setFound(await openAgent(agent).applyRetention({ dryRun: true, retention: rules(), ...of } as never)),
    );
  const store = () =>
    run(async () => {
      const retention = rules();
      const client = openAgent(agent);
      const isEmpty = Object.keys(retention).length === 0;
      if (level === "agent") await client.configureAgent({ retention: isEmpty ? null : retention } as never);
      else if (level === "session")
        await client.session(name).updateSession({ retention: isEmpty ? null : retention, pinned: isPinned } as never);
      else {
        const block = (await client.getBlock({ label: name })) as any;
        const { kind, description, maxTokens, whenChanged, source, modelWrites } = block;
        const kept = { kind, description, maxTokens, whenChanged, source, modelWrites };
        const given = Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== null));
        await client.defineBlock({ label: name, ...given, retention: isEmpty ? null : retention } as never);
      }
      tell("The rules are set. The agent keeps to them by itself.");
      place.reload();
    });
  if (place.error !== undefined) return <Problem error={place.error} retry={place.reload} />;
  if (data === undefined) return <Loading what="the rules" />;
  return (
    <>
      <form
        class="settings"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) store();
        }}
      >
        <fieldset class="card">
          <legend>Rules</legend>
          {fields.map(([field, label]) => (
            <Field
              key={field}
              label={label}
              type="number"
              value={texts[field] ?? ""}
              placeholder={data.rules[field] === null ? "no rule, whatever holds around" : "no rule here"}
              onInput={(text) => setTexts((before) => ({ ...before, [field]: text }))}
            />
          ))}
          {level === "session" && (
            <Check label="Pinned: no rule touches this session" isOn={isPinned} onChange={setPinned} />
          )}
          <p class="origin note">
            Where these rules come from: <span class="badge built-in">{data.origin}</span>
          </p>
        </fieldset>
        <div class="actions">
          <Button onClick={dry} icon="search" disabled={isBusy}>
            What would go
          </Button>
          {maySet && (
            <Button type="submit" kind="main" disabled={isBusy}>
              Set the rules
            </Button>
          )}
        </div>
        {!maySet && (
          <p class="hint">
            To define this block again would lose its default content. Set its rules where it is defined, with
            `defineBlock`.
          </p>
        )}
      </form>
      {found && <Found found={found} />}
      {found?.lastRun && (
        <p class="note">
          The last run ended {shownTime(found.lastRun.endedAt)} after {counted(found.lastRun.steps, "step")}.
        </p>
      )}
    </>
  );
}

function Found({ found }: { found: Applied }) {
  const gone = found.gone as unknown as Readonly<Record<string, { count: number; oldestAt: number | null }>>;
  const rows = KINDS.filter(([kind]) => (gone[kind]?.count ?? 0) > 0);
  return (
    <section aria-labelledby="would-go" role="status">
      <h2 class="part" id="would-go">
        What would go <span class="note">nothing was deleted</span>
      </h2>
      {rows.length === 0 && <p class="fine">Nothing would go by these rules.</p>}
      {rows.length > 0 && (
        <Table label="What would go" columns={["What", { number: "How many" }, "The oldest"]}>
          {rows.map(([kind, words]) => (
            <tr key={kind}>
              <td>{words}</td>
              <td class="number">
                {found.complete ? "" : "at least "}
                {count(gone[kind]!.count)}
              </td>
              <td>{shownTime(gone[kind]!.oldestAt)}</td>
            </tr>
          ))}
        </Table>
      )}
      {!found.complete && <p class="hint">The dry run looked at 20,000 rows. A run goes on behind them.</p>}
    </section>
  );
}
