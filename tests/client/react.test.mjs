// `session-agent/react` with React in a browser, over the built Worker: what the hooks show in one
// tab and in two while the agent disconnects and reconnects.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { delayRequests, skip } from "../console/browser.mjs";
import { callTool, gate, refuse, say } from "../workerd/model_server.mjs";
import { startPages, textsOf, visit } from "./react/setup.mjs";

let pages;
before(async () => {
  if (!skip) pages = await startPages();
});
after(() => pages?.stop());
afterEach(() => pages?.proxy.open());
afterEach(() => assert.equal(pages?.model.unusedAnswers ?? 0, 0, "a scripted answer was never requested"));

const BOOK = {
  name: "book",
  description: "Books a table.",
  parameters: { type: "object" },
  service: "TABLES",
  needsApproval: true,
};

const memory = (agent) =>
  pages.call(agent, "defineBlock", { label: "memory", kind: "writable", maxTokens: 1100, defaultContent: "" });

test("an_answer_is_shown_as_it_streams_and_after_a_reload", { skip }, async (t) => {
  const { open } = await visit(t, pages, "said");
  const tab = await open();
  assert.deepEqual((await tab.ready()).chat.messages, []);
  const rest = gate();
  pages.model.next(say("Snow ", rest, "in Oslo."));
  await tab.act("chat", "send", "How is Oslo?");
  await tab.showsTexts("How is Oslo?", "Snow ");
  assert.equal((await tab.view()).chat.status, "streaming");
  // A page loaded in the middle of an answer receives all of it.
  await tab.page.reload();
  await tab.showsTexts("How is Oslo?", "Snow ");
  rest.open();
  await tab.showsTexts("How is Oslo?", "Snow in Oslo.");
  const { chat } = await tab.ready();
  assert.deepEqual(
    chat.messages.map(({ role, delivery, failure }) => [role, delivery, failure]),
    [
      ["user", undefined, undefined],
      ["assistant", undefined, undefined],
    ],
  );
  const { messages } = await pages.call("said", "getHistory", { sessionId: "chat" });
  assert.deepEqual(
    chat.messages.map(({ id }) => id),
    messages.map(({ id }) => id),
  );
});

test("each_part_of_an_answer_keeps_its_position_after_the_turn", { skip }, async (t) => {
  const { open } = await visit(t, pages, "places");
  await memory("places");
  const tab = await open();
  await tab.ready();
  const rest = gate();
  pages.model.next(
    callTool("set_context", { label: "memory", content: "Likes snow." }),
    callTool("set_context", { label: "memory", content: "Likes tea." }),
    say("Both", rest, " noted."),
  );
  await tab.act("chat", "send", "I like snow. No, tea.");
  await tab.showsTexts("I like snow. No, tea.", "Both");
  const shape = async (view) =>
    (await view).chat.messages.at(-1).parts.map(({ type, toolCallId }) => [type, toolCallId]);
  const live = await shape(tab.view());
  assert.deepEqual(
    live.map(([type]) => type),
    ["tool-set_context", "tool-set_context", "text"],
  );
  rest.open();
  await tab.showsTexts("I like snow. No, tea.", "Both noted.");
  assert.deepEqual(await shape(tab.ready()), live);
  await tab.page.reload();
  assert.deepEqual(await shape(tab.ready()), live);
});

