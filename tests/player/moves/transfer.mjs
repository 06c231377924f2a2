// Moves of whole sessions and agents: export, import, destruction, eviction, the clock.

import { show } from "../compare.mjs";
import { AGENTS } from "../game.mjs";
import { MAX_SESSIONS, move, withSession } from "./shared.mjs";

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
    // A cut within a character is sent as incomplete UTF-8.
    const text = cut ? file.body.slice(0, dice.roll(file.body.length - 1)).toWellFormed() : file.body;
    const copy = session.copy(id);
    const fault = game.driver.can.fault && dice.one(3) ? dice.roll(60) : undefined;
    const answer = await game.imported(to, id, text, { fault });
    const apply = (model) => {
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
