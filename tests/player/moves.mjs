// The moves of a game: `[weight, {name, make(game, dice)}]`. The contract defines the answer and
// the effect of each. Each file of `moves/` adds its own to the list.

import { MOVES } from "./moves/shared.mjs";
import "./moves/sessions.mjs";
import "./moves/events.mjs";
import "./moves/messages.mjs";
import "./moves/compaction.mjs";
import "./moves/memory.mjs";
import "./moves/refused.mjs";
import "./moves/reading.mjs";
import "./moves/transfer.mjs";
import "./moves/turns.mjs";
import "./moves/kills.mjs";

/** The moves that a driver can make, with their weights. */
export function movesFor(driver) {
  return MOVES.filter(({ fits }) => fits(driver)).map((one) => [one.weight, one]);
}
