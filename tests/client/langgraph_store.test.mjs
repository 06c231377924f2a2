// LangGraph's store over an agent, compared with LangGraph's in-memory store. The object is evicted
// after every write.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, test } from "node:test";
import { Annotation, END, getStore, START, StateGraph } from "@langchain/langgraph";
import { InMemoryStore, InvalidNamespaceError } from "@langchain/langgraph-checkpoint";
import { startEvictingServer } from "./evicting_server.mjs";

// These modules resolve only after `resolve_packages.mjs` has run.
const { PayloadTooLargeError } = await import("session-agent");
const { SessionAgentStore } = await import("session-agent/langgraph");

const evicting = await startEvictingServer();
after(() => evicting.stop());

const storeOf = (name) => new SessionAgentStore(evicting.open(name));

/** Random numbers for each seed. */
function chanceOf(seed) {
  let state = seed;
  const next = () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
  const below = (count) => Math.floor(next() * count);
  return { below, one: (list) => list[below(list.length)] };
}

const NAMESPACES = [
  ["a"],
  ["a", "b"],
  ["a", "b", "c"],
  ["users", "ann"],
  ["users", "bob", "facts"],
  ["é", "😀 x"],
  ["a/b", '"', "\\"],
];
const KEYS = ["k", "key two", "../x", "é".repeat(300)];
const FILTERS = [
  undefined,
  { n: 1 },
  { n: { $gt: 2 } },
  { n: { $gte: 1, $lt: 4 } },
  { n: { $ne: 3 } },
  { tag: { $eq: "x" } },
  { n: { $in: [1, 2] } },
  { n: { $nin: [1] } },
  { none: null },
];
const CONDITIONS = [[], [{ matchType: "prefix", path: ["a", "*"] }], [{ matchType: "suffix", path: ["ann"] }]];

function operationOf({ below, one }) {
  const [namespace, key, kind] = [one(NAMESPACES), one(KEYS), below(10)];
  const value = { n: below(6), tag: one(["x", "y", "\0😀\u2028"]), list: [1, below(3)], none: null };
  if (kind < 5) return { namespace, key, value: kind === 0 ? null : value };
  if (kind < 7) return { namespace, key };
  if (kind < 9) return { namespacePrefix: namespace.slice(0, below(3)), filter: one(FILTERS), limit: 100 };
  return { matchConditions: one(CONDITIONS), maxDepth: one([undefined, 1, 2]), limit: 100, offset: 0 };
}

/** A result without its times. Items are sorted, because no store promises an order. */
function shown(result) {
  if (Array.isArray(result))
    return result.map(shown).sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
  return result?.value === undefined ? (result ?? null) : [result.namespace, result.key, result.value];
}

test("random_play_matches_the_in_memory_store", async () => {
  const [ours, theirs, chance] = [storeOf("play"), new InMemoryStore(), chanceOf(11)];
  for (let n = 0; n < 60; n += 1) {
    const operations = Array.from({ length: 1 + chance.below(4) }, () => operationOf(chance));
    // A namespace that lost its last item is still listed in memory.
    for (const [namespace, items] of theirs.data) if (items.size === 0) theirs.data.delete(namespace);
    // The in-memory store returns its own objects, which a later write of the same batch changes.
    const expected = [];
    for (const op of operations)
      expected.push("value" in op ? null : structuredClone(shown((await theirs.batch([op]))[0])));
    await theirs.batch(structuredClone(operations.filter((op) => "value" in op)));
    assert.deepEqual((await ours.batch(operations)).map(shown), expected, JSON.stringify(operations));
  }
  assert.ok(evicting.evictions > 20, `${evicting.evictions} evictions`);
});

