// Kills the runtime at several points of each slow write: an import, a fork, a delete, a first
// search, and writes of memory. The write must be complete or absent, and the same request must
// then succeed.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Game } from "./game.mjs";
import { startRuntime } from "./workerd.mjs";

const EVENTS = 3_000;
const BATCH = 500;

/** When the runtime is killed: fractions of the duration of the write. */
const POINTS = [0.02, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8];

const driver = await startRuntime();
const outcomes = {};
after(async () => {
  console.log(`what became of writes in which the runtime was killed: ${JSON.stringify(outcomes)}`);
  await driver.stop();
});

const texts = (from) =>
  Array.from({ length: BATCH }, (_, at) => ({
    id: `e${from + at}`,
    action: at % 2 ? "agent_message" : "user_message",
    content: `Event ${from + at} ${"long ".repeat(40)}`,
  }));

/** A game whose first agent has a session of many events, with memory. */
async function openGame() {
  await driver.reset();
  const game = new Game(driver);
  await game.write(0, "createSession", { id: "s" }, (model) => model.create({ id: "s" }));
  for (let from = 0; from < EVENTS; from += BATCH) {
    const events = texts(from);
    await game.write(0, "appendEvents", { sessionId: "s", events }, (model) => model.find("s").appendEvents(events));
  }
  for (const [label, kind] of [
    ["kb", "searchable"],
    ["skills", "loadable"],
  ]) {
    const block = { label, kind, description: null, maxTokens: null, defaultContent: null };
    await game.write(
      0,
      "defineBlock",
      { sessionId: "s", label, kind },
      (model) => void model.find("s").memory.blocks.set(label, block),
    );
  }
  return game;
}

const ENTRY = "known ".repeat(10_000);
const DOCUMENT = "known ".repeat(40_000);

const WRITES = {
  forkSession: {
    act: () => driver.request(0, "forkSession", { sessionId: "s" }),
    apply: (model, answer) => {
      const original = model.find("s");
      model.sessions.push(original.fork(original.leaf, answer?.id ?? null, null, null));
    },
  },
  deleteSession: {
    act: () => driver.request(0, "deleteSession", { sessionId: "s" }),
    apply: (model) => model.delete("s"),
  },
  importSession: {
    prepare: async (game) => (game.file = (await game.exported(0, "s")).body),
    act: (game) => driver.importSession(0, "copy", game.file),
    apply: (model) => model.sessions.push(model.find("s").copy("copy")),
  },
  setEntry: {
    act: () => driver.request(0, "setEntry", { sessionId: "s", label: "kb", key: "k", content: ENTRY }),
    apply: (model) =>
      model.find("s").memory.holds("kb").items.set("k", { content: ENTRY, title: null, supersedes: [] }),
  },
  putSkill: {
    act: () => driver.request(0, "putSkill", { sessionId: "s", label: "skills", key: "k", content: DOCUMENT }),
    apply: (model) => model.find("s").memory.holds("skills").items.set("k", { content: DOCUMENT }),
  },
  clearMessages: {
    act: () => driver.request(0, "clearMessages", { sessionId: "s" }),
    apply: (model) => model.find("s").clear(),
  },
};

for (const [name, { prepare, act, apply }] of Object.entries(WRITES)) {
  test(`${name}_is_all_or_nothing_wherever_the_runtime_is_killed`, async () => {
    const uninterrupted = await openGame();
    await prepare?.(uninterrupted);
    const began = performance.now();
    await uninterrupted.take(0, name, {}, apply, await act(uninterrupted));
    const durationMs = performance.now() - began;
    await uninterrupted.audit(0);

    for (const point of POINTS) {
      const game = await openGame();
      await prepare?.(game);
      const kill = driver.killAfter(durationMs * point);
      const answer = await act(game);
      await kill;
      const before = { ...game.settled };
      await game.take(0, name, {}, apply, answer);
      const outcome = answer.status === 200 ? "acknowledged" : game.settled.whole > before.whole ? "whole" : "absent";
      count(name, outcome);
      if (outcome === "absent") await game.take(0, name, {}, apply, await act(game));
      await game.audit(0);
    }
  });
}

test("a_first_search_is_complete_wherever_the_runtime_is_killed", async () => {
  const uninterrupted = await openGame();
  const began = performance.now();
  await findAll(uninterrupted);
  const durationMs = performance.now() - began;
  for (const point of POINTS) {
    const game = await openGame();
    const kill = driver.killAfter(durationMs * point);
    const answer = await driver.request(0, "search", { query: "event", limit: 1 });
    await kill;
    count("search", answer.status === 200 ? "acknowledged" : "interrupted");
    await findAll(game);
    await game.audit(0);
  }
});

/** Searches until the index is complete, and then for an event of each batch. */
async function findAll(game) {
  while ((await game.read(0, "search", { query: "event", limit: 1 })).pending);
  for (let at = 7; at < EVENTS; at += BATCH) {
    const { results } = await game.read(0, "search", { query: `"event ${at}"`, limit: 100 });
    assert.deepEqual(
      results.map(({ id }) => id),
      [`e${at}`],
    );
  }
}

function count(name, outcome) {
  outcomes[name] ??= {};
  outcomes[name][outcome] = (outcomes[name][outcome] ?? 0) + 1;
}
