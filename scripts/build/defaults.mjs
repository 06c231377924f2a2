// What is deployed for every agent: agent-defaults.json becomes build/agent-defaults.js,
// which the compiled module imports. So a change of the file needs no compiler.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILD, OPENAPI, ROOT } from "../places.mjs";
import { Stop } from "../stop.mjs";
import { findFault } from "./schema.mjs";

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
  check(FILE, text);
  return text;
}

/** Stops the build where an agent would leave something out, and says which field is wrong. */
function check(source, text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Stop(`${source} is not JSON: ${error.message}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Stop(`${source} must hold a JSON object.`);
  const fault = findDefaultsFault(value);
  if (fault !== undefined) throw new Stop(`${source}: ${fault}`);
}

/** The API's document. It takes longer to read than all that is held against it. */
let document;

/** What is wrong with these defaults; `undefined`: nothing that their schemas know of. */
export function findDefaultsFault(defaults) {
  const { paths, components } = (document ??= JSON.parse(readFileSync(OPENAPI, "utf8")));
  const input = (operation) => paths[`/agents/session-agent/{agent}/rpc/${operation}`].post.requestBody.content["application/json"].schema;
  const list = (operation, maxItems) => ({ type: ["array", "null"], maxItems, items: without(input(operation), "sessionId") });
  const agent = input("configureAgent");
  const schema = {
    ...agent,
    properties: {
      ...agent.properties,
      blocks: list("defineBlock", MAX_LISTED),
      tools: list("defineTool", MAX_LISTED),
      compaction: { ...without(input("configureCompaction"), "sessionId"), type: ["object", "null"] },
    },
  };
  return findFault(schema, defaults, "", components.schemas) ?? findDoubt(defaults);
}

/** The most deployed blocks, and the most tools. */
const MAX_LISTED = 100;

/** A deployed block belongs to the agent. */
function without(schema, name) {
  const { [name]: _, ...properties } = schema.properties;
  return { ...schema, properties };
}

/** What no schema says. */
function findDoubt({ blocks, tools }) {
  return (
    findDouble(blocks, "blocks", "label", (label) => label.toLowerCase()) ??
    findDouble(tools, "tools", "name", (name) => name) ??
    findSeveral(blocks, (block, index) => block.source && [`blocks[${index}].source`, block.source, ["r2", "r2Prefix", "agent", "service"]]) ??
    findServer(tools) ??
    findSeveral(tools, (tool, index) => [`tools[${index}]`, tool, ["service", "url"]])
  );
}

function findDouble(list, path, field, key) {
  const seen = new Set();
  for (const [index, item] of (list ?? []).entries()) {
    if (seen.has(key(item[field]))) return `\`${path}[${index}].${field}\` names another one of the list, too.`;
    seen.add(key(item[field]));
  }
  return undefined;
}

function findSeveral(list, place) {
  for (const [index, item] of (list ?? []).entries()) {
    const [path, object, fields] = place(item, index) ?? [];
    if (fields && fields.filter((name) => object[name] != null).length !== 1) return `\`${path}\` must have exactly one of \`${fields.join("`, `")}\`.`;
  }
  return undefined;
}

function findServer(tools) {
  const index = (tools ?? []).findIndex((tool) => tool.mcp != null);
  return index < 0 ? undefined : `\`tools[${index}].mcp\` can't be deployed: \`defineTool\` asks a server for its tools, so that somebody has seen them.`;
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
    if (value !== "") check(`${VARIABLE} in wrangler.toml`, typeof value === "string" ? value : JSON.stringify(value));
  }
}
