// Two texts side by side, line by line.

export interface DiffRow {
  kind: "same" | "changed";
  before: string | null;
  after: string | null;
}

/** Comparing more lines than this pairwise takes too long. */
const MAX_CELLS = 1_000_000;

export function diff(before: string, after: string): DiffRow[] {
  const [left, right] = [before.split("\n"), after.split("\n")];
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head += 1;
  let tail = 0;
  while (tail < left.length - head && tail < right.length - head && left.at(-1 - tail) === right.at(-1 - tail))
    tail += 1;
  return [
    ...left.slice(0, head).map(same),
    ...between(left.slice(head, left.length - tail), right.slice(head, right.length - tail)),
    ...left.slice(left.length - tail).map(same),
  ];
}

const same = (line: string): DiffRow => ({ kind: "same", before: line, after: line });

function between(left: readonly string[], right: readonly string[]): DiffRow[] {
  if (left.length * right.length > MAX_CELLS) return changed(left, right);
  const lengths = commonLengths(left, right);
  const rows: DiffRow[] = [];
  let [i, j] = [0, 0];
  let [removed, added]: [string[], string[]] = [[], []];
  const close = () => {
    rows.push(...changed(removed, added));
    [removed, added] = [[], []];
  };
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      close();
      rows.push(same(left[i]!));
      i += 1;
      j += 1;
    } else if (j >= right.length || (i < left.length && lengths[i + 1]![j]! >= lengths[i]![j + 1]!)) {
      removed.push(left[i]!);
      i += 1;
    } else {
      added.push(right[j]!);
      j += 1;
    }
  }
  close();
  return rows;
}

function changed(removed: readonly string[], added: readonly string[]): DiffRow[] {
  const height = Math.max(removed.length, added.length);
  return Array.from({ length: height }, (_, n) => ({
    kind: "changed" as const,
    before: removed[n] ?? null,
    after: added[n] ?? null,
  }));
}

/** The number of common lines in the remainders of both texts, for each pair of lines. */
function commonLengths(left: readonly string[], right: readonly string[]): Uint32Array[] {
  const lengths = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      lengths[i]![j] =
        left[i] === right[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
    }
  }
  return lengths;
}
