// A token: made with what it may, shown once, and said what it may.

import { useState } from "preact/hooks";
import { Button, Check, Field, Heading, Select } from "../ui/basics.tsx";
import { openAgent } from "../connection.ts";
import { tell, tellError } from "../notices.ts";
import { shownTime } from "../text.ts";
import { rightsOf } from "../token.ts";
import { useWork } from "../ui/work.ts";

type Preset = "chat" | "read" | "none";

const LIVES = [
  ["900", "15 minutes"],
  ["3600", "an hour"],
  ["28800", "8 hours"],
  ["86400", "a day"],
] as const;

const ALLOWED = [
  ["systemInstructions", "add system instructions to a turn"],
  ["clientTools", "bring tools that run in the page"],
  ["agentMessages", "write what the agent or its tools said"],
  ["agentMemory", "have the model write the agent's own memory"],
] as const;

const lines = (text: string): string[] =>
  text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== "");

const numberOf = (text: string): number | undefined => (text.trim() === "" ? undefined : Number(text));

export function Tokens({ agent }: { agent: string }) {
  const [preset, setPreset] = useState<Preset>("chat");
  const [session, setSession] = useState("");
  const [operations, setOperations] = useState("");
  const [expiresIn, setExpiresIn] = useState("3600");
  const [allow, setAllow] = useState<ReadonlySet<string>>(new Set());
  const [models, setModels] = useState("");
  const [tools, setTools] = useState("");
  const [limits, setLimits] = useState({ turnsPerMinute: "", tokensPerDay: "", costPerDay: "" });
  const [holder, setHolder] = useState("");
  const [minted, setMinted] = useState<{ token: string; expiresAt: number } | null>(null);
  const [isBusy, run] = useWork();
  const mint = () =>
    run(async () => {
      const most = Object.fromEntries(
        Object.entries(limits).flatMap(([name, text]) => {
          const value = numberOf(text);
          return value === undefined ? [] : [[name, value]];
        }),
      );
      const hasLimits = Object.keys(most).length > 0;
      const allowed = {
        ...Object.fromEntries([...allow].map((name) => [name, true])),
        ...(lines(models).length > 0 && { models: lines(models) }),
        ...(lines(tools).length > 0 && { tools: lines(tools) }),
      };
      const input = {
        expiresIn: Number(expiresIn),
        ...(preset !== "none" && { preset }),
        ...(session.trim() !== "" && { sessionId: session.trim() }),
        ...(lines(operations).length > 0 && { operations: lines(operations) }),
        ...(Object.keys(allowed).length > 0 && { allow: allowed }),
        ...(hasLimits && { limits: most, ...(holder.trim() !== "" && { holder: holder.trim() }) }),
      };
      setMinted(await openAgent(agent).mintToken(input as never));
    });
  return (
    <>
      <Heading
        title="Tokens"
        note="A token is for a page or a person. It is signed, and nobody can take it back before it ends, so let it be short."
      />
      {minted !== null && <MintedToken agent={agent} minted={minted} onClose={() => setMinted(null)} />}
      <form
        class="settings"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) mint();
        }}
      >
        <fieldset class="card">
          <legend>What it may</legend>
          <Select
            label="Preset"
            value={preset}
            options={[
              ["chat", "chat: turns in one session, and what a page shows of it"],
              ["read", "read: all that changes nothing"],
              ["none", "none: the operations below, or all that need no secret"],
            ]}
            onChange={setPreset}
          />
          <Field
            label="Session"
            value={session}
            onInput={setSession}
            placeholder={preset === "chat" ? "needed" : "the whole agent"}
            required={preset === "chat"}
            hint="The token then sees this session alone."
          />
          <Field
            label="Further operations"
            value={operations}
            onInput={setOperations}
            rows={2}
            hint="One on each line, such as setEntry."
          />
          <Select label="It lives" value={expiresIn} options={LIVES} onChange={setExpiresIn} />
        </fieldset>
        <fieldset class="card">
          <legend>What its holder may say</legend>
          {ALLOWED.map(([name, label]) => (
            <Check
              key={name}
              label={label}
              isOn={allow.has(name)}
              onChange={(isOn) => {
                const next = new Set(allow);
                if (isOn) next.add(name);
                else next.delete(name);
                setAllow(next);
              }}
            />
          ))}
          <Field
            label="Models that a turn may name"
            value={models}
            onInput={setModels}
            rows={2}
            hint="One on each line."
          />
          <Field
            label="Registered tools that may be called over MCP"
            value={tools}
            onInput={setTools}
            rows={2}
            hint="One on each line."
          />
        </fieldset>
        <fieldset class="card">
          <legend>What it may spend</legend>
          {(
            [
              ["turnsPerMinute", "Turns in a minute"],
              ["tokensPerDay", "Tokens in a day"],
              ["costPerDay", "Cost of a day"],
            ] as const
          ).map(([name, label]) => (
            <Field
              key={name}
              label={label}
              type="number"
              value={limits[name]}
              placeholder="as the agent"
              onInput={(text) => setLimits({ ...limits, [name]: text })}
            />
          ))}
          <Field
            label="Holder"
            value={holder}
            onInput={setHolder}
            hint="Tokens of one holder share one count. It needs a limit."
          />
        </fieldset>
        <footer>
          <Button type="submit" kind="main" icon="key" disabled={isBusy}>
            Make a token
          </Button>
        </footer>
      </form>
    </>
  );
}

function MintedToken({
  agent,
  minted: { token, expiresAt },
  onClose,
}: {
  agent: string;
  minted: { token: string; expiresAt: number };
  onClose: () => void;
}) {
  const rights = rightsOf(token);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(token);
      tell("Copied. The page forgets the token now.");
      onClose();
    } catch (error) {
      tellError(error);
    }
  };
  return (
    <section class="card minted" aria-labelledby="minted" role="status">
      <h2 id="minted">The token is shown once</h2>
      <Field label="Token" value={token} onInput={() => {}} rows={3} />
      <ul class="note">
        <li>It ends {shownTime(expiresAt)}.</li>
        <li>
          {rights.session === null
            ? `It sees the whole agent ${agent}.`
            : `It sees the session ${rights.session} alone.`}
        </li>
        <li>
          {rights.operations === null
            ? "It names no operations: it runs all but those that need the secret or change prompts."
            : `It runs ${rights.operations.join(", ")}.`}
        </li>
        <li>
          {rights.models === null || rights.models.length === 0
            ? "Its turns name no model."
            : `Its turns may name ${rights.models.join(", ")}.`}
        </li>
      </ul>
      <div class="actions">
        <Button kind="main" onClick={() => void copy()}>
          Copy and forget
        </Button>
        <Button onClick={onClose}>Forget</Button>
      </div>
    </section>
  );
}
