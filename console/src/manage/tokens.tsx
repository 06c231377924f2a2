// A token: made with what it may, shown once, and said what it may.

import { useState } from "preact/hooks";
import { Button, Check, Field, Heading, Select } from "../ui/basics.tsx";
import { openAgent } from "../connection.ts";
import { tell, tellError } from "../notices.ts";
import { shownTime } from "../text.ts";
import { rightsOf } from "../token.ts";
import { EMPTY, type TokenForm, tokenInput } from "./token_input.ts";
import { useWork } from "../ui/work.ts";

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
  ["purge", "purge by the operations that it names"],
] as const;

export function Tokens({ agent }: { agent: string }) {
  const [form, setForm] = useState<TokenForm>(EMPTY);
  const [minted, setMinted] = useState<{ token: string; expiresAt: number } | null>(null);
  const [isBusy, run] = useWork();
  const set = (change: Partial<TokenForm>) => setForm((before) => ({ ...before, ...change }));
  const allow = (name: string, isOn: boolean) =>
    set({ allow: isOn ? [...form.allow, name] : form.allow.filter((other) => other !== name) });
  const mint = () => run(async () => setMinted(await openAgent(agent).mintToken(tokenInput(form))));
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
            value={form.preset}
            options={[
              ["chat", "chat: turns in one session, and what a page shows of it"],
              ["read", "read: all that changes nothing"],
              ["none", "none: the operations below, or all that need no secret"],
            ]}
            onChange={(preset) => set({ preset })}
          />
          <Field
            label="Session"
            value={form.session}
            onInput={(session) => set({ session })}
            placeholder={form.preset === "chat" ? "needed" : "the whole agent"}
            required={form.preset === "chat"}
            hint="The token then sees this session alone."
          />
          <Field
            label="Further operations"
            value={form.operations}
            onInput={(operations) => set({ operations })}
            rows={2}
            hint="One on each line, such as setEntry."
          />
          <Select
            label="It lives"
            value={form.expiresIn}
            options={LIVES}
            onChange={(expiresIn) => set({ expiresIn })}
          />
        </fieldset>
        <fieldset class="card">
          <legend>What its holder may say</legend>
          {ALLOWED.map(([name, label]) => (
            <Check key={name} label={label} isOn={form.allow.includes(name)} onChange={(isOn) => allow(name, isOn)} />
          ))}
          <Field
            label="Models that a turn may name"
            value={form.models}
            onInput={(models) => set({ models })}
            rows={2}
            hint="One on each line."
          />
          <Field
            label="Registered tools that may be called over MCP"
            value={form.tools}
            onInput={(tools) => set({ tools })}
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
              value={form.limits[name]}
              placeholder="as the agent"
              onInput={(text) => set({ limits: { ...form.limits, [name]: text } })}
            />
          ))}
          <Field
            label="Holder"
            value={form.holder}
            onInput={(holder) => set({ holder })}
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
