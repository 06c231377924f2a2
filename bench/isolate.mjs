// Memory of the runtime's process, and of wasm, after 100,000 messages and 1,000 reads
// of 50 messages: this Worker, the floor and the peer, each in a process of its own.
// Written to results/isolate.md.
//
//   npm run bench -- isolate

import { readFile } from "node:fs/promises";
import { pathOf, startFrame } from "./frame/frame.mjs";
import { bars, machine, report, table, whole } from "./frame/report.mjs";
import { TEXT } from "./side_by_side.mjs";

const MESSAGES = 100_000;
const BATCH = 100;
const READS = 1_000;
const MIB = 1 << 20;

const rows = [];
const groups = [];
const WHO = [
  { name: "the floor", target: "FLOOR", write: "appendEvents", read: "loadEvents" },
  { name: "this Worker", target: "AGENT", write: "appendEvents", read: "getHistory" },
  { name: "the peer", target: "PEER", write: "appendMessages", read: "getHistory" },
];
const event = { action: "user_message", content: TEXT };
const message = { role: "user", parts: [{ type: "text", text: TEXT }] };
const batch = { sessionId: "s", events: Array(BATCH).fill(event), messages: Array(BATCH).fill(message) };
for (const { name, target, write, read } of WHO) {
  const frame = await startFrame({ targets: [target] });
  const order = { target, entryPoint: "service", agent: "isolate", lanes: 8 };
  const request = (operation, input) => ({ ...order, path: pathOf("isolate", operation), body: JSON.stringify(input) });
  await frame.ask(request("createSession", { id: "s" }));
  const figures = [await residentMib(frame.pid)];
  const { sessionId, events, messages } = batch;
  await frame.run({
    ...request(write, target === "PEER" ? { messages } : { sessionId, events }),
    times: MESSAGES / BATCH,
  });
  figures.push(await residentMib(frame.pid));
  await frame.run({ ...request(read, { sessionId, limit: 50 }), times: READS });
  figures.push(await residentMib(frame.pid));
  let wasm;
  if (target === "AGENT") wasm = JSON.parse(await frame.ask(request("getStats", {}))).memory.wasmBytes / MIB;
  await frame.stop();
  rows.push([
    name,
    ...figures.map((figure) => (figure === null ? "–" : whole(figure))),
    wasm === undefined ? "–" : wasm.toFixed(1),
  ]);
  groups.push({ name, bars: [...figures, wasm] });
}
await report(
  "isolate",
  [
    "# Memory of the isolate",
    "",
    `By \`npm run bench -- isolate\`, in MiB: what the runtime's process holds at its start, after ${whole(MESSAGES)} messages of 400 bytes appended ${BATCH} at a time, and after ${whole(READS)} reads of 50. All messages are in one session.`,
    machine(),
    "",
    ...table(["who", "at the start", "after the messages", "after the reads", "wasm at the end"], rows),
  ],
  {
    "": bars({
      title: "Memory of the process",
      unit: "MiB; less is better",
      series: ["at the start", "after the messages", "after the reads", "wasm at the end"],
      groups,
    }),
  },
);

/** The memory of a process, in MiB; `null` if the system doesn't report it. */
async function residentMib(pid) {
  try {
    return Number((await readFile(`/proc/${pid}/status`, "utf8")).match(/^VmRSS:\s+(\d+) kB/m)[1]) / 1_024;
  } catch {
    return null;
  }
}
