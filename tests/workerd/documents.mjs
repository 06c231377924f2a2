// Parses the README and the guides for the tests: fenced blocks, tables and links.

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { GENERATED } from "../../scripts/operations.mjs";
import { ROOT } from "../../scripts/paths.mjs";

/** A file of the tree, as text. */
export const read = (path) => readFile(join(ROOT, path), "utf8");

const guides = (await readdir(join(ROOT, "docs"))).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`);

/**
 * Every document: `{ path, text, blocks }`. A file added to docs/ is included. A
 * block is `{ path, line, language, text }`; `line` is the line of the block's first
 * fence.
 */
export const documents = await Promise.all(["README.md", ...guides.sort()].map(open));

/** The hand-written documents. `tests/scripts/operations.test.mjs` checks the generated one. */
export const handWritten = documents.filter(({ path }) => path !== GENERATED);

export const readme = documents[0];

/**
 * The documents of the client: their blocks in `ts client` are one program, from top to bottom.
 * client.test.mjs runs the programs.
 */
export const clientGuides = [
  documents.find(({ path }) => path === "docs/client.md"),
  await open("packages/session-agent/README.md"),
  documents[0],
  documents.find(({ path }) => path === "docs/sessions.md"),
];

/** The documents of the crate: their blocks in `rust` are one program, from top to bottom. */
export const crateReadme = await open("crates/client/README.md");

/** Such a program, with each line at its line number in the document. `first` precedes it. */
export function clientProgram({ text, blocks }, first) {
  const lines = text.split("\n").map(() => "");
  for (const block of blocks.filter(({ language }) => language === "ts client")) {
    for (const [n, line] of block.text.split("\n").entries()) lines[block.line + n] = line;
  }
  return `${first}${lines.join("\n")}`;
}

async function open(path) {
  const text = await read(path);
  const fences = text.matchAll(/^```([^\n]*)\n(.*?)^```$/gms);
  const blocks = [...fences].map(({ index, 1: language, 2: code }) => ({
    path,
    line: text.slice(0, index).split("\n").length,
    language,
    text: code,
  }));
  return { path, text, blocks };
}

const GIVEN = "operation: string, json?: string, options?: { token?: string }";
const ANSWER =
  "{ ok: true; value: string } | { ok: false; error: { code: string; message: string; details: object }; status: number }";
const WAYS = (agent) => `call(${agent}${GIVEN}): Promise<string>; request(${agent}${GIVEN}): Promise<${ANSWER}>;`;
const METHOD =
  "getHistory(input: { sessionId: string }, options: { token: string }): Promise<{ messages: { id: string }[] }>;";

/** The members of `env` in a ```ts block, with their types. */
export const ENV = {
  SESSION_AGENT_TOKEN: "string",
  MEMORY: `Fetcher & { ${WAYS("agent: string, ")} }`,
  AGENTS: `{ getByName(name: string): Fetcher & { ${WAYS("")} ${METHOD} } }`,
};

/** A ```ts block that exports helps the ```ts blocks after it in the same document. */
export const isHelper = ({ language, text }) => language === "ts" && /^export /m.test(text);

/** Every block in one of these languages, of all hand-written documents. */
export function blocksIn(...languages) {
  return handWritten.flatMap(({ blocks }) => blocks.filter(({ language }) => languages.includes(language)));
}

/** The cells of the first table under a heading of a document, row by row, without its head. */
export function tableUnder(path, heading) {
  const { text } = documents.find((document) => document.path === path);
  const [, section] = text.split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`${path} has no section \`${heading}\``);
  const table = section.split("\n## ")[0].match(/^\|.*(?:\n\|.*)*/m);
  return table[0]
    .split("\n")
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim()),
    );
}

/** The names in backticks in a column of a table. */
export function namesIn(table, column) {
  return table.flatMap((cells) => [...cells[column].matchAll(/`(\w+)`/g)].map(([, name]) => name));
}
