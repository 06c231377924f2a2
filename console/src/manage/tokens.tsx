// Mints a token with chosen permissions, shows it once, and explains the permissions of any token.

import { useState } from "preact/hooks";
import { Button, Check, Field, Heading, Select } from "../ui/basics.tsx";
import { openAgent } from "../connection.ts";
import { notify, notifyError } from "../notices.ts";
import { shownTime } from "../text.ts";
import { rightsOf } from "../token.ts";
import { EMPTY, type TokenForm, tokenInput } from "./token_input.ts";
import { useWork } from "../ui/work.ts";

const LIFETIMES = [
  ["900", "15 minutes"],
  ["3600", "1 hour"],
  ["28800", "8 hours"],
  ["86400", "1 day"],
] as const;

const ALLOWED = [
  ["systemInstructions", "add system instructions to a turn"],
  ["clientTools", "provide tools that run in the page"],
  ["agentMessages", "write messages as the agent or its tools"],
  ["agentMemory", "let the model write memory that all sessions share"],
  ["purge", "purge with the operations listed above"],
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
        note="A token gives a page or a person limited access. You can't revoke a token, so choose a short lifetime."
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
          <legend>Access</legend>
          <Select
            label="Preset"
            value={form.preset}
            options={[
              ["chat", "chat: run turns and read one session"],
              ["read", "read: all operations that only read"],
              [
                "none",
                "none: only the operations listed below; if the list is empty, every operation that doesn't require the secret",
              ],
            ]}
            onChange={(preset) => set({ preset })}
          />
          <Field
            label="Session"
            value={form.session}
            onInput={(session) => set({ session })}
            placeholder={form.preset === "chat" ? "required" : "entire agent"}
            required={form.preset === "chat"}
            hint="Limits the token to this session."
          />
          <Field
            label="Additional operations"
            value={form.operations}
            onInput={(operations) => set({ operations })}
            rows={2}
            hint="One per line, for example setEntry."
          />
          <Select
            label="Expires after"
            value={form.expiresIn}
            options={LIFETIMES}
            onChange={(expiresIn) => set({ expiresIn })}
          />
        </fieldset>
        <fieldset class="card">
          <legend>Permissions</legend>
          {ALLOWED.map(([name, label]) => (
            <Check key={name} label={label} isOn={form.allow.includes(name)} onChange={(isOn) => allow(name, isOn)} />
          ))}
          <Field
            label="Models that a request can choose"
            value={form.models}
            onInput={(models) => set({ models })}
            rows={2}
            hint="One per line."
          />
          <Field
            label="Registered tools available over MCP"
            value={form.tools}
            onInput={(tools) => set({ tools })}
            rows={2}
            hint="One per line."
          />
        </fieldset>
        <fieldset class="card">
          <legend>Limits</legend>
          {(
            [
              ["turnsPerMinute", "Turns per minute"],
              ["tokensPerDay", "Tokens per day"],
              ["costPerDay", "Cost per day"],
            ] as const
          ).map(([name, label]) => (
            <Field
              key={name}
              label={label}
              type="number"
              value={form.limits[name]}
              placeholder="only the agent's limit"
              onInput={(text) => set({ limits: { ...form.limits, [name]: text } })}
            />
          ))}
          <Field
            label="Holder"
            value={form.holder}
            onInput={(holder) => set({ holder })}
            hint="Tokens with the same holder share these limits. Requires at least one limit."
          />
        </fieldset>
        <footer>
          <Button type="submit" kind="main" icon="key" disabled={isBusy}>
            Create token
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
      notify("Copied. The token is no longer shown.");
      onClose();
    } catch (error) {
      notifyError(error);
    }
  };
  return (
    <section class="card minted" aria-labelledby="minted" role="status">
      <h2 id="minted">Copy the token now: it is shown once</h2>
      <Field label="Token" value={token} onInput={() => {}} rows={3} />
      <ul class="note">
        <li>Expires {shownTime(expiresAt)}.</li>
        <li>
          {rights.session === null
            ? `Access to the entire agent ${agent}.`
            : `Access to session ${rights.session} only.`}
        </li>
        <li>
          {rights.operations === null
            ? "All operations except those that require the secret or change prompts."
            : `Operations: ${rights.operations.join(", ")}.`}
        </li>
        <li>
          {rights.models === null || rights.models.length === 0
            ? "Requests can't choose a model."
            : `Requests can choose ${rights.models.join(", ")}.`}
        </li>
      </ul>
      <div class="actions">
        <Button kind="main" onClick={() => void copy()}>
          Copy and hide
        </Button>
        <Button onClick={onClose}>Hide</Button>
      </div>
    </section>
  );
}
