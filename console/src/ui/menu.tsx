// A menu of actions. It is a `details` element, which supports the keyboard.

import { useEffect, useRef, useState } from "preact/hooks";
import { may } from "../rights.ts";
import { Icon, type IconName } from "./icons.tsx";

export interface MenuItem {
  text: string;
  icon: IconName;
  /** The operation that the action requires. */
  needs?: string;
  run: () => void;
  isDanger?: boolean;
}

export function Menu({ label, items, face }: { label: string; items: readonly MenuItem[]; face?: string }) {
  const allowed = items.filter(({ needs }) => needs === undefined || may(needs));
  const menu = useRef<HTMLDetailsElement>(null);
  const [isOpen, setOpen] = useState(false);
  const close = () => menu.current && (menu.current.open = false);
  useEffect(() => {
    if (!isOpen) return;
    const closeOutside = (event: Event) => {
      if (menu.current?.open && !menu.current.contains(event.target as Node)) close();
    };
    document.addEventListener("pointerdown", closeOutside);
    document.addEventListener("focusin", closeOutside);
    return () => {
      document.removeEventListener("pointerdown", closeOutside);
      document.removeEventListener("focusin", closeOutside);
    };
  }, [isOpen]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !menu.current?.open) return;
    close();
    menu.current.querySelector("summary")?.focus();
    event.stopPropagation();
  };
  if (allowed.length === 0) return null;
  return (
    <details class="menu" ref={menu} onKeyDown={onKeyDown} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="button" aria-label={label} title={label} onClick={() => setOpen(!menu.current?.open)}>
        <Icon name="more" />
        {face}
      </summary>
      <ul>
        {isOpen &&
          allowed.map(({ text, icon, run, isDanger }) => (
            <li key={text}>
              <button
                type="button"
                class={isDanger ? "danger" : ""}
                onClick={() => {
                  close();
                  // Dialogs give the focus back to where it was.
                  menu.current?.querySelector("summary")?.focus();
                  run();
                }}
              >
                <Icon name={icon} /> {text}
              </button>
            </li>
          ))}
      </ul>
    </details>
  );
}
