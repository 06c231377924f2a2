// A few seconds of random play against a model of the contract: natively, and in workerd with
// kills. Each test prints the seeds of its games. `npm test -- player --hours 2` plays for hours.

import assert from "node:assert/strict";
import { test } from "node:test";
import { playFor, startDriver } from "./play.mjs";

const SECONDS = { native: 15, workerd: 20 };

for (const [name, seconds] of Object.entries(SECONDS)) {
  test(`random_play_${name === "native" ? "natively" : "in_workerd"}_matches_the_contract`, async (t) => {
    const driver = await startDriver(name);
    t.after(() => driver.stop());
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
    const { failure, ...played } = await playFor(driver, seconds * 1_000, seed);
    t.diagnostic(
      `seed ${seed}: ${played.moves} moves, ${played.requests} requests, ${played.interrupted} writes interrupted, ${driver.kills ?? 0} kills`,
    );
    assert.equal(failure, undefined, failure);
    assert.ok(played.moves > 50, `${played.moves} moves`);
    if (driver.can.kill) assert.ok(driver.kills >= 2, `${driver.kills} kills`);
  });
}
