// `npm run bench` runs every benchmark, one after another; `npm run bench -- NAME …` runs some of
// them. docs/benchmarks.md explains what each measures. Each prints its tables and writes them,
// with plots, to bench/results/; `rows` and `vectors` write next to their program.

import { join } from "node:path";
import { build } from "./build.mjs";
import { ROOT, withPackages } from "./paths.mjs";
import { run } from "./processes.mjs";
import { setUp } from "./setup.mjs";
import { benchPackages, clientTestPackages, testPackages } from "./setup/packages.mjs";
import { UserError } from "./user_error.mjs";
import { NODE } from "./wrangler.mjs";

export const BENCHES = ["size", "speed", "rows", "search", "first_token", "isolate", "crowd", "cold", "long"];
/**
 * Run only by name: some may use real models or compile a program, one takes most of an hour, the
 * others write nothing.
 */
export const BY_NAME = [
  "vectors",
  "recall",
  "memory",
  "check",
  "client",
  "forgetting",
  "tracing",
  "waits",
  "model_wait",
];

export async function main(names) {
  const unknown = names.find((name) => ![...BENCHES, ...BY_NAME].includes(name));
  if (unknown !== undefined)
    throw new UserError(`There is no bench \`${unknown}\`: ${[...BENCHES, ...BY_NAME].join(", ")}.`);
  // The check measures no peer.
  const isLong = names.length === 0 || names.includes("long");
  // The long conversation counts with a tokenizer that the client's tests bring.
  const more = isLong ? [clientTestPackages] : [];
  await setUp(...(names.join() === "check" ? [testPackages] : [benchPackages, testPackages, ...more]));
  await build();
  let worst = 0;
  for (const name of names.length > 0 ? names : BENCHES) {
    console.error(`── ${name}`);
    worst = Math.max(worst, await run(NODE, [join(ROOT, "bench", `${name}.mjs`)], { cwd: ROOT, env: withPackages() }));
  }
  return worst;
}
