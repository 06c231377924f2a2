// The cost of a log line and of spans: the CPU time of an append and of a simple turn, without
// both, with each, and with both. The servers take turns, so that other load on the machine affects
// all of them. It prints its table and writes nothing.
//
//   npm run bench -- tracing

import { allOf } from "../tests/workerd/chat_stream.mjs";
import { startCollector } from "../tests/workerd/collector.mjs";
import { startServer } from "../tests/workerd/harness.mjs";
import { say, startModel } from "../tests/workerd/model_server.mjs";
import { machine, table } from "./frame/report.mjs";
import { median } from "./frame/stats.mjs";

const ROUNDS = 8;
/** Enough to take more than a second: `auto` logs the first 100 lines of each second. */
const APPENDS = 2_400;
const AT_ONCE = 8;
const TURNS = 20;

const model = await startModel();
const collector = await startCollector();
const spans = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const kinds = {
  neither: { vars: { REQUEST_LOG: "off" } },
  lines: { vars: { REQUEST_LOG: "all" } },
  "lines as shipped": { vars: { REQUEST_LOG: "auto" } },
  "a `traceparent`, no receiver": { vars: { REQUEST_LOG: "off" }, headers: { traceparent } },
  spans: { vars: { REQUEST_LOG: "off", ...spans } },
  "lines and spans": { vars: { REQUEST_LOG: "all", ...spans } },
};
for (const kind of Object.values(kinds)) {
  kind.server = await startServer({
    vars: { AUTH: "open", MODEL: "openai:test", OPENAI_BASE_URL: model.url, ...kind.vars },
    secrets: { OPENAI_API_KEY: "a bench's key" },
    inspect: false,
  });
  kind.appends = [];
  kind.turns = [];
}

const post = ({ server, headers }, path, body) =>
  fetch(new URL(`/agents/session-agent/bench/${path}`, server.url), {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

async function append(kind) {
  const event = { action: "user_message", content: "It rains in Oslo, as it often does." };
  await (await post(kind, "rpc/appendEvents", { sessionId: "s", events: [event] })).text();
}

async function turn(kind) {
  model.next(say("It rains."));
  const message = { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text: "Oslo?" }] };
  await allOf(await post(kind, "chat", { id: `t-${kind.turns.length}`, message }));
}

/** Milliseconds of CPU time and of elapsed time, per piece of work. */
async function measure({ server }, count, work) {
  const [cpu, began] = [await server.processorMs(), performance.now()];
  await work();
  const took = performance.now() - began;
  return { cpu: ((await server.processorMs()) - cpu) / count, took: took / count };
}

for (let round = -1; round < ROUNDS; round += 1) {
  for (const kind of Object.values(kinds)) {
    const appends = await measure(kind, APPENDS, async () => {
      for (let n = 0; n < APPENDS; n += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, () => append(kind)));
    });
    const turns = await measure(kind, TURNS, async () => {
      for (let n = 0; n < TURNS; n += 1) await turn(kind);
    });
    // The first round warms up.
    if (round < 0) continue;
    kind.appends.push(appends);
    kind.turns.push(turns);
  }
}
if (collector.mistakes.length > 0) throw new Error(collector.mistakes.join("\n"));

/** The mean: the system counts CPU time in hundredths of a second. */
const cpu = (rounds) => `${(rounds.reduce((sum, { cpu }) => sum + cpu, 0) / rounds.length).toFixed(2)} ms`;
const rate = (rounds) => Math.round(1_000 / median(rounds.map(({ took }) => took)));
const rows = Object.entries(kinds).map(([name, { appends, turns }]) => [
  name,
  cpu(appends),
  rate(appends),
  cpu(turns),
  rate(turns),
]);
console.log(machine());
const head = ["with", "an append, CPU", "appends a second", "a plain turn, CPU", "turns a second"];
console.log(table(head, rows).join("\n"));
for (const { server } of Object.values(kinds)) await server.stop();
await model.stop();
await collector.stop();
process.exit(0);
