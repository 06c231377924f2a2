// Classes whose methods return invalid values, call their own object at the wrong time, or throw: only
// that method's feature is affected.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { dev, project } from "./packed_project.mjs";

let app;
let server;
before(async () => {
  app = await project(join(import.meta.dirname, "own_errors"), ["ai", "zod"]);
  server = await dev(app.folder);
});
after(async () => {
  await server?.stop();
  await app?.remove();
});

/** The answer of a class's agent `ann`. */
async function ask(name, operation, input = {}) {
  const response = await fetch(`${server.url}/own/${name}/${operation}`, {
    method: "POST",
    body: JSON.stringify(input),
  });
  return JSON.parse(await response.text());
}

const turn = (name) =>
  ask(name, "runTurn", {
    sessionId: "s",
    message: { id: "m", role: "user", parts: [{ type: "text", text: "Hello" }] },
  });

/** Waits until the log contains the pattern: wrangler prints after the response. */
async function logged(pattern) {
  for (const until = Date.now() + 20_000; !pattern.test(server.output()); await wait(50))
    assert.ok(Date.now() < until, `the log does not say ${pattern}\n${server.output()}`);
}

const labels = async (name) => (await ask(name, "getBlocks")).map(({ label }) => label);
const tools = async (name) => (await ask(name, "listTools")).tools.map(({ name }) => name);
const tokensOf = async (name) => (await ask(name, "setBlock", { label: "memory", content: "Likes tea." })).tokens;

test("a_class_that_calls_its_own_object_during_construction_is_complete", async () => {
  assert.deepEqual(await labels("EARLY"), ["soul"]);
  assert.deepEqual(await tools("EARLY"), ["clock"]);
  const { content, tokens } = await ask("EARLY", "getBlock", { label: "soul" });
  assert.deepEqual([content, tokens], ["I saw 0 blocks.", 7]);
});

test("a_token_counter_applies_only_to_its_class", async () => {
  assert.equal(await tokensOf("GREEDY"), 1_000_000);
  // The same name, in the same isolate.
  assert.equal(await tokensOf("MODEST"), 3);
  assert.equal(await tokensOf("GREEDY"), 1_000_000);
});

test("a_token_counter_may_call_its_own_object", async () => {
  assert.equal(await tokensOf("COUNTING"), 3);
  for (const until = Date.now() + 20_000; ; await wait(50)) {
    const { content } = await ask("COUNTING", "getBlock", { label: "counted" });
    if (content === "a text was counted") break;
    assert.ok(Date.now() < until, content);
  }
  assert.doesNotMatch(server.output(), /unreachable|Critical/);
});

test("invalid_tools_and_blocks_are_skipped_and_reported", async () => {
  assert.deepEqual(await tools("PARTLY"), ["clock"]);
  assert.deepEqual(await labels("PARTLY"), ["soul", "notes"]);
  await logged(/`blocks`: number 1 is left out/);
  await logged(/AGENT_DEFAULTS and the class: tools\[1\]\.name: `name` is the name of a memory tool/);
  await logged(/AGENT_DEFAULTS and the class: tools\[2\]\.name: `name` must have/);
});

test("a_block_with_only_a_label_is_writable", async () => {
  assert.equal((await ask("PARTLY", "getBlock", { label: "notes" })).kind, "writable");
});

test("an_unavailable_model_is_not_replaced_by_another", async () => {
  assert.equal((await turn("NAMELESS")).finishReason, "stop");
  assert.equal((await ask("NAMELESS", "getTurns")).turns[0].model, "own:5");
  const { code, message } = await turn("UNSET");
  assert.deepEqual(
    [code, message],
    ["model_failed", "The model of this class failed (status 500). See the Worker's log for the reason."],
  );
});

test("a_truncated_answer_is_a_failure_with_its_reason_in_the_log", async () => {
  assert.equal((await turn("BROKEN")).code, "model_failed");
  await logged(/ended without a `finish`/);
  assert.equal((await turn("GARBLED")).code, "model_failed");
  await logged(/the model failed in its answer TypeError/);
});

test("a_login_that_returns_true_rejects_the_request", async () => {
  const response = await fetch(`${server.url}/agents/yes/ann/rpc/getConfig`, { method: "POST", body: "{}" });
  assert.equal(response.status, 401);
  await logged(/`authorize` failed, and the request is refused/);
});

/** The response to a request with this cookie by the class with mistaken grants. */
async function grantedTo(cookie, operation, input) {
  const response = await fetch(`${server.url}/agents/granting/ann/rpc/${operation}`, {
    method: "POST",
    headers: { cookie: encodeURIComponent(cookie) },
    body: JSON.stringify(input),
  });
  return { status: response.status, body: await response.json() };
}

test("a_grant_that_lost_a_restriction_is_refused", async () => {
  for (const id of ["s", "t"]) assert.equal((await grantedTo("whole", "createSession", { id })).status, 200);
  assert.equal((await grantedTo("narrow", "getSession", { sessionId: "s" })).status, 200);
  assert.equal((await grantedTo("narrow", "getSession", { sessionId: "t" })).status, 403);
  for (const [cookie, status] of [
    ["session null", 401],
    ["session undefined", 401],
    ["session of nobody", 401],
    ["session hidden", 401],
    ["operations null", 401],
    ["operations undefined", 401],
    ["preset null", 401],
    ["limits null", 401],
    ["limits undefined", 401],
    ["limits without a holder", 401],
    ["list", 401],
    // Values that JSON can express are read as `mintToken` reads them.
    ["session empty", 400],
    ["limits of nothing", 400],
    ["holder of nothing", 400],
    ["another agent", 400],
  ]) {
    for (const sessionId of ["s", "t"]) {
      const answer = await grantedTo(cookie, "getSession", { sessionId });
      assert.equal(answer.status, status, `${cookie}: ${JSON.stringify(answer.body)}`);
    }
  }
  await logged(/`sessionId` can't be undefined: omit it/);
  await logged(/`limits` without a `holder`/);
});

test("grant_limits_are_counted_per_holder", async () => {
  const message = { role: "user", parts: [{ type: "text", text: "Hello" }] };
  const turn = (sessionId) => grantedTo("limited", "runTurn", { sessionId, message });
  assert.equal((await turn("one")).status, 200);
  assert.equal((await turn("two")).body.error.code, "rate_limited");
});
