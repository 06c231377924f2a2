// The order of a module's functions, in which the module takes the fewest bytes gzipped.
//
// gzip finds what it saw in the last 32 KiB, and the module is seventy times as long. The
// compiler orders functions by where they come from. Functions that read alike, such as
// those that parse two types of the same fields, then stand too far apart. Here each
// function follows those that it shares the most bytes with.
//
// wasm-opt alone moves functions, and sorts them by name. So each function gets its place
// in front of its name, and `withoutPlace` takes the place away again.

/** How far gzip looks back, less what the next function takes. */
const WINDOW_BYTES = 30_000;

/** Functions are alike where they share runs of this many bytes. */
const RUN_BYTES = 6;

/** A run that more functions have than these says little of any two of them. */
const MAX_SHARED_BY = 100;

const [CUSTOM, IMPORT, CODE] = [0, 2, 10];
const IMPORTED = { function: 0, tag: 4 };
const FUNCTION_NAMES = 1;
const DIGITS = 5;

/** The module, with each function's place in front of the function's name. */
export function withPlaces(wasm) {
  const sections = sectionsOf(wasm);
  const bodies = bodiesOf(wasm, sections.find(({ id }) => id === CODE));
  const imported = importedFunctions(wasm, sections.find(({ id }) => id === IMPORT));
  const [nameSection] = sections.filter((section) => section.name === "name");
  const names = functionNames(wasm, nameSection);
  placesOf(bodies).forEach((place, index) => {
    const name = names.get(imported + index) ?? "";
    names.set(imported + index, `${String(place).padStart(DIGITS, "0")}.${name}`);
  });
  return Buffer.concat([wasm.subarray(0, nameSection.start), writtenNames(names), wasm.subarray(nameSection.end)]);
}

/** Lines of `index:name`, as wasm-opt writes them, with the names that the functions had. */
export const withoutPlaces = (symbolMap) => symbolMap.replace(new RegExp(`^(\\d+):\\d{${DIGITS}}\\.`, "gm"), "$1:");

/** For each function its place, by what the functions before it have in common with it. */
export function placesOf(bodies) {
  const runs = sharedRuns(bodies);
  const inWindow = new Uint32Array(runs.count);
  const shared = new Float64Array(bodies.length);
  const places = new Array(bodies.length).fill(-1);
  const window = [];
  let windowBytes = 0;

  const count = (index, by) => {
    for (const run of runs.of[index]) {
      const before = inWindow[run];
      inWindow[run] += by;
      if ((before === 0) !== (inWindow[run] === 0)) for (const other of runs.in[run]) shared[other] += by * runs.weight[run];
    }
    windowBytes += by * bodies[index].length;
  };

  for (let place = 0; place < bodies.length; place += 1) {
    const next = best(bodies.length, (index) => (places[index] < 0 ? shared[index] / (runs.of[index].length + 2) ** 0.75 : -1));
    places[next] = place;
    window.push(next);
    count(next, 1);
    while (windowBytes > WINDOW_BYTES && window.length > 1) count(window.shift(), -1);
  }
  return places;
}

/** The first of the indices whose score is the highest. */
function best(length, scoreOf) {
  let [found, highest] = [-1, -1];
  for (let index = 0; index < length; index += 1) {
    const score = scoreOf(index);
    if (score > highest) [found, highest] = [index, score];
  }
  return found;
}

/** The runs of bytes that several functions have: `of` each function, and the functions `in` which each is. */
function sharedRuns(bodies) {
  const users = new Map();
  bodies.forEach((body, index) => {
    for (let at = 0; at + RUN_BYTES <= body.length; at += 1) {
      const hash = hashOf(body, at);
      const known = users.get(hash);
      if (known === undefined) users.set(hash, [index]);
      else if (known.at(-1) !== index) known.push(index);
    }
  });
  const of = bodies.map(() => []);
  const shared = [...users.values()].filter(({ length }) => length > 1 && length <= MAX_SHARED_BY);
  shared.forEach((indices, run) => indices.forEach((index) => of[index].push(run)));
  // What few functions have says more of them.
  const weight = shared.map(({ length }) => 1 / Math.log2(length + 1));
  return { count: shared.length, of, in: shared, weight };
}

/** FNV-1a of a run. */
function hashOf(bytes, start) {
  let hash = 0x811c9dc5;
  for (let at = start; at < start + RUN_BYTES; at += 1) hash = Math.imul(hash ^ bytes[at], 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

function sectionsOf(wasm) {
  const sections = [];
  const reader = new Reader(wasm, 8);
  while (reader.at < wasm.length) {
    const start = reader.at;
    const id = reader.byte();
    const length = reader.number();
    const body = reader.at;
    const end = body + length;
    sections.push({ id, start, body, end, name: id === CUSTOM ? reader.text() : null });
    reader.at = end;
  }
  return sections;
}

function bodiesOf(wasm, section) {
  const reader = new Reader(wasm, section.body);
  return Array.from({ length: reader.number() }, () => {
    const length = reader.number();
    reader.at += length;
    return wasm.subarray(reader.at - length, reader.at);
  });
}

/** Functions are numbered from the imported ones on. */
function importedFunctions(wasm, section) {
  const reader = new Reader(wasm, section.body);
  let functions = 0;
  for (let left = reader.number(); left > 0; left -= 1) {
    reader.text();
    reader.text();
    const kind = reader.byte();
    if (kind === IMPORTED.function) functions += 1;
    else if (kind === IMPORTED.tag) reader.byte();
    else throw new Error(`an import of kind ${kind}: order.mjs knows functions and tags`);
    reader.number();
  }
  return functions;
}

function functionNames(wasm, section) {
  const reader = new Reader(wasm, section.body);
  reader.text();
  const names = new Map();
  while (reader.at < section.end) {
    const kind = reader.byte();
    const length = reader.number();
    const end = reader.at + length;
    if (kind === FUNCTION_NAMES) {
      for (let left = reader.number(); left > 0; left -= 1) names.set(reader.number(), reader.text());
    }
    reader.at = end;
  }
  return names;
}

function writtenNames(names) {
  const pairs = [...names].sort(([a], [b]) => a - b).flatMap(([index, name]) => [number(index), text(name)]);
  const functions = Buffer.concat([number(names.size), ...pairs]);
  const body = Buffer.concat([text("name"), Buffer.of(FUNCTION_NAMES), number(functions.length), functions]);
  return Buffer.concat([Buffer.of(CUSTOM), number(body.length), body]);
}

function text(value) {
  const bytes = Buffer.from(value);
  return Buffer.concat([number(bytes.length), bytes]);
}

/** A number as WebAssembly writes it: seven bits a byte, the lowest first. */
function number(value) {
  const bytes = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 0x7f) | 0x80);
  }
}

class Reader {
  constructor(bytes, at) {
    Object.assign(this, { bytes, at });
  }

  byte() {
    this.at += 1;
    return this.bytes[this.at - 1];
  }

  number() {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
  }

  text() {
    const length = this.number();
    this.at += length;
    return this.bytes.toString("utf8", this.at - length, this.at);
  }
}
