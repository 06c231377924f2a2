// Shrinks a failing sequence of moves: removes ever smaller pieces, as long as the rest fails.

import { play } from "./game.mjs";

/** How often a sequence is tried in workerd, where the order of requests varies. */
const TRIES = { native: 1, workerd: 2 };

/** The shortest failing sequence that is found before the time is up. */
export async function shrink(driver, seeds, error, { until, ...options }) {
  let shortest = { seeds, error };
  for (let piece = Math.ceil(seeds.length / 2); piece >= 1; piece = piece === 1 ? 0 : Math.ceil(piece / 2)) {
    let again = true;
    while (again) {
      again = false;
      for (let at = 0; at < shortest.seeds.length; ) {
        if (Date.now() > until) return shortest;
        const fewer = [...shortest.seeds.slice(0, at), ...shortest.seeds.slice(at + piece)];
        const failure = await fails(driver, fewer, kindOf(error), options);
        if (failure === null) {
          at += piece;
        } else {
          shortest = { seeds: fewer.slice(0, failure.played), error: failure };
          again = piece === 1;
        }
      }
    }
  }
  return shortest;
}

/**
 * The beginning of a failure's message: a shorter sequence that fails differently is another
 * failure.
 */
function kindOf(error) {
  return error.message.split(" ")[0];
}

async function fails(driver, seeds, kind, options) {
  for (let tries = 0; tries < TRIES[driver.name]; tries += 1) {
    try {
      await play(driver, seeds, options);
    } catch (error) {
      if (error.game === undefined) throw error;
      if (kindOf(error) === kind) return error;
    }
  }
  return null;
}
