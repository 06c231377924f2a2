// The moves of a game: `[weight, {name, make(game, dice)}]`. What each should answer, and
// what it changes, is what the contract says.

import { isDeepStrictEqual } from "node:util";
import { show } from "./compare.mjs";
import { putFact, removeFact } from "./facts.mjs";
import { AGENTS } from "./game.mjs";
import { callsOf, textOf } from "./model.mjs";
import { SHAPES, unpaired } from "./pairs.mjs";

/** Sessions and events grow no further, so that games stay fast. */
const MAX_SESSIONS = 6;
const MAX_EVENTS = 60;

const LABELS = { Rules: "readonly", notes: "writable", kb: "searchable", skills: "loadable" };
const FILLERS = ["", " zwei", " drei\nvier", ' "quoted" \\', " 😀 é", " <b>&amp;</b>", " \u0001\u2028"];

export const MOVES = [];
const move = (weight, name, make, fits = () => true) => MOVES.push({ weight, name, make, fits });

/** The moves that a driver can make, with their weights. */
export function movesFor(driver) {
  return MOVES.filter(({ fits }) => fits(driver)).map((one) => [one.weight, one]);
}

/** An agent and one of its sessions; a new session where there is none. */
async function someSession(game, dice) {
  const agent = dice.roll(AGENTS);
  const { sessions } = game.agents[agent];
  if (sessions.length === 0) await createSession(game, dice, agent);
  const session = game.agents[agent].sessions.length === 0 ? null : dice.pick(game.agents[agent].sessions);
  return { agent, session, of: (model) => model.find(session.id) };
}

const withSession = (make) => async (game, dice) => {
  const at = await someSession(game, dice);
  if (at.session !== null) await make(game, dice, at);
};

async function createSession(game, dice, agent) {
  const id = dice.one(4) ? undefined : `s${game.word()}`;
  const fields = {
    ...(id && { id }),
    ...(dice.one(2) && { name: `Name ${game.word()}` }),
    ...(dice.one(3) && { metadata: { word: game.word(), list: [1, null, { a: "é" }] } }),
  };
  return await game.write(
    agent,
    "createSession",
    fields,
    (model, answer) => model.create({ ...fields, id: id ?? answer?.id ?? null }),
    { dice },
  );
}

const textFor = (game, dice) => `${game.word()}${dice.pick(FILLERS)}`;

const message = (id, role, text, more = []) => ({ id, role, parts: [{ type: "text", text }, ...more] });

/** An event that another may follow; 0 is none. */
function place(dice, session) {
  return session.events.size === 0 ? 0 : dice.pick([...session.events.keys()]);
}

/** The first events of all messages. */
function messageStarts(session) {
  return [...session.events.keys()].filter((seq) => session.messageStart(seq) === seq);
}

// Sessions

move(3, "createSession", async (game, dice) => {
  const agent = dice.roll(AGENTS);
  const { sessions } = game.agents[agent];
  if (sessions.length >= MAX_SESSIONS) return await deleteSession(game, dice, agent, dice.pick(sessions));
  if (sessions.length > 0 && dice.one(4)) {
    return await game.write(agent, "createSession", { id: dice.pick(sessions).id }, () => {}, {
      refused: ["already_exists"],
      dice,
    });
  }
  if (dice.one(6))
    return await game.write(agent, "createSession", { parentSessionId: "nobody" }, () => {}, {
      refused: ["session_not_found"],
      dice,
    });
  await createSession(game, dice, agent);
});

move(
  2,
  "updateSession",
  withSession(async (game, dice, { agent, session, of }) => {
    const fields = dice.one(2)
      ? { name: dice.one(3) ? null : `Name ${game.word()}` }
      : { metadata: dice.one(3) ? null : { word: game.word() } };
    await game.write(
      agent,
      "updateSession",
      { sessionId: session.id, ...fields },
      (model) => Object.assign(of(model), fields),
      { dice },
    );
  }),
);

move(
  1,
  "addUsage",
  withSession(async (game, dice, { agent, session, of }) => {
    const id = dice.one(2) ? `u${dice.roll(4)}` : undefined;
    const spent = { inputTokens: dice.roll(50), outputTokens: dice.roll(50), cost: dice.roll(9) };
    const body = { sessionId: session.id, ...spent, ...(id && { id }) };
    const apply = (model) => {
      const { usage, usageIds } = of(model);
      if (usageIds.has(id)) return;
      if (id) usageIds.add(id);
      for (const [field, value] of Object.entries(spent))
        usage[field] = usage[field] === null ? null : usage[field] + value;
    };
    for (let times = dice.one(3) ? 3 : 1; times > 0; times -= 1)
      await game.write(agent, "addUsage", body, apply, { dice });
  }),
);

async function deleteSession(game, dice, agent, session) {
  const sessionId = session.id;
  const answer = await game.write(agent, "deleteSession", { sessionId }, (model) => model.delete(sessionId), { dice });
  if (answer) game.hold(answer.deleted, () => `deleteSession ${sessionId} says that there was none`);
}

move(
  1,
  "deleteSession",
  withSession((game, dice, { agent, session }) => deleteSession(game, dice, agent, session)),
);

move(1, "an unknown session", async (game, dice) => {
  const agent = dice.roll(AGENTS);
  const [operation, body] = dice.pick([
    ["appendEvents", { events: [{ action: "user_message", content: "?" }] }],
    ["forkSession", {}],
    ["updateSession", { name: "x" }],
    ["setLeaf", { id: "x" }],
    ["clearMessages", {}],
    ["deleteEvents", { eventIds: ["x"] }],
    ["addUsage", { inputTokens: 1 }],
    ["appendMessage", { message: message("m", "user", "x") }],
  ]);
  await game.write(agent, operation, { sessionId: "nobody", ...body }, () => {}, {
    refused: ["session_not_found"],
    dice,
  });
});

move(
  3,
  "forkSession",
  withSession(async (game, dice, { agent, session, of }) => {
    if (game.agents[agent].sessions.length >= MAX_SESSIONS) return await deleteSession(game, dice, agent, session);
    const at = dice.one(2) ? 0 : place(dice, session);
    const body = {
      sessionId: session.id,
      ...(at > 0 && { atId: session.idOf(at) }),
      ...(dice.one(2) && { name: `Fork ${game.word()}` }),
    };
    await game.write(
      agent,
      "forkSession",
      body,
      (model, answer) => {
        const original = of(model);
        model.sessions.push(original.fork(at || original.leaf, answer?.id ?? null, body.name ?? null, null));
      },
      { dice },
    );
  }),
);

move(
  2,
  "setLeaf",
  withSession(async (game, dice, { agent, session, of }) => {
    const seq = place(dice, session);
    if (seq === 0 || dice.one(8)) {
      return await game.write(agent, "setLeaf", { sessionId: session.id, id: "nobody" }, () => {}, {
        refused: ["message_not_found"],
        dice,
      });
    }
    // Within a run, the leaf is the run's last event.
    if (session.isRun(seq) && session.children(seq).some((child) => session.isRun(child))) return;
    const answer = await game.write(
      agent,
      "setLeaf",
      { sessionId: session.id, id: session.idOf(seq) },
      (model) => (of(model).chosen = seq),
      { dice },
    );
    if (answer) game.hold(answer.leafId === session.idOf(seq), () => `setLeaf answers ${show(answer)}`);
  }),
);

// Events

