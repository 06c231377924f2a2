// A simulation of a conversation between a reader, an agent and a network, which tests play in any
// order: late, duplicate and lost requests and answers, connections that break before or after the
// agent has received a request, other clients, and a reader who clicks at any time.
//
// A game is a list of moves: a name, and a number that picks one of the candidates. A move without
// candidates does nothing, so any part of a game is a game.

import assert from "node:assert/strict";
import { load } from "./modules.mjs";

const { EMPTY, messagesOf, phaseOf, step } = await load("conversation/state.ts", "conversation/step.ts");

const lost = (wasSent) => ({ error: new Error("The connection failed."), isLost: true, wasSent });
const refused = (code) => ({ error: new Error(code), isLost: false, wasSent: true });

/** The agent: a tree of messages, one turn at a time, and a queue. */
class Agent {
  nodes = new Map();
  leaf = null;
  exists = false;
  updatedAt = 0;
  running = null;
  queue = [];
  /** The accepted messages, in order. */
  accepted = [];
  seq = 0;

  add(id, role, parts, parent) {
    this.seq += 1;
    this.nodes.set(id, { message: { id, role, parts, createdAt: this.seq }, parent, seq: this.seq });
    this.leaf = id;
    this.touch();
  }

  touch() {
    this.exists = true;
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
    return this.exists
      ? { updatedAt: this.updatedAt, lastSeqRead: this.seq, ...this.page(limit) }
      : { updatedAt: null, lastSeqRead: this.seq, messages: [], cursor: null };
  }

  /** The messages that leave the path if a turn continues at this message. */
  newerThan(id) {
    const path = this.path();
    const index = path.findIndex(({ message }) => message.id === id);
    return index < 0 ? [] : path.slice(index + 1);
  }

  /** `reply(action)` answers the request. */
  chat(input, reply) {
    const message = input.message ?? input.messages.at(-1);
    const isOf = (turn) => turn !== null && turn.message?.id === message?.id && message?.role === "user";
    if (isOf(this.running)) return this.follow(reply);
    const queued = this.queue.find(isOf);
    if (queued !== undefined) {
      reply({ type: "accepted" });
      queued.listeners.push(reply);
      return;
    }
    const isNew = message?.role === "user" && !this.nodes.has(message.id);
    if (this.running !== null && !(isNew && input.whenBusy === "queue"))
      return reply({ type: "failed", ...refused("turn_in_progress") });
    const turn = {
      message,
      after: input.messages?.at(-2)?.id,
      trigger: input.trigger,
      messageId: input.messageId,
      listeners: [reply],
      chunks: [],
      left: 3,
    };
    const named = turn.after ?? (turn.trigger ? turn.messageId : message.role === "assistant" ? message.id : undefined);
    if (named !== undefined && !this.nodes.has(named)) return reply({ type: "failed", ...refused("not_found") });
    if (isNew) this.accepted.push(message.id);
    reply({ type: "accepted" });
    if (this.running !== null) return void this.queue.push(turn);
    this.begin(turn);
  }

  begin(turn) {
    const { message } = turn;
    const target = turn.trigger && this.nodes.get(turn.messageId);
    if (target) this.leaf = target.message.role === "user" ? turn.messageId : target.parent;
    else if (message.role === "assistant") this.leaf = turn.within = message.id;
    else if (this.nodes.has(message.id)) this.leaf = message.id;
    else this.add(message.id, "user", message.parts, turn.after ?? this.leaf);
    turn.parent = this.leaf;
    turn.answer = turn.within ?? `a${this.seq}-${this.updatedAt}`;
    this.touch();
    this.running = turn;
  }

  follow(reply) {
    reply({ type: "accepted" });
    for (const chunk of this.running.chunks) reply({ type: "chunk", chunk });
    this.running.listeners.push(reply);
  }

  emit(chunk) {
    this.running.chunks.push(chunk);
    for (const reply of this.running.listeners) reply({ type: "chunk", chunk });
  }

