// `npm create session-agent@latest [folder] -- [--template worker|class|react]`: copies a template
// into a new folder. It installs nothing and makes no network requests.

import { randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const TEMPLATES = fileURLToPath(new URL("templates", import.meta.url));
const DEFAULT_TEMPLATE = "class";

/** The page to open first, by template. */
const ADDRESSES = {
  class: "http://localhost:8787/#/ann, the console of the agent `ann`",
  react: "http://localhost:8787, the chat",
  worker: "http://localhost:8787, the console",
};

try {
  main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

function main() {
  const templates = readdirSync(TEMPLATES).sort();
  const usage = `Usage: npm create session-agent@latest [folder] -- [--template ${templates.join("|")}]`;
  const { template, help, folders } = parseOptions(usage);
  if (help) return console.log(usage);
  if (!templates.includes(template))
    throw new Error(`There is no template \`${template}\`. Available templates: ${templates.join(", ")}.`);
  const given = folders[0] ?? "my-agent";
  const folder = resolve(given);
  const name = nameOf(basename(folder));
  if (existsSync(folder) && readdirSync(folder).some((entry) => entry !== ".git"))
    throw new Error(`${given} already exists and is not empty.`);

  mkdirSync(folder, { recursive: true });
  cpSync(join(TEMPLATES, template), folder, { recursive: true });
  // npm leaves a file of this name out of every archive.
  renameSync(join(folder, "gitignore"), join(folder, ".gitignore"));
  if (existsSync(join(folder, "dev.vars"))) renameSync(join(folder, "dev.vars"), join(folder, ".dev.vars"));
  for (const path of filesIn(folder)) writeFileSync(path, filled(readFileSync(path, "utf8"), name));
  console.log(
    `Created ${name} in ${given} from the template \`${template}\`. Next:\n\n  cd ${inShell(given)}\n  npm install\n  npm run dev\n\nThen open ${ADDRESSES[template]}. See README.md for details.\n`,
  );
}

/** Parses the command line. */
function parseOptions(usage) {
  const options = {
    template: { type: "string", short: "t", default: DEFAULT_TEMPLATE },
    help: { type: "boolean", short: "h", default: false },
  };
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    if (positionals.length < 2) return { ...values, folders: positionals };
  } catch {
    // The usage is more helpful than Node's own message.
  }
  throw new Error(usage);
}

/** A path, quoted for a shell if necessary. */
function inShell(path) {
  return /^[\w./~-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** The paths of all files under a folder. */
function filesIn(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

/** A template's text, completed. Each project gets a secret of its own, for local development. */
function filled(text, name) {
  return text.replaceAll("PROJECT_NAME", name).replaceAll("PROJECT_SECRET", () => randomBytes(32).toString("hex"));
}

/** A folder's name as the name of a Worker: at most 54 lower-case letters without accents, digits and dashes. */
function nameOf(text) {
  const name = text
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 54)
    .replaceAll(/^-+|-+$/g, "");
  return name || "my-agent";
}
