// Compiles the TypeScript files of a folder like a Workers project and returns the compiler's
// output.

import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { TSC } from "../../scripts/paths.mjs";
import { NODE } from "../../scripts/wrangler.mjs";

const runFile = promisify(execFile);

/**
 * The compiler's errors; "" if there are none. `options` are added to its options, and `tsc` is
 * another compiler.
 */
export async function compilerErrors(folder, files, options = {}, tsc = TSC) {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: "esnext",
    module: "esnext",
    moduleResolution: "bundler",
    lib: ["esnext"],
    types: ["@cloudflare/workers-types"],
    ...options,
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  return await runFile(NODE, [tsc, "--project", folder, "--pretty", "false"], { cwd: folder }).then(
    () => "",
    ({ stdout, message }) => stdout || message,
  );
}
