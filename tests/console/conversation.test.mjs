// Random play of the rules of a conversation (console/src/conversation/step.ts): whatever arrives
// late, twice or never, the page ends in the agent's state, and each text is stored by the agent
// or returned to the composer. `SEED=7` plays the games of a seed, `GAMES=100000` plays more.

import assert from "node:assert/strict";
import { test } from "node:test";
import { failureOf, gameOf, shortest } from "./conversation_simulation.mjs";

const GAMES = Number(process.env.GAMES ?? 1_000);
const LENGTH = 80;

/** Games that failed before. */
const FORMER_FAILURES = {
  "a message is removed while its turn is requested": {
    seed: 361040,
    history: 3,
    moves: [
      ["arrive", 0],
      ["deliver", 0],
      ["arrive", 0],
      ["reload", 0],
      ["resend", 0],
      ["deliver", 0],
      ["arrive", 1],
      ["arrive", 0],
      ["deliver", 0],
      ["remove", 0],
    ],
  },
};

test("games_that_failed_before_pass", () => {
  for (const [name, game] of Object.entries(FORMER_FAILURES)) {
    const failure = failureOf(game);
    assert.equal(failure, null, `${name}: ${failure?.stack}`);
  }
});

test("late_duplicate_and_lost_messages_never_desynchronize_the_page", (t) => {
  const first = Number(process.env.SEED ?? Date.now() % 1_000_000);
  t.diagnostic(`seed ${first}, ${GAMES} games`);
  for (let seed = first; seed < first + GAMES; seed += 1) {
    const game = gameOf(seed, LENGTH);
    if (failureOf(game) === null) continue;
    const short = shortest(game);
    const moves = short.moves.map(([name, dice]) => `  ${name} ${dice}`).join("\n");
    assert.fail(`SEED=${seed} with ${short.history} messages:\n${moves}\n${failureOf(short).stack}`);
  }
});
