// When an entry's fact is true, and which entries replace each other.

import { Name } from "../ui/basics.tsx";
import { shownTime } from "../text.ts";

/** The validity fields of entries, found entries and versions. Unset times are absent. */
export interface Holds {
  validFrom?: number | null;
  validUntil?: number | null;
  supersededBy?: string | null;
  supersededAt?: number | null;
  supersedes?: readonly string[];
}

/** Whether the fact is no longer valid. */
export function isPast({ validUntil, supersededAt, supersededBy }: Holds, now = Date.now()): boolean {
  return typeof supersededBy === "string" || (supersededAt ?? Infinity) <= now || (validUntil ?? Infinity) <= now;
}

export function Validity({ of }: { of: Holds }) {
  const { validFrom, validUntil, supersededBy, supersededAt, supersedes } = of;
  const times = [
    validFrom != null && `from ${shownTime(validFrom)}`,
    validUntil != null && `until ${shownTime(validUntil)}`,
  ].filter((text) => text !== false);
  const isReplaced = supersededBy != null || supersededAt != null;
  if (times.length === 0 && !isReplaced && !supersedes?.length) return null;
  return (
    <p class="validity note">
      {isPast(of) && <span class="state past">no longer true</span>}
      {times.length > 0 && <span>Valid {times.join(" ")}</span>}
      {isReplaced && (
        <span>
          Replaced
          {supersededBy != null && (
            <>
              {" "}
              by <Name text={supersededBy} />
            </>
          )}
          {supersededAt != null && ` on ${shownTime(supersededAt)}`}
        </span>
      )}
      {supersedes !== undefined && supersedes.length > 0 && (
        <span>
          Replaces{" "}
          {supersedes.map((key, n) => (
            <>
              {n > 0 && ", "}
              <Name text={key} />
            </>
          ))}
        </span>
      )}
    </p>
  );
}