test("a_page_loaded_between_two_steps_shows_each_text_once", { skip }, async (t) => {
  const { open } = await visit(t, pages, "steps");
  await memory("steps");
  await pages.call("steps", "defineTool", BOOK);
  const tab = await open();
  await tab.ready();
  const sayAndCall = (text, ...call) => {
    const called = callTool(...call);
    return { ...called, pieces: [{ delta: { content: text } }, ...called.pieces] };
  };
  const noting = (text) => sayAndCall(text, "set_context", { label: "memory", content: text });

  // A new answer.
  let rest = gate();
  pages.model.next(noting("I note it. "), say("It is ", rest, "noted."));
  await tab.act("chat", "send", "I like snow.");
  await tab.showsTexts("I like snow.", "I note it. It is ");
  await tab.page.reload();
  await tab.showsTexts("I like snow.", "I note it. It is ");
  rest.open();
  await tab.showsTexts("I like snow.", "I note it. It is noted.");

  // An answer that continues after a decision.
  pages.model.next(sayAndCall("I book. ", "book", { place: "Maaemo" }));
  await tab.act("chat", "send", "Book a table.");
  const waiting = await tab.shows(
    "waits for approval",
    ({ chat }) => chat.status === "ready" && chat.messages.at(-1).parts.at(-1).state === "approval-requested",
  );
  rest = gate();
  pages.model.next(noting("I note that, too. "), say("You have ", rest, "none."));
  await tab.act("chat", "approve", waiting.chat.messages.at(-1).parts.at(-1).approval.id, false);
  const before = ["I like snow.", "I note it. It is noted.", "Book a table."];
  await tab.showsTexts(...before, "I book. I note that, too. You have ");
  await tab.page.reload();
  await tab.showsTexts(...before, "I book. I note that, too. You have ");
  rest.open();
  await tab.showsTexts(...before, "I book. I note that, too. You have none.");
});

test("viewing_a_chat_creates_nothing", { skip }, async (t) => {
  const { open } = await visit(t, pages, "looked");
  await (await open()).ready();
  assert.deepEqual((await pages.call("looked", "listSessions")).sessions, []);
});

test("two_tabs_show_the_same_and_a_message_is_queued", { skip }, async (t) => {
  const { open } = await visit(t, pages, "tabs");
  const [one, other] = [await open(), await open()];
  await Promise.all([one.ready(), other.ready()]);
  const rest = gate();
  pages.model.next(say("One", rest, "."), say("Two."));
  await one.act("chat", "send", "First");
  await one.showsTexts("First", "One");
  await other.showsTexts("First", "One");
  await other.act("chat", "send", "Second");
  const { chat } = await other.showsTexts("First", "One", "Second");
  assert.equal(chat.messages[2].delivery, "waiting");
  rest.open();
  await Promise.all([one, other].map((tab) => tab.showsTexts("First", "One.", "Second", "Two.")));
  await Promise.all([one.ready(), other.ready()]);
  // A message appended by another client appears by itself.
  await pages.call("tabs", "appendMessage", {
    sessionId: "chat",
    message: { role: "user", parts: [{ type: "text", text: "By a server" }] },
  });
  await Promise.all([one, other].map((tab) => tab.showsTexts("First", "One.", "Second", "Two.", "By a server")));
});

test("a_queued_message_is_withdrawn_and_a_turn_stopped", { skip }, async (t) => {
  const { open } = await visit(t, pages, "stopped");
  const tab = await open();
  await tab.ready();
  const never = gate();
  pages.model.next(say("This far", never, " and no further."));
  await tab.act("chat", "send", "Go on.");
  await tab.showsTexts("Go on.", "This far");
  const waiting = await tab.act("chat", "send", "And then?");
  await tab.showsTexts("Go on.", "This far", "And then?");
  await tab.act("chat", "stop", waiting);
  await tab.showsTexts("Go on.", "This far");
  await tab.act("chat", "stop");
  await tab.ready();
  never.open();
  await tab.showsTexts("Go on.", "This far");
  assert.equal(pages.model.requests.filter(({ messages }) => JSON.stringify(messages).includes("And then?")).length, 0);
});

test("a_failed_turn_stays_with_its_message_and_is_retried_after_a_reload", { skip }, async (t) => {
  const { open } = await visit(t, pages, "failed");
  const tab = await open();
  await tab.ready();
  pages.model.next(refuse(401, "No such key."));
  await tab.act("chat", "send", "Are you there?");
  const failed = ({ chat }) => chat.status === "ready" && chat.messages[0]?.failure?.code != null;
  const { chat } = await tab.shows("the failure", failed);
  assert.deepEqual(chat.messages.length, 1);
  assert.match(chat.messages[0].failure.code, /^model_/);
  pages.model.next(say("Later."));
  await tab.act("chat", "send", "Another");
  await tab.showsTexts("Are you there?", "Another", "Later.");
  await tab.page.reload();
  const later = await tab.shows(
    "the failure after a reload",
    (view) => failed(view) && view.chat.messages.length === 3,
  );
  assert.deepEqual(
    later.chat.messages.map(({ failure }) => failure?.code ?? null),
    [chat.messages[0].failure.code, null, null],
  );
  pages.model.next(say("I am."));
  await tab.act("chat", "retry", later.chat.messages[0].id);
  await tab.showsTexts("Are you there?", "I am.");
  assert.equal((await tab.ready()).chat.messages[0].failure, undefined);
});

