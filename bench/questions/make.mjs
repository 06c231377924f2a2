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
import errands from "./errands.mjs";
import others from "./others.mjs";
import talk from "./turns.mjs";

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
      for (const [kind, told, ask, queries = []] of language.facts) {
        const values = drawValues(language, dice);
        const parts = Array.isArray(told[0]) ? told : [told];
        const gold = [];
        for (const turns of parts)
          scenes.push({ me: name, you: pair[1 - place], turns: turns.map((turn) => fill(turn, values)), gold });
        if (language === english) scenes.push(...again(dice, told, values, name, pair[1 - place]));
        asked.push({
          kind: language === english ? kind : `${kind} ${language.code}`,
          question: fill(ask, { ...values, P: name }),
          queries: queries.map((query) => fill(query, { ...values, P: name })),
          gold,
        });
      }
  const other = (name) => pair[1 - pair.indexOf(name)];
  for (const session of cut(dice.shuffle(scenes), language === english ? 7 : 6)) {
    log.begin();
    const say = (name, text) => {
      const longer = language === english ? fill(lengthen(dice, text), { Q: other(name) }) : text;
      return log.say({ name, role: name === pair[0] ? "user" : "assistant", text: longer });
    };
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

/** Turns of other times in which the words of a fact come again. */
function again(dice, told, values, me, you) {
  const text = told.flat().join(" ");
  const named = Object.entries(talk.returns).filter(([name]) => text.includes(`{${name}}`));
  const echoed = talk.echoes.filter(([word]) => text.toLowerCase().includes(word)).map(([, turn]) => turn);
  const turns = [...named.flatMap(([, list]) => list), ...echoed];
  const chosen = dice.shuffle(turns).slice(0, dice.roll(3));
  return chosen.map((turn) => ({ me, you, turns: [fill(turn, values)], gold: [] }));
}

/** A turn with what people say before and after: some twenty words. */
function lengthen(dice, text) {
  const parts = [text];
  if (dice.roll(2)) parts.unshift(dice.pick(talk.openers));
  if (dice.roll(3)) parts.push(dice.pick(talk.closers));
  if (dice.roll(3) === 0 && !text.endsWith("?")) parts.push(dice.pick(talk.questions));
  return parts.join(" ");
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
  if (language === english) return errandsOf(dice, log, wanted);
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
      const { request, lines, asks, gold } = listOfPlaces(language, dice);
      const domain = dice.pick(Object.keys(language.advice));
      sessions.push({ domain, request, gold: [], lines, goldOfAnswer: gold });
      for (const question of asks) asked.push({ kind: mark("agent"), question, gold });
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

/** A list of places that the agent recommends, and two questions about it. */
function listOfPlaces(language, dice) {
  const values = drawValues(language, dice);
  const [hows, whats] = language.places;
  const isHowFirst = ["en", "zh", "de"].includes(language.code);
  const names = language.ordinals.map(() =>
    (isHowFirst ? [dice.pick(hows), dice.pick(whats)] : [dice.pick(whats), dice.pick(hows)]).join(
      language.code === "zh" ? "" : " ",
    ),
  );
  const lines = names.map((place, index) => {
    const more = drawValues(language, dice);
    const hours = { h: 7 + dice.roll(4), g: 17 + dice.roll(6) };
    return fill(language.placeLine, { ...more, ...hours, i: index + 1, place, near: dice.pick(language.near) });
  });
  const which = dice.roll(names.length);
  return {
    request: fill(language.asksList, values),
    lines: [fill(language.list, values), ...lines],
    asks: [
      fill(dice.pick(language.agentAsks), { ...values, k: language.ordinals[which] }),
      fill(dice.pick(language.agentNamed), { ...values, place: names[which] }),
    ],
    gold: [],
  };
}

/** Long sessions about ten subjects, in which a person tells things by the way. */
function errandsOf(dice, log, wanted) {
  const asked = [];
  const told = [];
  const tell = (text, gold, values) => told.push({ text: fill(text, values), gold, values });
  for (let round = 0; round < 2; round += 1) {
    for (const [kind, text, question] of errands.told) {
      const values = drawValues(english, dice);
      const gold = [];
      tell(text, gold, values);
      asked.push({ kind, question: fill(question, values), gold });
    }
    for (const [before, after, question] of errands.updated) {
      const values = drawValues(english, dice);
      const gold = [];
      tell(before, gold, values);
      tell(after, gold, values);
      asked.push({ kind: "update", question: fill(question, values), gold });
    }
    for (const [texts, question] of errands.several) {
      const values = drawValues(english, dice);
      const gold = [];
      for (const text of texts) tell(text, gold, values);
      asked.push({ kind: "multi", question: fill(question, values), gold });
    }
  }
  const lists = Array.from({ length: 8 }, () => listOfPlaces(english, dice));
  for (const { asks, gold } of lists) asked.push(...asks.map((question) => ({ kind: "agent", question, gold })));
  const subjects = Object.values(errands.subjects).map((nouns) => nouns.split(","));
  const waiting = dice.shuffle(told);
  const sessions = dice.shuffle([...lists, ...Array(44).fill(null)]);
  for (const [index, list] of sessions.entries()) {
    log.begin();
    const share = Math.ceil(waiting.length / (sessions.length - index));
    const here = waiting.splice(0, dice.roll(2) ? share : Math.min(waiting.length, share + 1));
    const values = here[0]?.values ?? drawValues(english, dice);
    const nouns = [...dice.pick(subjects), values.thing, values.hobby, values.food, values.event];
    const said = (templates, count = 1) =>
      dice
        .shuffle(templates)
        .slice(0, count)
        .map((template) => {
          const [a, b, c] = dice.shuffle(nouns);
          return fill(template, { a, b, c, A: a[0].toUpperCase() + a.slice(1) });
        });
    const turns = Math.max(here.length, 3 + dice.roll(4));
    const at = dice.shuffle(Array.from({ length: turns }, (_, turn) => turn));
    for (let turn = 0; turn < turns; turn += 1) {
      const fact = here[at[turn]];
      const text = turn === 0 && list ? [list.request] : said(turn === 0 ? errands.asks : errands.follows);
      if (fact) text.splice(dice.roll(2), 0, dice.pick(errands.ways) + fact.text);
      const id = log.say({ role: "user", text: text.map((part) => part[0].toUpperCase() + part.slice(1)).join(" ") });
      fact?.gold.push(id);
      const items = said(errands.items, 5 + dice.roll(6)).map((item, place) => `${place + 1}. ${item}`);
      const lines = [...said(errands.starts), ...(turn === 0 && list ? list.lines : items), ...said(errands.ends)];
      const answer = log.say({ role: "assistant", text: lines.join("\n\n") });
      if (turn === 0) list?.gold.push(answer);
    }
  }
  return { language: "en", messages: log.messages, questions: choose(asked, wanted, dice) };
}

/** Agents often repeat what they were asked, so answers hold the words of requests. */
function requestEcho(dice, request) {
  return dice.roll(2) ? `> ${request}\n\n` : "";
}

/** So many of the questions. What several messages answer alike has all of them as evidence. */
function choose(asked, wanted, dice) {
  const once = new Map();
  for (const { kind, question, queries, gold } of dice.shuffle(asked)) {
    const same = once.get(question) ?? { kind, question, queries, gold: [] };
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
