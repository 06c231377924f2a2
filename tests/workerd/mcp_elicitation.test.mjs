// A server of the Model Context Protocol asks the user during a chat turn: the stock clients answer
// with `addToolOutput`, with evictions and a crash between the question and the answer. The server
// is another agent, which forwards a question of its own tool.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import { call, startChatServer, textOf, until } from "./chat_server.mjs";
import { startServer } from "./harness.mjs";
import { callTool, say } from "./model_server.mjs";
import { openTab } from "./browser_tab.mjs";
import { startTools } from "./tool_server.mjs";

const tools = await startTools();
const other = await startServer({ vars: { AUTH: "open", MODEL: "demo", TOOL_ORIGINS: tools.origin } });
const { server, model, stop } = await startChatServer({ vars: { TOOL_ORIGINS: new URL(other.url).origin } });
after(async () => {
  await stop();
  await other.stop();
  await tools.stop();
});
afterEach(() => model.forget());

const FORM = {
  type: "object",
  properties: { name: { type: "string", maxLength: 10 }, nights: { type: "integer", minimum: 1 } },
  required: ["name", "nights"],
};

const ask = (message) => ({
  resultType: "input_required",
  inputRequests: { guest: { method: "elicitation/create", params: { message, requestedSchema: FORM } } },
  requestState: `state of ${message}`,
});

await call(other, "hotel", "defineTool", {
  name: "book",
  description: "Books a room.",
  url: `${tools.origin}/book`,
  needsApproval: false,
});

/** The hotel asks `rounds` times, and then books. */
function hotel(rounds) {
  tools.run = async ({ inputResponses, requestState }) => {
    if (requestState === undefined) return ask("Round 1?");
    const round = Number(/Round (\d)/.exec(requestState)[1]);
    return round < rounds ? ask(`Round ${round + 1}?`) : { booked: inputResponses.guest };
  };
}

async function useHotel(agent) {
  const mcp = new URL("/agents/session-agent/hotel/mcp", other.url).href;
  const defined = await call(server, agent, "defineTool", { name: "hotel", mcp, needsApproval: false });
  assert.equal(defined.revision, "2026-07-28");
  assert.ok(defined.tools.some(({ name }) => name === "hotel_book"));
}

const accept = (name, nights) => ({ responses: { guest: { action: "accept", content: { name, nights } } } });

