import assert from "node:assert/strict";
import { test } from "node:test";
import { fromCargo, fromCheck, fromTap, skippedInTap, sum, testsInTap } from "../../scripts/test_counts.mjs";

const cargo = (passed, failed) =>
  `\ntest result: ${failed ? "FAILED" : "ok"}. ${passed} passed; ${failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n`;
const tap = (pass, fail, cancelled = 0) =>
  `1..2\n# tests 2\n# pass ${pass}\n# fail ${fail}\n# cancelled ${cancelled}\n`;

test("cargo_test_binaries_are_summed", () => {
  assert.deepEqual(fromCargo(cargo(3, 0) + cargo(2, 0), 0), { passed: 5, failed: 0 });
});

test("failures_reported_by_the_runner_are_counted_once", () => {
  assert.deepEqual(fromCargo(cargo(3, 2), 101), { passed: 3, failed: 2 });
  assert.deepEqual(fromTap(tap(1, 1), 1), { passed: 1, failed: 1 });
});

test("a_runner_without_tests_has_failed", () => {
  assert.deepEqual(fromCargo(cargo(0, 0), 0), { passed: 0, failed: 1 });
  assert.deepEqual(fromTap("", 0), { passed: 0, failed: 1 });
});

test("a_runner_that_crashed_without_a_failure_count_has_failed", () => {
  assert.deepEqual(fromCargo("error[E0425]: cannot find value", 101), { passed: 0, failed: 1 });
  assert.deepEqual(fromCargo(cargo(3, 0), 101), { passed: 3, failed: 1 });
  assert.deepEqual(fromTap(tap(2, 0), 7), { passed: 2, failed: 1 });
});

test("a_test_that_was_killed_has_failed", () => {
  assert.deepEqual(fromTap(tap(1, 0, 1), 1), { passed: 1, failed: 1 });
});

test("a_check_counts_as_one_pass_or_failure", () => {
  assert.deepEqual(sum([fromCheck(0), fromCheck(0), fromCheck(101)]), { passed: 2, failed: 1 });
});

test("a_skip_reason_is_printed_once", () => {
  const line = "ok 1 - it_talks # SKIP a model, because there is none; to run it: install it.";
  const output = `${line}\n    ok 2 - it_sings # time=1\n  ${line}\nok 3 - a # SKIP\n`;
  assert.deepEqual(skippedInTap(output), ["a model, because there is none; to run it: install it.", ""]);
});

test("tests_are_listed_with_their_times_and_those_of_suites", () => {
  const output = `TAP version 13
# Subtest: talking
    # Subtest: it_talks
    ok 1 - it_talks
      ---
      duration_ms: 1234.5
      type: 'test'
      ...
ok 1 - talking
  ---
  duration_ms: 1300
  type: 'suite'
  ...
not ok 2 - it_sings # SKIP no voice
  ---
  duration_ms: 7
  ...
`;
  assert.deepEqual(testsInTap(output), [
    { name: "it_talks", ms: 1234.5 },
    { name: "it_sings", ms: 7 },
  ]);
});
