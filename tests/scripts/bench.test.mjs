// The benchmarks: the statistics behind their figures, and that each benchmark exists and is
// documented.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { bars, table, withSpread } from "../../bench/frame/report.mjs";
import { median, quantile, shuffled, spread } from "../../bench/frame/stats.mjs";
import { BENCHES, BY_NAME } from "../../scripts/bench.mjs";
import { ROOT } from "../../scripts/paths.mjs";

test("the_median_lies_between_the_quartiles", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.deepEqual(spread([1, 2, 3, 4, 5]), { median: 3, low: 2, high: 4 });
  assert.equal(quantile([10, 20], 0.25), 12.5);
  assert.equal(withSpread({ median: 0.5, low: 0.25, high: 12 }), "0.50 (0.25–12.0)");
});

test("every_round_runs_the_whole_list_in_its_own_order", () => {
  const list = ["a", "b", "c", "d", "e", "f"];
  const orders = [0, 1, 2, 3].map((round) => shuffled(list, round).join(""));
  for (const order of orders) assert.equal([...order].sort().join(""), "abcdef");
  assert.equal(new Set(orders).size, 4);
  assert.equal(shuffled(list, 2).join(""), orders[2]);
  assert.equal(list.join(""), "abcdef");
});

test("a_plot_has_a_bar_for_each_figure_and_escapes_names", () => {
  const svg = bars({
    title: "A & B",
    unit: "ms",
    series: ["one", "two"],
    groups: [
      { name: "x<y", bars: [1, 2] },
      { name: "z", bars: [3, undefined] },
    ],
  });
  assert.equal(svg.match(/<rect x="210"/g).length, 3);
  assert.ok(svg.includes("A &amp; B") && svg.includes("x&lt;y"));
  assert.deepEqual(table(["a", "b"], [["1", "2"]]), ["| a | b |", "|---|---|", "| 1 | 2 |"]);
});

test("every_benchmark_exists_and_its_results_are_in_the_document", () => {
  const document = readFileSync(join(ROOT, "docs/benchmarks.md"), "utf8");
  for (const name of [...BENCHES, ...BY_NAME]) assert.ok(existsSync(join(ROOT, `bench/${name}.mjs`)), name);
  for (const name of BENCHES) {
    assert.ok(existsSync(join(ROOT, `bench/results/${name}.md`)), name);
    for (const kind of ["md", "svg"])
      assert.ok(document.includes(`(../bench/results/${name}.${kind})`), `${name}.${kind}`);
  }
  for (const name of BY_NAME) assert.ok(document.includes(`npm run bench -- ${name}`), name);
});

// A change of this Worker shows as a change of its ratios only while the others stay.
test("the_baseline_and_peer_workers_are_unchanged", () => {
  const frozen = {
    "floor.mjs": "390c2753b5cfdce950c0acf653a42ef72e2b8be00c75c9acbcd57d88bb1cb51d",
    "peer.mjs": "b38952e3af68c370d4d82c9e7e1c05a36b22f74e5d409e501f7cf62f073a1d36",
    "chat_peer.mjs": "878341c7608a047d0f33dce5fe9e920a96ea0e41d2fdb4739fe9ed45cd9b588c",
  };
  for (const [name, digest] of Object.entries(frozen)) {
    const source = readFileSync(join(ROOT, "bench/frame", name));
    const found = createHash("sha256").update(source).digest("hex");
    assert.equal(
      found,
      digest,
      `bench/frame/${name} changed: figures from before can't be compared with figures from now`,
    );
  }
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, "bench/package.json"), "utf8"));
  const peers = { agents: "0.32.0", "@cloudflare/ai-chat": "0.12.2", ai: "7.0.173" };
  for (const [name, version] of Object.entries(peers)) assert.equal(devDependencies[name], version, name);
});
