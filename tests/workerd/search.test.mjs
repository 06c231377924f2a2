// The search index on the real runtime: indexing continues after the response and after evictions,
// and a text of any length is one result.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startServer } from "./harness.mjs";

const server = await startServer();
after(() => server.stop());

async function ok(agent, operation, input) {
  const { status, body } = await server.call(agent, operation, input);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const indexed = async (agent) => (await server.sql(agent, "SELECT count(*) AS n FROM cf_agents_search_docsize"))[0].n;

test("indexing_of_a_long_history_continues_after_the_response_and_an_eviction", async () => {
  await ok("long", "createSession", { id: "s" });
  for (let page = 0; page < 20; page += 1) {
    const events = Array.from({ length: 1_000 }, (_, n) => ({
      action: "user_message",
      content: `apple ${page * 1_000 + n}`,
    }));
    await ok("long", "appendEvents", { sessionId: "s", events });
  }
  const first = await ok("long", "search", { query: "19999" });
  assert.equal(first.pending, true);
  assert.equal(first.results[0].seq, 20_000);
  await server.evict("long");
  // From here on, only the harness sends requests.
  let count = 0;
  for (let tries = 0; tries < 300 && count < 20_000; tries += 1) {
    await pause(100);
    count = await indexed("long");
  }
  assert.equal(count, 20_000);
  const last = await ok("long", "search", { query: "0" });
  assert.equal(last.pending, undefined);
  assert.equal(last.results[0].seq, 1);
});

test("the_longest_text_does_not_break_later_searches", async () => {
  await ok("honest", "createSession", { id: "s" });
  await ok("honest", "appendEvents", {
    sessionId: "s",
    events: [{ id: "short", action: "user_message", content: "a medlar" }],
  });
  let text = "quince";
  for (let n = 0; text.length < 4_000_000; n += 1) text += ` w${n.toString(36)}`;
  await ok("honest", "appendEvents", {
    sessionId: "s",
    events: [{ id: "long", action: "user_message", content: text }],
  });
  const found = async (query) => (await ok("honest", "search", { query })).results.map(({ id }) => id);
  assert.deepEqual(await found("medlars"), ["short"]);
  assert.deepEqual(await found("quinces"), ["long"]);
  assert.deepEqual((await found("medlar w5")).sort(), ["long", "short"]);
});
