// The console's logic that needs no page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./modules.mjs";

const { erasedText, shownInput, shownName, shownText, cut, bytes, fullTime, milliseconds, shortTime } =
  await load("text.ts");
const { diff } = await load("memory/diff.ts");
const { Rows } = await load("ui/rows.ts");
const { withChunk, EMPTY_ANSWER } = await load("conversation/answer.ts");

/** An assembled answer. `known`: the messages that it may continue. */
const answerOf = (chunks, known = []) =>
  chunks.reduce(
    (answer, chunk) =>
      withChunk(
        answer,
        chunk,
        (id) => known.find((message) => message.id === id) ?? { id, role: "assistant", parts: [] },
      ),
    EMPTY_ANSWER,
  );

const { EventTree, stretchesOf } = await load("conversation/tree.ts");
const { barsByDay, firstDay, tokensOf, totalOf } = await load("understand/usage.ts");
const { allows, rightsOf } = await load("token.ts");
const { changesOf, groupsOf, textsOf } = await load("settings/fields.ts");

test("one_erased_item_is_counted_in_the_singular", () => {
  const counts = { events: 2, entries: 1, summaries: 1, media: 1, loadedDocuments: 1, waitingMessages: 3, turns: 0 };
  const text = "2 events, 1 entry, 1 summary, 1 media, 1 loaded document, 3 waiting messages";
  assert.equal(erasedText(counts), text);
  assert.equal(erasedText({ entries: 1000 }), "1,000 entries");
  assert.equal(erasedText({ events: 0 }), "nothing");
});

test("a_name_shows_invisible_characters_on_one_line", () => {
  assert.equal(shownName("a\u0000b\nc\u202ed"), "a␀b␊c⟨U+202E⟩d");
  assert.equal(shownName("\u200f\u2066"), "⟨U+200F⟩⟨U+2066⟩");
  assert.equal(shownName("שלום 🌧"), "שלום 🌧");
  assert.equal(shownName("x".repeat(121)), `${"x".repeat(120)}…`);
});

test("a_text_keeps_its_lines_and_shows_bidi_controls", () => {
  assert.equal(shownText("a\tb\nc\u0007\u202e"), "a\tb\nc␇⟨U+202E⟩");
});

test("an_input_to_approve_shows_every_hidden_character", () => {
  const hidden = [...Array(0x110000).keys()]
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .filter((code) => /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(String.fromCodePoint(code)))
    .filter((code) => code > 0x7e);
  assert.ok(hidden.length > 200, `${hidden.length}`);
  for (const code of [...hidden, 0x200b, 0x200f, 0x202e, 0xe0041, 0x3164, 0xa0]) {
    const written = `\\u{${code.toString(16).toUpperCase()}}`;
    const character = String.fromCodePoint(code);
    assert.equal(shownInput({ to: `a${character}b` }), `{\n  "to": "a${written}b"\n}`);
    assert.equal(shownInput(`a${character}b`), `a${written}b`);
  }
  assert.equal(shownInput({ a: "שלום 🌧 \\u{200B}" }), '{\n  "a": "שלום 🌧 \\\\u{200B}"\n}');
});

test("truncation_never_splits_a_character", () => {
  assert.equal(cut("a🌧b", 2), "a");
  assert.equal(cut("a🌧b", 3), "a🌧");
});

test("sizes_and_times_are_short", () => {
  assert.deepEqual([bytes(12), bytes(1536), bytes(3 * 1024 ** 2)], ["12 B", "1.5 KB", "3.0 MB"]);
  const now = new Date(2026, 4, 20, 12, 0).getTime();
  const at = (...given) => shortTime(new Date(...given).getTime(), now);
  assert.deepEqual(
    [at(2026, 4, 20, 9, 5), at(2026, 4, 18, 9, 5), at(2026, 0, 2), at(2024, 0, 2), shortTime("no time")],
    ["09:05", "Mon 09:05", "Jan 2", "Jan 2, 2024", ""],
  );
  assert.match(fullTime(now), /^Wednesday, May 20, 2026 at 12:00:00/);
  assert.deepEqual([milliseconds(12.4), milliseconds(2345), milliseconds(65_000)], ["12 ms", "2.35 s", "1 min 5 s"]);
});

