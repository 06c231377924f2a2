// Follows a document as a reader would: runs its ```sh blocks like a shell and compares its ```json
// blocks with the agent's answers.
//
// A line of a ```sh block is one of
//
//   # a comment
//   NAME=value            a variable; `$NAME` uses it
//   echo 'NAME=value' > .dev.vars    (or `>>`, which adds a line)
//                         a setting; the Worker is to be started again with it
//   curl -s [-X METHOD] [-H '…'] URL [-d '…' | -T FILE] [-o FILE]
//                         a request; FILE is one that an earlier `-o` wrote
//   npm …, npx wrangler …, openssl rand -hex 32
//                         commands for a clone, which the reader hands on
//
// Any other line is an error. A ```json block has one answer for each request without
// `-o`; each answer starts at the beginning of a line. The printed and the actual answer
// have the same keys in the same order, and the same values. There are three exceptions:
//
//   `…` in a string without spaces
//                         stands for some text: for the same text wherever the
//                         same string is printed, also as a variable's value
//   a number at `…At` or `at`  stands for a time of this run, or at most a day later
//   a number at `score`   stands for any number above 0

import assert from "node:assert/strict";

const ORIGIN = "http://127.0.0.1:8787";
const DAY_MS = 86_400_000;

export class Reader {
  #started = Date.now();
  #variables = new Map();
  #stoodFor = new Map();
  #files = new Map();

  /**
   * The steps of a ```sh block, in order: `{ setting: { name, value, isAdded } }`, `{ command }` as
   * words, or `{ request: { path, init, file } }`. The caller passes the answer of a request with a
   * `file` to `keep` before the next step.
   */
  *follow(text) {
    for (const words of commandsIn(text)) {
      const line = words.join(" ");
      if (words[0] === "echo") yield { setting: settingIn(line) };
      else if (words[0] === "curl") yield { request: this.#request(words, line) };
      else if (["npm", "npx", "openssl"].includes(words[0])) yield { command: words };
      else this.#assign(line);
    }
  }

  keep(file, text) {
    this.#files.set(file, text);
  }

  #assign(line) {
    const [, name, value] =
      line.match(/^(\w+)=(\S+)$/) ?? assert.fail(`not a command that a document may have:\n${line}`);
    assert.ok(!value.includes("…") || this.#stoodFor.has(value), `no answer had it:\n${line}`);
    this.#variables.set(name, this.#stoodFor.get(value) ?? this.#substitute(value));
  }

  #request([, silent, ...words], line) {
    assert.equal(silent, "-s", `curl without -s shows more than the answer:\n${line}`);
    const init = { method: "GET", headers: {} };
    let [url, file] = [null, null];
    const next = () => this.#expand(words.shift() ?? assert.fail(`breaks off:\n${line}`));
    while (words.length > 0) {
      const word = next();
      if (word === "-H") {
        const [, name, value] = next().match(/^([\w-]+): (.+)$/);
        init.headers[name] = value;
      } else if (word === "-d") {
        Object.assign(init, { method: "POST", body: next() });
      } else if (word === "-X") {
        init.method = next();
      } else if (word === "-T") {
        const name = next();
        Object.assign(init, { body: this.#files.get(name) ?? assert.fail(`no request wrote ${name}:\n${line}`) });
      } else if (word === "-o") {
        file = next();
      } else {
        assert.ok(url === null && word.startsWith(`${ORIGIN}/`), `no address of ${ORIGIN}: ${word}`);
        url = word;
      }
    }
    return { path: url.slice(ORIGIN.length), init, file };
  }

  /** A word as the shell passes it to a command. */
  #expand(word) {
    const parts = word.match(/'[^']*'|"[^"]*"|[^'"]+/g);
    return parts
      .map((part) => (part[0] === "'" ? part.slice(1, -1) : this.#substitute(part.replaceAll('"', ""))))
      .join("");
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
    } else if (typeof printed === "number" && /(At|\bat)$/.test(where)) {
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

/** The JSON values of a block. Each starts at the beginning of a line. */
export function answersIn(block) {
  assert.equal(block?.language, "json", "the answers stand in a ```json block right after their requests");
  return block.text
    .trimEnd()
    .split(/\n(?=[{[])/)
    .map((answer) => JSON.parse(answer));
}

/** The commands of a shell text, each as its words, with their quotes and variables. */
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

function settingIn(line) {
  const [, name, value, how] =
    line.match(/^echo '(\w+)=([^']+)' (>>?) \.dev\.vars$/) ?? assert.fail(`not a setting:\n${line}`);
  return { name, value, isAdded: how === ">>" };
}

function patternOf(printed) {
  const parts = printed.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".+")}$`, "s");
}
