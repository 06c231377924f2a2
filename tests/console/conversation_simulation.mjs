// A simulation of a conversation between a reader, an agent and a network, which tests play in any
// order: late, duplicate and lost requests and answers, connections that break before or after the
// agent has received a request, other clients, and a reader who clicks at any time.
//
// A game is a list of moves, each a name and a number that picks among what is possible. A
// move that nothing fits does nothing, so any part of a game is a game.

import assert from "node:assert/strict";
import { load } from "./modules.mjs";

const { EMPTY, messagesOf, phaseOf, step } = await load("conversation/state.ts", "conversation/step.ts");

const lost = (wasSent) => ({ error: new Error("The connection failed."), isLost: true, wasSent });
const refused = (code) => ({ error: new Error(code), isLost: false, wasSent: true });

/** The agent: a tree of messages, one turn at a time, and queued messages. */
class Agent {
  nodes = new Map();
  leaf = null;
  isThere = false;
  updatedAt = 0;
  running = null;
  queue = [];
  /** The messages that it has accepted, in this order. */
  accepted = [];
  seq = 0;

  add(id, role, parts, parent) {
    this.seq += 1;
    this.nodes.set(id, { message: { id, role, parts, createdAt: this.seq }, parent, seq: this.seq });
    this.leaf = id;
    this.touch();
  }

  touch() {
    this.isThere = true;
    this.updatedAt += 1;
  }

  path() {
    const path = [];
    for (let id = this.leaf; id !== null; id = this.nodes.get(id).parent) path.unshift(this.nodes.get(id));
    return path;
  }

  page(limit, before = Infinity) {
    const above = this.path().filter(({ seq }) => seq < before);
    const page = above.slice(-limit);
    return { messages: page.map(({ message }) => message), cursor: page.length < above.length ? page[0].seq : null };
  }

  read(limit) {
    return this.isThere
      ? { updatedAt: this.updatedAt, seqRead: this.seq, ...this.page(limit) }
      : { updatedAt: null, seqRead: this.seq, messages: [], cursor: null };
  }

  /** The messages that leave the path if a turn continues from this message. */
  newerThan(id) {
    const path = this.path();
    const index = path.findIndex(({ message }) => message.id === id);
    return index < 0 ? [] : path.slice(index + 1);
  }

  /** `respond(happening)` answers the request. */
  chat(input, respond) {
    const message = input.message ?? input.messages.at(-1);
    const isOf = (turn) => turn !== null && turn.message?.id === message?.id && message?.role === "user";
    if (isOf(this.running)) return this.follow(respond);
    const waits = this.queue.find(isOf);
    if (waits !== undefined) {
      respond({ type: "accepted" });
      waits.listeners.push(respond);
      return;
    }
    const isNew = message?.role === "user" && !this.nodes.has(message.id);
    if (this.running !== null && !(isNew && input.whenBusy === "queue"))
      return respond({ type: "failed", ...refused("turn_in_progress") });
    const turn = {
      message,
      after: input.messages?.at(-2)?.id,
      trigger: input.trigger,
      messageId: input.messageId,
      listeners: [respond],
      chunks: [],
      left: 3,
    };
    const named = turn.after ?? (turn.trigger ? turn.messageId : message.role === "assistant" ? message.id : undefined);
    if (named !== undefined && !this.nodes.has(named)) return respond({ type: "failed", ...refused("not_found") });
    if (isNew) this.accepted.push(message.id);
    respond({ type: "accepted" });
    if (this.running !== null) return void this.queue.push(turn);
    this.begin(turn);
  }

  begin(turn) {
    const { message } = turn;
    const trigger = turn.trigger && this.nodes.get(turn.messageId);
    if (trigger) this.leaf = trigger.message.role === "user" ? turn.messageId : trigger.parent;
    else if (message.role === "assistant") this.leaf = turn.within = message.id;
    else if (this.nodes.has(message.id)) this.leaf = message.id;
    else this.add(message.id, "user", message.parts, turn.after ?? this.leaf);
    turn.parent = this.leaf;
    turn.answer = turn.within ?? `a${this.seq}-${this.updatedAt}`;
    this.touch();
    this.running = turn;
  }