test("an_interrupted_answer_keeps_its_text_and_shows_the_reason", { skip }, async (t) => {
  const { open } = await visit(t, pages, "broken");
  const tab = await open();
  await tab.ready();
  pages.model.next(callTool("set_context", { label: "memory", content: "Likes tea." }), refuse(401, "No such key."));
  await memory("broken");
  await tab.act("chat", "send", "I like tea.");
  const view = await tab.shows("the failure", ({ chat }) => chat.messages.at(-1)?.failure?.code != null);
  assert.deepEqual(
    view.chat.messages.map(({ role, failure }) => [role, failure !== undefined]),
    [
      ["user", false],
      ["assistant", true],
    ],
  );
  pages.model.next(say("Noted."));
  await tab.act("chat", "retry");
  await tab.showsTexts("I like tea.", "Noted.");
});

test("another_answer_is_a_branch_that_the_user_selects", { skip }, async (t) => {
  const { open } = await visit(t, pages, "branches");
  const tab = await open();
  await tab.ready();
  pages.model.next(say("One."), say("Two."));
  await tab.act("chat", "send", "Count.");
  await tab.showsTexts("Count.", "One.");
  await tab.ready();
  await tab.act("chat", "retry");
  await tab.showsTexts("Count.", "Two.");
  const { chat } = await tab.shows("both answers", ({ chat }) => chat.branches.length === 2);
  await tab.act("chat", "switchTo", chat.branches[0].id);
  await tab.showsTexts("Count.", "One.");
  assert.equal((await tab.ready()).chat.branches.length, 2);
});

test("a_call_awaits_approval_in_every_tab", { skip }, async (t) => {
  await pages.call("approvals", "defineTool", BOOK);
  const { open } = await visit(t, pages, "approvals");
  const [one, other] = [await open(), await open()];
  await Promise.all([one.ready(), other.ready()]);
  const waits = ({ chat }) => chat.messages.at(-1)?.parts.find(({ state }) => state === "approval-requested");
  pages.model.next(callTool("book", { place: "Maaemo" }));
  await one.act("chat", "send", "Book a table.");
  await one.shows("the call", waits);
  const call = waits(await other.shows("the call", waits));
  pages.model.next(say("Then not."));
  await other.act("chat", "approve", call.approval.id, false);
  for (const tab of [one, other])
    await tab.shows("the answer", ({ chat }) => /Then not\.$/.test(textsOf(chat).at(-1)) && !waits({ chat }));
  const part = (await other.ready()).chat.messages.at(-1).parts.find(({ type }) => type === "tool-book");
  assert.equal(part.state, "output-denied");

  pages.model.next(callTool("book", { place: "Noma" }), say("Booked."));
  await one.act("chat", "send", "Another.");
  const { approval } = waits(await one.shows("the call", waits));
  await one.act("chat", "approve", approval.id, true);
  await other.shows("the answer", ({ chat }) => /Booked\.$/.test(textsOf(chat).at(-1)));
  const booked = (await other.ready()).chat.messages.at(-1).parts.find(({ type }) => type === "tool-book");
  assert.deepEqual([booked.state, booked.output], ["output-available", { booked: true }]);
});

test("messages_sent_while_offline_are_sent_on_reconnect", { skip }, async (t) => {
  const { open } = await visit(t, pages, "offline");
  const tab = await open();
  await tab.ready();
  pages.proxy.close();
  await tab.shows("that it is offline", ({ chat }) => chat.connection === "offline");
  pages.model.next(say("Yes."));
  await tab.act("chat", "send", "Hello?");
  assert.equal((await tab.showsTexts("Hello?")).chat.messages[0].delivery, "sending");
  pages.proxy.open();
  await tab.showsTexts("Hello?", "Yes.");
  assert.equal((await tab.ready()).chat.error, null);
});

