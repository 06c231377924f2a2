// The requests that speed.mjs and check.mjs measure side by side, and how rounds are
// taken.
//
// A figure is requests per second of CPU time. The CPU time is that of the runtime's
// process, in which the caller and all Workers run. On an idle machine this is requests
// per second; on a busy machine the figure stays the same. If the system doesn't
// report CPU time, elapsed time counts.

import { pathOf } from "./frame/frame.mjs";
import { cpuMs } from "./frame/process.mjs";
import { shuffled } from "./frame/stats.mjs";

export const TEXT = "What is the weather like in Oslo today? ".repeat(10);
/**
 * The same number of bytes, but not all of them ASCII: as in most languages, and in chats with
 * emoji.
 */
const TEXT_BEYOND_ASCII = "Wie wird das Wetter heut in Tromsø? 🌦️ ".repeat(9);
/** The bytes that a message of either text takes in the peer's tables. */
const PEER_ROW_BYTES = 500;

/** The agents from which messages are read. */
const TEXTS = { messages: TEXT, letters: TEXT_BEYOND_ASCII };

export const SLICE_MS = 150;
const LANES = 8;
const READ_FROM = 1_000;

const event = { action: "user_message", content: TEXT };
const message = (id, text = TEXT) => ({ ...(id && { id }), role: "user", parts: [{ type: "text", text }] });
const ten = (thing) => Array.from({ length: 10 }, () => thing);

const written = (operation, input) => ({ agent: "written", operation, body: { sessionId: "s", ...input } });
const read = (agent, operation, input) => ({ agent, operation, body: { sessionId: "s", ...input } });
const page = (limit, agent = "messages") => {
  const history = read(agent, "getHistory", { limit });
  const peer = [history, read(agent, "getRecentHistory", { limit, maxBytes: limit * PEER_ROW_BYTES })];
  return { agent: history, floor: history, rows: read(agent, "getHistoryByRows", { limit }), peer };
};

/**
 * For each case, the requests to this Worker, the floor and the peer. If the peer has
 * several, the quickest counts. `aim` has the ratios that this Worker is to reach.
 */
export const CASES = {
  "a request that does nothing": { path: "/health", floor: {}, agent: {}, peer: [{}], aim: { floor: 0.7 } },
  "append 1 event": {
    agent: written("appendEvents", { events: [event] }),
    floor: written("appendEvents", { events: [event] }),
    peer: [written("appendMessages", { messages: [message()] })],
    aim: { floor: 0.9, peer: 1.1 },
  },
  "append 1 event, learning": {
    agent: read("learning", "appendEvents", { events: [event] }),
    floor: written("appendEvents", { events: [event] }),
    aim: { floor: 0.9 },
  },
  "append 1 message with an id": {
    agent: written("appendMessage", { message: message("$ID") }),
    floor: written("appendMessage", { message: message("$ID") }),
    peer: [written("appendMessage", { message: message("$ID") })],
    aim: { peer: 1.1 },
  },
  "append 10 events": {
    agent: written("appendEvents", { events: ten(event) }),
    floor: written("appendEvents", { events: ten(event) }),
    peer: [written("appendMessages", { messages: ten(message()) })],
    aim: { floor: 1.0, peer: 2.0 },
  },
  "newest 50 events": {
    agent: read("events", "loadEvents", { limit: 50, tail: true }),
    floor: read("events", "loadEvents", { limit: 50 }),
    aim: { floor: 0.9 },
  },
  "newest 500 events": {
    agent: read("events", "loadEvents", { limit: 500, tail: true }),
    floor: read("events", "loadEvents", { limit: 500 }),
    aim: { floor: 0.9 },
  },
  "newest 50 messages": { ...page(50), aim: { floor: 0.8, peer: 12 } },
  "newest 500 messages": { ...page(500), aim: { floor: 1.3, peer: 4 } },
  "newest 50 messages, not ASCII": { ...page(50, "letters"), aim: { floor: 0.8, peer: 12 } },
  "newest 500 messages, not ASCII": { ...page(500, "letters"), aim: { floor: 1.3, peer: 4 } },
  "working context of 50": { agent: read("events", "buildWorkingContext", { limit: 50 }), aim: {} },
};

