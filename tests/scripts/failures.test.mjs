import assert from "node:assert/strict";
import { test } from "node:test";
import { failuresIn } from "../../scripts/test/failures.mjs";

const failed = (name, ...more) => ["✖ failing tests:", "", `✖ ${name}`, ...more].join("\n");

test("failures_of_each_file_are_printed_without_surrounding_output", () => {
  const output = [
    "── a.test.mjs: 1 passed, 1 failed in 1.0 s\n\n✔ good\n✖ bad",
    failed("bad", "  AssertionError: 1 is not 2"),
    "\n── b.test.mjs: 1 passed, 0 failed in 1.0 s\n\n✔ fine",
    "\n── c.test.mjs: 0 passed, 1 failed in 1.0 s\n",
    failed("worse"),
    "\nThe longest tests:\n  9.0 s a\n\n2 passed, 2 failed",
  ].join("\n");
  const listed = failuresIn(output);
  assert.match(listed, /✖ bad\n {2}AssertionError: 1 is not 2/);
  assert.match(listed, /✖ worse/);
  assert.doesNotMatch(listed, /good|fine|longest/);
});

test("failures_of_cargo_are_printed", () => {
  const output = `test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\npanicked\n\ntest result: FAILED. 1 passed; 1 failed;\nlater`;
  assert.equal(failuresIn(output), "failures:\n\n---- b stdout ----\npanicked\n");
});

test("linter_errors_are_printed_wherever_they_appear", () => {
  const checking = "    Checking session-agent-base v0.1.0";
  const output = [
    checking,
    "error: very complex type used\n  --> tests/a.rs:47:16\n",
    "Diff in a.rs:1:\n-one\nDiff in b.rs:2:\n-two\n",
    "a.mjs:1:2 lint/style ━━━━━━━━\n\n  × Say why.\n",
    ...Array.from({ length: 50 }, () => checking),
  ].join("\n");
  const listed = failuresIn(output);
  for (const text of ["very complex", "a.rs:47", "-one", "-two", "Say why"]) assert.ok(listed.includes(text), text);
});

test("a_failed_check_without_a_runner_prints_its_last_lines", () => {
  const output = Array.from({ length: 100 }, (_, line) => `line ${line}`).join("\n");
  const listed = failuresIn(`${output}\n`).split("\n");
  assert.deepEqual([listed.length, listed[0], listed.at(-1)], [30, "line 70", "line 99"]);
});

test("a_file_with_many_failures_does_not_hide_others", () => {
  const many = failed("first", ...Array.from({ length: 1_000 }, () => "x".repeat(1_000)));
  const listed = failuresIn(`${many}\n── other\n${failed("second")}`);
  assert.match(listed, /✖ second/);
  assert.ok(listed.length < 50_000, `${listed.length} characters`);
});
