// Requests a second against the Worker in the local runtime, one after another
// and sixteen at a time. A figure of the machine it ran on, client included:
// compare it with another of the same run, not with another day's.
//
//   npm run bench -- speed

import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { availableParallelism } from "node:os";
import { startServer } from "../tests/workerd/harness.mjs";

const ROUND_MS = 1_000;
/** A figure is the best of so many: the one that was disturbed least. */
const ROUNDS = 3;
const CROWD = 16;

const user = () => ({ action: "user_message", content: "What is the weather like in Oslo today?".repeat(10) });
const batch = (length) => Array.from({ length }, user);

// The build as it is deployed.
const server = await startServer({ inspect: false });
const connections = new Agent({ keepAlive: true, maxSockets: CROWD });

/** A request whose answer is read and thrown away: as little of a client as can be. */
async function send(path, body) {
  const sent = request(new URL(path, server.url), { method: body ? "POST" : "GET", agent: connections });
  sent.end(body);
  const [response] = await once(sent, "response");
  response.resume();
  await once(response, "end");
  if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode}`);
}

const rpc = (operation, input) => {
  const body = JSON.stringify(input);
  return () => send(`/agents/session-agent/speed/rpc/${operation}`, body);
};

for (const id of ["read", "written"]) await rpc("createSession", { id })();
for (let n = 0; n < 10; n += 1) await rpc("appendEvents", { sessionId: "read", events: batch(100) })();

const cases = {
  "a constant reply (/health)": () => send("/health"),
  "append one event": rpc("appendEvents", { sessionId: "written", events: batch(1) }),
  "append ten events": rpc("appendEvents", { sessionId: "written", events: batch(10) }),
  "load the newest 50 events": rpc("loadEvents", { sessionId: "read", limit: 50, tail: true }),
  "load the newest 500 events": rpc("loadEvents", { sessionId: "read", limit: 500, tail: true }),
  "read the newest 50 messages": rpc("getHistory", { sessionId: "read", limit: 50 }),
};

const best = new Map(Object.keys(cases).map((name) => [name, { one: 0, crowd: 0 }]));
// Round by round, so that a busy moment falls on one round of each and not on one case.
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, ask] of Object.entries(cases)) {
    const figures = best.get(name);
    figures.one = Math.max(figures.one, await rate(ask, 1));
    figures.crowd = Math.max(figures.crowd, await rate(ask, CROWD));
  }
}
connections.destroy();
await server.stop();

async function rate(ask, lanes) {
  const start = performance.now();
  let done = 0;
  const lane = async () => {
    while (performance.now() < start + ROUND_MS) {
      await ask();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return Math.round((done * 1000) / (performance.now() - start));
}

const lines = [
  "# Requests a second",
  "",
  `By \`npm run bench -- speed\`: the best of ${ROUNDS} rounds of ${ROUND_MS / 1000} s, client and Worker on one machine of ${availableParallelism()} cores.`,
  "",
  `| request | one at a time | ${CROWD} at a time |`,
  "|---|---|---|",
  ...[...best].map(([name, { one, crowd }]) => `| ${name} | ${one} | ${crowd} |`),
  "",
];
await writeFile(new URL("speed.md", import.meta.url), lines.join("\n"));
console.log(lines.join("\n"));
