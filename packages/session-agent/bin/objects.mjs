// Checks that a wrangler configuration contains the agents' Durable Objects: the binding SESSION_AGENT,
// a SQLite migration of its class, and the class among the exports of the entry module.

import { existsSync, readFileSync } from "node:fs";
import { basename, relative } from "node:path";

const BINDING = "SESSION_AGENT";
const SOURCE = /\.[cm]?[jt]sx?$/;

/**
 * The error in a wrangler configuration, as a sentence. Environments don't inherit bindings, and
 * wrangler itself names those that an environment lacks, so one environment with the binding is enough.
 * A Worker that routes requests itself may bind the class under another name, so a configuration with
 * other bindings of Durable Objects is accepted.
 */
export async function findObjectsFault(config, { loadWrangler }) {
  const { unstable_readConfig: readConfig } = await loadWrangler();
  const read = (env) => ({ env, ...readConfig({ config, env }, { hideWarnings: true }) });
  const top = read(undefined);
  const environments = [top, ...(top.definedEnvironments ?? []).map(read)];
  const bound = environments.flatMap(({ durable_objects, ...rest }) =>
    (durable_objects?.bindings ?? [])
      .filter(({ name }) => name === BINDING)
      .map((binding) => ({ ...rest, className: binding.class_name, isElsewhere: binding.script_name !== undefined })),
  );
  const file = basename(config);
  const isToml = file.endsWith(".toml");
  const hasOthers = environments.some(({ durable_objects }) => (durable_objects?.bindings ?? []).length > 0);
  if (bound.length === 0 && hasOthers) return undefined;
  if (bound.length === 0)
    return `${file} has no Durable Object binding ${BINDING}, which the agents need. Add: ${
      isToml
        ? `[[durable_objects.bindings]] with name = "${BINDING}" and class_name = "SessionAgent".`
        : `"durable_objects": {"bindings": [{"name": "${BINDING}", "class_name": "SessionAgent"}]}.`
    }`;
  for (const { env, main, migrations, exports, className, isElsewhere } of bound) {
    // A class of another Worker is migrated and exported there.
    if (isElsewhere) continue;
    const place = env === undefined ? file : `${file}, environment ${env}`;
    const storage = storageOf(className, migrations ?? [], exports ?? {});
    if (storage === undefined)
      return `${place} has no migration for the class ${className} of the binding ${BINDING}. Add: ${migration(isToml, className)}`;
    if (storage !== "sqlite")
      return `${place} creates the class ${className} of the binding ${BINDING} without SQLite, which the agents need. If it was never deployed, use instead: ${migration(isToml, className)}`;
    if (main !== undefined && isMissing(className, main))
      return `${relative(process.cwd(), main)} doesn't export the class ${className} of the binding ${BINDING} in ${place}. Export it there${
        className === "SessionAgent"
          ? `: export { SessionAgent } from "session-agent/worker";`
          : `, or correct class_name.`
      }`;
  }
  return undefined;
}

const migration = (isToml, className) =>
  isToml
    ? `[[migrations]] with tag = "v1" and new_sqlite_classes = ["${className}"].`
    : `"migrations": [{"tag": "v1", "new_sqlite_classes": ["${className}"]}].`;

/** How a class stores its data: "sqlite", or something else; `undefined`: nothing creates the class. */
function storageOf(className, migrations, exports) {
  const classes = new Map();
  for (const [name, { type, storage }] of Object.entries(exports))
    if (type === "durable-object") classes.set(name, storage);
  for (const step of migrations) {
    for (const name of step.new_classes ?? []) classes.set(name, "key-value");
    for (const name of step.new_sqlite_classes ?? []) classes.set(name, "sqlite");
    for (const { from, to } of step.renamed_classes ?? []) {
      classes.set(to, classes.get(from) ?? "sqlite");
      classes.delete(from);
    }
    // The other Worker's configuration defines how it is stored.
    for (const { to } of step.transferred_classes ?? []) classes.set(to, "sqlite");
    for (const name of step.deleted_classes ?? []) classes.delete(name);
  }
  return classes.get(className);
}

/**
 * Whether a module certainly doesn't export this name. `export *` may export it, and a file that
 * isn't there yet may be a build's result.
 */
function isMissing(name, main) {
  if (!SOURCE.test(main) || !existsSync(main)) return false;
  const code = readFileSync(main, "utf8").replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "");
  if (!/\bexport\b/.test(code) || /\bexport\s*\*\s*from\b/.test(code)) return false;
  const declared = new RegExp(`\\bexport\\s+(?:abstract\\s+class|class|const|let|var|function)\\s+${name}\\b`);
  const listed = [...code.matchAll(/\bexport\s*\{([^}]*)\}/g)].flatMap(([, names]) => names.split(","));
  return !declared.test(code) && !listed.some((item) => item.trim().split(/\s+/).at(-1) === name);
}
