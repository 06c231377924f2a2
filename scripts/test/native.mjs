// The flags with which cargo compiles Rust's tests. In the gate, they also lint the tests.

import { join } from "node:path";
import { IN_TESTS } from "../lint.mjs";
import { ROOT } from "../paths.mjs";

/**
 * Everything that runs these tests compiles them with these flags: otherwise cargo compiles them
 * again.
 */
export function envOfTests(env = process.env) {
  if (!env.SESSION_AGENT_LINT_TESTS) return env;
  return {
    ...env,
    RUSTC_WORKSPACE_WRAPPER: join(ROOT, "scripts/test/rustc.sh"),
    SESSION_AGENT_LINTS: IN_TESTS.join(" "),
  };
}
