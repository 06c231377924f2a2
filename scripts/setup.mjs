// Installs what is missing and nothing else, so that `npm start` and
// `npm test` work in a fresh clone and cost milliseconds ever after.
//
// A step tells whether it is done by looking at what it left behind, never at
// a note of having run: a set-up that was interrupted goes on where it
// stopped. With everything in place no network is touched.

import { join } from "node:path";
import { CACHE } from "./places.mjs";
import { withLock } from "./lock.mjs";
import { checkRequirements } from "./setup/requirements.mjs";
import { bindgen, checkBindgenVersion } from "./setup/bindgen.mjs";
import { client } from "./setup/client.mjs";
import { packages } from "./setup/packages.mjs";
import { wasmTarget } from "./setup/wasm_target.mjs";

const STILL_AT_IT_MS = 30_000;

/** What building and serving need, and `more` steps. */
export async function setUp(...more) {
  checkRequirements();
  checkBindgenVersion();
  const missing = () => [packages, client, wasmTarget, bindgen, ...more].filter((step) => !step.isDone());
  if (missing().length === 0) return;
  await withLock(join(CACHE, "setup.lock"), tellOfAnother, async () => {
    const steps = missing();
    for (const [index, step] of steps.entries()) {
      await announced(`[${index + 1}/${steps.length}] ${step.title()}`, () => step.run());
    }
  });
}

/** Says what happens, that it still does where no progress bar shows it, and how long it took. */
async function announced(title, run) {
  console.error(title);
  const started = Date.now();
  const elapsed = () => `${Math.round((Date.now() - started) / 1000)} s`;
  const stillAtIt = setInterval(() => {
    if (!process.stderr.isTTY) console.error(`    … still at it, ${elapsed()} so far`);
  }, STILL_AT_IT_MS);
  try {
    await run();
  } finally {
    clearInterval(stillAtIt);
  }
  console.error(`    done in ${elapsed()}`);
}

function tellOfAnother() {
  console.error("Another set-up is running on this machine: waiting for it.");
}
