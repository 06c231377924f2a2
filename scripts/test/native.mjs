// What cargo needs to compile Rust's tests: something in the gate alone, which lints them meanwhile.

import { join } from "node:path";
import { IN_TESTS } from "../lint.mjs";
import { ROOT } from "../places.mjs";

/** Everything that runs these tests compiles them with it: otherwise cargo compiles them again. */
export function envOfTests(env = process.env) {
  if (!env.SESSION_AGENT_LINT_TESTS) return env;
  return {
    ...env,
    RUSTC_WORKSPACE_WRAPPER: join(ROOT, "scripts/test/rustc.sh"),
    SESSION_AGENT_LINTS: IN_TESTS.join(" "),
  };
}
