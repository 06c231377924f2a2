// Moves that add summaries, remove them, and compact.

import { show } from "../compare.mjs";
import { move, somePosition, withSession } from "./shared.mjs";

move(
  3,
  "addCompaction",
  withSession(async (game, dice, { agent, session, of }) => {
    const to = somePosition(dice, session);
    if (to === 0 || session.overlays.length > 20) return;
    const from = dice.pick(session.path(to));
    const summary = `Summary ${game.word()}`;
    const body = { sessionId: session.id, summary, fromId: session.idOf(from), toId: session.idOf(to) };
    const apply = (model, answer) => {
      const at = of(model);
      // An overlay starts and ends at whole messages.
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
    const to = somePosition(dice, session);
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

/** Adopts the overlays of automatic compaction if they cover ranges of paths. */
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
  const compacted = await game.read(agent, "getSession", { sessionId: session.id });
  Object.assign(session.usage, {
    inputTokens: compacted.usage.inputTokens,
    outputTokens: compacted.usage.outputTokens,
    cost: compacted.usage.cost,
  });
}