  follow(respond) {
    respond({ type: "accepted" });
    for (const chunk of this.running.chunks) respond({ type: "chunk", chunk });
    this.running.listeners.push(respond);
  }

  emit(chunk) {
    this.running.chunks.push(chunk);
    for (const respond of this.running.listeners) respond({ type: "chunk", chunk });
  }

  /** The model emits some text, or the turn ends. */
  speak() {
    const turn = this.running;
    if (turn === null) return;
    const called = { toolCallId: `c-${turn.answer}`, toolName: "weather" };
    const last = turn.chunks.at(-1)?.type;
    if (last === undefined) {
      this.emit({ type: "start", messageId: turn.answer });
      this.emit({ type: "start-step" });
      // Some turns call a tool first.
      if (this.seq % 2 === 0) this.emit({ type: "text-start", id: "t" });
    } else if (last === "start-step" && turn.chunks.length === 2) {
      this.emit({ type: "tool-input-available", ...called, input: {} });
    } else if (last === "tool-input-available") {
      this.emit({ type: "tool-output-available", ...called, output: "rain" });
      this.emit({ type: "finish-step" });
      this.emit({ type: "start-step" });
    } else if (last === "start-step") {
      this.emit({ type: "text-start", id: "t" });
    } else if (turn.left > 0) {
      turn.left -= 1;
      this.emit({ type: "text-delta", id: "t", delta: `${turn.left} ` });
    } else {
      this.end({ type: "finish" });
    }
  }

  end(chunk) {
    const { listeners, answer, parent, chunks, within } = this.running;
    const text = chunks
      .filter(({ type }) => type === "text-delta")
      .map(({ delta }) => delta)
      .join("");
    this.emit(chunk);
    this.running = null;
    const before = within && this.nodes.get(within);
    if (before) before.message = { ...before.message, parts: [...before.message.parts, { type: "text", text }] };
    else if (chunks.length > 1 && !within)
      this.add(answer, "assistant", [{ type: "text", text }], this.nodes.has(parent) ? parent : this.leaf);
    this.touch();
    for (const respond of listeners) respond({ type: "over" });
    const next = this.queue.shift();
    if (next !== undefined) this.begin(next);
  }

  cancel(messageId) {
    if (this.running !== null && [null, this.running.message?.id, this.running.parent].includes(messageId))
      return this.end({ type: "abort" });
    const turn = this.queue.find(({ message }) => message.id === messageId);
    if (turn === undefined) return;
    this.queue = this.queue.filter((other) => other !== turn);
    this.accepted = this.accepted.filter((id) => id !== messageId);
    for (const respond of turn.listeners) {
      respond({ type: "chunk", chunk: { type: "abort" } });
      respond({ type: "over" });
    }
  }

  remove(id) {
    const node = this.nodes.get(id);
    if (node === undefined) return;
    for (const other of this.nodes.values()) if (other.parent === id) other.parent = node.parent;
    if (this.leaf === id) this.leaf = node.parent;
    if (this.running?.parent === id) this.running.parent = node.parent;
    this.nodes.delete(id);
    this.touch();
  }
}

