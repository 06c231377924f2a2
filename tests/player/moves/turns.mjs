// Moves of turns.

import { isDeepStrictEqual } from "node:util";
import { show } from "../compare.mjs";
import { MAX_EVENTS, message, move, textFor, withSession } from "./shared.mjs";
import { clear, messageEvent } from "./messages.mjs";

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
  const crash = dice.one(4) ? ` dies at ${dice.roll(steps + 1)}` : "";
  const sent = message(`t${game.word()}`, "user", `${steps} steps of ${1 + dice.roll(2)} calls ${word}${crash}`);
  const before = { leaf: session.leaf, lastSeq: session.lastSeq };
  const body = { sessionId: session.id, message: sent };
  const answer = await game.turn(agent, body);
  game.hold(answer.status === 200, () => `runTurn ${show(body)} answers ${answer.status} ${show(answer.body)}`);
  await adoptTurn(game, agent, session, sent, before, answer.body);
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
    const sent = message(`t${game.word()}`, "user", `${steps} steps of 1 calls ${word}`);
    const written = [];
    const ends = dice.one(8);
    const interfere = async () => {
      if (ends)
        return await game.write(agent, "deleteSession", { sessionId: session.id }, (model) => model.delete(session.id));
      for (let times = 1 + dice.roll(2); times > 0; times -= 1) {
        const olds = [...session.events.keys()];
        const singles = olds.filter((seq) => !session.isRun(seq) && session.events.get(seq).action !== "compaction");
        if (olds.length > 0 && dice.one(4)) {
          const seq = dice.pick(olds);
          await game.write(agent, "deleteEvents", { sessionId: session.id, eventIds: [session.idOf(seq)] }, (model) =>
            of(model).delete([seq]),
          );
          continue;
        }
        if (singles.length > 0 && dice.one(4)) {
          const seq = dice.pick(singles);
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
    game.actions.set(`${word} ${dice.roll(steps + 1)}`, interfere);
    const answer = await game.turn(agent, { sessionId: session.id, message: sent });
    if (ends) {
      game.hold(
        answer.status === 200 && answer.body.finishReason === "cancelled" && answer.body.message === null,
        () => `a turn whose session was deleted answers ${show(answer)}`,
      );
      return;
    }
    game.hold(answer.status === 200, () => `a turn with writes meanwhile answers ${show(answer)}`);
    await adoptLog(game, agent, session);
    // No message is lost from the conversation.
    const shown = new Set(session.path(session.leaf).map((seq) => session.idOf(seq)));
    for (const { id } of [sent, ...written])
      game.hold(shown.has(id), () => `${id} was said while a turn ran, and the conversation has ${[...shown]}`);
    const last = session.events.get(session.leaf);
    game.hold(last.content === `Done ${word}.`, () => `the conversation ends with ${show(last)}`);
    Object.assign(session.usage, { inputTokens: null, outputTokens: null, cost: null });
    if (session.memory.frozen === null) session.memory.frozen = undefined;
  }),
  (driver) => driver.can.kill,
);

/** Adopts the contents of the log if what the model knew of it is unchanged. */
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
    const { createdAt: _, ...rest } = stored ?? {};
    session.append(parent, isMessage ? { ...fields, message: rest } : fields);
  }
}

/** Adopts the events of a turn: the user's message, its calls and results, and the answer. */
async function adoptTurn(game, agent, session, sent, before, answer) {
  const events = await game.read(agent, "loadEvents", { sessionId: session.id, afterSeq: before.lastSeq, limit: 1000 });
  const [first, ...run] = events;
  game.hold(
    first?.id === sent.id && first.parentId === session.idOf(before.leaf),
    () => `a turn's log begins with ${show(first)}`,
  );
  game.hold(first.seq === before.lastSeq + 1, () => `a turn's first event has the number ${first.seq}`);
  session.append(before.leaf, messageEvent(sent));
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
  // A turn freezes the current prompt.
  if (session.memory.frozen === null) session.memory.frozen = undefined;
}
