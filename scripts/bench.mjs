// `npm run bench`: what operations cost in rows. `npm run bench -- speed`: how
// many a second; `-- vectors`: what meanings find. Each prints a table and writes
// it beside its program.

import { join } from "node:path";
import { build } from "./build.mjs";
import { ROOT, withPackages } from "./places.mjs";
import { run } from "./processes.mjs";
import { setUp } from "./setup.mjs";
import { Stop } from "./stop.mjs";
import { NODE } from "./wrangler.mjs";

const BENCHES = ["rows", "speed", "vectors"];

export async function main([name = "rows"]) {
  if (!BENCHES.includes(name)) throw new Stop(`There is no bench \`${name}\`: ${BENCHES.join(", ")}.`);
  await setUp();
  await build();
  return await run(NODE, [join(ROOT, "bench", `${name}.mjs`)], { cwd: ROOT, env: withPackages() });
}