function newEvents(game, dice) {
  const own = () => (dice.one(3) ? undefined : `i${game.word()}`);
  const withId = (event) => {
    const id = own();
    return id ? { id, ...event } : event;
  };
  return dice.weighted([
    [
      5,
      () =>
        Array.from({ length: 1 + dice.roll(dice.one(5) ? 8 : 2) }, () =>
          withId({
            action: dice.pick(["user_message", "agent_message", "user_message", "system_instruction"]),
            content: textFor(game, dice),
          }),
        ),
    ],
    [3, () => toolEvents(game, dice).map(withId)],
    [1, () => [withId({ action: "compaction", content: textFor(game, dice) })]],
  ])();
}

/** A call or two, their results, and perhaps an answer. */
function toolEvents(game, dice) {
  const calls = Array.from({ length: 1 + dice.roll(2) }, (_, index) => ({
    id: `call_${index}`,
    name: "look_up",
    arguments: { n: index, word: game.word() },
  }));
  const results = calls.map(({ id, name }) => ({
    action: "tool_result",
    toolCallId: id,
    toolName: name,
    content: textFor(game, dice),
    ...(dice.one(4) && { isError: true }),
  }));
  if (dice.one(2)) results.reverse();
  // A call may still wait for its result.
  if (dice.one(5)) results.pop();
  const events = [{ action: "tool_call_request", toolCalls: calls }, ...results];
  return dice.one(2) ? [...events, { action: "agent_message", content: textFor(game, dice) }] : events;
}

function isBranch(session, parentId) {
  return parentId === undefined
    ? session.leaf !== session.lastSeq
    : parentId === null
      ? session.lastSeq !== 0
      : session.seqOf(parentId) !== session.lastSeq;
}

/** The most rows of an append. It writes one an event, one an id of the caller, one a branch. */
function rowsOf(game, agent, session, events, parentId) {
  const given = events.filter(({ id }) => id !== undefined).length;
  const index = game.agents[agent].isSearched ? events.length : 0;
  const written = events.length + given + index + (isBranch(session, parentId) ? 1 : 0);
  return { written, ...(index === 0 && { read: 10 * events.length }) };
}

function holdAppended(game, answer, expected) {
  const bare = { events: answer.events.map(({ seq, inserted }) => ({ seq, inserted })), leafId: answer.leafId };
  const wanted = {
    events: expected.events.map(({ seq, inserted }) => ({ seq, inserted })),
    leafId: expected.leafId ?? answer.leafId,
  };
  game.hold(isDeepStrictEqual(bare, wanted), () => `an append answers ${show(answer)}, not ${show(expected)}`);
  expected.events.forEach(({ id }, at) =>
    game.hold(
      id === null || id === answer.events[at].id,
      () => `an append answers the id ${answer.events[at].id}, not ${id}`,
    ),
  );
}

async function appendEvents(game, dice, { agent, session, of }, { parentId, ...more } = {}) {
  if (session.events.size >= MAX_EVENTS) return await clear(game, dice, { agent, session, of });
  const events = newEvents(game, dice);
  const body = { sessionId: session.id, events, ...(parentId !== undefined && { parentId }), ...more };
  let expected;
  const apply = (model, answer) => (expected = of(model).appendEvents(events, parentId, answer));
  const answer = await game.write(agent, "appendEvents", body, apply, {
    dice,
    rows: rowsOf(game, agent, session, events, parentId),
  });
  if (answer) holdAppended(game, answer, expected);
  return { body, apply };
}

move(
  14,
  "appendEvents",
  withSession((game, dice, at) => appendEvents(game, dice, at)),
);

move(
  5,
  "appendEvents to a place",
  withSession(async (game, dice, at) => {
    const seq = place(dice, at.session);
    await appendEvents(game, dice, at, { parentId: dice.one(8) ? null : at.session.idOf(seq) });
  }),
);

move(
  3,
  "appendEvents with the leaf",
  withSession(async (game, dice, at) => {
    const { agent, session } = at;
    const leaf = session.idOf(session.leaf);
    if (!dice.one(2)) return await appendEvents(game, dice, at, { expectedLeafId: leaf });
    const wrong = dice.pick([...session.ids, "nobody", null].filter((id) => id !== leaf));
    await game.write(
      agent,
      "appendEvents",
      { sessionId: session.id, expectedLeafId: wrong, events: newEvents(game, dice) },
      () => {},
      { refused: ["leaf_moved"], dice },
    );
  }),
);

move(
  3,
  "appendEvents again",
  withSession(async (game, dice, at) => {
    const { agent, session, of } = at;
    const known = [...session.events.values()].filter(({ message }) => message === undefined);
    if (known.length === 0) return;
    // A retry whose ids are all there writes nothing.
    const events = Array.from({ length: 1 + dice.roll(3) }, () => dice.pick(known)).map(
      ({ id, action, content, toolCalls, toolCallId, toolName }) => ({
        id,
        action,
        content,
        toolCalls,
        toolCallId,
        toolName,
      }),
    );
    let expected;
    const answer = await game.write(
      agent,
      "appendEvents",
      { sessionId: session.id, events },
      (model, answer) => (expected = of(model).appendEvents(events, undefined, answer)),
      { dice, rows: { written: 0 } },
    );
    if (answer) holdAppended(game, answer, expected);
  }),
);

move(
  2,
  "three equal appends at once",
  withSession(async (game, dice, { agent, session, of }) => {
    if (session.events.size >= MAX_EVENTS) return;
    const events = newEvents(game, dice).map((event) => ({ ...event, id: `e${game.word()}` }));
    const body = { sessionId: session.id, events };
    const answers = await Promise.all([1, 2, 3].map(() => game.driver.request(agent, "appendEvents", body)));
    await takeAll(game, agent, "appendEvents", body, answers, (model, answer) =>
      of(model).appendEvents(events, undefined, answer),
    );
    const inserted = answers.filter(({ body }) => body.events?.every((event) => event.inserted));
    game.hold(inserted.length === 1, () => `of three equal appends ${inserted.length} wrote: ${show(answers)}`);
  }),
);

move(2, "three equal requests at once", async (game, dice) => {
  const { agent, session, of } = await someSession(game, dice);
  if (session === null || session.events.size >= MAX_EVENTS || game.agents[agent].sessions.length >= MAX_SESSIONS)
    return;
  const said = message(`m${game.word()}`, "user", textFor(game, dice));
  const id = `s${game.word()}`;
  const [operation, body, apply, wins] = dice.pick([
    ["createSession", { id }, (model) => model.create({ id }), ({ status }) => status === 200],
    [
      "appendMessage",
      { sessionId: session.id, message: said },
      (model) => of(model).appendEvents([messageEvent(said)]),
      ({ body }) => body.inserted,
    ],
    [
      "upsertMessage",
      { sessionId: session.id, message: said },
      (model) => of(model).appendEvents([messageEvent(said)]),
      ({ body }) => body.inserted,
    ],
    ["deleteSession", { sessionId: session.id }, (model) => model.delete(session.id), ({ body }) => body.deleted],
  ]);
  const answers = await Promise.all([1, 2, 3].map(() => game.driver.request(agent, operation, body)));
  const won = answers.filter(wins);
  game.hold(won.length === 1, () => `of three equal ${operation} ${won.length} did it: ${show(answers)}`);
  const refused = answers.filter(({ status }) => status !== 200);
  game.hold(
    refused.every(({ body }) => body.error.code === "already_exists"),
    () => show(answers),
  );
  await game.take(agent, operation, body, apply, won[0]);
});

