// The rows that operations read and write, as the `x-rows-*` headers report them. rows.mjs writes
// them to a file, and a test compares them with the file.

import { setTimeout as pause } from "node:timers/promises";
import { startChatServer } from "../tests/workerd/chat_server.mjs";
import { callTools, say } from "../tests/workerd/model_server.mjs";

const user = (more = {}) => ({ action: "user_message", content: "What is the weather like in Oslo today?", ...more });
const batch = (length) => Array.from({ length }, () => user());
const message = (id, text) => ({ ...(id && { id }), role: "user", parts: [{ type: "text", text }] });

/** The most events of one append. */
const MOST = 1_000;

/** The cost of each operation in a session of `length` events: `"rows read / rows written"`. */
export async function costsInASessionOf(server, length) {
  const agent = `of ${length} events`;
  const { table, ok, measure } = meter(server, agent, { sessionId: "s" });
  await server.call(agent, "createSession", { id: "s" });
  for (let left = length; left > 0; left -= MOST) await ok("appendEvents", { events: batch(Math.min(left, MOST)) });

  /** After another write, because an append after an append reads less. */
  const measureAlone = async (...args) => {
    await ok("addUsage", { inputTokens: 1 });
    return await measure(...args);
  };
  await measureAlone("append an event", "appendEvents", { events: [user()] });
  await measure("append an event, right after an append", "appendEvents", { events: [user()] });
  await measureAlone("append an event with the caller's own id", "appendEvents", { events: [user({ id: "mine" })] });
  await measureAlone("send it again", "appendEvents", { events: [user({ id: "mine" })] });
  await measureAlone("append ten events", "appendEvents", { events: batch(10) });
  await measureAlone("append a message", "appendMessage", { message: message(undefined, "a") });
  await measureAlone("append a message with an id of the caller's", "appendMessage", { message: message("m", "a") });
  await measure("update it, unchanged", "updateMessage", { message: message("m", "a") });
  await measure("update it", "updateMessage", { message: message("m", "b") });
  await measure("load the newest 50 events", "loadEvents", { limit: 50, tail: true });
  await measure("load the oldest 50 events", "loadEvents", { limit: 50 });
  await measure("read the newest 50 messages", "getHistory", { limit: 50 });
  await measure("build a working context of 50 events", "buildWorkingContext", { limit: 50 });
  await measureAlone("start a branch", "appendEvents", { parentId: "mine", events: [user()] });
  await measureAlone("append to the branch", "appendEvents", { events: [user()] });
  await measure("read the newest 10 messages, after a branch", "getHistory", { limit: 10 });
  await measure("read a message's branches", "getBranches", { messageId: "mine" });
  await server.evict(agent);
  await measure("append an event, first after eviction", "appendEvents", { events: [user()] });
  await measure("choose a branch", "setLeaf", { id: "m" });
  await measure("show the session", "getSession");
  await measure("rename the session", "updateSession", { name: "Oslo" });

  await measure("follow the feed, 50 changes", "getChanges", { limit: 50 });
  await measure("load events by `actions`, finding none", "loadEvents", { actions: ["compaction"] });
  await measure("count a branch's messages", "getPathLength", { leafId: "m" });
  const fork = await measure("fork the session", "forkSession", { atId: "m" });
  await measure("clear the fork", "clearMessages", { sessionId: fork.id });
  const another = await ok("forkSession", { atId: "m" });
  await measure("delete a fork", "deleteSession", { sessionId: another.id });
  const [middle] = await ok("loadEvents", { afterSeq: Math.floor(length / 2), limit: 1 });
  await measure("delete an event from the middle", "deleteEvents", { eventIds: [middle.id] });
  const gapped = await measure("fork the session, after that", "forkSession", { atId: "m" });
  await ok("deleteSession", { sessionId: gapped.id });

  await ok("appendEvents", { events: [user({ content: "Take an umbrella." })] });
  await measure("search, first of the agent's", "search", { query: "umbrellas" });
  await measure("search for the text of one event", "search", { query: "umbrellas" });
  await measure("search for what all events say", "search", { query: "weather in Oslo" });
  await measure("append an event, once searched", "appendEvents", { events: [user()] });
  return table;
}

