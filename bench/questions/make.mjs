// Two sets of 1,000 questions each, to measure searches with: dialogues of two people, whose
// turns are short, and chats of a person with an agent, whose answers are long. Dice with a
// seed make them from english.mjs and others.mjs: the same sets every time. The same words come
// in many sessions, and each fact has others like it, of the other person or of another time.
//
//   const { groups } = makeDialogues();   // or makeChats(); each takes { seed }
//
// A group is what one agent holds: `{ language, messages, questions }`. A message is `{ id,
// sessionId, name, role, text, createdAt }`, where dialogues have a `name`. A question is
// `{ kind, question, gold }`: `gold` lists the messages that together answer it.

import english from "./english.mjs";
import others from "./others.mjs";

const BEGINNING_MS = Date.UTC(2024, 2, 4, 17);
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Of 28 agents, twelve speak English; each other language has four. 12 × 60 and 16 × 17.5 questions are 1,000. */
const GROUPS = [...Array(12).fill(english), ...others.flatMap((language) => Array(4).fill(language))];
const wantedOf = (index) => (GROUPS[index] === english ? 60 : 17 + (index % 2));

export function makeDialogues({ seed = 1 } = {}) {
  return { groups: GROUPS.map((language, index) => dialogue(language, seed * 1_000 + index, wantedOf(index))) };
}

export function makeChats({ seed = 1 } = {}) {
  return { groups: GROUPS.map((language, index) => chats(language, seed * 2_000 + index, wantedOf(index))) };
}

function dialogue(language, seed, wanted) {
  const dice = makeDice(seed);
  const log = new Log(`d${seed}`);
  const pair = dice.shuffle(language.names).slice(0, 2);
  // Each person tells every kind of fact several times, with other values.
  const scenes = [];
  const asked = [];
  for (let round = 0; round < (language === english ? 2 : 3); round += 1)
    for (const [place, name] of pair.entries())
      for (const [kind, told, ask] of language.facts) {
        const values = drawValues(language, dice);
        const parts = Array.isArray(told[0]) ? told : [told];
        const gold = [];
        for (const turns of parts)
          scenes.push({ me: name, you: pair[1 - place], turns: turns.map((turn) => fill(turn, values)), gold });
        asked.push({
          kind: language === english ? kind : `${kind} ${language.code}`,
          question: fill(ask, { ...values, P: name }),
          gold,
        });
      }
  for (const session of cut(dice.shuffle(scenes), 6)) {
    log.begin();
    const say = (name, text) => log.say({ name, role: name === pair[0] ? "user" : "assistant", text });
    for (const { me, you, turns, gold } of session) {
      chatter(language, dice, me, you, say);
      for (const turn of turns) {
        const id = say(turn.startsWith(">") ? you : me, turn.replace(/^[*>] /, ""));
        if (turn.startsWith("*")) gold.push(id);
      }
      if (dice.roll(2)) chatter(language, dice, you, me, say);
    }
  }
  return { language: language.code, messages: log.messages, questions: choose(asked, wanted, dice) };
}

function chatter(language, dice, me, you, say) {
  let at = dice.roll(language.chat.length);
  for (let left = dice.roll(4); left > 0; left -= 1, at += 1) {
    const turn = language.chat[at % language.chat.length];
    say(turn.startsWith(">") ? you : me, fill(turn.replace(/^> /, ""), { Q: turn.startsWith(">") ? me : you }));
  }
}

