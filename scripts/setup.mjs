// Installs only what is missing, so that `npm start` and `npm test` work in a fresh clone, and take milliseconds
// afterward.
//
// A step checks its output to find out whether it is done, so an interrupted setup resumes where
// it stopped. If nothing is missing, it makes no network requests.

import { checkRequirements } from "./setup/requirements.mjs";
import { bindgen, checkBindgenVersion } from "./setup/bindgen.mjs";
import { client } from "./setup/client.mjs";
import { packages } from "./setup/packages.mjs";
import { wasmTarget } from "./setup/wasm_target.mjs";
import { withLock } from "./lock.mjs";

const PROGRESS_MS = 30_000;

/** The steps that building and serving need, and `more` steps. */
export async function setUp(...more) {
  checkBindgenVersion();
  await setUpOnly(packages, client, wasmTarget, bindgen, ...more);
}

/** Packages are downloaded while crates are compiled. Within each of the two, the order matters. */
export async function setUpOnly(...steps) {
  checkRequirements();
  const missing = steps.filter((step) => !step.isDone());
  const tracks = [true, false].map((compiles) => missing.filter((step) => (step.compiles ?? false) === compiles));
  const ends = await Promise.allSettled(tracks.map((track) => inOrder(track)));
  for (const { reason } of ends) if (reason !== undefined) throw reason;
}

async function inOrder(steps) {
  for (const step of steps) {
    await withLock(
      step.lock(),
      () => console.error(`${step.title()}: another process is already doing this; waiting for it.`),
      async () => {
        if (!step.isDone()) await announced(step.title(), () => step.run());
      },
    );
  }
}

/** Prints a step's start, a sign of life if no progress bar is shown, and its duration. */
async function announced(title, run) {
  console.error(`${title} …`);
  const started = Date.now();
  const elapsed = () => `${Math.round((Date.now() - started) / 1000)} s`;
  const progress = setInterval(() => {
    if (!process.stderr.isTTY) console.error(`    ${title}: still running after ${elapsed()}`);
  }, PROGRESS_MS);
  try {
    await run();
  } finally {
    clearInterval(progress);
  }
  console.error(`    ${title}: done in ${elapsed()}`);
}
