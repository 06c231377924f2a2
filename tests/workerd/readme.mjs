// The README as the tests see it: its fenced blocks and its tables.

import { readFile } from "node:fs/promises";

export const fromRoot = (path) => new URL(`../../${path}`, import.meta.url);

export const readme = await readFile(fromRoot("README.md"), "utf8");

/** `{ language, text }` of every fenced block, in order. */
export const blocks = [...readme.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }));

/** The cells of the first table under a heading, row by row, without its head. */
export function tableUnder(heading) {
  const [, section] = readme.split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`README.md has no section \`${heading}\``);
  const table = section.split("\n## ")[0].match(/^\|.*(?:\n\|.*)*/m);
  return table[0]
    .split("\n")
    .slice(2)
    .map((line) => line.slice(1, -1).split("|").map((cell) => cell.trim()));
}

/** The names that stand in backticks in a table's column. */
export function namesIn(table, column) {
  return table.flatMap((cells) => [...cells[column].matchAll(/`(\w+)`/g)].map(([, name]) => name));
}
