// Compares the tables of the guides with their sources. limits.test.mjs checks the table of limits,
// and base/settings.rs the table of settings.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { costsInAnAgentOf, costsInASessionOf, costsOfTurns } from "../../bench/costs.mjs";
import { OPENAPI, ROOT } from "../../scripts/paths.mjs";
import { documents, namesIn, read, tableUnder } from "./documents.mjs";
import { startServer } from "./harness.mjs";

const server = await startServer();
after(() => server.stop());

const api = JSON.parse(await read(OPENAPI.slice(ROOT.length)));

test("the_documented_costs_match_the_benchmark", async () => {
  const measured = await read("bench/rows.md");
  const rows = documents.flatMap(({ text }) => text.match(/^\| .* \| \d+ \/ \d+ \| .*$/gm) ?? []);
  assert.ok(rows.length >= 12);
  for (const row of rows) assert.ok(measured.includes(`${row}\n`), row);
});

test("the_benchmark_has_measured_this_build", async () => {
  const lines = (await read("bench/rows.md")).split("\n");
  // Short logs, which are fast. cost.test.mjs measures long ones.
  const columns = [
    [1, await costsInASessionOf(server, 10)],
    [2, await costsInASessionOf(server, 1_000)],
    [1, await costsInAnAgentOf(server, 1)],
  ];
  for (const [column, costs] of columns) {
    assert.ok(costs.size >= 2);
    for (const [operation, cost] of costs) {
      const row = lines.find((line) => line.startsWith(`| ${operation} |`));
      assert.equal(
        row?.split("|")[column + 1].trim(),
        cost,
        `${operation}: \`npm run bench\` writes bench/rows.md anew`,
      );
    }
  }
});

test("the_benchmark_has_measured_the_turns_of_this_build", async () => {
  const measured = await read("bench/rows.md");
  for (const [turn, costs] of await costsOfTurns()) {
    assert.ok(
      measured.includes(`| ${turn} | ${costs.join(" | ")} |\n`),
      `${turn}: \`npm run bench\` writes bench/rows.md anew`,
    );
  }
});

test("the_sums_in_the_scaling_guide_match_the_benchmark", async () => {
  const measured = (await read("bench/results/rows.md"))
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()));
  // The last two columns: this Worker and the peer, at the greatest length.
  const rowsOf = (name) =>
    measured
      .find((cells) => cells[1] === name)
      .slice(-3, -1)
      .map((cell) => cell.split(" / ").map(Number));
  const [turn, visit] = [rowsOf("a chat turn"), rowsOf("read the newest 50 messages")];
  const guide = (await read("docs/scaling.md")).split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
  const shown = (name) =>
    guide
      .find((cells) => cells[1] === name)
      .slice(-3, -1)
      .map((cell) => Number(cell.replaceAll(",", "")) || 0);
  const users = 1e6;
  const turns = 20 * 10 * users;
  const alarms = [turns, 0];
  const dollars = [0, 0];
  for (const who of [0, 1]) {
    const [read, written] = turn[who];
    const month = {
      "rows written": turns * written + alarms[who],
      "rows read": turns * read + 20 * users * visit[who][0],
      "requests to objects": turns + 20 * users + alarms[who],
      "requests to the Worker": turns + 20 * users,
      duration: turns * 10 * 0.128,
    };
    assert.equal(shown("turns, millions")[who], turns / 1e6);
    assert.equal(shown("rows written by a turn")[who], written);
    assert.equal(shown("rows written by the alarm that monitors a turn")[who], alarms[who] / turns);
    assert.equal(shown("rows written, millions")[who], month["rows written"] / 1e6);
    assert.equal(shown("rows read by a turn")[who], read);
    assert.equal(shown("rows read by a visit")[who], visit[who][0]);
    assert.equal(shown("rows read, millions")[who], month["rows read"] / 1e6);
    assert.equal(shown("requests, millions, ours with alarms")[who], month["requests to objects"] / 1e6);
    assert.equal(shown("gigabyte-seconds, millions")[who], month.duration / 1e6);
    for (const [item, units] of Object.entries(month)) {
      const price = guide.find((cells) => cells[1] === item && cells.length === 6)[2];
      const [each, free] = price
        .replaceAll(",", "")
        .match(/[\d.]+/g)
        .map(Number);
      const cost = Math.max(0, units / 1e6 - free) * each;
      assert.equal(shownCost(guide, item, who), Math.round(cost), item);
      dollars[who] += cost;
    }
    assert.equal(shown("sum")[who], Math.round(dollars[who]));
  }
});

