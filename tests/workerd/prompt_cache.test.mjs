// How much a provider reads from its cache over 20 turns while a memory block changes before every
// turn.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startCachingModel } from "./caching_model.mjs";
import { call } from "./chat_server.mjs";
import { allOf, submit } from "./chat_stream.mjs";
import { startServer } from "./harness.mjs";

const TURNS = 20;
/**
 * The part that a provider need not find in its cache: the question, the reminder, and less than
 * one of its steps of tokens.
 */
const MOST_NEW = 400;

const model = await startCachingModel();
const server = await startServer({
  vars: { AUTH: "open", MODEL: "openai:test", OPENAI_BASE_URL: model.url, ANTHROPIC_BASE_URL: model.url },
  secrets: { OPENAI_API_KEY: "a key", ANTHROPIC_API_KEY: "a key" },
});
after(async () => {
  await server.stop();
  await model.stop();
});

for (const provider of ["openai", "anthropic"]) {
  test(`${provider} reads all but the newest message from its cache, for ${TURNS} turns`, async (t) => {
    const agent = `cached-${provider}`;
    await call(server, agent, "configureAgent", { model: `${provider}:test` });
    const facts = Array.from({ length: 200 }, (_, number) => `Fact ${number}: the sky over Lisbon is blue.`);
    await call(server, agent, "defineBlock", { label: "facts", kind: "readonly", defaultContent: facts.join("\n") });
    await call(server, agent, "defineBlock", { label: "mood", kind: "writable", whenChanged: "remind" });
    const before = model.counted.length;
    for (let turn = 1; turn <= TURNS; turn += 1) {
      await call(server, agent, "setBlock", { label: "mood", content: `Mood ${turn}` });
      const answer = await allOf(
        await submit(server, agent, "s", `Question ${turn}: what of the sky?`, { id: `u${turn}` }),
      );
      assert.equal(answer.text, "Noted.");
    }
    const counted = model.counted.slice(before);
    assert.equal(counted.length, TURNS);
    t.diagnostic(`input tokens by turn:  ${counted.map(({ input }) => input).join(" ")}`);
    t.diagnostic(`cached tokens by turn: ${counted.map(({ cached }) => cached).join(" ")}`);
    const sum = (name) => counted.reduce((all, turn) => all + turn[name], 0);
    t.diagnostic(`cached in all: ${sum("cached")} of ${sum("input")}`);
    for (const [index, { input, cached }] of counted.entries()) {
      if (index > 0) assert.ok(input - cached < MOST_NEW, `turn ${index + 1}: ${cached} of ${input}`);
    }
    const { usage } = await call(server, agent, "getSession", { sessionId: "s" });
    assert.deepEqual(usage, {
      inputTokens: sum("input"),
      outputTokens: 2 * TURNS,
      cost: 0,
      cachedInputTokens: sum("cached"),
    });
  });
}