/** The agent's reaction to a request that arrives. */
const ARRIVALS = {
  read: (agent, { limit, find }, respond) =>
    respond({ type: "read", found: find.filter((id) => agent.nodes.has(id)), ...agent.read(limit) }),
  readAbove: (agent, { before, limit }, respond) => respond({ type: "readAbove", ...agent.page(limit, before) }),
  check: (agent, _, respond) => respond({ type: "checked", updatedAt: agent.isThere ? agent.updatedAt : null }),
  chat: (agent, { input }, respond) => agent.chat(input, respond),
  listen: (agent, _, respond) => (agent.running ? agent.follow(respond) : respond({ type: "over" })),
  append(agent, { message }, respond) {
    if (agent.running !== null) return respond({ type: "failed", ...refused("turn_in_progress") });
    if (!agent.nodes.has(message.id)) {
      agent.add(message.id, "user", message.parts, null);
      agent.accepted.push(message.id);
    }
    respond({ type: "done" });
  },
  cancel(agent, { messageId }, respond) {
    agent.cancel(messageId);
    respond({ type: "done" });
  },
  switch(agent, { leaf }, respond) {
    if (agent.running !== null || !agent.nodes.has(leaf)) return respond({ type: "failed", ...refused("not_found") });
    agent.leaf = leaf;
    agent.touch();
    respond({ type: "done" });
  },
  remove(agent, { id }, respond) {
    agent.remove(id);
    respond({ type: "done" });
  },
  "await connection": (_, __, respond) => respond({ type: "back" }),
};

export class Simulation {
  agent = new Agent();
  state = EMPTY;
  /** The requests: `{ effect, isThere, isBroken, answers }`. */
  requests = [];
  /** The holder of each ticket, and its outcome. */
  tickets = new Map();
  sends = [];
  /** The messages that the reader asked to remove, and those that the page knows are deleted. */
  unwanted = new Set();
  removed = new Set();
  /** How far the agent had written at the time of the last read that the page accepted. */
  seqRead = 0;
  clock = 0;
  #count = 0;

  constructor(history) {
    for (let n = 0; n < history; n += 1)
      this.agent.add(`h${n}`, n % 2 ? "assistant" : "user", [{ type: "text", text: `${n}` }], this.agent.leaf);
    this.happen({ type: "open" });
  }

  happen(happening) {
    const before = JSON.stringify(this.state);
    const [state, effects] = step(this.state, happening);
    assert.equal(JSON.stringify(this.state), before, "a step changes the state that it was given");
    if (happening.type === "read" && JSON.parse(before).reading?.request === happening.request)
      this.seqRead = happening.seqRead;
    this.state = state;
    for (const effect of effects) this.#do(effect, happening);
    this.#check();
  }

