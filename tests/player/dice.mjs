// Seeded random numbers, so that a game can be repeated.

export class Dice {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 to 2³² − 1 (mulberry32). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return (x ^ (x >>> 14)) >>> 0;
  }

  roll(sides) {
    return this.next() % sides;
  }

  /** Returns true once in this many times. */
  one(times) {
    return this.roll(times) === 0;
  }

  pick(list) {
    return list[this.roll(list.length)];
  }

  /** An item of `[weight, item]` pairs. */
  weighted(pairs) {
    let left = this.roll(pairs.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, item] of pairs) {
      if (left < weight) return item;
      left -= weight;
    }
  }
}
