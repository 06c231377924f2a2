// What many rounds come to.

export function median(values) {
  return quantile(values, 0.5);
}

/** Between neighbours where it falls between two. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)];
  return low + (sorted[Math.ceil(at)] - low) * (at % 1);
}

/** The median and the quarters around it: half of all rounds lie between those. */
export function spread(values) {
  return { median: median(values), low: quantile(values, 0.25), high: quantile(values, 0.75) };
}

/** The same order for everybody, another one in each round. */
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
