import assert from "node:assert/strict";
import { test } from "node:test";
import { checkBindgenVersion, problemWithVersions } from "../../scripts/setup/bindgen.mjs";

test("tools_bindgen_has_the_version_of_wasm_bindgen_that_the_worker_has", () => {
  checkBindgenVersion();
});

test("a_version_mismatch_is_one_line_with_the_fix", () => {
  assert.equal(problemWithVersions("0.2.129", "0.2.129"), null);
  const problem = problemWithVersions("0.2.130", "0.2.129");
  assert.match(problem, /wasm-bindgen 0\.2\.130 .*wasm-bindgen-cli-support 0\.2\.129.*`=0\.2\.130` .*`cargo update/);
  assert.equal(problem.split("\n").length, 1);
});
