// Moves that append, change and delete messages.

import { isDeepStrictEqual } from "node:util";
import { show } from "../compare.mjs";
import { textOf } from "../model.mjs";
import { MAX_EVENTS, message, messageStarts, move, somePosition, textFor, withSession } from "./shared.mjs";

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
    const sent = message(id, role, textFor(game, dice) + long, parts);
    const parent = dice.one(3) ? somePosition(dice, session) : undefined;
    const parentId = parent === undefined ? undefined : session.idOf(parent);
    const operation = dice.one(3) ? "upsertMessage" : "appendMessage";
    const body = { sessionId: session.id, message: sent, ...(parentId !== undefined && { parentId }) };
    const apply = (model) => of(model).appendEvents([messageEvent(sent)], parentId);
    const answer = await game.write(agent, operation, body, apply, { dice });
    if (!answer) return;
    game.hold(answer.inserted && sameMessage(answer.message, sent), () => `${operation} answers ${show(answer)}`);
    if (dice.one(3)) {
      const again = await game.write(agent, "appendMessage", body, () => {}, { dice, rows: { written: 0 } });
      if (again)
        game.hold(
          !again.inserted && sameMessage(again.message, sent),
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

/** One of a few pictures, so that sessions contain some of them twice. */
function filePart(dice) {
  const bytes = dice.pick(["A", "B", "Q"]).repeat(4_000);
  return { type: "file", mediaType: "image/png", url: `data:image/png;base64,${bytes}` };
}

export const messageEvent = (sent) => ({
  id: sent.id,
  action: { user: "user_message", system: "system_instruction", assistant: "agent_message" }[sent.role],
  content: textOf(sent),
  message: sent,
});

/** Whether a stored message equals the written one, apart from its time. */
function sameMessage(stored, sent) {
  const { createdAt, ...rest } = stored ?? {};
  return Number.isInteger(createdAt) && isDeepStrictEqual(rest, sent);
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
    const sent = message(
      session.idOf(seq),
      role,
      textFor(game, dice),
      role === "assistant" && dice.one(3) ? [toolPart(game, dice)] : [],
    );
    const operation = dice.one(3) ? "upsertMessage" : "updateMessage";
    const answer = await game.write(
      agent,
      operation,
      { sessionId: session.id, message: sent },
      (model) => of(model).replace(of(model).messageAt(seq), sent),
      { dice },
    );
    if (!answer) return;
    const stored = operation === "updateMessage" ? answer : answer.message;
    game.hold(sameMessage(stored, sent), () => `${operation} answers ${show(answer)}`);
    if (dice.one(2))
      await game.write(agent, "updateMessage", { sessionId: session.id, message: sent }, () => {}, {
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
    const purge = dice.one(3);
    const answer = await game.write(
      agent,
      "deleteMessages",
      { sessionId: session.id, messageIds: [session.idOf(seq), "nobody"], ...(purge && { purge }) },
      (model) => of(model)[purge ? "purge" : "delete"](of(model).messageAt(seq)),
      { dice },
    );
    if (answer) game.hold(answer.deleted >= 1, () => `deleteMessages answers ${show(answer)}`);
  }),
);

export async function clear(game, dice, { agent, session, of }) {
  await game.write(agent, "clearMessages", { sessionId: session.id }, (model) => of(model).clear(), { dice });
}

move(
  1,
  "clearMessages",
  withSession(async (game, dice, at) => {
    if (dice.one(3)) await clear(game, dice, at);
  }),
);
