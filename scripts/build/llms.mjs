// llms.txt and llms-full.txt, for programs that write code with Session Agent: an index of the
// guides, and their full text. They are static files of the Worker and part of the npm package. The
// build generates them from README.md and docs/, so they match its version.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { ROOT } from "../paths.mjs";
import { PACKAGED } from "./package.mjs";
import { SITE } from "./site.mjs";

const INDEX = "docs/README.md";
/**
 * Longer than all guides together. openapi.json has the same contents in a machine-readable form.
 */
const REFERENCE = "docs/operations.md";

const read = (path) => readFileSync(join(ROOT, path), "utf8");

/** The files by name. */
export function renderLlms() {
  const sections = sectionsOf(read(INDEX));
  const guides = sections.flatMap(({ guides }) => guides).filter(({ path }) => path !== REFERENCE);
  const texts = ["README.md", ...guides.map(({ path }) => path)];
  return { "llms.txt": renderIndex(sections), "llms-full.txt": texts.map(renderText).join("\n") };
}

/** The guides by section, as docs/README.md lists them: `{ title, guides: [{ title, path, about }] }`. */
function sectionsOf(index) {
  const parts = index.split(/^\*\*(.+)\*\*$/m).slice(1);
  const sections = parts.flatMap((title, n) => (n % 2 === 0 ? [{ title, guides: guidesIn(parts[n + 1]) }] : []));
  return sections.filter(({ guides }) => guides.length > 0);
}

function guidesIn(text) {
  const entries = text.matchAll(/^- \[(.+?)\]\((.+?)\):\s+((?:.+\n)(?: {2}.+\n)*)/gm);
  return [...entries].map(([, title, link, about]) => ({
    title,
    path: posix.join("docs", link),
    about: about.replaceAll(/\s+/g, " ").trim(),
  }));
}

function renderIndex(sections) {
  const [, pitch] = read("README.md").match(/^# .+\n\n((?:.+\n)+)/);
  const lists = sections.map(({ title, guides }) => {
    const lines = guides.map(({ title, path, about }) => `- [${title}](${addressOf(path)}): ${about}`);
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  const summary = pitch.replaceAll("**", "").replaceAll(/\s+/g, " ").trim();
  return [
    `# Session Agent\n\n> ${summary}\n`,
    "All guides are in [llms-full.txt](/llms-full.txt), each under its path. The npm package has the same file in `worker/site/`.\n",
    ...lists,
  ].join("\n");
}

/** The URL path of a guide's text. */
function addressOf(path) {
  return path === REFERENCE ? "/openapi.json" : "/llms-full.txt";
}

function renderText(path) {
  return `<!-- ${path} -->\n\n${read(path)}`;
}

/** Writes the files that are not current. */
export function writeLlms() {
  const files = Object.entries(renderLlms());
  for (const folder of [SITE, join(PACKAGED, "site")]) {
    for (const [name, text] of files) {
      const file = join(folder, name);
      if (!existsSync(file) || readFileSync(file, "utf8") !== text) writeFileSync(file, text);
    }
  }
}