test("the_cost_of_a_waiting_worker_matches_its_turns", async () => {
  const guide = (await read("docs/scaling.md")).split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
  const shown = (name) =>
    guide
      .find((cells) => cells[1] === name)
      .slice(-3, -1)
      .map((cell) => Number(cell.replaceAll(",", "")));
  const [turns, visits] = [200e6, 20e6];
  for (const who of [0, 1]) {
    const of = (name) => shown(name)[who];
    const requests = of("requests to the object") + of("messages to the object") / 20;
    const cost = (units, free, each) => Math.max(0, units / 1e6 - free) * each;
    const items = {
      rows: 950,
      "requests to objects, with alarms, and a twentieth of the messages": cost(
        turns * requests + visits + turns,
        1,
        0.15,
      ),
      "CPU time of the Worker": cost(turns * of("milliseconds of the Worker's CPU time") + visits, 30, 0.02),
      "duration of the objects": cost(turns * of("seconds in which the object is awake") * 0.128, 0.4, 12.5),
    };
    let sum = cost(turns + visits, 10, 0.3);
    for (const [name, dollars] of Object.entries(items)) {
      assert.equal(of(name), Math.round(dollars), name);
      sum += dollars;
    }
    assert.equal(of("sum with the CPU time"), Math.round(sum));
  }
});

/** The item names in the table of dollars; the table above it has other names. */
function shownCost(guide, item, who) {
  const cells = guide.find((cells) => cells[1] === item && cells.length === 6);
  return Number(cells[3 + who].replaceAll(",", ""));
}

test("a_message_takes_the_bytes_stated_in_the_scaling_guide", async () => {
  const guide = await read("docs/scaling.md");
  const documented = Number(
    guide.match(/A message of 400 bytes takes about\s+([\d,]+)\s+bytes/)[1].replaceAll(",", ""),
  );
  const call = async (operation, input) => (await server.call("scaling", operation, input)).body;
  const size = async () => (await call("getStats", {})).databaseBytes;
  await call("createSession", { id: "s" });
  const before = await size();
  const messages = 2_000;
  for (let n = 0; n < messages; n += 500) {
    await call("appendEvents", {
      sessionId: "s",
      events: Array.from({ length: 500 }, () => ({ action: "user_message", content: "x".repeat(400) })),
    });
  }
  const bytes = ((await size()) - before) / messages;
  assert.ok(Math.abs(bytes / documented - 1) < 0.1, `${bytes} bytes`);
  const gigabytes = (4_800 * documented * 1e6) / 1e9;
  const [, shownGigabytes, shownDollars] = guide.match(
    /about ([\d,]+)\s+gigabytes\s+for all users, ([\d,]+)\s+dollars/,
  );
  assert.equal(shownGigabytes.replaceAll(",", ""), String(Math.round(gigabytes / 10) * 10));
  assert.equal(shownDollars.replaceAll(",", ""), String(Math.round(Math.round(gigabytes / 10) * 10 * 0.2)));
});

