// Moves that create, change, fork and delete sessions.

import { show } from "../compare.mjs";
import { AGENTS } from "../game.mjs";
import { MAX_SESSIONS, createSession, message, move, somePosition, withSession } from "./shared.mjs";

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
    const reported = { inputTokens: dice.roll(50), outputTokens: dice.roll(50), cost: dice.roll(9) };
    const body = { sessionId: session.id, ...reported, ...(id && { id }) };
    const apply = (model) => {
      const { usage, usageIds } = of(model);
      if (usageIds.has(id)) return;
      if (id) usageIds.add(id);
      for (const [field, value] of Object.entries(reported))
        usage[field] = usage[field] === null ? null : usage[field] + value;
    };
    for (let times = dice.one(3) ? 3 : 1; times > 0; times -= 1)
      await game.write(agent, "addUsage", body, apply, { dice });
  }),
);

async function deleteSession(game, dice, agent, session) {
  const sessionId = session.id;
  const body = { sessionId, ...(dice.one(3) && { purge: true }) };
  const answer = await game.write(agent, "deleteSession", body, (model) => model.delete(sessionId), { dice });
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
    const at = dice.one(2) ? 0 : somePosition(dice, session);
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
    const seq = somePosition(dice, session);
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
