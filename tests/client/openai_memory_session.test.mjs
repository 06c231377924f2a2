// The Agents SDK's tests of its in-memory `MemorySession`, rewritten in terms of what a caller sees
// and run over our session.
//
// Each case also runs over the SDK's session, which shows that the case is right.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { MemorySession } from "@openai/agents-core";
import { startEvictingServer } from "./evicting_server.mjs";

const { SessionAgentSession } = await import("session-agent/openai-agents");

const evicting = await startEvictingServer();
after(() => evicting.stop());

/** A session with an id, the items that it begins with, and a logger. */
async function ours(sessionId, initialItems = [], logger) {
  const session = new SessionAgentSession(evicting.open(sessionId).session(sessionId), { logger });
  if (initialItems.length > 0) await session.addItems(initialItems);
  return session;
}
const theirs = async (sessionId, initialItems, logger) => new MemorySession({ sessionId, initialItems, logger });

const userItem = (text, providerData) => ({
  role: "user",
  content: [{ type: "input_text", text }],
  ...(providerData !== undefined && { providerData }),
});
const callItem = (callId, value, id) => ({
  type: "function_call",
  ...(id !== undefined && { id }),
  callId,
  name: "lookup",
  status: "completed",
  arguments: JSON.stringify({ value }),
});
const append = (operationId, ...items) => ({ operationId, transaction: { type: "append_items", items } });
const replace = (operationId, expectedSuffix, replacement) => ({
  operationId,
  transaction: { type: "replace_suffix", expectedSuffix, replacement },
});
const exchange = (expected, replacement, callId = expected.callId) => ({
  type: "replace_function_call",
  callId,
  expected,
  replacement,
});

const assertItems = async (session, ...items) => assert.deepEqual(await session.getItems(), items);
const refuses = (work, words) =>
  assert.rejects(work, (error) => error.message.includes(words) || assert.fail(error.message));
const SECRET = "a text that no log may have";
const UNSUPPORTED = "Session history transaction items contain invalid or unsupported data.";

function loggerThat(dontLogModelData, dontLogToolData) {
  const lines = [];
  return {
    namespace: "test",
    debug: (line) => lines.push(line),
    error() {},
    warn() {},
    dontLogModelData,
    dontLogToolData,
    lines,
  };
}

const logsNothing = (dontLogModelData, dontLogToolData) => async (open, id) => {
  const logger = loggerThat(dontLogModelData, dontLogToolData);
  const session = await open(id, [userItem(SECRET)], logger);
  await assertItems(session, userItem(SECRET));
  await session.addItems([userItem(`${SECRET}, and more`)]);
  assert.deepEqual(await session.popItem(), userItem(`${SECRET}, and more`));
  assert.ok(!JSON.stringify(logger.lines).includes(SECRET));
};

