// A native dialog: the browser traps the focus, and Escape closes it.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Button } from "./basics.tsx";

interface Props {
  title: string;
  children: ComponentChildren;
  onClose: () => void;
  isWide?: boolean;
}

export function Dialog({ title, children, onClose, isWide = false }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const { current: before } = useRef(document.activeElement);
  // Before the page is painted, so that the user can type immediately after opening a dialog by a key.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => {
      element?.close();
      // The focus returns to where it was.
      if (before instanceof HTMLElement) queueMicrotask(() => before.focus());
    };
  }, []);
  return (
    <dialog ref={dialog} class={isWide ? "wide" : ""} aria-labelledby={id} onClose={onClose} onCancel={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
      </header>
      {children}
    </dialog>
  );
}

interface FormProps {
  onSubmit: () => void;
  submit: string;
  onClose?: () => void;
  isBusy?: boolean;
  kind?: "main" | "danger";
  children: ComponentChildren;
}

/** Fields, and the buttons below them. */
export function Form({ onSubmit, submit, onClose, isBusy, kind = "main", children }: FormProps) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy) onSubmit();
      }}
    >
      {children}
      <footer>
        {onClose && <Button onClick={onClose}>Cancel</Button>}
        <Button type="submit" kind={kind} disabled={isBusy}>
          {submit}
        </Button>
      </footer>
    </form>
  );
}