/** The cost of each operation in an agent of `length` sessions with two events each. */
export async function costsInAnAgentOf(server, length) {
  const { table, ok, measure } = meter(server, `of ${length} sessions`);
  for (let n = 0; n < length; n += 1) {
    await ok("createSession", { id: `s${n}` });
    await ok("appendEvents", { sessionId: `s${n}`, events: batch(2) });
  }
  await measure("list sessions", "listSessions", { limit: 50 });
  await measure("create a session", "createSession");
  return table;
}

/**
 * The cost of reading a session of `length` events where no summary covers them, and where one
 * covers all but the newest hundred: rows, and milliseconds as the caller waits.
 */
export async function costsOfLongSession(server, length) {
  const agent = `long ${length}`;
  const { table, ok, clock } = meter(server, agent, { sessionId: "s" });
  await server.call(agent, "createSession", { id: "s" });
  for (let left = length; left > 0; left -= MOST) await ok("appendEvents", { events: batch(Math.min(left, MOST)) });
  await clock("count a branch's messages", "getPathLength");
  await clock("estimate tokens, nothing summarised", "estimateTokens");
  await clock("estimate tokens again", "estimateTokens");
  await clock("compact (a dry run), nothing summarised", "compact", { dryRun: true });
  const [first] = await ok("loadEvents", { limit: 1 });
  const [last] = await ok("loadEvents", { limit: 100, tail: true });
  const edges = { summary: "They talked about the weather.", fromId: first.id, toId: last.id };
  await clock("add a summary", "addCompaction", edges);
  await server.evict(agent);
  await clock("estimate tokens, once summarised", "estimateTokens");
  await clock("compact (a dry run), once summarised", "compact", { dryRun: true });
  while ((await ok("search", { query: "umbrella" })).pending !== undefined);
  await clock("search for what all events say", "search", { query: "weather in Oslo" });
  const [old] = await ok("loadEvents", { limit: 1, afterSeq: 500 });
  await clock("delete an event from the middle", "deleteEvents", { eventIds: [old.id] });
  await clock("count a branch's messages, after that", "getPathLength");
  await clock("fork the session", "forkSession");
  return table;
}

/** The cost of a block of `length` entries. */
export async function costsOfEntries(server, length) {
  const { table, ok, clock } = meter(server, `with ${length} entries`, { label: "facts" });
  const entry = (key, more) => ({ key, content: `What is known of ${key} and the weather.`, ...more });
  await ok("defineBlock", { kind: "searchable" });
  for (let n = 0; n < length - 3; n += 1) await ok("setEntry", entry(`k${n}`));
  await clock("set a new entry", "setEntry", entry("new"));
  await clock("set it again", "setEntry", entry("new", { content: "Something else." }));
  await clock("set one that replaces it", "setEntry", entry("newer", { supersedes: ["new"] }));
  await clock("delete that", "deleteEntry", { key: "newer" });
  await clock("delete another", "deleteEntry", { key: "k1" });
  await clock("read the block", "getBlock");
  const { clock: clockAll } = meter(server, `with ${length} entries`, {}, table);
  await clockAll("read all blocks", "getBlocks");
  await clockAll("render the prompt", "renderPrompt");
  await clockAll("refresh the prompt", "refreshPrompt");
  return table;
}

/** The cost of listing `length` sessions. */
export async function costsOfListing(server, length) {
  const { table, ok, clock } = meter(server, `with ${length} sessions`);
  for (let n = 0; n < length; n += 1) {
    await ok("createSession", { id: `s${n}` });
    await ok("appendEvents", { sessionId: `s${n}`, events: batch(1) });
  }
  const { cursor } = await clock("list the first 50 sessions", "listSessions", { limit: 50 });
  await clock("list the next 50", "listSessions", { limit: 50, cursor });
  const whole = { read: 0, ms: 0, cursor: undefined };
  do {
    const { body, rowsRead, ms } = await timed(() =>
      server.call(`with ${length} sessions`, "listSessions", { limit: 500, cursor: whole.cursor }),
    );
    Object.assign(whole, { read: whole.read + rowsRead, ms: whole.ms + ms, cursor: body.cursor });
  } while (whole.cursor !== null);
  table.set("list all, in pages of 500", cell(whole.read, 0, whole.ms));
  return table;
}