move(
  2,
  "a race on the leaf",
  withSession(async (game, dice, { agent, session, of }) => {
    if (session.events.size >= MAX_EVENTS) return;
    const bodies = [1, 2, 3].map(() => ({
      sessionId: session.id,
      expectedLeafId: session.idOf(session.leaf),
      events: [{ action: "user_message", content: textFor(game, dice) }],
    }));
    const answers = await Promise.all(bodies.map((body) => game.driver.request(agent, "appendEvents", body)));
    const won = answers.findIndex(({ status }) => status === 200);
    game.hold(
      answers.filter(({ status }) => status === 200).length === 1,
      () => `of three that expected one leaf not one wrote: ${show(answers)}`,
    );
    game.hold(
      answers.every(({ status, body }) => status === 200 || body.error.code === "leaf_moved"),
      () => show(answers),
    );
    await game.take(
      agent,
      "appendEvents",
      bodies[won],
      (model, answer) => of(model).appendEvents(bodies[won].events, undefined, answer),
      answers[won],
    );
  }),
);

async function takeAll(game, agent, operation, body, answers, apply) {
  for (const answer of answers) await game.take(agent, operation, body, apply, answer);
}

move(
  3,
  "what an append refuses",
  withSession(async (game, dice, { agent, session }) => {
    const [body, refused] = dice.pick([
      [{ events: [] }, "invalid_request"],
      [{ events: [{ action: "tool_result", content: "x" }] }, "invalid_request"],
      [
        {
          events: [
            { action: "user_message", content: "whole" },
            { action: "nothing", content: "x" },
          ],
        },
        "invalid_request",
      ],
      [{ events: [{ action: "user_message", content: 7 }] }, "invalid_request"],
      [{ parentId: "nobody", events: [{ action: "user_message", content: "x" }] }, "message_not_found"],
      [
        {
          events: [
            { action: "user_message", content: "one" },
            { action: "user_message", content: "two", parentId: "nobody" },
          ],
        },
        "message_not_found",
      ],
      [{ events: [{ action: "user_message", content: "x", id: "" }] }, "invalid_request"],
      [{ events: [{ action: "user_message", content: "x", id: "y".repeat(201) }] }, "invalid_request"],
      [{ evnts: [] }, "invalid_request"],
      [
        { events: [{ action: "tool_call_request", toolCalls: [{ id: "c", name: "t", arguments: "x" }] }] },
        "invalid_request",
      ],
    ]);
    await game.write(agent, "appendEvents", { sessionId: session.id, ...body }, () => {}, { refused: [refused], dice });
  }),
);

move(
  3,
  "deleteEvents",
  withSession(async (game, dice, { agent, session, of }) => {
    const seqs = [...session.events.keys()];
    const gone = new Set(Array.from({ length: Math.min(seqs.length, 1 + dice.roll(2)) }, () => dice.pick(seqs)));
    const eventIds = [...[...gone].map((seq) => session.idOf(seq)), ...(dice.one(3) ? ["nobody"] : [])];
    const answer = await game.write(
      agent,
      "deleteEvents",
      { sessionId: session.id, eventIds },
      (model) => of(model).delete([...gone]),
      { dice },
    );
    if (answer) game.hold(answer.deleted === gone.size, () => `deleteEvents ${eventIds} answers ${show(answer)}`);
  }),
);

// Messages

move(
  5,
  "appendMessage",
  withSession(async (game, dice, at) => {
    const { agent, session, of } = at;
    if (session.events.size >= MAX_EVENTS) return await clear(game, dice, at);
    const role = dice.pick(["user", "user", "assistant", "system"]);
    const id = `m${game.word()}`;
    const parts =
      role === "assistant" && dice.one(2)
        ? [toolPart(game, dice)]
        : role === "user" && dice.one(4)
          ? [filePart(dice)]
          : [];
    const long = dice.one(40) ? ` ${"long ".repeat(dice.one(3) ? 450_000 : 20_000)}` : "";
    const said = message(id, role, textFor(game, dice) + long, parts);
    const parent = dice.one(3) ? place(dice, session) : undefined;
    const parentId = parent === undefined ? undefined : session.idOf(parent);
    const operation = dice.one(3) ? "upsertMessage" : "appendMessage";
    const body = { sessionId: session.id, message: said, ...(parentId !== undefined && { parentId }) };
    const apply = (model) => of(model).appendEvents([messageEvent(said)], parentId);
    const answer = await game.write(agent, operation, body, apply, { dice });
    if (!answer) return;
    game.hold(answer.inserted && sameMessage(answer.message, said), () => `${operation} answers ${show(answer)}`);
    if (dice.one(3)) {
      const again = await game.write(agent, "appendMessage", body, () => {}, { dice, rows: { written: 0 } });
      if (again)
        game.hold(
          !again.inserted && sameMessage(again.message, said),
          () => `appendMessage again answers ${show(again)}`,
        );
    }
  }),
);

function toolPart(game, dice) {
  const toolCallId = `call_${dice.roll(2)}`;
  const done = dice.one(4)
    ? { state: "input-available" }
    : { state: "output-available", output: { said: textFor(game, dice) } };
  return { type: "tool-weather", toolCallId, input: { city: game.word() }, ...done };
}

/** One of a few pictures, so that sessions hold some of them twice. */
function filePart(dice) {
  const bytes = dice.pick(["A", "B", "Q"]).repeat(4_000);
  return { type: "file", mediaType: "image/png", url: `data:image/png;base64,${bytes}` };
}

const messageEvent = (said) => ({
  id: said.id,
  action: { user: "user_message", system: "system_instruction", assistant: "agent_message" }[said.role],
  content: textOf(said),
  message: said,
});

/** Whether a stored message is the one that was written, plus its time. */
function sameMessage(stored, said) {
  const { createdAt, ...rest } = stored ?? {};
  return Number.isInteger(createdAt) && isDeepStrictEqual(rest, said);
}

move(
  3,
  "updateMessage",
  withSession(async (game, dice, { agent, session, of }) => {
    const seqs = messageStarts(session).filter((seq) => session.events.get(seq).action !== "compaction");
    if (seqs.length === 0 || dice.one(8)) {
      const answer = await game.write(
        agent,
        "updateMessage",
        { sessionId: session.id, message: message("nobody", "user", "x") },
        () => {},
        { dice, rows: { written: 0 } },
      );
      game.hold(answer === null, () => `updateMessage of nobody answers ${show(answer)}`);
      return;
    }
    const seq = dice.pick(seqs);
    const run = session.messageAt(seq);
    const { role } = session.view(run);
    const said = message(
      session.idOf(seq),
      role,
      textFor(game, dice),
      role === "assistant" && dice.one(3) ? [toolPart(game, dice)] : [],
    );
    const operation = dice.one(3) ? "upsertMessage" : "updateMessage";
    const answer = await game.write(
      agent,
      operation,
      { sessionId: session.id, message: said },
      (model) => of(model).replace(of(model).messageAt(seq), said),
      { dice },
    );
    if (!answer) return;
    const stored = operation === "updateMessage" ? answer : answer.message;
    game.hold(sameMessage(stored, said), () => `${operation} answers ${show(answer)}`);
    if (dice.one(2))
      await game.write(agent, "updateMessage", { sessionId: session.id, message: said }, () => {}, {
        dice,
        rows: { written: 0 },
      });
  }),
);

