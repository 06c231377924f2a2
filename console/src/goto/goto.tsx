// The command palette (`Ctrl+K`), and the list of keyboard shortcuts.

import { useEffect, useId, useState } from "preact/hooks";
import { Button, Check, Name } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { route } from "../route.ts";
import { SnippetDialog } from "../snippet/dialog.tsx";
import { above, areLettersOn, KEYS, listenToKeys, switchLetters } from "./keys.ts";
import { targetsOf } from "./targets.ts";

export function Above() {
  useEffect(listenToKeys, []);
  const at = route.value;
  // Navigating closes the overlay.
  useEffect(() => void (above.value = null), [at]);
  if (above.value === "goto") return <GoTo />;
  if (above.value === "keys") return <Keys />;
  if (above.value === "snippet" && at.view !== "home") return <SnippetDialog at={at} onClose={closeSnippet} />;
  return null;
}

/** The browser reports the close late: by then another overlay may be open. */
const closing = (what: NonNullable<typeof above.value>) => () => {
  if (above.peek() === what) above.value = null;
};
const close = closing("goto");
const closeKeys = closing("keys");
const closeSnippet = closing("snippet");

function GoTo() {
  const [query, setQuery] = useState("");
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const targets = targetsOf(route.value, query);
  const index = Math.min(chosen, targets.length - 1);
  const target = targets[index];
  const open = () => {
    close();
    if (target !== undefined) location.hash = target.href;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const to = index + (event.key === "ArrowDown" ? 1 : -1);
    setChosen((to + targets.length) % Math.max(1, targets.length));
  };
  return (
    <Dialog title="Go to" onClose={close}>
      <form
        class="goto"
        onSubmit={(event) => {
          event.preventDefault();
          open();
        }}
      >
        <input
          type="text"
          role="combobox"
          autofocus
          aria-label="Destination"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={target && `${id}-${index}`}
          aria-autocomplete="list"
          placeholder="View, session or agent"
          autocomplete="off"
          spellcheck={false}
          value={query}
          onInput={(event) => {
            setQuery(event.currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
        />
        <ul id={`${id}-list`} role="listbox" aria-label="Destinations">
          {targets.map(({ key, text, kind, icon, href }, n) => (
            <li
              key={key}
              id={`${id}-${n}`}
              role="option"
              aria-selected={n === index}
              onClick={() => {
                close();
                location.hash = href;
              }}
            >
              <Icon name={icon} />
              <Name text={text} />
              <span class="note">{kind}</span>
            </li>
          ))}
        </ul>
        <p class="hint" role="status">
          {targets.length === 0 && "No matches. Press “/” to search messages."}
        </p>
        <Button kind="quiet" icon="keyboard" onClick={() => (above.value = "keys")}>
          Keyboard shortcuts
        </Button>
      </form>
    </Dialog>
  );
}

function Keys() {
  return (
    <Dialog title="Keyboard shortcuts" onClose={closeKeys}>
      <dl class="keys dialog-body">
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div class="dialog-body">
        <Check label="Use single-letter shortcuts" isOn={areLettersOn.value} onChange={switchLetters} />
      </div>
    </Dialog>
  );
}
