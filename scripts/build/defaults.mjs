// Converts agent-defaults.json to build/agent-defaults.js, which the compiled module imports, so a
// change of the file needs no compiler. packages/session-agent/bin/defaults.mjs validates the file,
// also for deployments of the npm package.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  findDefaultsFault as findFaultBy,
  findTextFault,
  findVariableFault,
} from "../../packages/session-agent/bin/defaults.mjs";
import { BUILD, OPENAPI, ROOT } from "../paths.mjs";
import { UserError } from "../user_error.mjs";

const FILE = "agent-defaults.json";

/** Each isolate keeps the file in memory, read and parsed. */
const MAX_FILE_BYTES = 256 * 1024;

/** The API's document. Reading it takes longer than all checks against it. */
let document;
const readApi = () => (document ??= JSON.parse(readFileSync(OPENAPI, "utf8")));

export const findDefaultsFault = (defaults) => findFaultBy(defaults, readApi());

export async function buildDefaults(root = ROOT, build = BUILD) {
  const loadWrangler = () => import("wrangler");
  stopAt(
    await findVariableFault(join(root, "wrangler.toml"), {
      loadWrangler,
      readApi,
      tooLong: `Put its JSON into the file ${FILE} next to wrangler.toml.`,
    }),
  );
  const text = readDefaults(join(root, FILE));
  const module = join(build, "agent-defaults.js");
  const code = `export const agentDefaults = () => ${JSON.stringify(text)};\n`;
  if (existsSync(module) && readFileSync(module, "utf8") === code) return;
  mkdirSync(build, { recursive: true });
  writeFileSync(module, code);
}

/** The file's text; `undefined` without a file. Stops the build where an agent would leave something out. */
function readDefaults(file) {
  if (!existsSync(file)) return undefined;
  const text = readFileSync(file, "utf8");
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_FILE_BYTES)
    throw new UserError(
      `${FILE} has ${bytes} bytes; at most ${MAX_FILE_BYTES} are read. Keep long texts in a bucket, as a block's \`source\`.`,
    );
  stopAt(findTextFault(FILE, text, readApi()));
  return text;
}

function stopAt(fault) {
  if (fault !== undefined) throw new UserError(fault);
}
