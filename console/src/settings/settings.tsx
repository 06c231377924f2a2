// The settings of the whole agent, and the origin of each of them.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Operations } from "session-agent";
import { Button, Check, Field, Heading, Select } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Icon } from "../ui/icons.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { notify, notifyError } from "../notices.ts";
import { may } from "../rights.ts";
import { shownName, shownText } from "../text.ts";
import { changesOf, groupsOf, type SettingField, settingOf, type Texts, textsOf } from "./fields.ts";

type Config = Operations["getConfig"]["output"];
type Input = Operations["configureAgent"]["input"];

export function Settings({ agent }: { agent: string }) {
  const loaded = useLoad(agent, (signal) => openAgent(agent).getConfig({}, { signal }));
  const { data, reload } = loaded;
  const mayChange = may("configureAgent");
  const [turn, setTurn] = useState(0);
  return (
    <section class="page">
      <Heading
        isFirst
        title="Settings"
        note={`Settings apply to every session of this agent.${mayChange ? "" : " Your token can only read them. To change them, sign in with the Worker's secret."}`}
      >
        <Button icon="redo" onClick={() => (setTurn(turn + 1), reload())}>
          Reload
        </Button>
      </Heading>
      <Pending of={loaded} what="the settings" />
      {data && data.problems.length > 0 && <Problems problems={data.problems} />}
      {data && <Change key={turn} agent={agent} config={data} mayChange={mayChange} onDone={reload} />}
    </section>
  );
}

function Problems({ problems }: { problems: Config["problems"] }) {
  return (
    <section class="problem deployed" aria-labelledby="problems">
      <Icon name="warning" />
      <div>
        <h2 id="problems">Invalid deployed defaults</h2>
        <p>The Worker ignores these invalid defaults and applies the others.</p>
        <ul>
          {problems.map(({ source, field, message }) => (
            <li key={`${source} ${field}`}>
              <b>
                {shownName(source)}
                {field !== "" && `: ${shownName(field)}`}
              </b>{" "}
              <span>{shownText(message)}</span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}

interface ChangeProps {
  agent: string;
  config: Config;
  mayChange: boolean;
  onDone: () => void;
}

function Change({ agent, config, mayChange, onDone }: ChangeProps) {
  const [texts, setTexts] = useState(() => textsOf(config));
  const [isBusy, setBusy] = useState(false);
  /** The texts of the form as they were loaded, or as they were sent last. */
  const known = useRef(texts);
  // Before the page is painted: a value and its origin change together. A text that was written
  // since is not lost.
  useLayoutEffect(() => {
    const before = known.current;
    const loaded = textsOf(config);
    known.current = loaded;
    setTexts((texts) =>
      Object.fromEntries(
        Object.entries(loaded).map(([path, text]) => [path, texts[path] === before[path] ? text : texts[path]!]),
      ),
    );
  }, [config]);
  const origins = config.origins as unknown as Record<string, Origin>;
  /** `sent`: the texts that were saved. */
  const configure = async (input: () => Record<string, unknown>, notice: string, sent: Texts) => {
    setBusy(true);
    try {
      await openAgent(agent).configureAgent(input() as Input);
      known.current = sent;
      notify(notice);
      onDone();
    } catch (error) {
      notifyError(error);
    }
    setBusy(false);
  };
  const save = () => configure(() => changesOf(textsOf(config), texts, { ...config }), "Saved.", texts);
  const giveUp = (setting: string) => {
    const own = Object.entries(texts).filter(([path]) => path.split(".")[0] === setting);
    void configure(() => ({ [setting]: null }), "Reset to the default.", {
      ...known.current,
      ...Object.fromEntries(own),
    });
  };
  return (
    <form
      class="settings"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy) void save();
      }}
    >
      {groupsOf(origins).map(({ title, fields }) => (
        <fieldset class="card" key={title} disabled={!mayChange}>
          <legend>{title}</legend>
          {fields.map((field, n) => (
            <div class="setting" key={field.path}>
              <Input
                field={field}
                text={texts[field.path] ?? ""}
                onInput={(text) => setTexts((before) => ({ ...before, [field.path]: text }))}
              />
              {settingOf(field) !== (fields[n + 1] && settingOf(fields[n + 1]!)) && (
                <OriginLine
                  setting={settingOf(field)}
                  origin={origins[settingOf(field)] ?? "built-in"}
                  giveUp={mayChange ? () => giveUp(settingOf(field)) : undefined}
                />
              )}
            </div>
          ))}
        </fieldset>
      ))}
      {mayChange && (
        <footer>
          <Button type="submit" kind="main" disabled={isBusy}>
            Save
          </Button>
        </footer>
      )}
    </form>
  );
}

interface InputProps {
  field: SettingField;
  text: string;
  onInput: (text: string) => void;
}

function Input({ field: { label, kind, hint, placeholder, options, list }, text, onInput }: InputProps) {
  if (kind === "switch")
    return <Check label={label} isOn={text === "true"} onChange={(isOn) => onInput(String(isOn))} />;
  if (kind === "choice") return <Select label={label} value={text} options={options ?? []} onChange={onInput} />;
  const isLong = kind === "long" || kind === "prose" || kind === "json" || kind === "list";
  return (
    <Field
      label={label}
      value={text}
      onInput={onInput}
      type={kind === "number" ? "number" : "text"}
      {...(isLong && { rows: kind === "long" ? 5 : 2 })}
      {...(hint !== undefined && { hint })}
      {...(placeholder !== undefined && { placeholder })}
      {...(list !== undefined && { list })}
    />
  );
}

type Origin = "agent" | "defaults" | "built-in";

const ORIGINS: Record<Origin, string> = {
  agent: "set for this agent",
  defaults: "deployed for all agents",
  "built-in": "built in",
};

function OriginLine({
  setting,
  origin,
  giveUp,
}: {
  setting: string;
  origin: Origin;
  giveUp: (() => void) | undefined;
}) {
  return (
    <p class="origin note">
      <span class={`badge ${origin}`}>{ORIGINS[origin]}</span> <code>{setting}</code>
      {origin === "agent" && giveUp && (
        <Button kind="quiet" onClick={giveUp} label={`Reset ${setting}`}>
          Reset
        </Button>
      )}
    </p>
  );
}