test("a_diff_marks_removed_and_added_lines", () => {
  assert.deepEqual(diff("a\nb\nc", "a\nB\nc\nd"), [
    { kind: "same", before: "a", after: "a" },
    { kind: "changed", before: "b", after: "B" },
    { kind: "same", before: "c", after: "c" },
    { kind: "changed", before: null, after: "d" },
  ]);
  assert.deepEqual(diff("same", "same"), [{ kind: "same", before: "same", after: "same" }]);
});

test("a_diff_loses_no_line_of_any_text", () => {
  let seed = 7;
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
  for (let game = 0; game < 300; game += 1) {
    const text = () => Array.from({ length: random(9) }, () => "abc"[random(3)]).join("\n");
    const [before, after] = [text(), text()];
    const rows = diff(before, after);
    const lines = (side) =>
      rows
        .map((row) => row[side])
        .filter((line) => line !== null)
        .join("\n");
    assert.deepEqual([lines("before"), lines("after")], [before, after]);
  }
});

test("a_diff_of_two_long_texts_is_quick", () => {
  const text = (word) => Array.from({ length: 20_000 }, (_, n) => `${word} ${n}`).join("\n");
  assert.equal(diff(text("a"), text("b")).length, 20_000);
});

test("rows_are_positioned_by_measured_and_estimated_heights", () => {
  const rows = new Rows();
  const setItems = (...items) => rows.setItems(items, String, () => 10);
  setItems("a", "b", "c");
  assert.deepEqual(
    [rows.height, rows.topOf(2), rows.indexAt(15), rows.indexAt(-5), rows.indexAt(99)],
    [30, 20, 1, 0, 2],
  );
  assert.equal(rows.measure("b", 50), true);
  assert.equal(rows.measure("b", 50), false);
  setItems("z", "a", "b", "c");
  assert.deepEqual([rows.height, rows.topOf(3), rows.indexAt(69), rows.indexOf("b")], [80, 70, 2, 2]);
});

test("an_answer_is_assembled_from_its_chunks", () => {
  const answer = answerOf([
    { type: "start", messageId: "m" },
    { type: "start-step" },
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: "Let me " },
    { type: "text-delta", id: "t", delta: "look." },
    { type: "text-end", id: "t" },
    { type: "tool-input-start", toolCallId: "c", toolName: "pay" },
    { type: "tool-input-delta", toolCallId: "c", inputTextDelta: '{"n"' },
    { type: "tool-input-available", toolCallId: "c", toolName: "pay", input: { n: 1 } },
    { type: "tool-approval-request", toolCallId: "c", approvalId: "p" },
    { type: "finish-step" },
    { type: "finish" },
  ]);
  assert.equal(answer.message.id, "m");
  assert.deepEqual(answer.message.parts, [
    { type: "step-start" },
    { type: "text", text: "Let me look." },
    { type: "tool-pay", toolCallId: "c", state: "approval-requested", input: { n: 1 }, approval: { id: "p" } },
  ]);
});

test("an_answer_that_continues_keeps_the_messages_parts", () => {
  const message = {
    id: "m",
    role: "assistant",
    parts: [{ type: "tool-pay", toolCallId: "c", state: "approval-responded", input: {} }],
  };
  const chunks = [
    { type: "start", messageId: "m" },
    { type: "tool-output-available", toolCallId: "c", output: 5 },
    { type: "error", errorText: "It broke." },
  ];
  const answer = answerOf(chunks, [message]);
  assert.deepEqual(answer.message.parts, [
    { type: "tool-pay", toolCallId: "c", state: "output-available", input: {}, output: 5 },
  ]);
  assert.equal(answer.error, "It broke.");
  assert.equal(message.parts[0].state, "approval-responded");
});

async function treeOf(parents, leafId) {
  const events = Object.entries(parents).map(([id, parentId], n) => ({
    id,
    parentId,
    seq: n + 1,
    action: "user_message",
    content: id,
  }));
  const tree = new EventTree({
    buildWorkingContext: async () => ({ leafId }),
    loadEvents: async ({ afterSeq = 0, limit }) => events.filter(({ seq }) => seq > afterSeq).slice(0, limit),
  });
  await tree.read();
  return tree;
}