move(
  2,
  "deleteMessages",
  withSession(async (game, dice, { agent, session, of }) => {
    const seqs = messageStarts(session);
    if (seqs.length === 0) return;
    const seq = dice.pick(seqs);
    const answer = await game.write(
      agent,
      "deleteMessages",
      { sessionId: session.id, messageIds: [session.idOf(seq), "nobody"] },
      (model) => of(model).delete(of(model).messageAt(seq)),
      { dice },
    );
    if (answer) game.hold(answer.deleted >= 1, () => `deleteMessages answers ${show(answer)}`);
  }),
);

async function clear(game, dice, { agent, session, of }) {
  await game.write(agent, "clearMessages", { sessionId: session.id }, (model) => of(model).clear(), { dice });
}

move(
  1,
  "clearMessages",
  withSession(async (game, dice, at) => {
    if (dice.one(3)) await clear(game, dice, at);
  }),
);

// Overlays

move(
  3,
  "addCompaction",
  withSession(async (game, dice, { agent, session, of }) => {
    const to = place(dice, session);
    if (to === 0 || session.overlays.length > 20) return;
    const from = dice.pick(session.path(to));
    const summary = `Summary ${game.word()}`;
    const body = { sessionId: session.id, summary, fromId: session.idOf(from), toId: session.idOf(to) };
    const apply = (model, answer) => {
      const at = of(model);
      // At its edges an overlay takes messages whole.
      const first = at.messageStart(from);
      const last = at.messageAt(at.messageStart(to)).at(-1);
      at.overlays.push({
        id: answer?.id ?? null,
        summary,
        from: first,
        to: last,
        above: at.events.get(first).parent,
        number: Math.max(0, ...at.overlays.map(({ number }) => number)) + 1,
      });
    };
    await game.write(agent, "addCompaction", body, apply, { dice });
  }),
);

move(
  1,
  "addCompaction across paths",
  withSession(async (game, dice, { agent, session }) => {
    const to = place(dice, session);
    const others = to === 0 ? [] : [...session.events.keys()].filter((seq) => !session.path(to).includes(seq));
    if (others.length === 0) return;
    const body = {
      sessionId: session.id,
      summary: "x",
      fromId: session.idOf(dice.pick(others)),
      toId: session.idOf(to),
    };
    await game.write(agent, "addCompaction", body, () => {}, { refused: ["invalid_request"], dice });
  }),
);

move(
  1,
  "deleteCompaction",
  withSession(async (game, dice, { agent, session, of }) => {
    const known = session.overlays.filter(({ id }) => id !== null);
    const compactionId = known.length === 0 || dice.one(5) ? "nobody" : dice.pick(known).id;
    const apply = (model) => (of(model).overlays = of(model).overlays.filter(({ id }) => id !== compactionId));
    const answer = await game.write(agent, "deleteCompaction", { sessionId: session.id, compactionId }, apply, {
      dice,
    });
    if (answer)
      game.hold(
        answer.deleted === (compactionId !== "nobody"),
        () => `deleteCompaction ${compactionId} answers ${show(answer)}`,
      );
  }),
);

move(
  1,
  "configureCompaction",
  withSession(async (game, dice, { agent, session, of }) => {
    const settings = dice.pick([
      { protectHead: dice.roll(5) },
      { tailTokenBudget: 1 + dice.roll(50) },
      { minTailMessages: 1 + dice.roll(4) },
      { compactAfter: null },
    ]);
    await game.write(
      agent,
      "configureCompaction",
      { sessionId: session.id, ...settings },
      (model) => Object.assign(of(model).settings, settings),
      { dice },
    );
  }),
);

move(
  1,
  "compact",
  withSession(async (game, dice, at) => {
    const { agent, session } = at;
    if (dice.one(2)) return await game.read(agent, "compact", { sessionId: session.id, dryRun: true });
    await game.look(agent, "compact", { sessionId: session.id });
    await adoptOverlays(game, agent, session);
  }),
);

/** Takes over the overlays that the agent made by itself, if they cover ranges of paths. */
async function adoptOverlays(game, agent, session) {
  const { compactions } = await game.read(agent, "getCompactions", { sessionId: session.id });
  const known = new Map(session.overlays.map((overlay) => [overlay.id, overlay]));
  let number = Math.max(0, ...session.overlays.map((overlay) => overlay.number));
  session.overlays = compactions.map(({ id, fromId, toId, summary }) => {
    if (known.has(id)) return known.get(id);
    const [from, to] = [session.seqOf(fromId), session.seqOf(toId)];
    game.hold(
      to !== 0 && session.path(to).includes(from),
      () => `the compaction ${id} covers no path: ${fromId} to ${toId}`,
    );
    number += 1;
    return { id, summary, from, to, above: session.events.get(from).parent, number };
  });
  const spent = await game.read(agent, "getSession", { sessionId: session.id });
  Object.assign(session.usage, {
    inputTokens: spent.usage.inputTokens,
    outputTokens: spent.usage.outputTokens,
    cost: spent.usage.cost,
  });
}

// Context memory

/** The agent's memory or a session's. */
async function someMemory(game, dice) {
  const { agent, session } = await someSession(game, dice);
  if (session === null || dice.one(3))
    return { agent, scope: {}, memory: game.agents[agent].memory, of: (model) => model.memory };
  return {
    agent,
    scope: { sessionId: session.id },
    memory: session.memory,
    of: (model) => model.find(session.id).memory,
  };
}

const withMemory = (make) => async (game, dice) => await make(game, dice, await someMemory(game, dice));

async function defineBlock(game, dice, { agent, scope, of }, label) {
  const definition = {
    label,
    kind: LABELS[label],
    description: dice.one(2) ? `About ${game.word()}` : null,
    maxTokens: dice.one(2) ? 500 : null,
    defaultContent: dice.one(2) && ["readonly", "writable"].includes(LABELS[label]) ? `Begin ${game.word()}` : null,
  };
  const body = { ...scope, ...Object.fromEntries(Object.entries(definition).filter(([, value]) => value !== null)) };
  await game.write(agent, "defineBlock", body, (model) => void of(model).blocks.set(label.toLowerCase(), definition), {
    dice,
  });
}

move(
  3,
  "defineBlock",
  withMemory((game, dice, at) => defineBlock(game, dice, at, dice.pick(Object.keys(LABELS)))),
);

move(
  1,
  "removeBlock",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    const label = dice.pick(Object.keys(LABELS));
    const purge = dice.one(3);
    const apply = (model) => {
      of(model).blocks.delete(label.toLowerCase());
      if (purge) of(model).contents.delete(label.toLowerCase());
    };
    await game.write(agent, "removeBlock", { ...scope, label, ...(purge && { purge }) }, apply, { dice });
    void memory;
  }),
);