  #do(effect, { type }) {
    if (effect.do === "resolve") {
      const ticket = this.tickets.get(effect.ticket);
      assert.ok(
        ticket !== undefined && ticket.outcome === undefined,
        `ticket ${effect.ticket} is told ${effect.value} after ${ticket?.outcome}`,
      );
      ticket.outcome = effect.value;
    } else if (effect.do === "give up") {
      const request = this.requests.find((request) => request.effect.request === effect.request);
      if (request !== undefined) request.isGivenUp = true;
    } else if (effect.request !== undefined) {
      const isRequested = type === "branch off";
      this.requests.push({ effect, isThere: false, isBroken: false, answers: [], isRequested, seqRead: this.seqRead });
    }
  }

  /** The invariants after each step. */
  #check() {
    const shown = messagesOf(this.state).map(({ id }) => id);
    assert.equal(new Set(shown).size, shown.length, `a message is shown twice: ${shown}`);
    for (const { id, ticket } of this.sends) {
      if (this.tickets.get(ticket).outcome !== undefined || this.unwanted.has(id)) continue;
      assert.ok(
        shown.includes(id) || this.state.line.some((waiting) => waiting.id === id),
        `${id} is neither shown nor waiting, and its sender was not notified`,
      );
    }
    this.#checkLive();
    for (const id of this.removed) assert.ok(!shown.includes(id), `${id} was removed and is shown again`);
    if (this.state.turn === null)
      assert.equal(
        this.state.deeds.some(({ knownFrom }) => knownFrom === null),
        false,
        "a deed belongs to no turn",
      );
  }

  /**
   * The waterfall of a live turn: nothing in it twice, nothing that the answer lacks, and time
   * moves forward.
   */
  #checkLive() {
    const { live, message } = this.state.turn?.answer ?? {};
    if (!live) return;
    const called = live.steps.flatMap(({ tools }) => tools);
    const ids = called.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length, `a call has two bars: ${ids}`);
    const parts = message?.parts ?? [];
    for (const id of ids)
      assert.ok(
        parts.some(({ toolCallId }) => toolCallId === id),
        `${id} is in no part`,
      );
    assert.ok(live.steps.length <= parts.filter(({ type }) => type === "step-start").length, "a step is drawn twice");
    const times = live.steps.flatMap(({ from, saidAt, to, tools }) => [
      [live.from, from],
      [from, saidAt ?? from],
      [saidAt ?? from, to ?? this.clock],
      ...tools.map((tool) => [tool.from, tool.to ?? this.clock]),
    ]);
    for (const [from, to] of times) assert.ok(from <= to, `a bar goes back in time: ${JSON.stringify(live)}`);
    for (const step of live.steps.slice(0, -1)) assert.ok(step.to !== null, "a step is open before another");
  }

  ticket(of) {
    this.tickets.set(this.tickets.size + 1, { of });
    return this.tickets.size;
  }

  name(prefix) {
    this.#count += 1;
    return `${prefix}${this.#count}`;
  }

  arrive(request) {
    request.isThere = true;
    const { effect } = request;
    if (effect.do === "chat") this.#checkView(request);
    ARRIVALS[effect.do](this.agent, effect, (happening) => {
      if (!request.isBroken) request.answers.push({ at: 0, ...happening, request: effect.request });
    });
  }

  /** A turn at an existing message hides what the reader saw only if the reader requested it. */
  #checkView({ effect: { input }, isRequested, seqRead }) {
    const named = this.agent.nodes.get(input.message?.id ?? input.messageId)?.message;
    const isNewAnswer = input.trigger && named?.role === "assistant";
    if (isRequested || isNewAnswer || named === undefined || this.agent.running !== null) return;
    for (const { message, seq } of this.agent.newerThan(named.id))
      assert.ok(seq > seqRead, `${message.id} leaves the view, and the reader did not request it`);
  }

  deliver(request) {
    const answer = request.answers.shift();
    this.clock += 1;
    if (answer.type === "chunk") answer.at = this.clock;
    request.last = answer;
    const { effect } = request;
    if (effect.do === "remove" && answer.type === "done" && request.wasLoaded) this.removed.add(effect.id);
    this.happen(answer);
  }

  /** The connection breaks. What the agent has received remains received. */
  drop(request, wasSent = true) {
    if (request.effect.do === "await connection") return;
    request.isThere = true;
    request.isBroken = true;
    request.answers = [{ type: "failed", request: request.effect.request, ...lost(wasSent) }];
  }

  /** Everything in progress finishes. */
  settle(pick) {
    for (let turns = 0; turns < 2_000; turns += 1) {
      const open = this.requests.filter(({ isThere, answers }) => !isThere || answers.length > 0);
      if (open.length > 0) {
        const request = open[pick(open.length)];
        if (!request.isThere) this.arrive(request);
        else this.deliver(request);
      } else if (this.agent.running !== null) {
        this.agent.speak();
      } else {
        return;
      }
    }
    assert.fail("it does not end");
  }

  /** The invariants once everything has finished and the page has read. */
  checkEnd() {
    const { state, agent } = this;
    assert.equal(phaseOf(state), "idle");
    assert.deepEqual(
      [state.turn, state.line, state.deeds, [...state.errands.keys()], state.reading, state.readingAbove],
      [null, [], [], [], null, null],
    );
    assert.notEqual(state.decision?.newer, null, "a decision waits for nothing");
    for (const [ticket, { of, outcome }] of this.tickets)
      assert.ok(outcome !== undefined, `ticket ${ticket} (${of}) has no outcome`);
    const path = agent.path().map(({ message }) => message);
    const shown = messagesOf(state);
    assert.deepEqual(
      shown.map(({ id }) => id),
      path.slice(-shown.length || path.length).map(({ id }) => id),
    );
    assert.deepEqual(shown, path.slice(-shown.length || path.length));
    if (state.above === null) assert.equal(shown.length, path.length);
    for (const { id, ticket } of this.sends) {
      if (this.unwanted.has(id)) continue;
      const { outcome } = this.tickets.get(ticket);
      assert.equal(
        outcome,
        agent.accepted.includes(id),
        `${id}: the outcome is ${outcome}, and the agent has accepted ${agent.accepted}`,
      );
    }
    const sent = this.sends.map(({ id }) => id).filter((id) => agent.accepted.includes(id) && !this.unwanted.has(id));
    assert.deepEqual(
      agent.accepted.filter((id) => sent.includes(id)),
      sent,
      "the agent has the messages in another order",
    );
  }
}

