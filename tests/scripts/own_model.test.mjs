// A class's model (packages/session-agent/src/worker/model.ts), asked as the core asks it.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { CLIENT } from "../../scripts/places.mjs";

const { outputFiles } = await build({
  entryPoints: [join(CLIENT, "src/worker/model.ts")],
  bundle: true,
  write: false,
  format: "esm",
});
const { OwnModel } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

/** A model that keeps the signal which it was given, and says nothing. */
function silentModel() {
  const model = {
    specificationVersion: "v3",
    modelId: "m",
    signal: null,
    doStream: async ({ abortSignal }) => {
      model.signal = abortSignal;
      return { stream: new ReadableStream() };
    },
  };
  return model;
}

const ASKED = { model: "own:m", messages: [{ role: "user", content: "Hello" }] };

test("a_call_that_is_given_up_stops_the_model", async () => {
  const [model, call] = [silentModel(), new AbortController()];
  await new OwnModel().answer(model, ASKED, call.signal);
  assert.equal(model.signal.aborted, false);
  call.abort(new Error("given up"));
  assert.equal(model.signal.reason.message, "given up");
});

test("a_call_that_was_given_up_before_the_model_was_asked_stops_it_too", async () => {
  const model = silentModel();
  await new OwnModel().answer(model, ASKED, AbortSignal.abort(new Error("given up")));
  assert.equal(model.signal.reason?.message, "given up");
});