move(
  5,
  "setBlock",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    const block = memory.block("notes");
    if (block === undefined) {
      await game.write(agent, "setBlock", { ...scope, label: "notes", content: "x" }, () => {}, {
        refused: ["block_not_found"],
        dice,
      });
      return await defineBlock(game, dice, { agent, scope, of }, "notes");
    }
    const { version } = memory.holds("notes");
    const appends = dice.one(3);
    const content = dice.one(6) ? memory.text("notes") : appends ? ` ${game.word()}` : textFor(game, dice);
    const operation = appends ? "appendToBlock" : "setBlock";
    const text = appends ? memory.text("notes") + content : content;
    if (dice.one(6)) {
      const body = { ...scope, label: "notes", content: game.word(), expectedVersion: version + 1 };
      return await game.write(agent, operation, body, () => {}, { refused: ["version_conflict"], dice });
    }
    if (dice.one(8) && block.maxTokens !== null) {
      return await game.write(
        agent,
        "setBlock",
        { ...scope, label: "notes", content: "word ".repeat(3_000) },
        () => {},
        { refused: ["block_over_budget"], dice },
      );
    }
    if (block.maxTokens !== null && text.length > block.maxTokens) return;
    const body = { ...scope, label: "notes", content, ...(dice.one(2) && { expectedVersion: version }) };
    const answer = await game.write(agent, operation, body, (model) => of(model).write("notes", text), { dice });
    if (answer) game.hold(answer.content === text, () => `${operation} answers ${show(answer)}, not ${show(text)}`);
  }),
);

move(
  2,
  "revertBlock",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    const { version, texts } = memory.holds("notes");
    if (memory.block("notes") === undefined || version === 0) return;
    const { versions } = await game.read(agent, "getBlockVersions", { ...scope, label: "notes" });
    const newest = texts.slice(-50).reverse();
    game.hold(
      versions.length === newest.length &&
        versions.every((one, at) => one.content === newest[at] && one.version === version - at),
      () => `getBlockVersions answers ${show(versions)}, not ${show(newest)}`,
    );
    const back = versions[dice.roll(versions.length)];
    await game.write(
      agent,
      "revertBlock",
      { ...scope, label: "notes", version: back.version },
      (model) => of(model).write("notes", back.content),
      { dice },
    );
  }),
);

move(
  1,
  "clearBlocks",
  withMemory(async (game, dice, { agent, scope, of }) => {
    const apply = (model) => {
      for (const [key, { kind, defaultContent }] of of(model).blocks)
        if (kind === "writable") of(model).write(key, defaultContent ?? "");
    };
    await game.write(agent, "clearBlocks", scope, apply, { dice });
  }),
);

const KEYS = ["a", "b", "key c", "é/d"];

move(
  4,
  "entries and documents",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    const label = dice.pick(["kb", "skills"]);
    const key = dice.pick(KEYS);
    const [put, remove] = label === "kb" ? ["setEntry", "deleteEntry"] : ["putSkill", "deleteSkill"];
    const items = (model) => of(model).holds(label).items;
    if (memory.block(label) === undefined) {
      await game.write(agent, put, { ...scope, label, key, content: "x" }, () => {}, {
        refused: ["block_not_found"],
        dice,
      });
      return await defineBlock(game, dice, { agent, scope, of }, label);
    }
    if (dice.one(4)) {
      const isThere = memory.holds(label).items.has(key);
      const answer = await game.write(
        agent,
        remove,
        { ...scope, label, key },
        (model) => void (label === "kb" ? removeFact(items(model), key) : items(model).delete(key)),
        { dice },
      );
      if (answer) game.hold(answer.deleted === isThere, () => `${remove} ${key} answers ${show(answer)}`);
      return;
    }
    const content = textFor(game, dice);
    const others = [...memory.holds(label).items.keys()].filter((other) => other !== key);
    const supersedes = label === "kb" && others.length > 0 && dice.one(3) ? [dice.pick(others)] : undefined;
    const apply = (model) =>
      void (label === "kb" ? putFact(items(model), key, content, supersedes) : items(model).set(key, { content }));
    await game.write(agent, put, { ...scope, label, key, content, ...(supersedes && { supersedes }) }, apply, { dice });
    if (label === "kb") await findEntry(game, dice, { agent, scope, memory: of(game.agents[agent]) });
  }),
);

/** A search finds a fact as current unless a later write replaced it, whatever the clock did. */
async function findEntry(game, dice, { agent, scope, memory }) {
  const { items } = memory.holds("kb");
  if (items.size === 0) return;
  const [key, { content, replacedBy, isUnsure }] = dice.pick([...items]);
  const { results } = await game.read(agent, "searchContext", {
    ...scope,
    label: "kb",
    query: content.split(/\s/)[0],
    limit: 100,
  });
  const isFound = results.some((entry) => entry.key === key);
  game.hold(
    isUnsure || isFound === (replacedBy === null),
    () =>
      `searchContext for ${show(content)} finds ${show(results)}; ${key} is ${replacedBy === null ? "current" : `replaced by ${replacedBy}`}`,
  );
}

move(
  1,
  "loadSkill",
  withSession(async (game, dice, { agent, session }) => {
    const { memory } = session;
    if (memory.block("skills") === undefined || memory.holds("skills").items.size === 0) return;
    const key = dice.pick([...memory.holds("skills").items.keys()]);
    const answer = await game.look(agent, dice.one(2) ? "loadSkill" : "unloadSkill", {
      sessionId: session.id,
      label: "skills",
      key,
    });
    game.hold(answer.status === 200, () => `a document that is there: ${show(answer)}`);
  }),
);

move(
  2,
  "freezePrompt",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    if (dice.one(3)) {
      const { prompt } = await game.read(agent, "renderPrompt", scope);
      const apply = (model, answer) =>
        (of(model).frozen = answer
          ? { prompt: answer.prompt, hash: answer.hash, frozenAt: answer.frozenAt }
          : undefined);
      const answer = await game.write(agent, "refreshPrompt", scope, apply, { dice });
      if (answer)
        game.hold(answer.prompt === prompt, () => `refreshPrompt says ${show(answer.prompt)}, not ${show(prompt)}`);
      return;
    }
    const { frozen } = memory;
    const apply = (model, answer) =>
      (of(model).frozen = answer ? { prompt: answer.prompt, hash: answer.hash, frozenAt: answer.frozenAt } : undefined);
    const answer = await game.write(agent, "freezePrompt", scope, apply, { dice });
    if (!answer) of(game.agents[agent]).frozen = frozen ?? undefined;
    else if (frozen)
      game.hold(
        answer.prompt === frozen.prompt && answer.hash === frozen.hash && answer.frozenAt === frozen.frozenAt,
        () => `the frozen prompt changed: ${show(answer)}, not ${show(frozen)}`,
      );
  }),
);

move(
  1,
  "callTool",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    const block = memory.block("notes");
    const isOwn = scope.sessionId !== undefined || block !== undefined;
    if (block === undefined || !isOwn) return;
    const text = `Noted ${game.word()}`;
    const apply = (model) => of(model).write("notes", text);
    const answer = await game.write(
      agent,
      "callTool",
      { ...scope, name: "set_context", arguments: { label: "notes", content: text } },
      apply,
      { dice },
    );
    if (answer) game.hold(!answer.isError, () => `callTool answers ${show(answer)}`);
  }),
);

move(
  2,
  "persistWorkingContext",
  withSession(async (game, dice, { agent, session, of }) => {
    if (session.events.size >= MAX_EVENTS) return;
    const id = "call_0";
    const said = [
      { role: "user", content: textFor(game, dice) },
      { role: "assistant", content: "", toolCalls: [{ id, name: "look_up", arguments: { word: game.word() } }] },
      { role: "tool", content: textFor(game, dice), toolCallId: id, toolName: "look_up" },
      { role: "assistant", content: textFor(game, dice) },
    ].slice(0, dice.pick([1, 3, 4]));
    const events = said.map(({ role, content, toolCalls, toolCallId, toolName }) =>
      role === "user"
        ? { action: "user_message", content }
        : toolCalls
          ? { action: "tool_call_request", toolCalls }
          : role === "tool"
            ? { action: "tool_result", toolCallId, toolName, content }
            : { action: "agent_message", content },
    );
    const body = {
      sessionId: session.id,
      messages: said,
      ...(dice.one(2) && { expectedLeafId: session.idOf(session.leaf) }),
    };
    let expected;
    const apply = (model, answer) => (expected = of(model).appendEvents(events, undefined, answer));
    const answer = await game.write(agent, "persistWorkingContext", body, apply, {
      dice,
      rows: rowsOf(game, agent, session, events),
    });
    if (answer) holdAppended(game, answer, expected);
  }),
);