const CASES = {
  items_are_not_logged_if_model_data_may_not_be: logsNothing(true, false),
  items_are_not_logged_if_tool_data_may_not_be: logsNothing(false, true),
  items_are_not_logged_if_neither_may_be: logsNothing(true, true),

  async items_are_logged_if_model_and_tool_data_may_be(open, id) {
    const logger = loggerThat(false, false);
    await (await open(id, [userItem(SECRET)], logger)).getItems();
    assert.ok(JSON.stringify(logger.lines).includes(SECRET));
  },

  async items_are_stored_read_popped_and_cleared(open, id) {
    const session = await open(id, [userItem("hello")]);
    assert.equal(await session.getSessionId(), id);
    await session.addItems([userItem("one"), userItem("two")]);
    await assertItems(session, userItem("hello"), userItem("one"), userItem("two"));
    assert.deepEqual(await session.getItems(2), [userItem("one"), userItem("two")]);
    assert.deepEqual(await session.popItem(), userItem("two"));
    await assertItems(session, userItem("hello"), userItem("one"));
    await session.clearSession();
    await assertItems(session);
    assert.deepEqual(await session.getItems(3), []);
    assert.equal(await session.popItem(), undefined);
  },

  async later_changes_by_the_caller_are_not_stored(open, id) {
    const [first, next] = [userItem("start"), userItem("next")];
    const session = await open(id, [first]);
    const [read] = await session.getItems();
    assert.notEqual(read, first);
    read.content = "changed";
    await assertItems(session, userItem("start"));
    await session.addItems([next]);
    next.content = "changed";
    await assertItems(session, userItem("start"), userItem("next"));
    const popped = await session.popItem();
    assert.deepEqual(popped, userItem("next"));
    popped.content = "changed";
    await assertItems(session, userItem("start"));
  },

  async a_mutation_replaces_the_call_that_it_expects(open, id) {
    const [first, second, replacement] = [
      callItem("1", 1, "old-1"),
      callItem("1", 2, "old-2"),
      callItem("1", 3, "new"),
    ];
    const session = await open(id, [userItem("start"), first, second]);
    await session.applyHistoryMutations({ mutations: [exchange(second, replacement)] });
    await assertItems(session, userItem("start"), first, replacement);
  },

  async mutations_apply_all_or_none(open, id) {
    const [first, second] = [callItem("1", 1), callItem("2", 2)];
    const session = await open(id, [userItem("start"), first, second]);
    const mutations = [exchange(first, callItem("1", 10)), exchange(callItem("2", 999), callItem("2", 20))];
    await refuses(session.applyHistoryMutations({ mutations }), "Session history items could not be compared safely");
    await assertItems(session, userItem("start"), first, second);
  },

  async mutations_are_checked_against_one_history(open, id) {
    const session = await open(id, [callItem("1", 1)]);
    const mutations = [exchange(callItem("1", 1), callItem("1", 2)), exchange(callItem("1", 2), callItem("1", 3))];
    await refuses(session.applyHistoryMutations({ mutations }), "Session history mutation could not find");
    await assertItems(session, callItem("1", 1));
  },

  async a_repeated_append_applies_once(open, id) {
    const session = await open(id, [userItem("start")]);
    const item = userItem("appended");
    await session.applyHistoryTransaction(append("op", item));
    item.content = "changed";
    await session.addItems([userItem("later")]);
    await session.applyHistoryTransaction(append("op", userItem("appended")));
    await assertItems(session, userItem("start"), userItem("appended"), userItem("later"));
  },

  async a_repeated_suffix_replacement_applies_once(open, id) {
    const session = await open(id, [userItem("start"), userItem("blocked")]);
    await session.applyHistoryTransaction(replace("op", [userItem("blocked")], [userItem("accepted")]));
    await session.addItems([userItem("later")]);
    await session.applyHistoryTransaction(replace("op", [userItem("blocked")], [userItem("accepted")]));
    await assertItems(session, userItem("start"), userItem("accepted"), userItem("later"));
  },

  async another_suffix_is_refused_and_the_name_stays_free(open, id) {
    const session = await open(id, [userItem("start")]);
    await refuses(
      session.applyHistoryTransaction(replace("op", [userItem("different")], [userItem("accepted")])),
      "suffix no longer matches",
    );
    await assertItems(session, userItem("start"));
    await session.applyHistoryTransaction(replace("op", [userItem("start")], [userItem("accepted")]));
    await assertItems(session, userItem("accepted"));
  },

  async a_name_of_another_transaction_is_refused(open, id) {
    const session = await open(id);
    await session.applyHistoryTransaction(append("op", userItem("first")));
    await refuses(
      session.applyHistoryTransaction(append("op", userItem("second"))),
      "already applied with a different transaction",
    );
    await assertItems(session, userItem("first"));
  },

  async an_empty_append_uses_up_its_name(open, id) {
    const session = await open(id);
    await session.applyHistoryTransaction(append("op"));
    await refuses(
      session.applyHistoryTransaction(append("op", userItem("unexpected"))),
      "already applied with a different transaction",
    );
    await assertItems(session);
  },

  async clearing_frees_the_names(open, id) {
    const session = await open(id);
    await session.applyHistoryTransaction(append("op", userItem("said")));
    await session.clearSession();
    await session.applyHistoryTransaction(append("op", userItem("said")));
    await assertItems(session, userItem("said"));
  },

  async an_invalid_transaction_is_refused(open, id) {
    const session = await open(id, [userItem("start")]);
    const refused = [
      [append("   "), "operationId must be a non-empty string"],
      [{ operationId: "op", transaction: { type: "unknown" } }, "Unsupported session history transaction type"],
      [{ operationId: "op", transaction: null }, "transaction must be an object"],
      [append("op", 42), "items contain invalid or unsupported data"],
    ];
    for (const [given, words] of refused) await refuses(session.applyHistoryTransaction(given), words);
    await assertItems(session, userItem("start"));
  },

  async values_without_json_are_refused(open, id) {
    const session = await open(id, [userItem("start")]);
    const cycle = {};
    cycle.self = cycle;
    for (const [n, items] of [
      [userItem("x", { at: new Date(0) })],
      [userItem("x", cycle)],
      [userItem("x", { n: 42n })],
      new Array(1),
    ].entries()) {
      await refuses(
        session.applyHistoryTransaction({ operationId: `op ${n}`, transaction: { type: "append_items", items } }),
        UNSUPPORTED,
      );
    }
    await assertItems(session, userItem("start"));
  },

  async a_hidden_field_is_refused_and_the_name_stays_free(open, id) {
    const session = await open(id, [userItem("start")]);
    const item = Object.defineProperty(userItem("x"), "providerData", { enumerable: false, value: { hidden: true } });
    await refuses(session.applyHistoryTransaction(append("op", item)), UNSUPPORTED);
    await assertItems(session, userItem("start"));
    await session.applyHistoryTransaction(append("op", userItem("again")));
    await assertItems(session, userItem("start"), userItem("again"));
  },

  async unknown_transaction_fields_are_refused(open, id) {
    const session = await open(id, [userItem("start")]);
    const more = ({ operationId, transaction }) => ({
      operationId,
      transaction: { ...transaction, metadata: { attempt: 1 } },
    });
    await refuses(
      session.applyHistoryTransaction(more(append("op", userItem("x")))),
      "append transaction fields are invalid",
    );
    await refuses(
      session.applyHistoryTransaction(more(replace("other", [userItem("start")], [userItem("x")]))),
      "suffix transaction fields are invalid",
    );
    await assertItems(session, userItem("start"));
    await session.applyHistoryTransaction(append("op", userItem("again")));
    await assertItems(session, userItem("start"), userItem("again"));
  },

  async errors_reveal_no_contents_of_a_transaction(open, id) {
    const session = await open(id);
    const given = append("op", userItem("x", { key: Symbol(SECRET) }));
    await assert.rejects(session.applyHistoryTransaction(given), { message: UNSUPPORTED });
    await assertItems(session);
  },

  async shared_bytes_are_copied(open, id) {
    const session = await open(id);
    const shared = new Uint8Array(new SharedArrayBuffer(2));
    shared.set([3, 7]);
    await session.applyHistoryTransaction(append("op", userItem("bytes", { bytes: shared })));
    shared[0] = 9;
    await session.applyHistoryTransaction(append("op", userItem("bytes", { bytes: new Uint8Array([3, 7]) })));
    const [{ providerData }] = await session.getItems();
    assert.equal(providerData.bytes[0], 3);
  },

  async objects_without_a_prototype_are_accepted(open, id) {
    const session = await open(id);
    const item = userItem("x", Object.assign(Object.create(null), { source: "provider" }));
    await session.applyHistoryTransaction(append("op", item));
    await session.applyHistoryTransaction(append("op", (await session.getItems())[0]));
    await session.applyHistoryTransaction(replace("other", [item], [userItem("replaced")]));
    await assertItems(session, userItem("replaced"));
  },

  async values_that_a_copy_would_change_are_refused_and_the_name_stays_free(open, id) {
    const session = await open(id);
    for (const items of [[userItem("x", { values: new Uint16Array([300]) })], new Proxy([userItem("x")], {})]) {
      await refuses(
        session.applyHistoryTransaction({ operationId: "op", transaction: { type: "append_items", items } }),
        UNSUPPORTED,
      );
    }
    await session.applyHistoryTransaction(append("op", userItem("accepted")));
    await assertItems(session, userItem("accepted"));
  },

  async arguments_are_read_once_and_their_exceptions_are_hidden(open, id) {
    const session = await open(id);
    let reads = 0;
    const given = Object.defineProperty({ transaction: append("", userItem("once")).transaction }, "operationId", {
      enumerable: true,
      get: () => ((reads += 1) === 1 ? "op" : "changed"),
    });
    for (let time = 0; time < 2; time += 1) {
      await session.applyHistoryTransaction(given);
      assert.equal(reads, 1);
      reads = 0;
    }
    await assertItems(session, userItem("once"));
    const throwing = Object.defineProperty({}, "operationId", {
      get() {
        throw new Error(SECRET);
      },
    });
    await assert.rejects(session.applyHistoryTransaction(throwing), {
      message: "Session history transaction arguments are invalid.",
    });
  },
};

/** Cases of a newer version of the SDK than the one that is installed here. */
const OF_LATER_VERSIONS = [
  "a_mutation_replaces_the_call_that_it_expects",
  "mutations_apply_all_or_none",
  "mutations_are_checked_against_one_history",
];

for (const [name, run] of Object.entries(CASES)) {
  test(name, async () => {
    if (!OF_LATER_VERSIONS.includes(name)) await run(theirs, name);
    await run(ours, name);
  });
}