test("a_tree_is_drawn_in_segments_with_the_newest_branch_last", async () => {
  const tree = await treeOf({ a: null, b: "a", c: "b", d: "b", e: "d", f: "a" }, "c");
  const drawn = stretchesOf(tree).map(({ first, last, lane, above, isOnPath, isEnd }) => [
    first.id,
    last.id,
    lane,
    above,
    isOnPath,
    isEnd,
  ]);
  assert.deepEqual(drawn, [
    ["a", "a", 0, null, true, false],
    ["b", "b", 1, 0, true, false],
    ["c", "c", 2, 1, true, true],
    ["d", "e", 1, 1, false, true],
    ["f", "f", 0, 0, false, true],
  ]);
  assert.equal(tree.newestLeafBelow("b"), "e");
  assert.deepEqual(
    tree.siblingsOf("d").map(({ id }) => id),
    ["c", "d"],
  );
});

test("a_reloading_tree_stays_complete_and_includes_new_messages", async () => {
  const events = ["a", "b", "c"].map((id, n, all) => ({
    id,
    parentId: all[n - 1] ?? null,
    seq: n + 1,
    action: "user_message",
    content: id,
  }));
  let stored = events.slice(0, 2);
  let wait = async () => {};
  const tree = new EventTree({
    buildWorkingContext: async () => ({ leafId: stored.at(-1).id }),
    loadEvents: async ({ afterSeq, limit }) => {
      const page = stored.filter(({ seq }) => seq > (afterSeq ?? 0)).slice(0, limit);
      await wait();
      return page;
    },
  });
  await tree.read();
  const delay = Promise.withResolvers();
  wait = () => delay.promise;
  const reading = tree.read();
  assert.deepEqual([...tree.pathTo("b")], ["b", "a"]);
  // This read ended before the third event was written.
  stored = events;
  await tree.catchUp();
  wait = async () => {};
  delay.resolve();
  await reading;
  assert.deepEqual([tree.nodes.value.map(({ id }) => id), tree.leafId.value], [["a", "b", "c"], "c"]);
  // Events may have been deleted, too.
  wait = () => delay.promise;
  stored = events.slice(0, 1);
  await Promise.all([tree.catchUp(), tree.catchUp(true)]);
  assert.deepEqual(
    tree.nodes.value.map(({ id }) => id),
    ["a"],
  );
});

test("a_cyclic_tree_terminates", async () => {
  const tree = await treeOf({ a: "b", b: "a" }, "a");
  assert.deepEqual([...tree.pathTo("a")], ["a", "b"]);
  assert.deepEqual(stretchesOf(tree), []);
});

test("usage_has_a_bar_for_every_day_even_without_usage", () => {
  const now = Date.UTC(2026, 5, 15, 12);
  const today = Date.UTC(2026, 5, 15);
  const day = (at, inputTokens, cost) => ({
    day: at,
    turns: 1,
    inputTokens,
    outputTokens: 1,
    cachedInputTokens: 0,
    cost,
  });
  const days = [day(today, 10, 1), { ...day(today - 2 * 86_400_000, 5, 2), failedTurns: 1 }];
  const bars = barsByDay(days, tokensOf, now);
  assert.deepEqual([bars.length, firstDay(now)], [30, today - 29 * 86_400_000]);
  assert.deepEqual(bars.slice(-3), [
    { name: "Jun 13", value: 6 },
    { name: "Jun 14", value: 0 },
    { name: "Jun 15", value: 11 },
  ]);
  assert.deepEqual(totalOf(days), {
    turns: 2,
    failedTurns: 1,
    inputTokens: 15,
    outputTokens: 2,
    cachedInputTokens: 0,
    cost: 3,
  });
});

const tokenOf = (claims) => `sa2.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.seal`;

