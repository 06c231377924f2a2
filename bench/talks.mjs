// Two sets for measuring search: talks, whose turns are short, and letters, which are long. They
// are generated from talks.txt with seeded random numbers. Nothing in them was chosen to suit a
// search.
//
//   const { messages, questions } = makeTalk({ pairs: 1 });
//   const { messages, questions } = makeLetters();
//
// A message is `{ id, sessionId, name, role, text, createdAt }`. A question is `{ gold,
// question, inItsWords }`: `gold` is the message that answers it, and `inItsWords`
// is whether the question uses that message's words.

import { readFile } from "node:fs/promises";

const PAIRS = [
  ["Nora", "Theo"],
  ["Amara", "Felix"],
  ["Ines", "Jonas"],
  ["Priya", "Walt"],
];

/** A Monday in May. */
const BEGINNING_MS = Date.UTC(2023, 4, 8, 17);
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** The number of facts in one conversation. */
const FACTS_PER_TALK = 6;
/** In one letter: the number of facts, and of topics without a fact. */
const FACTS_PER_LETTER = 2;
const TOPICS_PER_LETTER = 3;

/** The conversations of two friends, turn by turn. */
export function makeTalk({ pairs = PAIRS.length } = {}) {
  const dialogues = new Dialogues("t");
  for (const pair of PAIRS.slice(0, pairs)) {
    const { roll, pick, shuffle } = dice(PAIRS.indexOf(pair) * 97);
    const facts = shuffle(pair.flatMap((name) => dialogues.factsOf(name, topics, pick)));
    for (let at = 0; at < facts.length; at += FACTS_PER_TALK) {
      dialogues.begin(pair);
      const chat = () => pick(pick(topics).n);
      for (const { name, topic, sentence, ask } of facts.slice(at, at + FACTS_PER_TALK)) {
        const other = pair.find((one) => one !== name);
        if (roll(2)) dialogues.say(name, pick(topic.n));
        if (roll(3) === 0) dialogues.say(other, pick(pick(topics).r));
        ask(dialogues.say(name, [sentence, ...(roll(2) ? [chat()] : [])].join(" ")));
        dialogues.say(other, [pick(topic.r), ...(roll(3) === 0 ? [chat()] : [])].join(" "));
        if (roll(2)) dialogues.say(name, pick(topic.n));
      }
    }
  }
  return dialogues;
}

/** The letters of two friends, of some hundred words each. */
export function makeLetters({ pairs = PAIRS.length } = {}) {
  const dialogues = new Dialogues("l");
  for (const pair of PAIRS.slice(0, pairs)) {
    const { pick, shuffle } = dice(1_000 + PAIRS.indexOf(pair) * 97);
    const facts = pair.map((name) => shuffle(dialogues.factsOf(name, topics, pick)));
    dialogues.begin(pair);
    for (let at = 0; at < topics.length; at += FACTS_PER_LETTER) {
      for (const [index, name] of pair.entries()) {
        const chosen = facts[index].slice(at, at + FACTS_PER_LETTER);
        const others = shuffle(topics).slice(0, TOPICS_PER_LETTER);
        const paragraphs = shuffle([
          ...chosen.map(({ topic, sentence }) => shuffle([sentence, ...topic.n, ...topic.r]).join(" ")),
          ...others.map((topic) => shuffle([...topic.n, ...topic.r]).join(" ")),
        ]);
        const id = dialogues.say(
          name,
          [`Dear ${pair[1 - index]},`, ...paragraphs, `Yours, ${name}`].join("\n\n"),
          DAY_MS,
        );
        for (const { ask } of chosen) ask(id);
      }
    }
  }
  return dialogues;
}

class Dialogues {
  messages = [];
  questions = [];
  #prefix;
  #pair;
  #sessions = 0;
  #at = BEGINNING_MS;

  constructor(prefix) {
    this.#prefix = prefix;
  }

  /** One fact about each topic, and the question that the fact answers. */
  factsOf(name, topics, pick) {
    return topics.map((topic, index) => {
      // Two of three questions use the words of the fact.
      const inItsWords = (index + name.length) % 3 > 0;
      const sentence = (inItsWords ? topic.s[0] : pick(topic.s)).replace("{x}", pick(topic.about));
      const question = pick(inItsWords ? topic.w : topic.o).replace("{P}", name);
      return { name, topic, sentence, ask: (gold) => this.questions.push({ gold, question, inItsWords }) };
    });
  }

  begin(pair) {
    this.#pair = pair;
    this.#sessions += 1;
    this.#at += 3 * DAY_MS;
  }

  say(name, text, afterMs = MINUTE_MS) {
    this.#at += afterMs;
    const id = `${this.#prefix}${this.messages.length + 1}`;
    const role = name === this.#pair[0] ? "user" : "assistant";
    this.messages.push({ id, sessionId: `${this.#prefix}-${this.#sessions}`, name, role, text, createdAt: this.#at });
    return id;
  }
}

const topics = (await readFile(new URL("talks.txt", import.meta.url), "utf8"))
  .split(/^# /m)
  .slice(1)
  .map((block) => block.trim().split("\n").slice(1))
  .filter((lines) => lines[0]?.startsWith("= "))
  .map(([about, ...lines]) => {
    const of = (kind) => lines.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(2).trim());
    return { about: about.slice(2).split("|"), s: of("s"), r: of("r"), n: of("n"), w: of("w"), o: of("o") };
  });

/** Numbers that are the same in every run. */
function dice(seed) {
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
