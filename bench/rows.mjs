// What each operation costs in rows, as the platform bills them, in sessions of
// three lengths: the table in bench/rows.md, which the README quotes.
//
//   npm run bench

import { readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { startServer } from "../tests/workerd/harness.mjs";

const LENGTHS = [10, 1_000, 100_000];
const user = (more = {}) => ({ action: "user_message", content: "What is the weather like in Oslo today?", ...more });
const message = (id, text) => ({ ...(id && { id }), role: "user", parts: [{ type: "text", text }] });

const server = await startServer();
const table = new Map();

for (const length of LENGTHS) {
  const agent = `of ${length}`;
  const measure = async (name, operation, input) => {
    const { status, body, rowsRead, rowsWritten } = await server.call(agent, operation, { sessionId: "s", ...input });
    if (status !== 200) throw new Error(`${operation}: ${JSON.stringify(body)}`);
    if (name) table.set(name, [...(table.get(name) ?? []), `${rowsRead} / ${rowsWritten}`]);
    return body;
  };
  await server.call(agent, "createSession", { id: "s" });
  for (let left = length; left > 0; left -= 1_000) {
    await measure(null, "appendEvents", { events: Array.from({ length: Math.min(left, 1_000) }, () => user()) });
  }
  await measure("append an event", "appendEvents", { events: [user()] });
  await measure("append an event with an id of the caller's", "appendEvents", { events: [user({ id: "mine" })] });
  await measure("send it again", "appendEvents", { events: [user({ id: "mine" })] });
  await measure("append ten events", "appendEvents", { events: Array.from({ length: 10 }, () => user()) });
  await measure("append a message", "appendMessage", { message: message(undefined, "a") });
  await measure("append a message with an id of the caller's", "appendMessage", { message: message("m", "a") });
  await measure("update it, unchanged", "updateMessage", { message: message("m", "a") });
  await measure("update it", "updateMessage", { message: message("m", "b") });
  await measure("load the newest 50 events", "loadEvents", { limit: 50, tail: true });
  await measure("read the newest 50 messages", "getHistory", { limit: 50 });
  await measure("start a branch", "appendEvents", { parentId: "mine", events: [user()] });
  await measure("read the newest 10 messages, after a branch", "getHistory", { limit: 10 });
  await measure("read a message's branches", "getBranches", { messageId: "mine" });
  await server.evict(agent);
  await measure("append an event, first after eviction", "appendEvents", { events: [user()] });
  await measure("delete an event from the middle", "deleteEvents", { eventIds: ["m"] });
  await measure("show the session", "getSession", {});
}
await server.stop();

const wasm = await readFile(new URL("../build/index_bg.wasm", import.meta.url));
const lines = [
  "# Rows read / rows written",
  "",
  "By `npm run bench`, from the `x-rows-*` headers, in sessions of these many events.",
  "",
  `| operation | ${LENGTHS.map((length) => length.toLocaleString("en")).join(" | ")} |`,
  `|---|${LENGTHS.map(() => "---").join("|")}|`,
  ...[...table].map(([name, cells]) => `| ${name} | ${cells.join(" | ")} |`),
  "",
  `The Worker: ${Math.round(wasm.length / 1024)} KiB of wasm, ${Math.round(gzipSync(wasm).length / 1024)} KiB gzipped.`,
  "",
];
await writeFile(new URL("rows.md", import.meta.url), lines.join("\n"));
console.log(lines.join("\n"));
