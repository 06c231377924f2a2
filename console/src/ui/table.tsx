// A table that scrolls horizontally on narrow screens.

import type { ComponentChildren } from "preact";

interface Props {
  label: string;
  /** The columns' names; `{ number }` names a column of numbers. */
  columns: readonly (string | { number: string })[];
  isCard?: boolean;
  children: ComponentChildren;
}

export function Table({ label, columns, isCard = false, children }: Props) {
  return (
    <div class={isCard ? "table card" : "table"} tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => {
              const isNumber = typeof column !== "string";
              const name = isNumber ? column.number : column;
              return (
                <th key={name} scope="col" class={isNumber ? "number" : undefined}>
                  {name}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