test("a_token_shows_its_rights_and_a_secret_allows_all", () => {
  const allowed = (text, ...operations) => operations.filter((operation) => allows(rightsOf(text), operation));
  const all = ["chat", "listSessions", "setBlock", "getConfig", "configureAgent"];
  for (const secret of [null, "a secret", "sa2.not base64.x", "a.b.c"]) assert.deepEqual(allowed(secret, ...all), all);
  assert.deepEqual(allowed(tokenOf({ operations: ["chat", "getHistory"] }), ...all), ["chat"]);
  assert.deepEqual(allowed(tokenOf({}), ...all), ["chat", "listSessions", "getConfig"]);
  assert.deepEqual(allowed(tokenOf({ sessionId: "s" }), ...all), ["chat", "listSessions"]);
  assert.deepEqual(rightsOf(tokenOf({ sessionId: "é🌧", allow: { models: ["demo"] } })), {
    session: "é🌧",
    operations: null,
    models: ["demo"],
    purges: false,
  });
  const purging = { operations: ["erase"] };
  assert.deepEqual(allowed(tokenOf(purging), "erase"), []);
  assert.deepEqual(allowed(tokenOf({ ...purging, allow: { purge: true } }), "erase"), ["erase"]);
});

test("only_changed_settings_are_sent", () => {
  const config = {
    model: null,
    temperature: 0.5,
    maxSteps: 10,
    vectors: false,
    systemInstructions: ["One.", "Two."],
    prices: { input: 1, output: 2 },
    onTurnEnd: null,
    reservedMetadataKeys: [],
  };
  const before = textsOf(config);
  const changed = (texts) => changesOf(before, { ...before, ...texts }, config);
  assert.deepEqual(changed({}), {});
  assert.deepEqual(changed({ temperature: "", maxSteps: "7", vectors: "true", reservedMetadataKeys: "a\n\nb" }), {
    temperature: null,
    maxSteps: 7,
    vectors: true,
    reservedMetadataKeys: ["a", "b"],
  });
  assert.deepEqual(changed({ "prices.cachedInput": "0.5" }), { prices: { input: 1, output: 2, cachedInput: 0.5 } });
  assert.deepEqual(changed({ "prices.input": "", "prices.output": "" }), { prices: null });
  assert.deepEqual(changed({ "prices.models": '{"demo": {"input": 0, "output": 0}}' }), {
    prices: { input: 1, output: 2, models: { demo: { input: 0, output: 0 } } },
  });
  assert.throws(() => changed({ "prices.models": "{" }), /Prices per model/);
  // Settings without a field are kept, and without its block learning is disabled.
  const learning = { learn: { into: "facts", after: "turn", review: "auto", another: 7, none: null } };
  const of = (texts) => changesOf(textsOf(learning), { ...textsOf(learning), ...texts }, learning);
  assert.deepEqual(of({ "learn.instructions": "Only of\nthe user." }), {
    learn: { another: 7, into: "facts", after: "turn", review: "auto", instructions: "Only of\nthe user." },
  });
  assert.deepEqual(of({ "learn.into": "" }), { learn: null });
  const shown = groupsOf({ model: "agent", prices: "agent" }).flatMap(({ fields }) => fields.map(({ path }) => path));
  assert.deepEqual(shown, ["model", "prices.input", "prices.output", "prices.cachedInput", "prices.models"]);
});

const { byNearness } = await load("near.ts");
const { snippetOf } = await load("snippet/snippet.ts");
const { checkpointsOf, messagesIn, threadName, threadOf } = await load("sessions/thread.ts");
const { withLiveChunk, withTimesOf } = await load("turns/live.ts");
const { durationOf, waterfallOf, waterfallOfLive } = await load("turns/rows.ts");

test("the_nearest_name_is_first", () => {
  assert.deepEqual(byNearness("alcie", ["bob", "alice", "alicia"]), ["alice", "alicia", "bob"]);
  assert.deepEqual(byNearness("tirp", ["rent", "trip"]), ["trip", "rent"]);
  // A name of any length costs at most a line.
  assert.equal(byNearness("x".repeat(100_000), ["y".repeat(100_000)]).length, 1);
});

test("a_code_snippet_quotes_any_agent_name", () => {
  const { curl, client } = snippetOf(
    { view: "session", agent: "it's; rm -rf /", session: "a'b$(x)", tab: "turns" },
    "https://a.example",
    true,
  );
  assert.equal(
    curl,
    [
      "curl 'https://a.example/agents/session-agent/it'\\''s%3B%20rm%20-rf%20%2F/rpc/getTurns' \\",
      '  -H "authorization: Bearer $SESSION_AGENT_TOKEN" \\',
      `  -d '{"sessionId":"a'\\''b$(x)","limit":20}'`,
    ].join("\n"),
  );
  assert.match(client, /agent\.session\("a'b\$\(x\)"\)\.getTurns\(\{ limit: 20 \}\)/);
});

