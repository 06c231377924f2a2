// Tabs. On narrow screens, the open tab is scrolled into view.

import { useEffect, useRef } from "preact/hooks";

export interface Tab {
  text: string;
  href: string;
  isOpen: boolean;
}

export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  const nav = useRef<HTMLElement>(null);
  const open = tabs.find(({ isOpen }) => isOpen)?.href;
  useEffect(() => {
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  }, [open, tabs.length]);
  return (
    <nav class="tabs" aria-label={label} ref={nav}>
      {tabs.map(({ text, href, isOpen }) => (
        <a key={href} href={href} aria-current={isOpen ? "page" : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}
