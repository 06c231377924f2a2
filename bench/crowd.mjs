// A hundred agents and sixteen callers: four reads of 50 messages for each append, for a
// minute each of this Worker, the floor and the peer, in turns of five seconds. The
// callers are outside the runtime, over HTTP. Written to results/crowd.md.
//
//   npm run bench -- crowd

import { once } from "node:events";
import { Agent, request } from "node:http";
import { pathOf, startFrame } from "./frame/frame.mjs";
import { bars, machine, ms, report, table, whole } from "./frame/report.mjs";
import { quantile } from "./frame/stats.mjs";
import { TEXT } from "./side_by_side.mjs";

const AGENTS = 100;
const CALLERS = 16;
const TURN_MS = 5_000;
const TURNS = Number(process.env.TURNS ?? 12);
const READS_IN_FIVE = 4;
const FIRST_MESSAGES = 50;

const WHO = { "the floor": "FLOOR", "this Worker": "AGENT", "the peer": "PEER" };
const frame = await startFrame();
const connections = new Agent({ keepAlive: true, maxSockets: CALLERS });
const message = () => ({ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text: TEXT }] });

const read = (target, agent) => send(target, agent, "getHistory", { sessionId: "s", limit: 50 });
const write = (target, agent) => send(target, agent, "appendMessage", { sessionId: "s", message: message() });

for (const target of Object.values(WHO)) {
  for (let n = 0; n < AGENTS; n += 1) {
    await send(target, `c${n}`, "createSession", { id: "s" });
    for (let m = 0; m < FIRST_MESSAGES; m += 1) await write(target, `c${n}`);
  }
}
const results = Object.fromEntries(Object.keys(WHO).map((name) => [name, { reads: [], writes: [], errors: 0, ms: 0 }]));
for (let turn = 0; turn < TURNS; turn += 1) {
  for (const [name, target] of Object.entries(WHO)) await crowd(target, results[name]);
}
connections.destroy();
await frame.stop();

const rows = Object.entries(results).map(([name, { reads, writes, errors, ms: time }]) => [
  name,
  whole(((reads.length + writes.length) * 1_000) / time),
  ...[reads, writes].flatMap((list) => [ms(quantile(list, 0.5)), ms(quantile(list, 0.99))]),
  String(errors),
]);
await report(
  "crowd",
  [
    "# A crowd",
    "",
    `By \`npm run bench -- crowd\`: ${AGENTS} agents, ${CALLERS} callers at a time, 80 % reads of 50 messages and 20 % appends, ${(TURNS * TURN_MS) / 1_000} seconds each in turns of ${TURN_MS / 1_000}. Times in milliseconds, by the callers' clock.`,
    machine(),
    "",
    ...table(["who", "requests per second", "read p50", "read p99", "append p50", "append p99", "errors"], rows),
  ],
  {
    "": bars({
      title: "A hundred agents, sixteen callers",
      unit: "milliseconds of a request; less is better",
      series: ["read p50", "read p99", "append p50", "append p99"],
      groups: Object.entries(results).map(([name, { reads, writes }]) => ({
        name,
        bars: [reads, writes].flatMap((list) => [quantile(list, 0.5), quantile(list, 0.99)]),
      })),
      show: ms,
    }),
  },
);

async function crowd(target, figures) {
  const start = performance.now();
  let requests = 0;
  const caller = async () => {
    while (performance.now() < start + TURN_MS) {
      requests += 1;
      const [agent, isRead] = [`c${(requests * 37) % AGENTS}`, requests % (READS_IN_FIVE + 1) !== 0];
      const before = performance.now();
      try {
        await (isRead ? read : write)(target, agent);
        figures[isRead ? "reads" : "writes"].push(performance.now() - before);
      } catch (error) {
        if (figures.errors === 0) console.error(error);
        figures.errors += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  figures.ms += performance.now() - start;
}

/** Sends a request, reads the response and drops it: the minimum that a client can do. */
async function send(target, agent, operation, body) {
  const sent = request(new URL(pathOf(agent, operation), frame.urls[target]), { method: "POST", agent: connections });
  sent.end(JSON.stringify(body));
  const [response] = await once(sent, "response");
  response.resume();
  await once(response, "end");
  if (response.statusCode !== 200) throw new Error(`${operation}: ${response.statusCode}`);
}