function openChat(agent) {
  const api = new URL(`/agents/session-agent/${agent}/chat`, server.url).href;
  return new Chat({
    id: "s",
    transport: new DefaultChatTransport({ api }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
  });
}

const partsOf = ({ messages }) => messages.at(-1)?.parts ?? [];
const toolOf = (chat) => partsOf(chat).find(({ type }) => type === "tool-hotel_book");
const questionOf = (chat) => partsOf(chat).find(({ type }) => type === "data-input-request")?.data;

async function reaches(chat, holds) {
  const listen = (check) => {
    const ends = [
      chat["~registerMessagesCallback"](check),
      chat["~registerStatusCallback"](check),
      chat["~registerErrorCallback"](check),
    ];
    return () => ends.forEach((end) => end());
  };
  const shown = () => JSON.stringify({ status: chat.status, error: chat.error?.message, messages: chat.messages });
  await until(() => holds(chat), listen, shown);
}

const stored = async (agent) => (await call(server, agent, "getHistory", { sessionId: "s" })).messages;
/** Parts as the log shows them: the stock client adds step starts and the states of texts. */
const plain = (parts) =>
  JSON.parse(JSON.stringify(parts.filter(({ type }) => type !== "step-start").map(({ state, ...part }) => part)));

test("a_stock_chat_answers_two_questions_across_evictions_and_a_crash", async () => {
  await useHotel("http");
  hotel(2);
  const chat = openChat("http");
  model.next(callTool("hotel_book", { city: "Rome" }, "c1"));
  await chat.sendMessage({ text: "Book a room." });
  assert.equal(chat.error, undefined);
  assert.equal(chat.status, "ready");
  assert.equal(toolOf(chat).state, "input-available");
  assert.deepEqual(questionOf(chat), {
    toolCallId: "c1",
    tool: "hotel_book",
    server: "hotel",
    requests: { guest: { message: "Round 1?", requestedSchema: FORM } },
  });
  assert.deepEqual(plain(partsOf(chat)), plain((await stored("http")).at(-1).parts));
  await server.evict("http");
  chat.addToolOutput({ tool: "hotel_book", toolCallId: "c1", output: accept("Ann", 1) });
  await reaches(chat, (one) => one.status === "ready" && questionOf(one)?.requests.guest.message === "Round 2?");
  assert.equal(toolOf(chat).state, "input-available");
  assert.equal(tools.calls.at(-1).requestState, "state of Round 1?");
  await server.kill9();
  // A reloaded page has the messages of the log.
  const again = openChat("http");
  again.messages = await stored("http");
  model.next(say("Booked for two nights."));
  again.addToolOutput({ tool: "hotel_book", toolCallId: "c1", output: accept("Ann", 2) });
  await reaches(again, (one) => one.status === "ready" && textOf(one.messages.at(-1)).includes("Booked"));
  assert.deepEqual(JSON.parse(toolOf(again).output), { booked: accept("Ann", 2).responses.guest });
  assert.equal(questionOf(again).isClosed, true);
  assert.deepEqual(plain(partsOf(again)), plain((await stored("http")).at(-1).parts));
  assert.equal(tools.calls.length, 3);
});

test("a_wrong_answer_is_refused_with_its_field_and_the_next_one_accepted", async () => {
  await useHotel("wrong");
  hotel(1);
  const chat = openChat("wrong");
  model.next(callTool("hotel_book", {}, "c1"));
  await chat.sendMessage({ text: "Book a room." });
  const calls = tools.calls.length;
  chat.addToolOutput({ tool: "hotel_book", toolCallId: "c1", output: accept("Ann", 0) });
  await reaches(chat, ({ error }) => error !== undefined);
  assert.match(chat.error.message, /responses\.guest\.content\.nights/);
  assert.equal(tools.calls.length, calls);
  model.next(say("Done."));
  chat.addToolOutput({ tool: "hotel_book", toolCallId: "c1", output: { responses: { guest: { action: "decline" } } } });
  await reaches(chat, (one) => one.status === "ready" && textOf(one.messages.at(-1)) === "Done.");
  assert.deepEqual(tools.calls.at(-1).inputResponses, { guest: { action: "decline" } });
});

test("a_page_answers_over_a_socket_even_after_a_wrong_answer", async (t) => {
  await useHotel("socket");
  hotel(1);
  const tab = await openTab(server, "socket", { query: { sessionId: "s" } });
  t.after(() => tab.close());
  model.next(callTool("hotel_book", {}, "c1"));
  await tab.chat.sendMessage({ text: "Book a room." });
  await tab.reaches(({ chat }) => questionOf(chat) !== undefined && chat.status === "ready");
  tab.chat.addToolOutput({ tool: "hotel_book", toolCallId: "c1", output: accept("much too long a name", 1) });
  await tab.reaches(({ chat }) => toolOf(chat).state === "output-available");
  const calls = tools.calls.length;
  model.next(say("Done."));
  tab.chat.addToolOutput({ tool: "hotel_book", toolCallId: "c1", output: accept("Ann", 1) });
  await tab.reaches(({ chat }) => textOf(chat.messages.at(-1)) === "Done.");
  assert.deepEqual(
    tools.calls.slice(calls).map(({ inputResponses }) => inputResponses),
    [accept("Ann", 1).responses],
  );
  assert.equal(questionOf(tab.chat).isClosed, true);
  assert.deepEqual(tab.errors, []);
});

test("run_turn_returns_the_question_and_a_chat_request_answers_it", async () => {
  await useHotel("ran");
  hotel(1);
  model.next(callTool("hotel_book", {}, "c1"));
  const message = { id: "u", role: "user", parts: [{ type: "text", text: "Book a room." }] };
  const ran = await call(server, "ran", "runTurn", { sessionId: "s", message });
  assert.equal(ran.finishReason, "tool-calls");
  const parts = ran.message.parts.map((part) =>
    part.toolCallId === "c1" ? { ...part, state: "output-available", output: accept("Ann", 1) } : part,
  );
  model.next(say("Done."));
  const response = await server.fetch("/agents/session-agent/ran/chat", {
    method: "POST",
    body: JSON.stringify({ id: "s", message: { ...ran.message, parts } }),
  });
  assert.match(await response.text(), /Done\./);
  assert.deepEqual(tools.calls.at(-1).inputResponses, accept("Ann", 1).responses);
});
