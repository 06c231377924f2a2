// Somebody who follows the README's tour: reads its ```sh blocks as a shell
// would and its ```json blocks as what will be answered.
//
// A line of a ```sh block is one of
//
//   # a comment
//   NAME=value            a variable; `$NAME` uses it
//   echo 'NAME=value' > .dev.vars
//                         a secret; the Worker is to be started again with it
//   curl -s [-H '…'] URL [-d '…']
//
// and whatever else is an error. A ```json block has one answer a request, each
// starting at a line's beginning. The printed and the actual answer have the
// same keys in the same order and the same values, but that
//
//   `…` in a string without spaces
//                         stands for some text, for the same wherever the same
//                         string is printed, a variable's value included
//   a number at `…At`     stands for a time of this run, or at most a day later
//   a number at `score`   stands for any above 0

import assert from "node:assert/strict";

const ORIGIN = "http://127.0.0.1:8787";
const DAY_MS = 86_400_000;

export class Reader {
  #started = Date.now();
  #variables = new Map();
  #stoodFor = new Map();

  /** What a ```sh block asks to be done, in order: `{ secret }` or `{ request: { path, init } }`. */
  follow(text) {
    return commandsIn(text).flatMap((words) => {
      const line = words.join(" ");
      if (words[0] === "echo") return [{ secret: secretIn(words, line) }];
      if (words[0] === "curl") return [{ request: this.#request(words, line) }];
      this.#assign(words, line);
      return [];
    });
  }

  #assign(words, line) {
    const [, name, value] = line.match(/^(\w+)=(\S+)$/) ?? assert.fail(`no command of a tour:\n${line}`);
    assert.ok(!value.includes("…") || this.#stoodFor.has(value), `no answer had it:\n${line}`);
    this.#variables.set(name, this.#stoodFor.get(value) ?? value);
  }

  #request([, silent, ...words], line) {
    assert.equal(silent, "-s", `curl without -s shows more than the answer:\n${line}`);
    const init = { method: "GET", headers: {} };
    let url = null;
    const next = () => this.#expand(words.shift() ?? assert.fail(`breaks off:\n${line}`));
    while (words.length > 0) {
      const word = next();
      if (word === "-H") {
        const [, name, value] = next().match(/^([\w-]+): (.+)$/);
        init.headers[name] = value;
      } else if (word === "-d") {
        Object.assign(init, { method: "POST", body: next() });
      } else {
        assert.ok(url === null && word.startsWith(`${ORIGIN}/`), `no address of ${ORIGIN}: ${word}`);
        url = word;
      }
    }
    return { path: url.slice(ORIGIN.length), init };
  }

  /** A word as the shell hands it on. */
  #expand(word) {
    const parts = word.match(/'[^']*'|"[^"]*"|[^'"]+/g);
    return parts.map((part) => (part[0] === "'" ? part.slice(1, -1) : this.#substitute(part.replaceAll('"', "")))).join("");
  }

  #substitute(text) {
    return text.replaceAll(/\$(\w+)/g, (_, name) => this.#variables.get(name) ?? assert.fail(`$${name} is not set`));
  }

  compare(actual, printed, where) {
    if (typeof printed === "string" && /^\S*…\S*$/.test(printed)) {
      assert.match(String(actual), patternOf(printed), where);
      const before = this.#stoodFor.get(printed) ?? actual;
      assert.equal(actual, before, `${where}: ${printed} stood for another text before`);
      this.#stoodFor.set(printed, actual);
    } else if (typeof printed === "number" && /At$/.test(where)) {
      assert.match(String(printed), /^\d{13}$/, `${where} is not printed as a time`);
      assert.ok(Number.isInteger(actual), where);
      assert.ok(this.#started <= actual && actual <= Date.now() + DAY_MS, `${where}: ${actual}`);
    } else if (typeof printed === "number" && /→ score$/.test(where)) {
      assert.ok(actual > 0, where);
    } else if (printed !== null && typeof printed === "object") {
      assert.equal(Array.isArray(actual), Array.isArray(printed), where);
      assert.deepEqual(Object.keys(actual ?? {}), Object.keys(printed), where);
      for (const key of Object.keys(printed)) this.compare(actual[key], printed[key], `${where} → ${key}`);
    } else {
      assert.equal(actual, printed, where);
    }
  }
}

/** JSON values one after another, each starting at the beginning of a line. */
export function answersIn(block) {
  assert.equal(block?.language, "json", "answers stand in a ```json block right after their requests");
  return block.text.trimEnd().split(/\n(?=[{[])/).map((answer) => JSON.parse(answer));
}

/** The commands of a shell text, each as its words, quotes and variables still in them. */
function commandsIn(text) {
  const commands = [[]];
  const token = /(?:[ \t]|\\\n)+|(?<end>(?:#.*)?\n)|(?<word>(?:'[^']*'|"[^"]*"|[^\s'"])+)/gy;
  let read = 0;
  for (const { 0: found, groups } of text.matchAll(token)) {
    read += found.length;
    if (groups.word !== undefined) commands.at(-1).push(groups.word);
    if (groups.end !== undefined) commands.push([]);
  }
  assert.equal(read, text.length, `read until:\n${text.slice(read)}`);
  return commands.filter((words) => words.length > 0);
}

function secretIn(words, line) {
  const [, name, value] = line.match(/^echo '(\w+)=([^']+)' > \.dev\.vars$/) ?? assert.fail(`no secret:\n${line}`);
  return { [name]: value };
}

function patternOf(printed) {
  const parts = printed.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".+")}$`, "s");
}
