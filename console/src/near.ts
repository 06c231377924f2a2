// Suggests names that are similar to a mistyped one.

/** Only this many first characters of longer names are compared. */
const LONGEST = 60;

/** The names, the most similar first. */
export function byNearness(written: string, names: readonly string[]): string[] {
  const distances = new Map(names.map((name) => [name, distanceOf(written.toLowerCase(), name.toLowerCase())]));
  return names.toSorted((a, b) => distances.get(a)! - distances.get(b)!);
}

/** The edit distance: letters to insert, delete, replace or swap. */
function distanceOf(one: string, other: string): number {
  const [a, b] = [one.slice(0, LONGEST), other.slice(0, LONGEST)];
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      let least = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (isSame ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, before[j - 2]! + 1);
      next.push(least);
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