move(
  3,
  "what operations refuse",
  withSession(async (game, dice, { agent, session }) => {
    const sessionId = session.id;
    const said = message("m", "user", "x");
    const [operation, body] = dice.pick([
      [
        "appendEvents",
        {
          sessionId: dice.pick([7, {}, [], null, "", "y".repeat(201)]),
          events: [{ action: "user_message", content: "x" }],
        },
      ],
      ["appendEvents", { sessionId, events: dice.pick(["x", 7, {}, null, [7]]) }],
      [
        "appendMessage",
        {
          sessionId,
          message: dice.pick([7, null, [], { ...said, role: "nobody" }, { ...said, parts: "x" }, { ...said, id: 7 }]),
        },
      ],
      ["updateMessage", { sessionId, message: { ...said, parts: [7] } }],
      ["getHistory", { sessionId, limit: dice.pick([0, -1, 1001, "5", 1.5]) }],
      ["getHistory", { sessionId, before: "no cursor" }],
      ["loadEvents", { sessionId, actions: ["nothing"] }],
      ["deleteEvents", { sessionId, eventIds: "x" }],
      ["addUsage", { sessionId, inputTokens: dice.pick([-1, 1.5, "1"]) }],
      ["createSession", { metadata: dice.pick([7, [], "x"]) }],
      ["createSession", { id: dice.pick([7, "", "y".repeat(201)]) }],
      ["addCompaction", { sessionId, summary: "", fromId: "a", toId: "b" }],
      ["defineBlock", { label: dice.pick(["", "y".repeat(65), 7]), kind: "writable" }],
      ["defineBlock", { label: "notes", kind: "nothing" }],
      ["buildWorkingContext", { sessionId, format: "nothing" }],
      ["getChanges", { sessionId, limit: 0 }],
      ["search", { query: 7 }],
      ["runTurn", { sessionId, message: { ...said, role: "assistant" } }],
      ["configureCompaction", { sessionId, protectHead: -1 }],
    ]);
    await game.write(agent, operation, body, () => {}, { refused: ["invalid_request"], dice });
  }),
);

// Reads

move(
  6,
  "read a session",
  withSession(async (game, dice, { agent, session }) => {
    const seq = dice.one(2) ? session.leaf : place(dice, session) || session.leaf;
    if (seq === 0) {
      const { messages } = await game.read(agent, "getHistory", { sessionId: session.id });
      return game.hold(messages.length === 0, () => `an empty session shows ${show(messages)}`);
    }
    const sessionId = session.id;
    const leafId = session.idOf(seq);
    const expected = session.history(seq);
    const messages = [];
    const limit = 1 + dice.roll(7);
    for (let before = null; ; ) {
      const page = await game.read(agent, "getHistory", { sessionId, leafId, limit, ...(before && { before }) });
      messages.unshift(...page.messages);
      before = page.cursor;
      game.hold(
        page.messages.length <= limit && page.truncated === (before !== null),
        () => `a page of ${limit}: ${show(page)}`,
      );
      if (before === null) break;
    }
    holdMessages(game, messages, expected);
    const length = session.history(seq, { withOverlays: false }).length;
    const counted = await game.read(agent, "getPathLength", { sessionId, leafId });
    game.hold(counted.length === length, () => `getPathLength ${leafId} answers ${counted.length}, not ${length}`);
    const shown = dice.roll(expected.length);
    if (expected[shown].seqs === undefined) return;
    const { seqs, id } = expected[shown];
    const isWhole = isDeepStrictEqual(session.messageAt(seqs[0]), seqs);
    // Only a path that leaves a message shows a part of it: the leaf is inside it, or a user went
    // on before a result came.
    const next = session.path(seq)[session.path(seq).indexOf(seqs.at(-1)) + 1];
    game.hold(
      isWhole || next === undefined || !session.isRun(next),
      () => `the history of ${leafId} shows ${seqs} as ${id}, whose events are ${session.messageAt(seqs[0])}`,
    );
    if (isWhole) {
      const single = await game.read(agent, "getMessage", { sessionId, messageId: id });
      game.hold(
        isDeepStrictEqual(single, messages[shown]),
        () => `getMessage ${id} answers ${show(single)}, and the history has ${show(messages[shown])}`,
      );
      const branches = await game.read(agent, "getBranches", { sessionId, messageId: id });
      const children = session.children(seqs.at(-1)).map((child) => session.idOf(child));
      game.hold(
        isDeepStrictEqual(
          branches.messages.map((one) => one.id),
          children,
        ),
        () => `getBranches ${id} answers ${show(branches.messages.map((one) => one.id))}, not ${children}`,
      );
    }
  }),
);

function holdMessages(game, messages, expected) {
  const ids = messages.map(({ id }) => id);
  game.hold(
    isDeepStrictEqual(
      ids,
      expected.map(({ id }) => id),
    ),
    () => `the history shows ${ids}, not ${expected.map(({ id }) => id)}`,
  );
  expected.forEach(({ overlay, role, text, calls }, at) => {
    const found = messages[at];
    game.hold(textOf(found) === text, () => `message ${found.id} says ${show(textOf(found))}, not ${show(text)}`);
    if (overlay) return;
    game.hold(found.role === role, () => `message ${found.id} is of ${found.role}, not ${role}`);
    const told = callsOf(found).map(({ id, output }) => [id, output]);
    const wanted = calls.map(({ id, output }) => [id, output]);
    game.hold(
      isDeepStrictEqual(told, wanted),
      () => `message ${found.id} has the calls ${show(told)}, not ${show(wanted)}`,
    );
  });
}

move(
  5,
  "buildWorkingContext",
  withSession(async (game, dice, { agent, session }) => {
    const seq = dice.one(2) ? session.leaf : place(dice, session) || session.leaf;
    const format = dice.pick([undefined, "openai", "anthropic", "workers-ai"]);
    const limit = 1 + dice.roll(dice.one(2) ? 6 : 60);
    const maxTokens = dice.one(2) ? 1_500 + dice.roll(6_000) : undefined;
    const body = {
      sessionId: session.id,
      limit,
      ...(format && { format }),
      ...(maxTokens && { maxTokens }),
      ...(seq !== 0 && { leafId: session.idOf(seq) }),
      ...(dice.one(3) && session.memory.frozen && game.agents[agent].memory.frozen && { memory: true }),
    };
    const context = await game.read(agent, "buildWorkingContext", body);
    const wrong = unpaired(context.messages, SHAPES.plain);
    game.hold(wrong === null, () => `buildWorkingContext ${show(body)}: ${wrong}: ${show(context.messages)}`);
    if (format !== undefined) {
      const wrong = unpaired(context.modelInput.messages, SHAPES[format]);
      game.hold(
        wrong === null,
        () => `buildWorkingContext ${show(body)}: ${wrong}: ${JSON.stringify(context.modelInput.messages)}`,
      );
    }
    game.hold(context.leafId === session.idOf(seq), () => `the context's leaf is ${context.leafId}`);
    if (maxTokens !== undefined)
      game.hold(
        context.tokensEstimate <= maxTokens,
        () => `a context of ${context.tokensEstimate} tokens, for ${maxTokens}`,
      );
    const newest = seq === 0 ? undefined : session.history(seq).at(-1);
    if (newest?.role === "user" && newest.text.trim() !== "")
      game.hold(
        JSON.stringify(context.messages).includes(newest.text.split(/\s/)[0]),
        () => `the newest message ${show(newest.text)} is not in its context ${show(context.messages)}`,
      );
  }),
);

