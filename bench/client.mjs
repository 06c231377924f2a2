// The client's overhead per request: a page of history through `session.getHistory`, beside the
// same page with bare `fetch` and `JSON.parse`. Both are requested from Node over loopback, in
// alternating rounds, so that both run under the same conditions.
//
//   npm run bench -- client
//
// It prints the median of the rounds: microseconds of this process's CPU and of time for
// each page.

import assert from "node:assert/strict";
import { sessionAgent } from "../packages/session-agent/dist/index.js";
import { startServer } from "../tests/workerd/harness.mjs";

const ROUNDS = 41;
const PAGES_A_ROUND = 100;
const MESSAGES = 50;
const WORDS = "Some words of a message that a user wrote. ".repeat(10);

const server = await startServer({ inspect: false });
const session = sessionAgent(server.url, "bench").session("s");
await session.create();
await session.appendEvents({
  events: Array.from({ length: MESSAGES }, (_, n) => ({
    action: n % 2 ? "agent_message" : "user_message",
    content: WORDS,
  })),
});

const url = new URL("/agents/session-agent/bench/rpc/getHistory", server.url).href;
const body = JSON.stringify({ sessionId: "s", limit: MESSAGES });
const ways = {
  client: () => session.getHistory({ limit: MESSAGES }),
  fetch: async () =>
    JSON.parse(
      await (await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })).text(),
    ),
};

assert.deepEqual(await ways.client(), await ways.fetch());

const measured = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let round = -2; round < ROUNDS; round += 1) {
  for (const [name, ask] of Object.entries(ways)) {
    const [cpu, time] = [process.cpuUsage(), performance.now()];
    for (let n = 0; n < PAGES_A_ROUND; n += 1) await ask();
    const { user, system } = process.cpuUsage(cpu);
    // The first rounds warm up both.
    if (round >= 0)
      measured[name].push({
        cpu: (user + system) / PAGES_A_ROUND,
        time: ((performance.now() - time) * 1000) / PAGES_A_ROUND,
      });
  }
}

const median = (values) => values.sort((one, other) => one - other)[values.length >> 1];
for (const [name, rounds] of Object.entries(measured)) {
  console.log(
    `${name}: ${median(rounds.map(({ cpu }) => cpu)).toFixed(0)} µs of CPU, ${median(rounds.map(({ time }) => time)).toFixed(0)} µs a page of ${MESSAGES} messages`,
  );
}
const ratios = measured.client.map(({ cpu }, n) => cpu / measured.fetch[n].cpu);
console.log(`client / fetch, CPU, median of ${ROUNDS} rounds: ${median(ratios).toFixed(3)}`);
await server.stop();