/** Makes sessions to write to, and sessions of a thousand events and messages to read from. */
export async function fill(frame, { withPeer = true } = {}) {
  const ask = (target, agent, operation, input) =>
    frame.ask({
      target,
      entryPoint: "object",
      agent,
      path: pathOf(agent, operation),
      body: JSON.stringify({ sessionId: "s", ...input }),
    });
  for (const target of ["AGENT", "FLOOR"]) {
    for (const agent of ["written", "events", ...Object.keys(TEXTS)]) {
      const body = JSON.stringify({ id: "s" });
      await frame.ask({ target, entryPoint: "object", agent, path: pathOf(agent, "createSession"), body });
    }
    if (target === "AGENT") await makeLearning(frame);
    for (let n = 0; n < READ_FROM; n += 100)
      await ask(target, "events", "appendEvents", { events: Array.from({ length: 100 }, () => event) });
    for (const [agent, text] of Object.entries(TEXTS)) {
      for (let n = 0; n < READ_FROM; n += 1)
        await ask(target, agent, "appendMessage", { message: message(`m${n}`, text) });
    }
  }
  if (!withPeer) return;
  for (const [agent, text] of Object.entries(TEXTS)) {
    for (let n = 0; n < READ_FROM; n += 100) {
      const messages = Array.from({ length: 100 }, (_, at) => message(`m${n + at}`, text));
      await ask("PEER", agent, "appendMessages", { messages });
    }
  }
}

/** An agent that will learn from its session once nobody has written for a while. */
async function makeLearning(frame) {
  const steps = {
    createSession: { id: "s" },
    defineBlock: { label: "facts", kind: "searchable" },
    configureAgent: { learn: { into: "facts", after: "idle" } },
  };
  for (const [operation, input] of Object.entries(steps))
    await frame.ask({
      target: "AGENT",
      entryPoint: "object",
      agent: "learning",
      path: pathOf("learning", operation),
      body: JSON.stringify(input),
    });
}

/** Checks that the floor and the peer answer what this Worker answers. Otherwise a ratio means nothing. */
export async function compareAnswers(frame, { withPeer = true } = {}) {
  const answer = async (target, { agent, operation, body }) =>
    JSON.parse(
      await frame.ask({
        target,
        entryPoint: "service",
        agent,
        path: pathOf(agent, operation),
        body: JSON.stringify(body),
      }),
    );
  for (const [name, { agent, floor, rows, peer = [] }] of Object.entries(CASES)) {
    if (floor === undefined || !/^newest/.test(name)) continue;
    const ours = pageOf(await answer("AGENT", agent));
    const others = [["FLOOR", floor], ["FLOOR", rows], ...(withPeer ? peer.map((one) => ["PEER", one]) : [])].filter(
      ([, one]) => one,
    );
    for (const [target, one] of others) {
      const theirs = pageOf(await answer(target, one));
      if (JSON.stringify(theirs) !== JSON.stringify(ours)) {
        throw new Error(
          `${name}: ${target} (${one.operation}) answers something else:\n${JSON.stringify(theirs).slice(0, 400)}\n${JSON.stringify(ours).slice(0, 400)}`,
        );
      }
    }
  }
}

/** An answer without its ids and times, which differ everywhere. */
function pageOf(answer) {
  const list = answer.messages ?? answer;
  return list.map(({ seq, id, action, content, role, parts }) =>
    seq === undefined ? { id, role, parts } : { seq, action, content },
  );
}

/**
 * Measures in rounds. In each round, every lane of `lanes` (`{ key, target, entryPoint, ask,
 * path }`) has one slice of time, in another order. Returns the rates of each lane by its
 * key; rates of the same round have the same place.
 */
export async function measure(frame, lanes, rounds) {
  const rates = new Map(lanes.map(({ key }) => [key, []]));
  for (let round = -1; round < rounds; round += 1) {
    for (const lane of shuffled(lanes, round)) {
      const { agent = "written", operation, body } = lane.ask;
      const order = {
        target: lane.target,
        entryPoint: lane.entryPoint,
        agent,
        path: lane.path ?? pathOf(agent, operation),
        body: body === undefined ? undefined : JSON.stringify(body),
        ms: SLICE_MS,
        lanes: LANES,
      };
      const before = await cpuMs(frame.pid);
      const { done, ms } = await frame.run(order);
      const spentMs = before === null ? ms : (await cpuMs(frame.pid)) - before;
      // The first round warms up: code is compiled, and caches fill.
      if (round >= 0) rates.get(lane.key).push((done * 1_000) / spentMs);
    }
  }
  return rates;
}