  /** The model emits some text, or the turn ends. */
  generate() {
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
    for (const reply of listeners) reply({ type: "over" });
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
    for (const reply of turn.listeners) {
      reply({ type: "chunk", chunk: { type: "abort" } });
      reply({ type: "over" });
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

/** The agent's reaction to each kind of request. */
const ARRIVALS = {
  read: (agent, { limit, find }, reply) =>
    reply({ type: "read", found: find.filter((id) => agent.nodes.has(id)), ...agent.read(limit) }),
  readOlder: (agent, { before, limit }, reply) => reply({ type: "readOlder", ...agent.page(limit, before) }),
  check: (agent, _, reply) => reply({ type: "checked", updatedAt: agent.exists ? agent.updatedAt : null }),
  chat: (agent, { input }, reply) => agent.chat(input, reply),
  listen: (agent, _, reply) => (agent.running ? agent.follow(reply) : reply({ type: "over" })),
  append(agent, { message }, reply) {
    if (agent.running !== null) return reply({ type: "failed", ...refused("turn_in_progress") });
    if (!agent.nodes.has(message.id)) {
      agent.add(message.id, "user", message.parts, null);
      agent.accepted.push(message.id);
    }
    reply({ type: "done" });
  },
  cancel(agent, { messageId }, reply) {
    agent.cancel(messageId);
    reply({ type: "done" });
  },
  switch(agent, { leaf }, reply) {
    if (agent.running !== null || !agent.nodes.has(leaf)) return reply({ type: "failed", ...refused("not_found") });
    agent.leaf = leaf;
    agent.touch();
    reply({ type: "done" });
  },
  remove(agent, { id }, reply) {
    agent.remove(id);
    reply({ type: "done" });
  },
  "await connection": (_, __, reply) => reply({ type: "reconnected" }),
};

export class World {
  agent = new Agent();
  state = EMPTY;
  /** The page's requests: `{ effect, hasArrived, isBroken, answers }`. */
  requests = [];
  /** The page's promises by ticket: `{ of, value }`. `value`: how it was resolved. */
  tickets = new Map();
  sends = [];
  /** The messages that the reader requested to remove, and those that the page knows to be deleted. */
  unwanted = new Set();
  removed = new Set();
  /** The agent's newest `seq` at the time of the last read that the page accepted. */
  lastSeqRead = 0;
  clock = 0;
  #count = 0;

  constructor(history) {
    for (let n = 0; n < history; n += 1)
      this.agent.add(`h${n}`, n % 2 ? "assistant" : "user", [{ type: "text", text: `${n}` }], this.agent.leaf);
    this.dispatch({ type: "open" });
  }

  dispatch(action) {
    const before = JSON.stringify(this.state);
    const [state, effects] = step(this.state, action);
    assert.equal(JSON.stringify(this.state), before, "a step changes the state that it was given");
    if (action.type === "read" && JSON.parse(before).reading?.request === action.request)
      this.lastSeqRead = action.lastSeqRead;
    this.state = state;
    for (const effect of effects) this.#do(effect, action);
    this.#check();
  }

  #do(effect, { type }) {
    if (effect.do === "resolve") {
      const ticket = this.tickets.get(effect.ticket);
      assert.ok(
        ticket !== undefined && ticket.value === undefined,
        `ticket ${effect.ticket} resolves to ${effect.value} after ${ticket?.value}`,
      );
      ticket.value = effect.value;
    } else if (effect.do === "abort") {
      const request = this.requests.find((request) => request.effect.request === effect.request);
      if (request !== undefined) request.isAborted = true;
    } else if (effect.request !== undefined) {
      const wasConfirmed = type === "branch off";
      this.requests.push({
        effect,
        hasArrived: false,
        isBroken: false,
        answers: [],
        wasConfirmed,
        lastSeqRead: this.lastSeqRead,
      });
    }
  }

  /** The invariants after each step. */
  #check() {
    const shown = messagesOf(this.state).map(({ id }) => id);
    assert.equal(new Set(shown).size, shown.length, `a message is shown twice: ${shown}`);
    for (const { id, ticket } of this.sends) {
      if (this.tickets.get(ticket).value !== undefined || this.unwanted.has(id)) continue;
      assert.ok(
        shown.includes(id) || this.state.queue.some((entry) => entry.id === id),
        `${id} is neither shown nor queued, and its promise is pending`,
      );
    }
    this.#checkLive();
    for (const id of this.removed) assert.ok(!shown.includes(id), `${id} was removed and is shown again`);
    if (this.state.turn === null)
      assert.equal(
        this.state.optimisticUpdates.some(({ includedFrom }) => includedFrom === null),
        false,
        "an optimistic update belongs to no turn",
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
    const times = live.steps.flatMap(({ from, firstOutputAt, to, tools }) => [
      [live.from, from],
      [from, firstOutputAt ?? from],
      [firstOutputAt ?? from, to ?? this.clock],
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
    request.hasArrived = true;
    const { effect } = request;
    if (effect.do === "chat") this.#checkView(request);
    ARRIVALS[effect.do](this.agent, effect, (action) => {
      if (!request.isBroken) request.answers.push({ at: 0, ...action, request: effect.request });
    });
  }

  /** A turn at an existing message hides messages that the reader saw only after a confirmation. */
  #checkView({ effect: { input }, wasConfirmed, lastSeqRead }) {
    const named = this.agent.nodes.get(input.message?.id ?? input.messageId)?.message;
    const isNewAnswer = input.trigger && named?.role === "assistant";
    if (wasConfirmed || isNewAnswer || named === undefined || this.agent.running !== null) return;
    for (const { message, seq } of this.agent.newerThan(named.id))
      assert.ok(seq > lastSeqRead, `${message.id} leaves the view without a confirmation`);
  }

  deliver(request) {
    const answer = request.answers.shift();
    this.clock += 1;
    if (answer.type === "chunk") answer.at = this.clock;
    request.last = answer;
    const { effect } = request;
    if (effect.do === "remove" && answer.type === "done" && request.wasLoaded) this.removed.add(effect.id);
    this.dispatch(answer);
  }

  /** The connection breaks. What the agent has received remains received. */
  drop(request, wasSent = true) {
    if (request.effect.do === "await connection") return;
    request.hasArrived = true;
    request.isBroken = true;
    request.answers = [{ type: "failed", request: request.effect.request, ...lost(wasSent) }];
  }

  /** Everything in progress finishes. */
  settle(pick) {
    for (let turns = 0; turns < 2_000; turns += 1) {
      const open = this.requests.filter(({ hasArrived, answers }) => !hasArrived || answers.length > 0);
      if (open.length > 0) {
        const request = open[pick(open.length)];
        if (!request.hasArrived) this.arrive(request);
        else this.deliver(request);
      } else if (this.agent.running !== null) {
        this.agent.generate();
      } else {
        return;
      }
    }
    assert.fail("the game does not end");
  }

  /** The invariants once everything has finished and the page has read. */
  checkEnd() {
    const { state, agent } = this;
    assert.equal(phaseOf(state), "idle");
    assert.deepEqual(
      [
        state.turn,
        state.queue,
        state.optimisticUpdates,
        [...state.pendingRequests.keys()],
        state.reading,
        state.readingOlder,
      ],
      [null, [], [], [], null, null],
    );
    assert.notEqual(state.decision?.newer, null, "a decision is still pending");
    for (const [ticket, { of, value }] of this.tickets)
      assert.ok(value !== undefined, `ticket ${ticket} (${of}) was not resolved`);
    const path = agent.path().map(({ message }) => message);
    const shown = messagesOf(state);
    assert.deepEqual(
      shown.map(({ id }) => id),
      path.slice(-shown.length || path.length).map(({ id }) => id),
    );
    assert.deepEqual(shown, path.slice(-shown.length || path.length));
    if (state.olderCursor === null) assert.equal(shown.length, path.length);
    for (const { id, ticket } of this.sends) {
      if (this.unwanted.has(id)) continue;
      const { value } = this.tickets.get(ticket);
      assert.equal(
        value,
        agent.accepted.includes(id),
        `${id}: its promise resolved to ${value}, and the agent has accepted ${agent.accepted}`,
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

const shownBy = (world, role) => messagesOf(world.state).filter((message) => message.role === role);
const pick = (list, dice) => list[dice % list.length];

/** The moves, each with its frequency. */
export const MOVES = {
  send: [
    6,
    (world) => {
      const id = world.name("m");
      const ticket = world.ticket(`send ${id}`);
      world.sends.push({ id, ticket });
      world.dispatch({ type: "send", id, text: id, more: {}, at: 1, ticket });
    },
  ],
  withdraw: [
    3,
    (world, dice) => {
      const entry = pick(world.state.queue, dice);
      if (entry) world.dispatch({ type: "withdraw", id: entry.id });
    },
  ],
  resend: [
    2,
    (world, dice) => {
      const message = pick(shownBy(world, "user"), dice);
      if (!message) return;
      const newId = world.name("r");
      const ticket = world.ticket(`resend ${newId}`);
      world.sends.push({ id: newId, ticket });
      world.dispatch({ type: "resend", id: message.id, newId, text: newId, at: 1, ticket });
    },
  ],
  regenerate: [
    2,
    (world, dice) => {
      const message = pick(shownBy(world, "assistant"), dice);
      if (message) world.dispatch({ type: "regenerate", id: message.id });
    },
  ],
  approve: [
    1,
    (world, dice) => {
      // An open call is among the newest.
      const message = pick(shownBy(world, "assistant").slice(-5), dice);
      if (message) world.dispatch({ type: "decide", messageId: message.id, call: { approvalId: "p", approved: true } });
    },
  ],
  retry: [
    1,
    (world, dice) => {
      const message = pick(shownBy(world, "user").slice(-3), dice);
      if (message) world.dispatch({ type: "retry", id: message.id });
    },
  ],
  "branch off": [1, (world) => world.dispatch({ type: "branch off" })],
  "cancel decision": [1, (world) => world.dispatch({ type: "cancel decision" })],
  stop: [2, (world) => world.dispatch({ type: "stop" })],
  check: [3, (world) => world.dispatch({ type: "check" })],
  "load older": [2, (world) => world.dispatch({ type: "loadOlder", limit: 20, ticket: world.ticket("load older") })],
  reload: [1, (world) => world.dispatch({ type: "reload", ticket: world.ticket("reload") })],
  switch: [
    1,
    (world, dice) => {
      const leaf = pick([...world.agent.nodes.keys()], dice);
      if (leaf && phaseOf(world.state) === "idle") world.dispatch({ type: "switch", leaf });
    },
  ],
  remove: [
    1,
    (world, dice) => {
      const message = pick(messagesOf(world.state), dice);
      if (!message) return;
      world.unwanted.add(message.id);
      const wasLoaded = world.state.loaded.includes(message);
      world.dispatch({ type: "remove", id: message.id });
      world.requests.at(-1).wasLoaded = wasLoaded;
    },
  ],
  arrive: [
    16,
    (world, dice) => {
      const request = pick(
        world.requests.filter(({ hasArrived }) => !hasArrived),
        dice,
      );
      if (request) world.arrive(request);
    },
  ],
  deliver: [
    24,
    (world, dice) => {
      const request = pick(
        world.requests.filter(({ answers }) => answers.length > 0),
        dice,
      );
      if (!request) return;
      world.deliver(request);
    },
  ],
  "deliver again": [
    2,
    (world, dice) => {
      const request = pick(
        world.requests.filter(({ last, effect }) => last && effect.do !== "chat" && effect.do !== "listen"),
        dice,
      );
      if (request) world.dispatch(request.last);
    },
  ],
  drop: [
    4,
    (world, dice) => {
      const request = pick(
        world.requests.filter(({ hasArrived, answers, isBroken }) => !isBroken && (!hasArrived || answers.length > 0)),
        dice,
      );
      if (request) world.drop(request);
    },
  ],
  "drop without a connection": [
    2,
    (world, dice) => {
      const request = pick(
        world.requests.filter(({ hasArrived }) => !hasArrived),
        dice,
      );
      if (request) world.drop(request, false);
    },
  ],
  "drop a stream": [
    3,
    (world, dice) => {
      const request = pick(
        world.requests.filter(
          ({ effect, hasArrived, isBroken, last }) =>
            effect.do === "chat" && hasArrived && !isBroken && last?.type !== "over" && last?.type !== "failed",
        ),
        dice,
      );
      if (request) world.drop(request);
    },
  ],
  generate: [14, (world) => world.agent.generate()],
  "another client appends": [
    1,
    (world) => {
      if (world.agent.running === null)
        world.agent.add(world.name("o"), "user", [{ type: "text", text: "other" }], world.agent.leaf);
    },
  ],
  "another client chats": [
    1,
    (world) => world.agent.chat({ message: { id: world.name("o"), role: "user", parts: [] } }, () => {}),
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

/** A game of a seed: how long the history is, and the moves. */
export function gameOf(seed, length) {
  const dice = diceOf(seed);
  const history = [0, 0, 3, 140][dice(4)];
  return {
    seed,
    history,
    moves: Array.from({ length: 1 + dice(length) }, () => [NAMES[dice(NAMES.length)], dice(1_000)]),
  };
}

/** The violated invariant. `null`: none. */
export function failureOf({ seed, history, moves }) {
  const pick = diceOf(seed + 1);
  try {
    const world = new World(history);
    for (const [name, dice] of moves) MOVES[name][1](world, dice);
    // Twice: what the first read finds may have to be requested again.
    for (let round = 0; round < 3; round += 1) {
      world.settle(pick);
      world.dispatch({ type: "check" });
    }
    world.settle(pick);
    world.checkEnd();
    return null;
  } catch (error) {
    return error;
  }
}

/** A shorter game that still fails: moves are left out as long as it does. */
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
