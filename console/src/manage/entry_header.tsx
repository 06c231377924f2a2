// The header of a tool's or a server's card: its name, its facts and its buttons.

import type { ComponentChildren } from "preact";
import { Name } from "../ui/basics.tsx";

interface Props {
  name: string;
  /** Those without a text are not shown. */
  badges: readonly (string | false | undefined)[];
  note?: ComponentChildren;
  /** The buttons. */
  children?: ComponentChildren;
}

export function EntryHeader({ name, badges, note, children }: Props) {
  return (
    <header>
      <b>
        <Name text={name} />
      </b>
      {badges.map(
        (badge) =>
          badge && (
            <span key={badge} class="badge">
              {badge}
            </span>
          ),
      )}
      {note && <span class="note">{note}</span>}
      {children && <div class="actions">{children}</div>}
    </header>
  );
}