const shownBy = (simulation, role) => messagesOf(simulation.state).filter((message) => message.role === role);
const pick = (list, dice) => list[dice % list.length];

/** The moves, and how often each is played. */
export const MOVES = {
  send: [
    6,
    (simulation) => {
      const id = simulation.name("m");
      const ticket = simulation.ticket(`send ${id}`);
      simulation.sends.push({ id, ticket });
      simulation.happen({ type: "send", id, text: id, more: {}, at: 1, ticket });
    },
  ],
  "take back": [
    3,
    (simulation, dice) => {
      const waiting = pick(simulation.state.line, dice);
      if (waiting) simulation.happen({ type: "takeBack", id: waiting.id });
    },
  ],
  resend: [
    2,
    (simulation, dice) => {
      const message = pick(shownBy(simulation, "user"), dice);
      if (!message) return;
      const newId = simulation.name("r");
      const ticket = simulation.ticket(`resend ${newId}`);
      simulation.sends.push({ id: newId, ticket });
      simulation.happen({ type: "resend", id: message.id, newId, text: newId, at: 1, ticket });
    },
  ],
  regenerate: [
    2,
    (simulation, dice) => {
      const message = pick(shownBy(simulation, "assistant"), dice);
      if (message) simulation.happen({ type: "regenerate", id: message.id });
    },
  ],
  approve: [
    1,
    (simulation, dice) => {
      // A pending call is among the newest messages.
      const message = pick(shownBy(simulation, "assistant").slice(-5), dice);
      if (message) simulation.happen({ type: "approve", messageId: message.id, approvalId: "p", approved: true });
    },
  ],
  retry: [
    1,
    (simulation, dice) => {
      const message = pick(shownBy(simulation, "user").slice(-3), dice);
      if (message) simulation.happen({ type: "retry", id: message.id });
    },
  ],
  "branch off": [1, (simulation) => simulation.happen({ type: "branch off" })],
  "decide again": [1, (simulation) => simulation.happen({ type: "decide again" })],
  stop: [2, (simulation) => simulation.happen({ type: "stop" })],
  check: [3, (simulation) => simulation.happen({ type: "check" })],
  "load above": [
    2,
    (simulation) => simulation.happen({ type: "loadAbove", limit: 20, ticket: simulation.ticket("load above") }),
  ],
  reload: [1, (simulation) => simulation.happen({ type: "reload", ticket: simulation.ticket("reload") })],
  switch: [
    1,
    (simulation, dice) => {
      const leaf = pick([...simulation.agent.nodes.keys()], dice);
      if (leaf && phaseOf(simulation.state) === "idle") simulation.happen({ type: "switch", leaf });
    },
  ],
  remove: [
    1,
    (simulation, dice) => {
      const message = pick(messagesOf(simulation.state), dice);
      if (!message) return;
      simulation.unwanted.add(message.id);
      const wasLoaded = simulation.state.loaded.includes(message);
      simulation.happen({ type: "remove", id: message.id });
      simulation.requests.at(-1).wasLoaded = wasLoaded;
    },
  ],
  arrive: [
    16,
    (simulation, dice) => {
      const request = pick(
        simulation.requests.filter(({ isThere }) => !isThere),
        dice,
      );
      if (request) simulation.arrive(request);
    },
  ],
  deliver: [
    24,
    (simulation, dice) => {
      const request = pick(
        simulation.requests.filter(({ answers }) => answers.length > 0),
        dice,
      );
      if (!request) return;
      simulation.deliver(request);
    },
  ],
  "deliver again": [
    2,
    (simulation, dice) => {
      const request = pick(
        simulation.requests.filter(({ last, effect }) => last && effect.do !== "chat" && effect.do !== "listen"),
        dice,
      );
      if (request) simulation.happen(request.last);
    },
  ],
  drop: [
    4,
    (simulation, dice) => {
      const request = pick(
        simulation.requests.filter(({ isThere, answers, isBroken }) => !isBroken && (!isThere || answers.length > 0)),
        dice,
      );
      if (request) simulation.drop(request);
    },
  ],
  "drop without a connection": [
    2,
    (simulation, dice) => {
      const request = pick(
        simulation.requests.filter(({ isThere }) => !isThere),
        dice,
      );
      if (request) simulation.drop(request, false);
    },
  ],
  "drop a stream": [
    3,
    (simulation, dice) => {
      const request = pick(
        simulation.requests.filter(
          ({ effect, isThere, isBroken, last }) =>
            effect.do === "chat" && isThere && !isBroken && last?.type !== "over" && last?.type !== "failed",
        ),
        dice,
      );
      if (request) simulation.drop(request);
    },
  ],
  speak: [14, (simulation) => simulation.agent.speak()],
  "another client appends": [
    1,
    (simulation) => {
      if (simulation.agent.running === null)
        simulation.agent.add(simulation.name("o"), "user", [{ type: "text", text: "other" }], simulation.agent.leaf);
    },
  ],
  "another client chats": [
    1,
    (simulation) => simulation.agent.chat({ message: { id: simulation.name("o"), role: "user", parts: [] } }, () => {}),
  ],
};

