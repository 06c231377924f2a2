// Moves that kill the process.

import { AGENTS } from "../game.mjs";
import { MOVES, move } from "./shared.mjs";

move(
  3,
  "kill -9",
  async (game, dice) => {
    const writers = MOVES.filter(({ name }) =>
      [
        "appendEvents",
        "appendMessage",
        "updateMessage",
        "deleteEvents",
        "forkSession",
        "deleteSession",
        "setBlock",
        "entries and documents",
        "export and import",
        "search",
        "clearMessages",
        "addCompaction",
        "runTurn",
        "deleteMessages",
      ].includes(name),
    );
    const kill = game.driver.killAfter(dice.roll(25));
    // One move per agent, so that each unacknowledged write is the agent's last.
    const here = Array.from({ length: AGENTS }, (_, agent) => {
      const own = Object.create(dice, { roll: { value: (sides) => (sides === AGENTS ? agent : dice.roll(sides)) } });
      return dice.pick(writers).make(game, own);
    });
    await Promise.all([kill, ...here]);
  },
  (driver) => driver.can.kill,
);