test("an_item_has_timestamps_and_is_replaced_whole", async () => {
  const store = storeOf("times");
  assert.deepEqual(
    [await store.get(["a"], "k"), await store.search(["a"]), await store.listNamespaces()],
    [null, [], []],
  );
  await store.delete(["a"], "k");
  await store.put(["a"], "k", { x: 1, y: 2 });
  const first = await store.get(["a"], "k");
  await store.put(["a"], "k", { z: 3 });
  const second = await store.get(["a"], "k");
  assert.deepEqual(second.value, { z: 3 });
  assert.deepEqual(second.createdAt, first.createdAt);
  assert.ok(first.createdAt <= first.updatedAt && first.updatedAt <= second.updatedAt);
  await store.delete(["a"], "k");
  assert.equal(await store.get(["a"], "k"), null);
});

test("a_query_matches_words_below_a_prefix", async () => {
  const store = storeOf("words");
  for (const [n, text] of ["Ann likes green tea.", "Bob likes coffee.", "The tea is green."].entries())
    await store.put(["users", n === 1 ? "bob" : "ann"], `k${n}`, { text, n });
  await store.put(["users", "ann"], "hidden", { text: "tea" }, false);
  await store.put(["other"], "k", { text: "green tea" });
  const keys = async (prefix, options) => (await store.search(prefix, options)).map(({ key }) => key);
  const found = await store.search(["users"], { query: "tea" });
  assert.deepEqual(found.map(({ key }) => key).sort(), ["k0", "k2"]);
  assert.ok(found.every(({ score }) => typeof score === "number"));
  assert.deepEqual(await keys(["users"], { query: "tea", filter: { n: { $gt: 1 } } }), ["k2"]);
  assert.deepEqual(await keys(["users", "bob"], { query: "coffee", limit: 1 }), ["k1"]);
  assert.equal((await keys(["users"], { query: "tea", limit: 1, offset: 1 })).length, 1);
  assert.equal((await keys(["users"], { limit: 2, offset: 3 })).length, 1);
});

test("unsupported_values_are_refused_before_any_write", async () => {
  const store = storeOf("refused");
  await assert.rejects(store.put(["a.b"], "k", { x: 1 }), InvalidNamespaceError);
  await assert.rejects(store.put(["a".repeat(3000)], "k", { x: 1 }), RangeError);
  const good = { namespace: ["a"], key: "good", value: { x: 1 } };
  await assert.rejects(store.batch([good, { ...good, key: "bad", value: () => {} }]), TypeError);
  assert.deepEqual(await store.search([]), []);
  await assert.rejects(store.put(["a"], "k", { x: "y".repeat(70_000) }), PayloadTooLargeError);
});

test("its_entry_keys_match_those_of_the_python_package", async () => {
  const store = storeOf("names");
  await store.put(["users", "ann"], "drink", { text: "tea" });
  await store.put(["é"], "k", { n: 1 });
  // Python's `json.dumps`, and its hash if it contains a `\` or a `/`.
  const hashed = createHash("sha256").update('["\\u00e9","k"]').digest("hex");
  const { entries } = await evicting.openPlain("names").listEntries({ label: "langgraph" });
  assert.deepEqual(entries.map(({ key }) => key).sort(), ['["users","ann","drink"]', hashed].sort());
  assert.deepEqual(entries.find(({ key }) => key !== hashed).metadata, {
    namespace: ["users", "ann"],
    key: "drink",
    indexed: true,
    ns0: "users",
    ns1: "ann",
  });
});

test("a_graph_remembers_across_its_threads", async () => {
  const State = Annotation.Root({ text: Annotation() });
  const graph = (store) =>
    new StateGraph(State)
      .addNode("remember", async ({ text }) => {
        const [known] = await getStore().search(["facts"], { query: "tea" });
        await getStore().put(["facts"], "drink", { text });
        return { text: known?.value.text ?? "nothing" };
      })
      .addEdge(START, "remember")
      .addEdge("remember", END)
      .compile({ store });
  assert.deepEqual(await graph(storeOf("graph")).invoke({ text: "Ann likes tea." }), { text: "nothing" });
  assert.deepEqual(await graph(storeOf("graph")).invoke({ text: "And?" }), { text: "Ann likes tea." });
});
