// What belongs to the whole agent.

import { useEffect, useState } from "preact/hooks";
import type { Operations } from "session-agent";
import { Button, Check, Field, Heading, Loading, Problem } from "./ui/basics.tsx";
import { Form } from "./ui/dialog.tsx";
import { openAgent } from "./connection.ts";
import { useLoad } from "./load.ts";
import { tell, tellError } from "./notices.ts";

type Config = Operations["getConfig"]["output"];

const MODELS = ["demo", "anthropic:", "openai:", "workers-ai:"];

export function Settings({ agent }: { agent: string }) {
  const { data, error, reload } = useLoad(agent, (signal) => openAgent(agent).getConfig({}, { signal }));
  return (
    <section class="page">
      <Heading isFirst title="Settings" note="They hold for every session of this agent. To change them, the console needs the Worker's secret.">
        <Button icon="redo" onClick={reload}>Reload</Button>
      </Heading>
      {error !== undefined && <Problem error={error} retry={reload} />}
      {data === undefined && error === undefined && <Loading what="the settings" />}
      {data && <Change agent={agent} config={data} onDone={reload} />}
    </section>
  );
}

function Change({ agent, config, onDone }: { agent: string; config: Config; onDone: () => void }) {
  const [model, setModel] = useState(config.model ?? "");
  const [instructions, setInstructions] = useState(config.systemInstructions.join("\n\n"));
  const [maxSteps, setMaxSteps] = useState(String(config.maxSteps));
  const [sessionSearch, setSessionSearch] = useState(config.sessionSearch);
  const [vectors, setVectors] = useState(config.vectors);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    setModel(config.model ?? "");
    setInstructions(config.systemInstructions.join("\n\n"));
    setMaxSteps(String(config.maxSteps));
    setSessionSearch(config.sessionSearch);
    setVectors(config.vectors);
  }, [config]);
  const save = async () => {
    setBusy(true);
    try {
      // Only what was changed: the rest may come from elsewhere, and stays there.
      await openAgent(agent).configureAgent({
        ...(model.trim() !== (config.model ?? "") && { model: model.trim() || null }),
        ...(instructions !== config.systemInstructions.join("\n\n") && { systemInstructions: instructions.trim() === "" ? [] : [instructions] }),
        ...(Number(maxSteps) !== config.maxSteps && { maxSteps: Number(maxSteps) }),
        ...(sessionSearch !== config.sessionSearch && { sessionSearch }),
        ...(vectors !== config.vectors && { vectors }),
      });
      tell("Saved.");
      onDone();
    } catch (error) {
      tellError(error);
    }
    setBusy(false);
  };
  return (
    <div class="card">
      <Form submit="Save" onSubmit={() => void save()} isBusy={isBusy}>
        <Field label="Model" value={model} onInput={setModel} list={MODELS} placeholder="the Worker's own" hint="demo, or a provider's name and a colon before the model's. Empty: the Worker's MODEL." />
        <Field label="System instructions" value={instructions} onInput={setInstructions} rows={5} hint="They stand in front of every turn of this agent." />
        <Field label="Most steps of a turn" value={maxSteps} onInput={setMaxSteps} type="number" />
        <Check label="The model may search all sessions" isOn={sessionSearch} onChange={setSessionSearch} />
        <Check label="Search compares meanings, too" isOn={vectors} onChange={setVectors} />
      </Form>
    </div>
  );
}
