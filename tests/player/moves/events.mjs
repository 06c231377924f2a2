// Moves that append events and delete them.

import { isDeepStrictEqual } from "node:util";
import { show } from "../compare.mjs";
import { MAX_EVENTS, MAX_SESSIONS, message, move, somePosition, someSession, textFor, withSession } from "./shared.mjs";
import { clear, messageEvent } from "./messages.mjs";

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
  // A call may still be waiting for its result.
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

/**
 * The most rows of an append: one an event, one an id of the caller, and for a branch one. Two more
 * where it splits a run of events that were one message: the event after the branch, and the entry in
 * the index of the corrections of its path's totals.
 */
export function rowsOf(game, agent, session, events, parentId) {
  const given = events.filter(({ id }) => id !== undefined).length;
  const index = game.agents[agent].isSearched ? events.length : 0;
  const written = events.length + given + index + (isBranch(session, parentId) ? 3 : 0);
  // A branch reads its siblings: two, or all if one may be a late tool result.
  const siblings = isBranch(session, parentId) ? 20 + session.events.size : 0;
  return { written, ...(index === 0 && { read: 10 * events.length + siblings }) };
}

export function assertAppended(game, answer, expected) {
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
  if (answer) assertAppended(game, answer, expected);
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
    const seq = somePosition(dice, at.session);
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
    // A retry whose ids all exist writes nothing.
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
    if (answer) assertAppended(game, answer, expected);
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
    await readAll(game, agent, "appendEvents", body, answers, (model, answer) =>
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
  const sent = message(`m${game.word()}`, "user", textFor(game, dice));
  const id = `s${game.word()}`;
  const [operation, body, apply, succeeded] = dice.pick([
    ["createSession", { id }, (model) => model.create({ id }), ({ status }) => status === 200],
    [
      "appendMessage",
      { sessionId: session.id, message: sent },
      (model) => of(model).appendEvents([messageEvent(sent)]),
      ({ body }) => body.inserted,
    ],
    [
      "upsertMessage",
      { sessionId: session.id, message: sent },
      (model) => of(model).appendEvents([messageEvent(sent)]),
      ({ body }) => body.inserted,
    ],
    ["deleteSession", { sessionId: session.id }, (model) => model.delete(session.id), ({ body }) => body.deleted],
  ]);
  const answers = await Promise.all([1, 2, 3].map(() => game.driver.request(agent, operation, body)));
  const winner = answers.filter(succeeded);
  game.hold(winner.length === 1, () => `of three equal ${operation} ${winner.length} did it: ${show(answers)}`);
  const refused = answers.filter(({ status }) => status !== 200);
  game.hold(
    refused.every(({ body }) => body.error.code === "already_exists"),
    () => show(answers),
  );
  await game.take(agent, operation, body, apply, winner[0]);
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
    const winner = answers.findIndex(({ status }) => status === 200);
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
      bodies[winner],
      (model, answer) => of(model).appendEvents(bodies[winner].events, undefined, answer),
      answers[winner],
    );
  }),
);

async function readAll(game, agent, operation, body, answers, apply) {
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
    const deleted = new Set(Array.from({ length: Math.min(seqs.length, 1 + dice.roll(2)) }, () => dice.pick(seqs)));
    const eventIds = [...[...deleted].map((seq) => session.idOf(seq)), ...(dice.one(3) ? ["nobody"] : [])];
    const purge = dice.one(3);
    const answer = await game.write(
      agent,
      "deleteEvents",
      { sessionId: session.id, eventIds, ...(purge && { purge }) },
      (model) => of(model)[purge ? "purge" : "delete"]([...deleted]),
      { dice },
    );
    if (answer) game.hold(answer.deleted === deleted.size, () => `deleteEvents ${eventIds} answers ${show(answer)}`);
  }),
);
