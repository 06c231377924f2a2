// Requests a second against the Worker in the local runtime, one after another
// and sixteen at a time. A figure of the machine it ran on: compare it with
// another of the same run, not with another day's.
//
//   npm run bench -- speed

import { availableParallelism } from "node:os";
import { writeFile } from "node:fs/promises";
import { startServer } from "../tests/workerd/harness.mjs";

const SECONDS = 3;
const CROWD = 16;
const user = () => ({ action: "user_message", content: "What is the weather like in Oslo today?".repeat(10) });
const batch = (length) => Array.from({ length }, user);

const server = await startServer();
await server.call("speed", "createSession", { id: "s" });
for (let n = 0; n < 10; n += 1) await server.call("speed", "appendEvents", { sessionId: "s", events: batch(100) });
await server.call("speed", "createSession", { id: "written" });

const call = (operation, input) => () => server.call("speed", operation, input);
const cases = {
  "a constant reply (/health)": async () => (await server.fetch("/health")).text(),
  "append one event": call("appendEvents", { sessionId: "written", events: batch(1) }),
  "append ten events": call("appendEvents", { sessionId: "written", events: batch(10) }),
  "load the newest 50 events": call("loadEvents", { sessionId: "s", limit: 50, tail: true }),
  "load the newest 500 events": call("loadEvents", { sessionId: "s", limit: 500, tail: true }),
  "read the newest 50 messages": call("getHistory", { sessionId: "s", limit: 50 }),
};

async function rate(request, lanes) {
  const end = performance.now() + SECONDS * 1000;
  let done = 0;
  const lane = async () => {
    while (performance.now() < end) {
      await request();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return Math.round(done / SECONDS);
}

const lines = [
  "# Requests a second",
  "",
  `By \`npm run bench -- speed\`, ${SECONDS} seconds a figure, client and Worker on one machine of ${availableParallelism()} cores.`,
  "",
  `| request | one at a time | ${CROWD} at a time |`,
  "|---|---|---|",
];
for (const [name, request] of Object.entries(cases)) {
  await request();
  lines.push(`| ${name} | ${await rate(request, 1)} | ${await rate(request, CROWD)} |`);
}
await server.stop();
await writeFile(new URL("speed.md", import.meta.url), `${lines.join("\n")}\n`);
console.log(lines.join("\n"));