test("a_connection_lost_during_an_answer_recovers_all_of_it", { skip }, async (t) => {
  const { open } = await visit(t, pages, "resumed");
  const tab = await open();
  await tab.ready();
  const [middle, end] = [gate(), gate()];
  pages.model.next(say("One, ", middle, "two, ", end, "three."));
  await tab.act("chat", "send", "Count.");
  await tab.showsTexts("Count.", "One, ");
  pages.proxy.close();
  await tab.shows("that it is offline", ({ chat }) => chat.connection === "offline");
  assert.deepEqual(textsOf((await tab.view()).chat), ["Count.", "One, "]);
  middle.open();
  await end.reached;
  pages.proxy.open();
  await tab.showsTexts("Count.", "One, two, ");
  end.open();
  await tab.showsTexts("Count.", "One, two, three.");

  // Another turn ends while the page is away.
  const last = gate();
  pages.model.next(say("Before ", last, "after."));
  await tab.act("chat", "send", "Again.");
  await tab.showsTexts("Count.", "One, two, three.", "Again.", "Before ");
  pages.proxy.close();
  await tab.shows("that it is offline", ({ chat }) => chat.connection === "offline");
  last.open();
  const written = async () => (await pages.call("resumed", "getHistory", { sessionId: "chat" })).messages.length === 4;
  while (!(await written()));
  pages.proxy.open();
  await tab.showsTexts("Count.", "One, two, three.", "Again.", "Before after.");
  await tab.ready();
});

test("an_answer_resumes_after_a_server_crash", { skip }, async (t) => {
  const { open } = await visit(t, pages, "killed");
  const tab = await open();
  await tab.ready();
  pages.model.next(say("Never ", gate(), "heard."));
  await tab.act("chat", "send", "Are you sure?");
  await tab.showsTexts("Are you sure?", "Never ");
  pages.model.next(say("Quite sure."));
  await pages.server.kill9();
  await tab.showsTexts("Are you sure?", "Quite sure.");
  assert.equal((await tab.ready()).chat.messages.length, 2);
});

test("sessions_are_created_renamed_and_deleted_in_every_tab", { skip }, async (t) => {
  const { open } = await visit(t, pages, "sessions");
  const [one, other] = [await open(), await open()];
  await Promise.all([one.ready(), other.ready()]);
  const names = ({ sessions }) => sessions.sessions.map(({ name }) => name);
  const creation = await delayRequests(one.page, "**/rpc/createSession");
  const id = await one.page.evaluate(() => window.act.sessions.create({ name: "A trip" }).id);
  await one.shows("the session at once", (view) => names(view).join() === "A trip");
  await creation.arrived;
  assert.deepEqual((await pages.call("sessions", "listSessions")).sessions, []);
  creation.open();
  await other.shows("the session", (view) => names(view).join() === "A trip");
  await other.act("sessions", "rename", id, "To Oslo");
  await one.shows("the new name", (view) => names(view).join() === "To Oslo");
  assert.equal((await one.view()).sessions.error, null);
  // Without a connection nothing changes, and the page shows the reason.
  pages.proxy.close();
  assert.equal(await one.act("sessions", "rename", id, "Nowhere"), false);
  const { sessions } = await one.shows("the old name", (view) => names(view).join() === "To Oslo");
  assert.equal(sessions.error.code, "network_failed");
  pages.proxy.open();
  assert.equal(await one.act("sessions", "remove", id), true);
  await other.shows("no session", (view) => names(view).length === 0);
});