const NAMES = Object.entries(MOVES).flatMap(([name, [often]]) => Array(often).fill(name));

/** Numbers that are the same for the same seed. */
export function diceOf(seed) {
  let state = (seed * 2_654_435_761) >>> 0 || 1;
  return (n) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    return state % n;
  };
}

/** The game of a seed: the length of the history, and the moves. */
export function gameOf(seed, length) {
  const dice = diceOf(seed);
  const history = [0, 0, 3, 140][dice(4)];
  return {
    seed,
    history,
    moves: Array.from({ length: 1 + dice(length) }, () => [NAMES[dice(NAMES.length)], dice(1_000)]),
  };
}

/** The problem; `null`: none. */
export function failureOf({ seed, history, moves }) {
  const pick = diceOf(seed + 1);
  try {
    const simulation = new Simulation(history);
    for (const [name, dice] of moves) MOVES[name][1](simulation, dice);
    // Twice, because the first read may cause another request.
    for (let round = 0; round < 3; round += 1) {
      simulation.settle(pick);
      simulation.happen({ type: "check" });
    }
    simulation.settle(pick);
    simulation.checkEnd();
    return null;
  } catch (error) {
    return error;
  }
}

/** The shortest failing part of a game that leaving out moves finds. */
export function shortest(game) {
  let { moves } = game;
  for (let size = moves.length >> 1; size > 0; ) {
    let isShorter = false;
    for (let from = 0; from < moves.length; from += size) {
      const fewer = [...moves.slice(0, from), ...moves.slice(from + size)];
      if (failureOf({ ...game, moves: fewer }) === null) continue;
      moves = fewer;
      isShorter = true;
      from -= size;
    }
    if (!isShorter) size >>= 1;
  }
  return { ...game, moves };
}
