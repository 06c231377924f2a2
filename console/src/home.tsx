// The first page: an agent is opened by its name.

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
        <p class="lead">Durable memory for AI agents. Look into what they said, what they know, and what it cost.</p>
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
          hint="An agent needs no creating: its first request creates it."
        />
        <Button type="submit" kind="main" disabled={name === ""}>
          Open
        </Button>
      </form>
      {seen.value.length > 0 && <Seen />}
      <Example isFirst={seen.value.length === 0} />
      <footer class="home-links">
        <a href="/openapi.json">The API</a>
        <a href="/health">This build</a>
      </footer>
    </main>
  );
}

function Seen() {
  return (
    <section class="seen" aria-labelledby="seen">
      <h2 id="seen">Opened on this machine</h2>
      <ul>
        {seen.value.map(({ name, at }) => (
          <li key={name}>
            <a href={hashOf({ view: "sessions", agent: name })}>
              <Name text={name} /> <Time class="note" at={at} />
            </a>
            <Button kind="quiet" icon="close" label={`Take ${name} off this list`} onClick={() => forget(name)} />
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
        <h2>{isFirst ? "New here?" : "An example to look around in"}</h2>
        <p>
          Fills an agent called <code>{EXAMPLE}</code> with a conversation that has tools, two branches and a memory.
        </p>
      </div>
      <Button disabled={isBusy} kind={isFirst ? "main" : "plain"} onClick={make}>
        {isBusy ? "Making it" : "Show me an example"}
      </Button>
    </section>
  );
}
