// The start page: opens an agent by its name.

import { useState } from "preact/hooks";
import { Button, Field, Name } from "./ui/basics.tsx";
import { Icon } from "./ui/icons.tsx";
import { Time } from "./ui/time.tsx";
import { useWork } from "./ui/work.ts";
import { EXAMPLE, makeExample } from "./example.ts";
import { go, hashOf } from "./route.ts";
import { forget, seen } from "./seen.ts";

export function Home() {
  const [name, setName] = useState("");
  const open = () => {
    if (name !== "") go({ view: "sessions", agent: name });
  };
  return (
    <main id="main" class="home" tabIndex={-1}>
      <header>
        <img src="/icon.svg" alt="" width="56" height="56" />
        <h1>Session Agent</h1>
        <p class="lead">Durable memory for AI agents. See their conversations, their memory and their costs.</p>
      </header>
      <form
        class="open"
        onSubmit={(event) => {
          event.preventDefault();
          open();
        }}
      >
        <Field
          label="Agent"
          value={name}
          onInput={setName}
          placeholder="alice"
          autofocus
          hint="Agents are created on first use."
        />
        <Button type="submit" kind="main" disabled={name === ""}>
          Open
        </Button>
      </form>
      {seen.value.length > 0 && <Seen />}
      <Example isFirst={seen.value.length === 0} />
      <footer class="home-links">
        <a href="/openapi.json">API reference</a>
        <a href="/health">Build information</a>
      </footer>
    </main>
  );
}

function Seen() {
  return (
    <section class="seen" aria-labelledby="seen">
      <h2 id="seen">Recently opened</h2>
      <ul>
        {seen.value.map(({ name, at }) => (
          <li key={name}>
            <a href={hashOf({ view: "sessions", agent: name })}>
              <Name text={name} /> <Time class="note" at={at} />
            </a>
            <Button kind="quiet" icon="close" label={`Remove ${name} from this list`} onClick={() => forget(name)} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Example({ isFirst }: { isFirst: boolean }) {
  const [isBusy, begin] = useWork();
  const make = () =>
    begin(async () => {
      go({ view: "session", agent: EXAMPLE, session: await makeExample(), tab: "conversation" });
    });
  return (
    <section class={`example ${isFirst ? "first" : ""}`}>
      <Icon name="spark" />
      <div>
        <h2>{isFirst ? "New here?" : "Explore an example"}</h2>
        <p>
          Creates an agent called <code>{EXAMPLE}</code> with memory, and a conversation with tool calls and two
          branches.
        </p>
      </div>
      <Button disabled={isBusy} kind={isFirst ? "main" : "plain"} onClick={make}>
        {isBusy ? "Creating…" : "Create an example"}
      </Button>
    </section>
  );
}