const cell = (read, written, ms) => `${read} / ${written}, ${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;

async function timed(call) {
  const start = performance.now();
  const answer = await call();
  return { ...answer, ms: performance.now() - start };
}

/** The cost of each kind of turn: of a session's first turn, and of a later one. */
export async function costsOfTurns() {
  const { server, model, stop } = await startChatServer();
  const agent = "of turns";
  const turn = async (sessionId, ...answers) => {
    model.next(...answers);
    return costsOf(await server.metered(agent, () => chat(server, agent, sessionId, "What is the weather like?")));
  };
  const weather = (city) => ["weather", { city }];
  const kinds = {
    "a chat turn": () => [say("It ", "rains.")],
    "a chat turn with a tool": () => [callTools(weather("Oslo")), say("It rains.")],
    "a chat turn with two tools": () => [callTools(weather("Oslo"), weather("Rome")), say("It rains.")],
  };
  try {
    await server.call(agent, "defineTool", { name: "weather", description: "The weather.", service: "TOOLS" });
    // A turn of another session first: afterwards the object is awake and its alarm is
    // set.
    await turn("awake", say("Good morning."));
    const table = new Map();
    for (const [name, answers] of Object.entries(kinds)) {
      table.set(name, [await turn(name, ...answers()), await turn(name, ...answers())]);
    }
    return table;
  } finally {
    await stop();
  }
}

/** A learning pass that follows a turn has ended by then: the model answers at once. */
const LEARNING_MS = 1_000;

/** The cost of a turn of an agent with a block of facts, and of what the agent learns from it. */
export async function costsOfLearning() {
  const { server, model, stop } = await startChatServer();
  const nothing = JSON.stringify({ changes: [] });
  const fact = { action: "add", key: "tea", content: "The user likes tea.", events: ["e1"] };
  const kinds = {
    off: { learn: null },
    '`after: "manual"`': { learn: { into: "facts", after: "manual" } },
    '`after: "idle"`, before the pass': { learn: { into: "facts", after: "idle" } },
    '`after: "turn"`, with a pass that learns nothing': { learn: { into: "facts", review: "auto" }, pass: nothing },
    '`after: "turn"`, with a pass that adds a fact': {
      learn: { into: "facts", review: "auto" },
      pass: JSON.stringify({ changes: [fact] }),
    },
  };
  const table = new Map();
  try {
    for (const [name, { learn, pass }] of Object.entries(kinds)) {
      const agent = `that learns: ${name}`;
      const turn = async (sessionId, pass) => {
        model.next(say("It rains."), ...(pass ? [say(pass)] : []));
        const costs = await server.metered(agent, async () => {
          await chat(server, agent, sessionId, "I like tea.");
          if (pass) await pause(LEARNING_MS);
        });
        return costsOf(costs);
      };
      await server.call(agent, "defineBlock", { label: "facts", kind: "searchable" });
      await turn("awake");
      await server.call(agent, "configureAgent", { learn });
      table.set(name, [await turn("s", pass && nothing), await turn("s", pass)]);
    }
    return table;
  } finally {
    await stop();
  }
}

const costsOf = ({ read, written }) => `${read} / ${written}`;

/** Sends a message to the chat endpoint, and reads the response to its end. */
async function chat(server, agent, sessionId, text) {
  const body = JSON.stringify({ id: sessionId, message: message(crypto.randomUUID(), text) });
  const path = `/agents/session-agent/${encodeURIComponent(agent)}/chat`;
  const response = await server.fetch(path, { method: "POST", body });
  const stream = await response.text();
  if (!stream.endsWith("data: [DONE]\n\n") || stream.includes('"error"')) throw new Error(stream);
}

function meter(server, agent, always = {}, table = new Map()) {
  const call = async (operation, input) => {
    const answer = await server.call(agent, operation, { ...always, ...input });
    if (answer.status !== 200) throw new Error(`${operation}: ${JSON.stringify(answer.body)}`);
    return answer;
  };
  return {
    table,
    ok: async (operation, input) => (await call(operation, input)).body,
    measure: async (name, operation, input) => {
      const { body, rowsRead, rowsWritten } = await call(operation, input);
      table.set(name, `${rowsRead} / ${rowsWritten}`);
      return body;
    },
    /** Like `measure`, with the time that the caller waits. */
    clock: async (name, operation, input) => {
      const { body, rowsRead, rowsWritten, ms } = await timed(() => call(operation, input));
      table.set(name, cell(rowsRead, rowsWritten, ms));
      return body;
    },
  };
}