function chats(language, seed, wanted) {
  const dice = makeDice(seed);
  const log = new Log(`c${seed}`);
  const asked = [];
  const mark = (kind) => (language === english ? kind : `${kind} ${language.code}`);
  const sessions = [];
  for (let round = 0; round < (language === english ? 4 : 5); round += 1) {
    for (const [domain, request, asks] of language.requests) {
      const values = drawValues(language, dice);
      const gold = [];
      sessions.push({ domain, request: fill(request, values), gold });
      for (const [kind, ask] of asks) asked.push({ kind: mark(kind), question: fill(ask, values), gold });
    }
    for (const [requests, ask] of language.chains) {
      const values = drawValues(language, dice);
      const gold = [];
      for (const request of requests)
        sessions.push({ domain: dice.pick(Object.keys(language.advice)), request: fill(request, values), gold });
      asked.push({ kind: mark("multi"), question: fill(ask, values), gold });
    }
    for (let list = 0; list < (language === english ? 3 : 1); list += 1) {
      const values = drawValues(language, dice);
      const [hows, whats] = language.places;
      const names = language.ordinals.map(() =>
        (language.code === "en" || language.code === "zh" || language.code === "de"
          ? [dice.pick(hows), dice.pick(whats)]
          : [dice.pick(whats), dice.pick(hows)]
        ).join(language.code === "zh" ? "" : " "),
      );
      const lines = names.map((place, index) => {
        const more = drawValues(language, dice);
        return fill(language.placeLine, {
          ...more,
          i: index + 1,
          place,
          near: dice.pick(language.near),
          h: 7 + dice.roll(4),
          g: 17 + dice.roll(6),
        });
      });
      const goldOfAnswer = [];
      sessions.push({
        domain: dice.pick(Object.keys(language.advice)),
        request: fill(language.asksList, values),
        gold: [],
        lines: [fill(language.list, values), ...lines],
        goldOfAnswer,
      });
      const which = dice.roll(names.length);
      asked.push({
        kind: mark("agent"),
        question: fill(dice.pick(language.agentAsks), { ...values, k: language.ordinals[which] }),
        gold: goldOfAnswer,
      });
      asked.push({
        kind: mark("agent"),
        question: fill(dice.pick(language.agentNamed), { ...values, place: names[which] }),
        gold: goldOfAnswer,
      });
    }
  }
  for (const { domain, request, gold, lines, goldOfAnswer } of dice.shuffle(sessions)) {
    log.begin();
    const answer = (more) => {
      const advice = dice.shuffle(language.advice[domain]).slice(0, 6);
      const others = Array.from({ length: 6 }, () =>
        dice.pick(language.advice[dice.pick(Object.keys(language.advice))]),
      );
      const text = [dice.pick(language.openings), ...(more ?? []), ...advice, ...others, dice.pick(language.closings)];
      return log.say({ role: "assistant", text: `${requestEcho(dice, request)}${text.join("\n")}` });
    };
    const smalltalk = () => log.say({ role: "user", text: dice.pick(language.smalltalk) });
    if (dice.roll(3) === 0) {
      smalltalk();
      answer();
    }
    gold.push(log.say({ role: "user", text: request }));
    const id = answer(lines);
    if (goldOfAnswer) goldOfAnswer.push(id);
    for (let left = dice.roll(3); left > 0; left -= 1) {
      smalltalk();
      answer();
    }
  }
  return { language: language.code, messages: log.messages, questions: choose(asked, wanted, dice) };
}

/** Agents often repeat what they were asked, so answers hold the words of requests. */
function requestEcho(dice, request) {
  return dice.roll(2) ? `> ${request}\n\n` : "";
}

/** So many of the questions. What several messages answer alike has all of them as evidence. */
function choose(asked, wanted, dice) {
  const once = new Map();
  for (const { kind, question, gold } of dice.shuffle(asked)) {
    const same = once.get(question) ?? { kind, question, gold: [] };
    same.gold = [...new Set([...same.gold, ...gold])];
    once.set(question, same);
  }
  return [...once.values()].slice(0, wanted);
}

/** Values for the names in braces. `{city2}` is another city than `{city}`. */
function drawValues({ lists }, dice) {
  const values = { n: 11 + dice.roll(880), m: 11 + dice.roll(880) };
  for (const [name, list] of Object.entries(lists)) {
    const drawn = dice.shuffle(list);
    for (const [index, value] of drawn.slice(0, 3).entries()) values[index ? `${name}${index + 1}` : name] = value;
  }
  return values;
}

function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

function cut(list, length) {
  return Array.from({ length: Math.ceil(list.length / length) }, (_, index) =>
    list.slice(index * length, (index + 1) * length),
  );
}

class Log {
  messages = [];
  #prefix;
  #sessions = 0;
  #at = BEGINNING_MS;

  constructor(prefix) {
    this.#prefix = prefix;
  }

  begin() {
    this.#sessions += 1;
    this.#at += 2 * DAY_MS;
  }

  say(message) {
    this.#at += MINUTE_MS;
    const id = `${this.#prefix}-${this.messages.length + 1}`;
    this.messages.push({ id, sessionId: `${this.#prefix}-s${this.#sessions}`, createdAt: this.#at, ...message });
    return id;
  }
}

/** Numbers that are the same in every run. */
export function makeDice(seed) {
  let state = (seed + 1) * 2_654_435_761;
  const roll = (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
  const pick = (list) => list[roll(list.length)];
  const shuffle = (list) => {
    const shuffled = [...list];
    for (let last = shuffled.length - 1; last > 0; last -= 1) {
      const other = roll(last + 1);
      [shuffled[last], shuffled[other]] = [shuffled[other], shuffled[last]];
    }
    return shuffled;
  };
  return { roll, pick, shuffle };
}
