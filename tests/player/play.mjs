// Plays games against the agents, natively or in workerd, for a given time.
//
//   node tests/player/play.mjs --native --hours 2
//   node tests/player/play.mjs --workerd --minutes 15 --seed 7
//   node tests/player/play.mjs --native --game 123456 --moves 200     one game, by its seed
//
// A game that fails is played again with ever fewer moves. What is printed then is the
// shortest sequence that still fails, with its requests.

import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { Dice } from "./dice.mjs";
import { play } from "./game.mjs";
import { movesFor } from "./moves.mjs";
import { shrink } from "./shrink.mjs";

/** The seeds of a game's moves. */
export function seedsOf(seed, moves) {
  const dice = new Dice(seed);
  return Array.from({ length: moves }, () => dice.next());
}

/** Plays games for `ms`. Returns the number played; `failure` describes the shortest failing sequence. */
export async function playFor(driver, ms, seed, { movesPerGame = 150, log = () => {}, shrinkMs = 120_000 } = {}) {
  const games = new Dice(seed);
  const end = Date.now() + ms;
  const played = { games: 0, moves: 0, requests: 0, interrupted: 0, whole: 0, absent: 0, byMove: {} };
  const options = { moves: movesFor };
  const onMove = (_, { name }) => (played.byMove[name] = (played.byMove[name] ?? 0) + 1);
  let loggedAt = Date.now();
  while (Date.now() < end) {
    const gameSeed = games.next();
    const seeds = seedsOf(gameSeed, movesPerGame);
    try {
      const { game, played: moves } = await play(driver, seeds, { ...options, onMove, until: () => Date.now() >= end });
      count(game, moves);
    } catch (error) {
      if (error.game === undefined) throw error;
      count(error.game, error.played);
      const shortest = await shrink(driver, seeds.slice(0, error.played), error, {
        ...options,
        until: Date.now() + shrinkMs,
      });
      return { ...played, failure: describeFailure(driver, gameSeed, shortest) };
    }
    if (Date.now() - loggedAt > 60_000) {
      loggedAt = Date.now();
      log(`${played.games} games, ${played.moves} moves, ${played.requests} requests, ${driver.kills ?? 0} kills`);
    }
  }
  return played;

  function count(game, moves) {
    played.games += 1;
    played.moves += moves;
    played.requests += game.requests;
    played.interrupted += game.faults;
    played.whole += game.settled.whole;
    played.absent += game.settled.absent;
  }
}

/** A failure, for people: the message, the seeds that play it again, and the requests. */
function describeFailure(driver, gameSeed, { seeds, error }) {
  const lines = error.game.trace.map((entry) =>
    entry.move === undefined
      ? `  ${entry.agent}: ${entry.operation} ${clip(entry.body)} → ${entry.status} ${clip(entry.answer)}`
      : `${entry.move} (${entry.seed})`,
  );
  return [
    `${driver.name}, game ${gameSeed}: ${error.stack ?? error.message}${error.cause ? ` (${error.cause})` : ""}`,
    `Again: node tests/player/play.mjs --${driver.name} --seeds ${seeds.join(",")}`,
    ...lines,
  ].join("\n");
}

const clip = (value) => {
  const text = JSON.stringify(value) ?? "";
  return text.length > 700 ? `${text.slice(0, 700)}…` : text;
};

async function main() {
  const { values } = parseArgs({
    options: {
      native: { type: "boolean" },
      workerd: { type: "boolean" },
      hours: { type: "string" },
      minutes: { type: "string" },
      seconds: { type: "string" },
      seed: { type: "string" },
      seeds: { type: "string" },
      game: { type: "string" },
      moves: { type: "string", default: "150" },
    },
  });
  const driver = await startDriver(values.workerd ? "workerd" : "native");
  try {
    if (values.seeds !== undefined || values.game !== undefined) {
      const seeds = values.seeds?.split(",").map(Number) ?? seedsOf(Number(values.game), Number(values.moves));
      await play(driver, seeds, { moves: movesFor }).catch((error) => {
        if (error.game === undefined) throw error;
        console.log(describeFailure(driver, values.game, { seeds, error }));
        process.exitCode = 1;
      });
      return;
    }
    const ms =
      Number(values.hours ?? 0) * 3_600_000 +
      Number(values.minutes ?? 0) * 60_000 +
      Number(values.seconds ?? 0) * 1_000;
    const seed = Number(values.seed ?? Date.now() % 1_000_000);
    console.log(`seed ${seed}`);
    const { failure, ...played } = await playFor(driver, ms || 60_000, seed, {
      movesPerGame: Number(values.moves),
      log: console.log,
    });
    console.log(JSON.stringify({ ...played, kills: driver.kills }));
    if (failure !== undefined) {
      console.log(failure);
      process.exitCode = 1;
    }
  } finally {
    await driver.stop();
  }
}

export async function startDriver(name) {
  return name === "native"
    ? await (await import("./native.mjs")).startNative()
    : await (await import("./workerd.mjs")).startRuntime();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
