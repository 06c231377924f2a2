// A class's model (packages/session-agent/src/worker/model.ts), called as the core calls it.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { CLIENT } from "../../scripts/paths.mjs";

const { outputFiles } = await build({
  entryPoints: [join(CLIENT, "src/worker/model.ts")],
  bundle: true,
  write: false,
  format: "esm",
});
const { OwnModel } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);

/** A model that records its signal and never answers. */
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

const REQUEST = { model: "own:m", messages: [{ role: "user", content: "Hello" }] };

test("an_aborted_call_stops_the_model", async () => {
  const [model, call] = [silentModel(), new AbortController()];
  await new OwnModel().answer(model, REQUEST, call.signal);
  assert.equal(model.signal.aborted, false);
  call.abort(new Error("given up"));
  assert.equal(model.signal.reason.message, "given up");
});

test("a_call_aborted_before_the_model_starts_stops_it_too", async () => {
  const model = silentModel();
  await new OwnModel().answer(model, REQUEST, AbortSignal.abort(new Error("given up")));
  assert.equal(model.signal.reason?.message, "given up");
});

/** The core's input from a model that throws or whose stream has an error. */
async function failureOf(error, isInStream) {
  const model = silentModel();
  const stream = ReadableStream.from([{ type: "error", error }]);
  model.doStream = isInStream ? async () => ({ stream }) : () => Promise.reject(error);
  const answer = await new OwnModel().answer(model, REQUEST, undefined);
  const text = await answer.text();
  return { status: answer.status, error: JSON.parse(text.replace(/^data: /, "")).error };
}

test("an_error_has_the_providers_message", async () => {
  const apiError = (statusCode, data) =>
    Object.assign(new Error("refused"), { name: "AI_APICallError", statusCode, data });
  const quota = {
    error: { message: "You exceeded", type: "insufficient_quota", param: null, code: "insufficient_quota" },
  };
  assert.deepEqual(await failureOf(apiError(429, quota)), {
    status: 429,
    error: { message: "refused", code: "insufficient_quota", type: "insufficient_quota" },
  });
  // The status is reported once.
  assert.deepEqual(await failureOf(apiError(404)), { status: 404, error: { message: "refused" } });
  const overloaded = { type: "overloaded_error", message: "Overloaded" };
  assert.deepEqual((await failureOf(overloaded, true)).error, { message: "Overloaded", type: "overloaded_error" });
});

test("an_error_without_a_providers_message_has_its_class_name", async () => {
  const unset = Object.assign(new Error("The API key is missing."), { name: "AI_LoadAPIKeyError" });
  const { status, error } = await failureOf(unset);
  assert.deepEqual([status, error.type], [500, "AI_LoadAPIKeyError"]);
  // The answer began successfully, so its status names nothing.
  const lost = Object.assign(new Error("lost"), { name: "AI_APICallError", statusCode: 200 });
  assert.deepEqual((await failureOf(lost, true)).error, { message: "lost", type: "AI_APICallError" });
  assert.deepEqual((await failureOf(new Error("lost"), true)).error, { message: "lost" });
});