test("memory_updates_with_a_turn_and_a_stale_edit_is_refused", { skip }, async (t) => {
  await memory("remembers");
  await pages.call("remembers", "defineBlock", { label: "facts", kind: "searchable" });
  const { open } = await visit(t, pages, "remembers");
  const [one, other] = [await open(), await open()];
  await Promise.all([one.ready(), other.ready()]);
  const text = ({ memory }) => memory.blocks.find(({ label }) => label === "memory")?.content;
  await one.shows("the block", (view) => text(view) === "");
  pages.model.next(callTool("set_context", { label: "memory", content: "Likes snow." }), say("Noted."));
  await one.act("chat", "send", "I like snow.");
  for (const tab of [one, other]) await tab.shows("what the model wrote", (view) => text(view) === "Likes snow.");
  assert.equal(await one.act("memory", "setBlock", "memory", "Likes snow and tea."), true);
  await other.shows("the correction", (view) => text(view) === "Likes snow and tea.");

  // Another client was faster: the page shows the current text and reports it.
  await one.page.route("**/rpc/getBlocks", (route) => route.abort());
  await pages.call("remembers", "setBlock", { label: "memory", content: "Likes rain." });
  assert.equal(await one.act("memory", "setBlock", "memory", "Likes sun."), false);
  await one.page.unroute("**/rpc/getBlocks");
  await one.act("memory", "refresh");
  assert.equal(text(await one.view()), "Likes rain.");

  assert.equal(await one.act("memory", "setEntry", { label: "facts", key: "home", content: "Lives in Oslo." }), true);
  const facts = ({ memory }) => (memory.entries.facts ?? []).map(({ content }) => content).join();
  await other.shows("the fact", (view) => facts(view) === "Lives in Oslo.");
  assert.equal(await other.act("memory", "removeEntry", "facts", "home"), true);
  await one.shows("no fact", (view) => facts(view) === "");
});

test("turns_and_their_failures_are_listed", { skip }, async (t) => {
  const { open } = await visit(t, pages, "turns");
  const tab = await open();
  await tab.ready();
  pages.model.next(say("Yes."), refuse(401, "No such key."));
  await tab.act("chat", "send", "One");
  await tab.showsTexts("One", "Yes.");
  await tab.ready();
  await tab.act("chat", "send", "Two");
  const { turns } = await tab.shows("both turns", ({ turns }) => turns.turns.length === 2);
  assert.deepEqual(
    turns.turns.map(({ failure }) => failure === null),
    [false, true],
  );
});

test("a_refused_token_is_renewed_and_a_narrow_one_hides_what_it_may_not_do", { skip }, async (t) => {
  const { open, logins } = await visit(t, pages, "narrow", { preset: "chat", sessionId: "chat" });
  logins.next = { token: "sa2.eyJhIjoxfQ.AAAA" };
  const tab = await open();
  await tab.ready();
  assert.equal(logins.count, 2);
  pages.model.next(refuse(401, "No such key."));
  await tab.act("chat", "send", "Hello?");
  const { chat, sessions } = await tab.shows("the failure", ({ chat }) => chat.messages[0]?.failure !== undefined);
  assert.equal(chat.messages[0].failure.code, null);
  assert.equal(chat.error, null);
  assert.match(sessions.error === null ? "" : "refused", /refused/);
});

test("older_messages_are_read_page_by_page", { skip }, async (t) => {
  await pages.call("long", "createSession", { id: "chat" });
  const messages = Array.from({ length: 120 }, (_, n) => ({
    id: `m${n}`,
    role: "user",
    parts: [{ type: "text", text: `${n}` }],
  }));
  await pages.call("long", "appendMessages", { sessionId: "chat", messages });
  const { open } = await visit(t, pages, "long");
  const tab = await open();
  assert.equal((await tab.ready()).chat.messages.length, 50);
  await tab.act("chat", "loadMore");
  assert.equal((await tab.view()).chat.messages.length, 100);
  await tab.act("chat", "loadMore");
  const { chat } = await tab.view();
  assert.deepEqual([chat.hasMore, textsOf(chat).join()], [false, messages.map((_, n) => n).join()]);
  await pages.call("long", "deleteMessages", { sessionId: "chat", messageIds: ["m119"] });
  await tab.shows("that it is gone", ({ chat }) => chat.messages.length === 119 && chat.messages[0].id === "m0");
});
