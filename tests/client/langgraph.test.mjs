// `session-agent/langgraph` with LangGraph's own suite and with its graphs. The object is evicted
// after every write.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { Annotation, Command, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { listenForEvictions, startEvictingServer } from "./evicting_server.mjs";

// Available once the first import has run.
const { LeafMovedError } = await import("session-agent");
const { SessionAgentSaver } = await import("session-agent/langgraph");

const FOLDER = import.meta.dirname;

/** Excluded cases of the suite, with the reason: none. */
const LEFT_OUT = {};

const evicting = await startEvictingServer();
after(() => evicting.stop());

test("langgraphs_conformance_suite_passes", async (context) => {
  const control = await listenForEvictions(evicting);
  const env = {
    ...process.env,
    SUITE_TARGET: JSON.stringify(evicting.target),
    SUITE_CONTROL: control.url,
    NO_COLOR: "1",
  };
  const run = promisify(execFile)(
    process.execPath,
    [join(FOLDER, "node_modules/vitest/vitest.mjs"), "run", "--root", FOLDER],
    { cwd: FOLDER, env, maxBuffer: 1 << 26 },
  );
  const { stdout, stderr } = await run.catch((error) => error);
  control.stop();
  assert.ok(stdout?.startsWith("{"), `${stdout}\n${stderr}`);
  const report = JSON.parse(stdout);
  const cases = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = cases
    .filter(({ status }) => status === "failed")
    .map(({ fullName, failureMessages }) => `${fullName}\n${failureMessages.join("\n")}`);
  assert.deepEqual(failed.slice(0, 3), [], `${failed.length} failed`);
  assert.equal(report.success, true, JSON.stringify(report.testResults.map(({ message }) => message)));
  const skipped = cases.filter(({ status }) => status !== "passed").map(({ fullName }) => fullName);
  assert.deepEqual(skipped, Object.keys(LEFT_OUT));
  assert.ok(evicting.evictions > 100, `${evicting.evictions} evictions`);
  context.diagnostic(
    `${report.numPassedTests} passed, ${report.numFailedTests} failed, ${skipped.length} skipped, ${evicting.evictions} evictions`,
  );
});

const saverOf = (name, options) => new SessionAgentSaver(evicting.open(name), options);
const State = Annotation.Root({
  texts: Annotation({ reducer: (before, more) => before.concat(more), default: () => [] }),
});
const inThread = (id, more) => ({ configurable: { thread_id: id, ...more } });

/** A graph of two nodes; the second asks a person. */
function graphOn(checkpointer) {
  return new StateGraph(State)
    .addNode("draft", () => ({ texts: ["draft"] }))
    .addNode("ask", () => ({ texts: [`a person said ${interrupt("Fine?")}`] }))
    .addEdge(START, "draft")
    .addEdge("draft", "ask")
    .addEdge("ask", END)
    .compile({ checkpointer });
}

test("a_graph_interrupts_for_a_person_and_continues_in_another_process", async () => {
  const first = await graphOn(saverOf("person")).invoke({ texts: ["hello"] }, inThread("t"));
  assert.equal(first.__interrupt__[0].value, "Fine?");
  const second = await graphOn(saverOf("person")).invoke(new Command({ resume: "yes" }), inThread("t"));
  assert.deepEqual(second.texts, ["hello", "draft", "a person said yes"]);
  const { values, next } = await graphOn(saverOf("person")).getState(inThread("t"));
  assert.deepEqual([values.texts, next], [second.texts, []]);
});

test("a_thread_continues_and_its_past_branches_only_on_request", async () => {
  const graph = new StateGraph(State)
    .addNode("answer", ({ texts }) => ({ texts: [`${texts.length}`] }))
    .addEdge(START, "answer")
    .compile({ checkpointer: saverOf("past") });
  for (const word of ["a", "b"]) await graph.invoke({ texts: [word] }, inThread("t"));
  const states = [];
  for await (const state of graph.getStateHistory(inThread("t"))) states.push(state);
  assert.deepEqual(states[0].values.texts, ["a", "1", "b", "3"]);
  const past = states.find(({ values }) => values.texts?.length === 2);
  const forked = await graph.updateState(past.config, { texts: ["c"] }, "answer");
  assert.deepEqual((await graph.getState(forked)).values.texts, ["a", "1", "c"]);
  assert.deepEqual((await graph.getState(inThread("t"))).values.texts, ["a", "1", "c"]);
  // The first branch is still there, value by value.
  assert.deepEqual((await graph.getState(states[0].config)).values.texts, ["a", "1", "b", "3"]);
  assert.deepEqual((await graph.invoke({ texts: ["d"] }, inThread("t"))).texts, ["a", "1", "c", "d", "4"]);
  // A replay of an old checkpoint is a branch, too.
  const replayed = await graph.invoke(null, states.find(({ next }) => next.includes("answer")).config);
  assert.deepEqual(replayed.texts, ["a", "1", "b", "3"]);
});

