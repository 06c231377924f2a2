// The retention rules of the agent, a session or a block, and a preview of what they delete.

import { useLayoutEffect, useState } from "preact/hooks";
import type { Operations } from "session-agent";
import { Button, Check, Field, Heading, Loading, Problem, Select } from "../ui/basics.tsx";
import { Table } from "../ui/table.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { notify } from "../notices.ts";
import { count, counted, shownTime } from "../text.ts";
import { useWork } from "../ui/work.ts";

type Applied = Operations["applyRetention"]["output"];
type Rules = Readonly<Record<string, number | null | undefined>>;
type Level = "agent" | "session" | "block";

const RULES = [
  ["sessionsIdleDays", "Delete idle sessions after (days)"],
  ["eventsDays", "Delete events after (days)"],
  ["versionsDays", "Delete earlier versions after (days)"],
  ["deletedDays", "Delete deleted entries permanently after (days)"],
  ["entriesDays", "Delete unchanged entries after (days)"],
  ["runsKept", "LangGraph checkpoints to keep per thread"],
] as const;

const OF_BLOCKS: readonly string[] = ["versionsDays", "deletedDays", "entriesDays"];

const KINDS = [
  ["sessions", "idle sessions"],
  ["events", "events"],
  ["summaries", "summaries of deleted events"],
  ["runs", "checkpoints"],
  ["versions", "earlier versions"],
  ["deleted", "deleted entries"],
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
        note="How long data is stored. A block's rules override its session's rules, which override the agent's rules."
      />
      <div class="card">
        <div class="columns">
          <Select
            label="Rules for"
            value={level}
            options={[
              ["agent", "entire agent"],
              ["session", "one session"],
              ["block", "one block"],
            ]}
            onChange={setLevel}
          />
          {level === "session" && (
            <Field label="Session ID" value={session} onInput={setSession} placeholder="from the session's URL" />
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
      {level === "session" && name === "" && <p class="hint">Enter a session ID to see its rules.</p>}
      {level === "block" && name === "" && <p class="hint">This agent has no blocks.</p>}
      {(level === "agent" || name !== "") && (
        <RulesOf key={`${level}/${name}`} agent={agent} level={level} name={name} />
      )}
    </>
  );
}

interface LevelRules {
  rules: Rules;
  origin: string;
  isPinned: boolean;
  kind?: string;
}

async function read(agent: string, level: Level, name: string, signal: AbortSignal): Promise<LevelRules> {
  const client = openAgent(agent);
  if (level === "agent") {
    const { retention, origins } = await client.getConfig({}, { signal });
    const origin =
      origins.retention === "agent" ? "set for this agent" : origins.retention === "defaults" ? "deployed" : "built in";
    return { rules: (retention ?? {}) as Rules, origin, isPinned: false };
  }
  if (level === "session") {
    const session = await client.session(name).getSession({}, { signal });
    if (session === null)
      throw new Error("There is no session with this ID. Open the session and copy the ID from its URL.");
    return {
      rules: (session.retention ?? {}) as Rules,
      origin: "set for this session",
      isPinned: session.pinned === true,
    };
  }
  const block = await client.getBlock({ label: name }, { signal });
  return {
    rules: (block?.retention ?? {}) as Rules,
    origin: "set for this block",
    isPinned: false,
    ...(block && { kind: block.kind }),
  };
}

function RulesOf({ agent, level, name }: { agent: string; level: Level; name: string }) {
  const loaded = useLoad(`${agent}/${level}/${name}`, (signal) => read(agent, level, name, signal));
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [isPinned, setPinned] = useState(false);
  const [found, setFound] = useState<Applied | null>(null);
  const [isBusy, run] = useWork();
  const { data } = loaded;
  useLayoutEffect(() => {
    setTexts(Object.fromEntries(RULES.map(([field]) => [field, data?.rules[field]?.toString() ?? ""])));
    setPinned(data?.isPinned ?? false);
  }, [data]);
  const maySet = level !== "block" || data?.kind === "searchable" || data?.kind === "loadable";
  const fields = RULES.filter(([field]) => level !== "block" || OF_BLOCKS.includes(field));
  /** An empty field is omitted, or `null` if it removes an inherited rule. */
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
        const definition = { kind, description, maxTokens, whenChanged, source, modelWrites };
        const given = Object.fromEntries(Object.entries(definition).filter(([, value]) => value !== null));
        await client.defineBlock({ label: name, ...given, retention: isEmpty ? null : retention } as never);
      }
      notify("Rules saved. The agent applies them automatically.");
      loaded.reload();
    });
  if (loaded.error !== undefined) return <Problem error={loaded.error} retry={loaded.reload} />;
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
              placeholder={data.rules[field] === null ? "never (overrides other rules)" : "not set"}
              onInput={(text) => setTexts((before) => ({ ...before, [field]: text }))}
            />
          ))}
          {level === "session" && <Check label="Pinned: exempt from all rules" isOn={isPinned} onChange={setPinned} />}
          <p class="origin note">
            Source of these rules: <span class="badge built-in">{data.origin}</span>
          </p>
        </fieldset>
        <div class="actions">
          <Button onClick={dry} icon="search" disabled={isBusy}>
            Preview
          </Button>
          {maySet && (
            <Button type="submit" kind="main" disabled={isBusy}>
              Save rules
            </Button>
          )}
        </div>
        {!maySet && (
          <p class="hint">
            Saving rules here would remove the block's default content. Set the rules where you define the block, with
            <code>defineBlock</code>.
          </p>
        )}
      </form>
      {found && <Found found={found} />}
      {found?.lastRun && (
        <p class="note">
          The last run finished {shownTime(found.lastRun.endedAt)} after {counted(found.lastRun.steps, "step")}.
        </p>
      )}
    </>
  );
}

function Found({ found }: { found: Applied }) {
  const counts = found.gone as unknown as Readonly<Record<string, { count: number; oldestAt: number | null }>>;
  const rows = KINDS.filter(([kind]) => (counts[kind]?.count ?? 0) > 0);
  return (
    <section aria-labelledby="would-go" role="status">
      <h2 class="part" id="would-go">
        Preview <span class="note">nothing was deleted</span>
      </h2>
      {rows.length === 0 && <p class="fine">These rules would delete nothing.</p>}
      {rows.length > 0 && (
        <Table label="Preview" columns={["Data", { number: "Count" }, "Oldest"]}>
          {rows.map(([kind, words]) => (
            <tr key={kind}>
              <td>{words}</td>
              <td class="number">
                {found.complete ? "" : "at least "}
                {count(counts[kind]!.count)}
              </td>
              <td>{shownTime(counts[kind]!.oldestAt)}</td>
            </tr>
          ))}
        </Table>
      )}
      {!found.complete && <p class="hint">The preview stopped after 20,000 rows. A real run has no such limit.</p>}
    </section>
  );
}
