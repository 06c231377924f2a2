// What is deployed for every agent: agent-defaults.json becomes build/agent-defaults.js,
// which the compiled module imports. So a change of the file needs no compiler.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD, ROOT } from "../places.mjs";
import { Stop } from "../stop.mjs";

const FILE = "agent-defaults.json";
const VARIABLE = "AGENT_DEFAULTS";

/** Each isolate keeps the file in memory, read and parsed. */
const MAX_FILE_BYTES = 256 * 1024;

/** What the platform lets a variable hold. */
const MAX_VARIABLE_BYTES = 5 * 1024;

export async function buildDefaults(root = ROOT, build = BUILD) {
  await checkVariable(join(root, "wrangler.toml"));
  const text = readDefaults(join(root, FILE));
  const module = join(build, "agent-defaults.js");
  const code = `export const agentDefaults = () => ${JSON.stringify(text)};\n`;
  if (existsSync(module) && readFileSync(module, "utf8") === code) return;
  mkdirSync(build, { recursive: true });
  writeFileSync(module, code);
}

/** The file's text; `undefined` without a file. */
function readDefaults(file) {
  if (!existsSync(file)) return undefined;
  const text = readFileSync(file, "utf8");
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_FILE_BYTES) throw new Stop(`${FILE} has ${bytes} bytes; at most ${MAX_FILE_BYTES} are read. Keep long texts in a bucket, as a block's \`source\`.`);
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Stop(`${FILE} is not JSON: ${error.message}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Stop(`${FILE} must hold a JSON object.`);
  return text;
}

/** wrangler is asked only where the variable is set: it takes a second to load. */
async function checkVariable(config) {
  if (!existsSync(config)) return;
  const text = readFileSync(config, "utf8");
  if (!new RegExp(`^[^#\\n]*\\b${VARIABLE}\\b`, "m").test(text)) return;
  const { unstable_readConfig: readConfig } = await import("wrangler");
  const environments = [...text.matchAll(/^\s*\[env\.([\w-]+)/gm)].map((found) => found[1]);
  for (const env of [undefined, ...new Set(environments)]) {
    const { vars = {} } = readConfig({ config, env }, { hideWarnings: true });
    const value = vars[VARIABLE] ?? "";
    const bytes = Buffer.byteLength(typeof value === "string" ? value : JSON.stringify(value));
    if (bytes > MAX_VARIABLE_BYTES) {
      throw new Stop(`${VARIABLE} in wrangler.toml has ${bytes} bytes; a variable holds ${MAX_VARIABLE_BYTES}. Put its JSON into the file ${FILE} beside wrangler.toml.`);
    }
  }
}