test("a_stale_writer_is_refused", async () => {
  const [one, other] = [saverOf("stale"), saverOf("stale")];
  const values = (texts) => ({
    ...emptyCheckpoint(),
    channel_values: { texts },
    channel_versions: { texts: one.getNextVersion(undefined) },
  });
  const put = (saver, config, checkpoint) =>
    saver.put(config, checkpoint, { source: "loop", step: 0, parents: {} }, checkpoint.channel_versions);
  const first = await put(one, inThread("t"), values(["first"]));
  await put(one, first, values(["second"]));
  await assert.rejects(put(other, first, values(["stale"])), LeafMovedError);
  assert.deepEqual((await other.getTuple(inThread("t"))).checkpoint.channel_values, { texts: ["second"] });
  let count = 0;
  for await (const tuple of other.list(inThread("t")))
    count += tuple.checkpoint.channel_values.texts.includes("stale") ? 100 : 1;
  assert.equal(count, 2);
  // The option allows it.
  await put(saverOf("stale", { staleWriters: "fork" }), first, values(["stale"]));
  assert.deepEqual((await other.getTuple(inThread("t"))).checkpoint.channel_values, { texts: ["stale"] });
});

test("a_repeated_put_is_stored_once_and_a_retried_task_replaces_its_error", async () => {
  const saver = saverOf("repeated");
  const checkpoint = {
    ...emptyCheckpoint(),
    channel_values: { a: new Uint8Array([0, 255]) },
    channel_versions: { a: saver.getNextVersion(undefined) },
  };
  const put = () =>
    saver.put(inThread("t"), checkpoint, { source: "input", step: -1, parents: {} }, checkpoint.channel_versions);
  const config = await put();
  assert.deepEqual(await put(), config);
  await saver.putWrites(
    config,
    [
      ["a", 1],
      ["b", undefined],
    ],
    "task 1",
  );
  await saver.putWrites(config, [["a", 2]], "task 1");
  await saver.putWrites(config, [["__error__", "first"]], "task 2");
  await saver.putWrites(config, [["__error__", "second"]], "task 2");
  const { checkpoint: read, pendingWrites } = await saver.getTuple(inThread("t"));
  assert.deepEqual(read, checkpoint);
  assert.deepEqual(
    pendingWrites.map(([, channel, value]) => [channel, value]),
    [
      ["a", 1],
      ["b", undefined],
      ["__error__", "second"],
    ],
  );
});

test("a_subgraph_has_its_own_namespace_and_a_thread_is_deleted_whole", async () => {
  const agent = evicting.openPlain("nested");
  const inner = new StateGraph(State)
    .addNode("inside", () => ({ texts: [`inside: ${interrupt("?")}`] }))
    .addEdge(START, "inside")
    .compile();
  const outer = new StateGraph(State)
    .addNode("inner", inner)
    .addEdge(START, "inner")
    .compile({ checkpointer: saverOf("nested") });
  await outer.invoke({ texts: [] }, inThread("t"));
  await outer.invoke({ texts: [] }, inThread("other"));
  assert.deepEqual((await outer.invoke(new Command({ resume: "yes" }), inThread("t"))).texts, ["inside: yes"]);
  const before = (await agent.listSessions()).sessions.length;
  assert.equal(before, 6);
  await saverOf("nested").deleteThread("t");
  assert.equal((await agent.listSessions()).sessions.length, 3);
  assert.equal(await saverOf("nested").getTuple(inThread("t")), undefined);
  assert.ok(await saverOf("nested").getTuple(inThread("other")));
});

test("prune_keeps_the_newest_checkpoint_of_each_namespace", async () => {
  const saver = saverOf("pruned");
  const graph = new StateGraph(State)
    .addNode("say", () => ({ texts: ["and more"] }))
    .addEdge(START, "say")
    .compile({ checkpointer: saver });
  for (const thread of ["t", "other"])
    for (const text of ["one", "two", "three"]) await graph.invoke({ texts: [text] }, inThread(thread));
  const newest = await saver.getTuple(inThread("t"));
  const all = async (thread) => {
    const found = [];
    for await (const tuple of saver.list(inThread(thread))) found.push(tuple);
    return found;
  };
  const others = (await all("other")).length;
  assert.ok((await all("t")).length > 3);
  await saver.prune(["t", "a thread that is not there"]);
  assert.deepEqual(await all("t"), [newest]);
  assert.equal((await all("other")).length, others);
  // The thread continues from there.
  await graph.invoke({ texts: ["four"] }, inThread("t"));
  assert.ok((await saver.getTuple(inThread("t"))).checkpoint.channel_values.texts.includes("one"));
  await saver.prune(["t"], { strategy: "delete" });
  assert.deepEqual(await all("t"), []);
});

test("long_and_unusual_thread_names_stay_distinct", async () => {
  const saver = saverOf("names");
  const threads = ["a", 'a","b', "a/b", "", "é🙂".repeat(100), `${"é🙂".repeat(100)}!`];
  for (const thread of threads) {
    await saver.put(
      inThread(thread, { checkpoint_ns: "n|".repeat(150) }),
      emptyCheckpoint(),
      { source: "input", step: -1, parents: {}, thread },
      {},
    );
  }
  for (const thread of threads) {
    assert.equal((await saver.getTuple(inThread(thread, { checkpoint_ns: "n|".repeat(150) }))).metadata.thread, thread);
    assert.equal(await saver.getTuple(inThread(thread)), undefined);
  }
  await assert.rejects(saver.put({}, emptyCheckpoint(), {}, {}), /no `configurable.thread_id`/);
});
