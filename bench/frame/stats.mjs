// Statistics of many rounds.

export function median(values) {
  return quantile(values, 0.5);
}

/** The value at this quantile of the sorted values, interpolated between two values. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)];
  return low + (sorted[Math.ceil(at)] - low) * (at % 1);
}

/** The median and the quartiles: half of all rounds lie between the quartiles. */
export function spread(values) {
  return { median: median(values), low: quantile(values, 0.25), high: quantile(values, 0.75) };
}

/** The list in an order that differs from round to round and is the same in every run. */
export function shuffled(list, round) {
  let state = round + 1;
  const next = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  const result = [...list];
  for (let at = result.length - 1; at > 0; at -= 1) {
    const other = Math.floor(next() * (at + 1));
    [result[at], result[other]] = [result[other], result[at]];
  }
  return result;
}
