// Checks the deployed defaults (the file agent-defaults.json of a clone, and the variable
// AGENT_DEFAULTS of any wrangler configuration) against the operations' schemas.

import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { findFault } from "./schema.mjs";

const VARIABLE = "AGENT_DEFAULTS";

/** The platform's limit for a variable, in bytes. */
const MAX_VARIABLE_BYTES = 5 * 1024;

/** The error in a text of defaults, as a sentence that begins with `source`. */
export function findTextFault(source, text, api) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `${source} is not JSON: ${error.message}`;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value))
    return `${source} must contain a JSON object.`;
  const fault = findDefaultsFault(value, api);
  return fault && `${source}: ${fault}`;
}

/**
 * The error in the variable in any environment of a wrangler configuration, as a sentence. Wrangler is
 * loaded only if the variable occurs, because loading takes a second. `tooLong`: the advice for a text
 * that is too long.
 */
export async function findVariableFault(config, { loadWrangler, readApi, tooLong }) {
  if (!existsSync(config)) return undefined;
  if (!new RegExp(`^[^#\\n]*\\b${VARIABLE}\\b`, "m").test(readFileSync(config, "utf8"))) return undefined;
  const { unstable_readConfig: readConfig } = await loadWrangler();
  const read = (env) => readConfig({ config, env }, { hideWarnings: true });
  const source = `${VARIABLE} in ${basename(config)}`;
  for (const env of [undefined, ...(read(undefined).definedEnvironments ?? [])]) {
    const { [VARIABLE]: given = "" } = read(env).vars ?? {};
    const value = typeof given === "string" ? given : JSON.stringify(given);
    const bytes = Buffer.byteLength(value);
    if (bytes > MAX_VARIABLE_BYTES)
      return `${source} has ${bytes} bytes; the limit of a variable is ${MAX_VARIABLE_BYTES}. ${tooLong}`;
    const fault = value === "" ? undefined : findTextFault(source, value, readApi());
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** The error in these defaults; `undefined`: they match their schemas. `api` is openapi.json. */
export function findDefaultsFault(defaults, { paths, components }) {
  const input = (operation) =>
    paths[`/agents/session-agent/{agent}/rpc/${operation}`].post.requestBody.content["application/json"].schema;
  const list = (operation, maxItems) => ({
    type: ["array", "null"],
    maxItems,
    items: without(input(operation), "sessionId"),
  });
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
  return findFault(schema, defaults, "", components.schemas) ?? findRuleViolation(defaults);
}

/** The most deployed blocks, and the most tools. */
const MAX_LISTED = 100;

/** A deployed block belongs to the agent. */
function without(schema, name) {
  const { [name]: _, ...properties } = schema.properties;
  return { ...schema, properties };
}

/** The rules that schemas can't express. */
function findRuleViolation({ blocks, tools }) {
  return (
    findDouble(blocks, "blocks", "label", (label) => label.toLowerCase()) ??
    findDouble(tools, "tools", "name", (name) => name) ??
    findSeveral(
      blocks,
      (block, index) =>
        block.source && [`blocks[${index}].source`, block.source, ["r2", "r2Prefix", "agent", "service"]],
    ) ??
    findServer(tools) ??
    findSeveral(tools, (tool, index) => [`tools[${index}]`, tool, ["service", "url"]])
  );
}

function findDouble(list, path, field, key) {
  const seen = new Set();
  for (const [index, item] of (list ?? []).entries()) {
    if (seen.has(key(item[field])))
      return `\`${path}[${index}].${field}\` is already used by another item of the list.`;
    seen.add(key(item[field]));
  }
  return undefined;
}

function findSeveral(list, addressesOf) {
  for (const [index, item] of (list ?? []).entries()) {
    const [path, object, fields] = addressesOf(item, index) ?? [];
    if (fields && fields.filter((name) => object[name] != null).length !== 1)
      return `\`${path}\` must have exactly one of \`${fields.join("`, `")}\`.`;
  }
  return undefined;
}

function findServer(tools) {
  const index = (tools ?? []).findIndex((tool) => tool.mcp != null);
  return index < 0
    ? undefined
    : `\`tools[${index}].mcp\` can't be deployed: use \`defineTool\`, which fetches a server's tools so that you can review them.`;
}