move(
  2,
  "search",
  withSession(async (game, dice, { agent, session }) => {
    const { sessions } = game.agents[agent];
    const said = [...session.events.values()].filter(({ content }) => /\bw[0-9a-z]+q\b/u.test(content ?? ""));
    if (said.length === 0) return;
    const [word] = dice.pick(said).content.match(/\bw[0-9a-z]+q\b/u);
    const narrowed = dice.one(2);
    let found;
    do {
      found = await game.read(agent, "search", { query: word, limit: 100, ...(narrowed && { sessionId: session.id }) });
      game.agents[agent].isSearched = true;
    } while (found.pending);
    const says = (event) =>
      new RegExp(`\\b${word}\\b`, "u").test(JSON.stringify([event.content, event.toolCalls, event.message?.parts]));
    const expected = sessions
      .filter((one) => !narrowed || one === session)
      .flatMap((one) => [...one.events].filter(([, event]) => says(event)).map(([seq]) => `${one.id}/${one.idOf(seq)}`))
      .sort();
    const hits = found.results.map(({ sessionId, id }) => `${sessionId}/${id}`).sort();
    game.hold(isDeepStrictEqual(hits, expected), () => `search ${word} finds ${hits}, not ${expected}`);
  }),
);

move(
  4,
  "follow the feed",
  withSession(async (game, dice, { agent, session }) => {
    const key = `${agent} ${session.id}`;
    if (game.followers.get(key)?.session !== session.born) game.followers.delete(key);
    let follower = game.followers.get(key) ?? { cursor: 0, messages: new Map(), session: session.born };
    game.followers.set(key, follower);
    const sessionId = session.id;
    const limit = 1 + dice.roll(20);
    for (;;) {
      const page = await game.look(agent, "getChanges", { sessionId, since: follower.cursor, limit });
      game.hold(page.status === 200, () => `getChanges answers ${show(page.body)}`);
      // In another life of the session, a follower is told to drop its copy, and then everything.
      const [first] = page.body.changes;
      if (first?.type === "clear" && first.cursor <= follower.cursor) {
        game.hold(follower.cursor !== 0, () => "the feed begins with a clear");
        follower = { cursor: first.cursor - 1, messages: new Map(), session: session.born };
        game.followers.set(key, follower);
      }
      for (const { cursor, type, id } of page.body.changes) {
        game.hold(cursor > follower.cursor, () => `the feed's cursor goes from ${follower.cursor} to ${cursor}`);
        follower.cursor = cursor;
        if (type === "clear") follower.messages.clear();
        else if (type === "delete") follower.messages.delete(id);
        else if (type !== "compaction") {
          const read = await game.read(agent, "getMessage", { sessionId, messageId: id });
          if (read === null) follower.messages.delete(id);
          else follower.messages.set(id, read);
        }
      }
      if (page.body.changes.length === 0) break;
    }
    const messages = new Map();
    for (const id of session.ids) {
      const read = await game.read(agent, "getMessage", { sessionId, messageId: id });
      if (read !== null) messages.set(id, read);
    }
    const sorted = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
    game.hold(
      isDeepStrictEqual(sorted(follower.messages), sorted(messages)),
      () => `a follower of the feed has ${show(sorted(follower.messages))}, and the session ${show(sorted(messages))}`,
    );
  }),
);

move(3, "look at all", async (game, dice) => await game.audit(dice.roll(AGENTS)));

// Whole sessions and agents

move(
  2,
  "export and import",
  withSession(async (game, dice, { agent, session }) => {
    const file = await game.exported(agent, session.id);
    game.hold(file.status === 200, () => `export of ${session.id} answers ${show(file)}`);
    const to = dice.roll(AGENTS);
    if (game.agents[to].sessions.length >= MAX_SESSIONS) return;
    const cut = dice.one(4);
    const id = `i${game.word()}`;
    const text = cut ? file.body.slice(0, dice.roll(file.body.length - 1)) : file.body;
    const copy = session.copy(id);
    const fault = game.driver.can.fault && dice.one(3) ? dice.roll(60) : undefined;
    const answer = await game.imported(to, id, text, { fault });
    const apply = (model) => {
      const isOthers = !model.find(session.parentSessionId);
      void isOthers;
      const imported = copy.clone();
      imported.usageIds = new Set();
      model.sessions.push(imported);
    };
    await game.take(to, "import", { id }, apply, answer, { fault, refused: cut ? ["invalid_request"] : undefined });
    if (answer.status !== 200) return;
    const again = await game.imported(to, id, text);
    if (again.status !== 0)
      game.hold(again.status === 200 && again.body.imported === 0, () => `an import again answers ${show(again)}`);
    const back = await game.exported(to, id);
    game.hold(bodyOf(back.body) === bodyOf(file.body), () => `the export of an import is another file`);
  }),
);

/** A file without its first line, which names the session. */
function bodyOf(file) {
  return file.slice(file.indexOf("\n"));
}

move(1, "destroy", async (game, dice) => {
  if (!dice.one(10)) return;
  const agent = dice.roll(AGENTS);
  await game.write(agent, "destroy", { confirm: "somebody" }, () => {}, { refused: ["invalid_request"] });
  await game.write(agent, "destroy", { confirm: game.driver.agentName(agent) }, () => {
    game.agents[agent] = new game.agents[agent].constructor();
    for (const key of game.followers.keys()) if (key.startsWith(`${agent} `)) game.followers.delete(key);
  });
});

move(2, "eviction", async (game, dice) => await game.driver.evict(dice.roll(AGENTS)));

move(
  2,
  "the clock",
  async (game, dice) => await game.driver.advance(dice.one(4) ? -dice.roll(10_000) : dice.roll(5_000)),
  (driver) => driver.can.clock,
);

// Turns

move(
  4,
  "runTurn",
  withSession(async (game, dice, at) => {
    if (at.session.events.size >= MAX_EVENTS) return await clear(game, dice, at);
    await runTurn(game, dice, at);
  }),
);

async function runTurn(game, dice, { agent, session }) {
  const word = game.word();
  const steps = dice.roll(3);
  const dies = dice.one(4) ? ` dies at ${dice.roll(steps + 1)}` : "";
  const said = message(`t${game.word()}`, "user", `${steps} steps of ${1 + dice.roll(2)} calls ${word}${dies}`);
  const before = { leaf: session.leaf, lastSeq: session.lastSeq };
  const body = { sessionId: session.id, message: said };
  const answer = await game.turn(agent, body);
  game.hold(answer.status === 200, () => `runTurn ${show(body)} answers ${answer.status} ${show(answer.body)}`);
  await adoptTurn(game, agent, session, said, before, answer.body);
  if (dice.one(4)) {
    const again = await game.turn(agent, body);
    game.hold(
      again.status === 200 && isDeepStrictEqual(again.body.message, answer.body.message),
      () => `runTurn again answers ${show(again)}, not ${show(answer.body)}`,
    );
  }
}

