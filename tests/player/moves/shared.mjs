// Shared parts of moves: the list of moves, sessions to play in, texts and positions.

import { AGENTS } from "../game.mjs";

/** Sessions and events grow no further, so that games stay fast. */
export const MAX_SESSIONS = 6;
export const MAX_EVENTS = 60;

export const LABELS = { Rules: "readonly", notes: "writable", kb: "searchable", skills: "loadable" };
const FILLERS = ["", " zwei", " drei\nvier", ' "quoted" \\', " 😀 é", " <b>&amp;</b>", " \u0001\u2028"];

export const MOVES = [];
export const move = (weight, name, make, fits = () => true) => MOVES.push({ weight, name, make, fits });

/** An agent and one of its sessions; creates a session if there is none. */
export async function someSession(game, dice) {
  const agent = dice.roll(AGENTS);
  const { sessions } = game.agents[agent];
  if (sessions.length === 0) await createSession(game, dice, agent);
  const session = game.agents[agent].sessions.length === 0 ? null : dice.pick(game.agents[agent].sessions);
  return { agent, session, of: (model) => model.find(session.id) };
}

export const withSession = (make) => async (game, dice) => {
  const at = await someSession(game, dice);
  if (at.session !== null) await make(game, dice, at);
};

export async function createSession(game, dice, agent) {
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

export const textFor = (game, dice) => `${game.word()}${dice.pick(FILLERS)}`;

export const message = (id, role, text, more = []) => ({ id, role, parts: [{ type: "text", text }, ...more] });

/** An event that another event may follow; 0: none. */
export function somePosition(dice, session) {
  return session.events.size === 0 ? 0 : dice.pick([...session.events.keys()]);
}

/** The first events of all messages. */
export function messageStarts(session) {
  return [...session.events.keys()].filter((seq) => session.messageStart(seq) === seq);
}