test("the_figures_of_search_match_the_benchmark", async () => {
  const measured = await read("bench/vectors.md");
  const rows = tableUnder("docs/search.md", "By meaning");
  assert.ok(rows.length >= 2);
  // The benchmark has more columns: first among three, first of all, first ten.
  for (const [, first, otherWords, sameWords] of rows) {
    const line = new RegExp(`^\\| [^|]* \\| ${first} \\| [^|]* \\| ${otherWords} \\| ${sameWords} \\|$`, "m");
    assert.match(measured, line);
  }
  const [, second] = documents.find(({ path }) => path === "docs/search.md").text.split("of the questions:\n");
  const lines = second.match(/^\| by .*$/gm);
  assert.equal(lines.length, 3);
  for (const line of lines) {
    const [, , talksFirst, talksTen, lettersFirst, lettersTen] = line.split("|").map((cell) => cell.trim());
    for (const [first, ten] of [
      [talksFirst, talksTen],
      [lettersFirst, lettersTen],
    ]) {
      assert.match(measured, new RegExp(`\\| ${first} / [\\d.]+ / ${ten} \\|`), line);
    }
  }
});

test("the_table_of_urls_lists_all_of_the_api", () => {
  const addresses = tableUnder("docs/deploy.md", "Addresses").map(([address]) => address);
  const others = Object.entries(api.paths).filter(([path]) => !path.includes("/rpc/"));
  assert.ok(others.length >= 4);
  for (const [path, methods] of others) {
    for (const method of Object.keys(methods))
      assert.ok(addresses.includes(`\`${method.toUpperCase()} ${path}\``), path);
  }
});

test("the_table_of_presets_matches_the_api", () => {
  const rows = tableUnder("docs/security.md", "Presets");
  const documented = api.components.securitySchemes.bearer["x-presets"];
  assert.deepEqual(
    namesIn(rows, 0)
      .filter((name) => name !== "sessionId")
      .sort(),
    Object.keys(documented).sort(),
  );
  const chat = rows.find(([name]) => name.startsWith("`chat`"));
  assert.deepEqual(namesIn([chat], 1).sort(), documented.chat.toSorted());
});

test("the_table_of_token_rights_matches_the_api", () => {
  const names = tableUnder("docs/security.md", "What a token may say").map(([allow]) => allow.match(/^`(\w+):/)[1]);
  assert.deepEqual(names.sort(), Object.keys(api.components.schemas.Allow.properties).sort());
});

test("the_list_of_operations_that_need_the_secret_matches_the_api", () => {
  const { text } = documents.find(({ path }) => path === "docs/security.md");
  const [section] = text.split("\n## What needs the secret itself\n")[1].split("\n## ");
  const operations = Object.values(api.paths).flatMap((methods) => Object.values(methods));
  const secret = operations.filter(({ description }) => /\n\nRequires the secret\./.test(`\n\n${description}`));
  assert.ok(secret.length >= 4);
  for (const { operationId } of secret) assert.ok(section.includes(`\`${operationId}\``), operationId);
});

test("the_table_of_block_kinds_matches_the_api", () => {
  const names = namesIn(tableUnder("docs/memory.md", "Kinds of blocks"), 0);
  assert.deepEqual(names.sort(), api.components.schemas.BlockKind.oneOf.map((kind) => kind.const).sort());
});

test("the_table_of_backends_matches_the_api", () => {
  const sources = tableUnder("docs/memory.md", "Memory stored elsewhere").map(([source]) =>
    JSON.parse(source.slice(1, -1)),
  );
  const named = new Set(sources.flatMap(Object.keys));
  assert.deepEqual([...named].sort(), Object.keys(api.components.schemas.BlockSource.properties).sort());
});

test("each_test_named_by_the_table_of_clients_exists", () => {
  const rows = tableUnder("docs/chat.md", "What the stock clients can do");
  const named = [1, 2].flatMap((column) => namesIn(rows, column)).filter((name) => name !== "cancelTurn");
  assert.ok(named.length >= 15);
  for (const name of named) assert.ok(existsSync(join(ROOT, `tests/workerd/${name}.test.mjs`)), name);
});