move(
  2,
  "a turn and what others write meanwhile",
  withSession(async (game, dice, at) => {
    const { agent, session, of } = at;
    if (session.events.size >= MAX_EVENTS) return;
    const word = game.word();
    const steps = dice.roll(3);
    const said = message(`t${game.word()}`, "user", `${steps} steps of 1 calls ${word}`);
    const written = [];
    const ends = dice.one(8);
    const meanwhile = async () => {
      if (ends)
        return await game.write(agent, "deleteSession", { sessionId: session.id }, (model) => model.delete(session.id));
      for (let times = 1 + dice.roll(2); times > 0; times -= 1) {
        const olds = [...session.events.keys()];
        const alone = olds.filter((seq) => !session.isRun(seq) && session.events.get(seq).action !== "compaction");
        if (olds.length > 0 && dice.one(4)) {
          const seq = dice.pick(olds);
          await game.write(agent, "deleteEvents", { sessionId: session.id, eventIds: [session.idOf(seq)] }, (model) =>
            of(model).delete([seq]),
          );
          continue;
        }
        if (alone.length > 0 && dice.one(4)) {
          const seq = dice.pick(alone);
          const other = message(session.idOf(seq), session.view([seq]).role, textFor(game, dice));
          await game.write(agent, "updateMessage", { sessionId: session.id, message: other }, (model) =>
            of(model).replace([seq], other),
          );
          continue;
        }
        const event = { id: `n${game.word()}`, action: "user_message", content: textFor(game, dice) };
        const operation = dice.pick(["appendEvents", "appendMessage"]);
        const body =
          operation === "appendEvents" ? { events: [event] } : { message: message(event.id, "user", event.content) };
        await game.write(agent, operation, { sessionId: session.id, ...body }, () => written.push(event));
      }
    };
    game.meanwhile.set(`${word} ${dice.roll(steps + 1)}`, meanwhile);
    const answer = await game.turn(agent, { sessionId: session.id, message: said });
    if (ends) {
      game.hold(
        answer.status === 200 && answer.body.finishReason === "cancelled" && answer.body.message === null,
        () => `a turn whose session was deleted answers ${show(answer)}`,
      );
      return;
    }
    game.hold(answer.status === 200, () => `a turn with writes meanwhile answers ${show(answer)}`);
    await adoptLog(game, agent, session);
    // Nothing that was said leaves the conversation.
    const shown = new Set(session.path(session.leaf).map((seq) => session.idOf(seq)));
    for (const { id } of [said, ...written])
      game.hold(shown.has(id), () => `${id} was said while a turn ran, and the conversation has ${[...shown]}`);
    const last = session.events.get(session.leaf);
    game.hold(last.content === `Done ${word}.`, () => `the conversation ends with ${show(last)}`);
    Object.assign(session.usage, { inputTokens: null, outputTokens: null, cost: null });
    if (session.memory.frozen === null) session.memory.frozen = undefined;
  }),
  (driver) => driver.can.kill,
);

/** Takes over what the log holds, if what the model knew of it is unchanged. */
async function adoptLog(game, agent, session) {
  const events = await game.read(agent, "loadEvents", {
    sessionId: session.id,
    afterSeq: session.lastSeq,
    limit: 1000,
  });
  for (const { id, action, content, toolCalls, toolCallId, toolName, isError, parentId } of events) {
    const parent = session.seqOf(parentId);
    game.hold(parentId === null || parent !== 0, () => `event ${id} follows ${parentId}, which is not there`);
    const stored = await game.read(agent, "getMessage", { sessionId: session.id, messageId: id });
    const isMessage = action === "user_message" || action === "system_instruction";
    const fields = Object.fromEntries(
      Object.entries({ id, action, content, toolCalls, toolCallId, toolName, isError }).filter(
        ([, value]) => value !== undefined,
      ),
    );
    const { createdAt, ...rest } = stored ?? {};
    void createdAt;
    session.append(parent, isMessage ? { ...fields, message: rest } : fields);
  }
}

/** Takes over the events of a turn: the user's message, its calls and results, and the answer. */
async function adoptTurn(game, agent, session, said, before, answer) {
  const events = await game.read(agent, "loadEvents", { sessionId: session.id, afterSeq: before.lastSeq, limit: 1000 });
  const [first, ...run] = events;
  game.hold(
    first?.id === said.id && first.parentId === session.idOf(before.leaf),
    () => `a turn's log begins with ${show(first)}`,
  );
  game.hold(first.seq === before.lastSeq + 1, () => `a turn's first event has the number ${first.seq}`);
  session.append(before.leaf, messageEvent(said));
  let parent = first.id;
  const open = [];
  for (const event of run) {
    game.hold(event.parentId === parent, () => `a turn's event ${show(event)} follows another than ${parent}`);
    parent = event.id;
    for (const { id } of event.toolCalls ?? []) open.push(id);
    if (event.action === "tool_result") {
      const at = open.indexOf(event.toolCallId);
      game.hold(at >= 0, () => `a turn's result ${show(event)} answers no call`);
      open.splice(at, 1);
    }
    const { id, action, content, toolCalls, toolCallId, toolName, isError } = event;
    session.append(
      session.lastSeq,
      Object.fromEntries(
        Object.entries({ id, action, content, toolCalls, toolCallId, toolName, isError }).filter(
          ([, value]) => value !== undefined,
        ),
      ),
    );
    game.hold(
      session.lastSeq === event.seq,
      () => `a turn's event has the number ${event.seq}, not ${session.lastSeq}`,
    );
  }
  game.hold(open.length === 0, () => `a turn leaves the calls ${open} without results`);
  game.hold(answer.message?.id === run[0]?.id, () => `a turn answers ${show(answer)}, and its log has ${show(run[0])}`);
  const single =
    run.length === 0 ? null : await game.read(agent, "getMessage", { sessionId: session.id, messageId: run[0].id });
  game.hold(
    isDeepStrictEqual(answer.message, single),
    () => `a turn answers ${show(answer.message)}, and getMessage ${show(single)}`,
  );
  Object.assign(session.usage, { inputTokens: null, outputTokens: null, cost: null });
  // A turn freezes the prompt that it finds.
  if (session.memory.frozen === null) session.memory.frozen = undefined;
}

// Kills

move(
  3,
  "kill -9",
  async (game, dice) => {
    const writers = MOVES.filter(({ name }) =>
      [
        "appendEvents",
        "appendMessage",
        "updateMessage",
        "deleteEvents",
        "forkSession",
        "deleteSession",
        "setBlock",
        "entries and documents",
        "export and import",
        "search",
        "clearMessages",
        "addCompaction",
        "runTurn",
        "deleteMessages",
      ].includes(name),
    );
    const kill = game.driver.killAfter(dice.roll(25));
    // One move an agent, so that each write that nobody acknowledged is the agent's last.
    const here = Array.from({ length: AGENTS }, (_, agent) => {
      const own = Object.create(dice, { roll: { value: (sides) => (sides === AGENTS ? agent : dice.roll(sides)) } });
      return dice.pick(writers).make(game, own);
    });
    await Promise.all([kill, ...here]);
  },
  (driver) => driver.can.kill,
);