const { EMPTY: EMPTY_TOKEN, tokenInput } = await load("manage/token_input.ts");

test("a_token_request_contains_only_the_fields_filled_in", () => {
  assert.deepEqual(tokenInput({ ...EMPTY_TOKEN, preset: "none", holder: "nobody counts" }), { expiresIn: 3600 });
  assert.deepEqual(
    tokenInput({
      preset: "chat",
      session: " s ",
      operations: "setEntry\n\n getEntry ,search",
      expiresIn: "900",
      allow: ["clientTools"],
      models: "demo",
      tools: "",
      limits: { turnsPerMinute: "5", tokensPerDay: " ", costPerDay: "0.5" },
      holder: "user-42",
    }),
    {
      expiresIn: 900,
      preset: "chat",
      sessionId: "s",
      operations: ["setEntry", "getEntry", "search"],
      allow: { clientTools: true, models: ["demo"] },
      limits: { turnsPerMinute: 5, costPerDay: 0.5 },
      holder: "user-42",
    },
  );
});

test("each_section_of_manage_and_each_fact_is_its_own_call", () => {
  const parts = ["proposals", "retention", "people", "tools", "tokens", "compaction", "copies", "defaults", "agents"];
  const operations = parts.map(
    (part) => snippetOf({ view: "manage", agent: "a", part }, "https://a.example", false).curl.match(/rpc\/(\w+)/)[1],
  );
  assert.equal(new Set(operations).size, parts.length);
  assert.ok(operations.includes("applyRetention"));
  const { curl } = snippetOf({ view: "manage", agent: "a", part: "retention" }, "https://a.example", false);
  assert.match(curl, /"dryRun":true/);
  const fact = snippetOf({ view: "memory", agent: "a", label: "facts", entry: "home" }, "https://a.example", false);
  assert.match(fact.curl, /rpc\/getBlockVersions' \\\n {2}-d '\{"label":"facts","key":"home"\}'$/);
});

test("a_langgraph_thread_is_recognized", () => {
  const metadata = { langgraph: "checkpoints", thread: "t-1", namespace: "sub" };
  assert.deepEqual(threadOf({ metadata }), { kind: "checkpoints", thread: "t-1", namespace: "sub" });
  assert.equal(threadName(threadOf({ metadata })), "t-1 · sub");
  for (const none of [null, {}, { langgraph: "other", thread: "t" }, { langgraph: "writes", thread: 5 }])
    assert.equal(threadOf({ metadata: none }), null);
  const messages = [{ lc: 1, type: "constructor", id: ["x", "HumanMessage"], kwargs: { content: "Rain?" } }];
  const events = [
    {
      id: '["value","messages","1"]',
      action: "system_instruction",
      content: `json:${JSON.stringify(messages)}`,
      createdAt: 1,
    },
    {
      id: "c",
      action: "user_message",
      content: JSON.stringify({ id: "c1", metadata: 'json:{"source":"loop","step":2}', channels: ["messages"] }),
      createdAt: 2,
    },
    { id: "odd", action: "user_message", content: "no checkpoint at all", createdAt: 3 },
  ];
  const [odd, { step, source, changed }] = checkpointsOf(events);
  assert.deepEqual([odd.step, odd.source, step, source], [null, "checkpoint", 2, "loop"]);
  assert.deepEqual(
    changed.map(({ channel, value }) => [channel, messagesIn(value)]),
    [["messages", [{ role: "Human", text: "Rain?" }]]],
  );
});

test("a_live_turn_has_a_bar_for_each_request_and_call", () => {
  let live = null;
  const chunks = [
    [0, { type: "start" }],
    [10, { type: "start-step" }],
    [40, { type: "tool-input-available", toolCallId: "c", toolName: "weather" }],
    [90, { type: "tool-output-error", toolCallId: "c", errorText: "503" }],
    [90, { type: "finish-step" }],
    [95, { type: "start-step" }],
  ];
  for (const [at, chunk] of chunks) live = withLiveChunk(live, chunk, at);
  const { from, to, rows } = waterfallOfLive(live, 200);
  assert.deepEqual([from, to], [0, 200]);
  assert.deepEqual(
    rows.map((row) => [row.text, durationOf(row), row.isRunning, row.failure?.message]),
    [
      ["turn", "200 ms", true, undefined],
      ["request 1", "30 ms", false, undefined],
      ["weather", "50 ms", false, "503"],
      ["request 2", "105 ms", true, undefined],
    ],
  );
});

test("a_call_of_zero_duration_is_labeled", () => {
  const chunks = [
    { type: "start-step" },
    { type: "tool-input-available", toolCallId: "c", toolName: "weather" },
    { type: "tool-output-available", toolCallId: "c" },
  ];
  const live = chunks.reduce((live, chunk) => withLiveChunk(live, chunk, 5), null);
  assert.equal(durationOf(waterfallOfLive(live, 9).rows.at(-1)), "0 ms");
});

test("a_replayed_turn_keeps_the_times_already_received", () => {
  const playLive = (chunks, isJoined) =>
    chunks.reduce((live, [at, chunk]) => withLiveChunk(live, chunk, at, isJoined), null);
  const called = { type: "tool-input-available", toolCallId: "c", toolName: "weather" };
  const before = playLive([
    [0, { type: "start", messageId: "m" }],
    [10, { type: "start-step" }],
    [40, called],
  ]);
  const again = (messageId) =>
    playLive(
      [
        [1000, { type: "start", messageId }],
        [1000, { type: "start-step" }],
        [1000, called],
        [1000, { type: "tool-output-available", toolCallId: "c" }],
        [1001, { type: "start-step" }],
      ],
      true,
    );
  const { from, isJoined, steps } = withTimesOf(before, again("m"));
  assert.deepEqual([from, isJoined], [0, false]);
  assert.deepEqual(
    steps.map(({ from, to, tools }) => [from, to, tools.map((tool) => [tool.from, tool.to])]),
    [
      [10, 40, [[40, 1000]]],
      [1001, null, []],
    ],
  );
  // Another turn has its own times and is marked as joined.
  assert.deepEqual(withTimesOf(before, again("other")), again("other"));
  assert.equal(again("other").isJoined, true);
});

test("a_recorded_turn_is_drawn_by_its_times", () => {
  const { rows } = waterfallOf({
    startedAt: 1000,
    endedAt: 1400,
    durationMs: 400,
    model: "demo",
    finishReason: "error",
    failure: { code: "model_failed", message: "It broke off." },
    recoveries: 1,
    omittedSteps: 2,
    compactions: [{ startedAt: 1001, durationMs: 9, tokensBefore: 9000, tokensAfter: 100, failure: null }],
    steps: [
      {
        startedAt: 1010,
        preparedMs: 20,
        timeToFirstTokenMs: 70,
        durationMs: 200,
        inputTokens: 1000,
        outputTokens: 5,
        cachedInputTokens: 10,
        finishReason: "tool-calls",
        failure: null,
        tools: [
          { toolCallId: "a", name: "weather", kind: "mcp", startedAt: 1210, durationMs: 100, error: null },
          { toolCallId: "b", name: "ask", kind: "client", startedAt: null, durationMs: null, error: null },
        ],
      },
    ],
  });
  assert.deepEqual(
    rows.map((row) => [row.text, row.segments.map(({ kind, from, to }) => [kind, from, to]), row.note]),
    [
      ["demo", [["turn", 1000, 1400]], "Failed · resumed 1 time"],
      ["compaction", [["compaction", 1001, 1010]], "9,000 → 100 tokens"],
      [
        "request 3",
        [
          ["prepare", 1010, 1030],
          ["wait", 1030, 1100],
          ["answer", 1100, 1210],
        ],
        "1,000 in, 10 cached, 5 out · Called tools",
      ],
      ["weather", [["tool", 1210, 1310]], "mcp"],
      ["ask", [], "client, not run by the agent"],
    ],
  );
  assert.equal(rows[0].failure.code, "model_failed");
});
