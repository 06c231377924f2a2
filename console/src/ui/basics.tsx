// Small pieces that every view uses.

import type { ComponentChildren, TargetedEvent } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ForbiddenError, SessionAgentError } from "session-agent";
import { signOut } from "../connection.ts";
import { sentence } from "../notices.ts";
import { shownName } from "../text.ts";
import { Icon, type IconName } from "./icons.tsx";

interface ButtonProps {
  children?: ComponentChildren;
  onClick?: (event: MouseEvent) => void;
  icon?: IconName;
  /** The accessible name, if the button has no text. */
  label?: string;
  kind?: "plain" | "main" | "quiet" | "danger";
  type?: "button" | "submit";
  disabled?: boolean;
  pressed?: boolean;
  /** The keyboard shortcut with the same effect (`goto/keys.ts`). */
  shortcut?: string;
}

export function Button({
  children,
  onClick,
  icon,
  label,
  kind = "plain",
  type = "button",
  disabled,
  pressed,
  shortcut,
}: ButtonProps) {
  const isBare = children === undefined;
  return (
    <button
      type={type}
      class={`button ${kind} ${isBare ? "bare" : ""}`}
      onClick={onClick}
      disabled={disabled}
      aria-label={label}
      title={isBare ? label : undefined}
      aria-pressed={pressed}
      aria-keyshortcuts={shortcut}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** An untrusted name: on one line, and isolated from the surrounding reading direction. */
export function Name({ text }: { text: string }) {
  return <bdi class="name">{shownName(text)}</bdi>;
}

export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  if (error instanceof ForbiddenError) return <Refused error={error} />;
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <p>
        {sentence(error)} <Code of={error} />
      </p>
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** The API's code of the failure, for readers who look it up. */
function Code({ of }: { of: unknown }) {
  return of instanceof SessionAgentError && of.code !== "network_failed" ? (
    <code class="code-name">{of.code}</code>
  ) : null;
}

/** Shown if the credential doesn't allow the view. */
function Refused({ error }: { error: ForbiddenError }) {
  return (
    <div class="problem refused" role="alert">
      <Icon name="key" />
      <p>
        <b>Your token doesn't allow this.</b> The Worker's message: {sentence(error)} Ask for a token with more access,
        or sign in with another one.
      </p>
      <Button onClick={signOut}>Sign in again</Button>
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      <span class="spinner" aria-hidden="true" /> Loading {what} …
    </p>
  );
}

export function Empty({
  title,
  children,
  icon = "spark",
}: {
  title: string;
  children?: ComponentChildren;
  icon?: IconName;
}) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onInput: (text: string) => void;
  hint?: string;
  type?: "text" | "search" | "number" | "password" | "datetime-local";
  rows?: number;
  placeholder?: string;
  list?: readonly string[];
  required?: boolean;
  autofocus?: boolean;
  isLabelHidden?: boolean;
}

export function Field({
  label,
  value,
  onInput,
  hint,
  type = "text",
  rows,
  placeholder,
  list,
  required,
  autofocus,
  isLabelHidden,
}: FieldProps) {
  const id = useId();
  const input = useRef<any>(null);
  // Before the page is painted, so that a visible field always has the focus.
  useLayoutEffect(() => {
    if (autofocus) input.current?.focus();
  }, []);
  const shared = {
    id,
    // An opening dialog gives the focus to the element with this attribute.
    autofocus,
    ref: input,
    value,
    placeholder,
    required,
    "aria-describedby": hint ? `${id}-hint` : undefined,
    onInput: (event: TargetedEvent<HTMLInputElement | HTMLTextAreaElement>) => onInput(event.currentTarget.value),
  };
  return (
    <div class="field">
      <label for={id} class={isLabelHidden ? "hidden" : undefined}>
        {label}
      </label>
      {rows === undefined ? (
        <input
          {...shared}
          type={type as "text"}
          step={type === "number" ? "any" : undefined}
          list={list && `${id}-list`}
          autocomplete="off"
          spellcheck={false}
        />
      ) : (
        <textarea {...shared} rows={rows} />
      )}
      {list && (
        <datalist id={`${id}-list`}>
          {list.map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      )}
      {hint && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
    </div>
  );
}

interface SelectProps<T extends string> {
  label: string;
  value: T;
  options: ReadonlyArray<readonly [T, string]>;
  onChange: (value: T) => void;
}

export function Select<T extends string>({ label, value, options, onChange }: SelectProps<T>) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Check({ label, isOn, onChange }: { label: string; isOn: boolean; onChange: (isOn: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}

/** The heading of a tab or a page, and its actions. */
export function Heading({
  title,
  children,
  note,
  isFirst = false,
}: {
  title: ComponentChildren;
  children?: ComponentChildren;
  note?: ComponentChildren;
  isFirst?: boolean;
}) {
  return (
    <header class="heading">
      <div>
        {isFirst ? <h1>{title}</h1> : <h2>{title}</h2>}
        {note && <p class="note">{note}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </header>
  );
}

/** A stored value in a scrollable box. Long texts are shown in pieces. */
export function Stored({ text, label }: { text: string; label: string }) {
  return (
    <div class="stored" tabIndex={0} role="region" aria-label={label}>
      <Long text={text} />
    </div>
  );
}

const FIRST = 20_000;
const MORE = 100_000;

/** A text of any length, in pieces: laying out a megabyte at once freezes the browser. */
export function Long({ text }: { text: string }) {
  const [shown, setShown] = useState(FIRST);
  if (text.length <= shown) return <>{text}</>;
  return (
    <>
      {text.slice(0, shown)}
      <span class="more">
        <Button kind="quiet" onClick={() => setShown(shown + MORE)}>
          Show more ({(text.length - shown).toLocaleString("en")} characters left)
        </Button>
      </span>
    </>
  );
}
