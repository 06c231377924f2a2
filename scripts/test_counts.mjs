// Reads the number of passed and failed tests from the summary of each test runner.
//
// A runner that crashed, or that found no tests, counts as one additional failure, so
// that a broken run never reports "0 failed".

const NOTHING = { passed: 0, failed: 0 };

/** From `cargo test`, which closes each test binary with a line of its own. */
export function fromCargo(output, code) {
  const lines = output.matchAll(/^test result: \S+ (\d+) passed; (\d+) failed;/gm);
  const totals = sum([...lines].map(([, passed, failed]) => ({ passed: Number(passed), failed: Number(failed) })));
  return withRunnerFailure(totals, code);
}

/** From the closing comments of `node --test` in TAP. A test that was cut off has failed. */
export function fromTap(output, code) {
  const number = (name) => Number(output.match(new RegExp(`^# ${name} (\\d+)$`, "m"))?.[1] ?? 0);
  return withRunnerFailure({ passed: number("pass"), failed: number("fail") + number("cancelled") }, code);
}

/** Why tests were skipped, each reason once, from the same comments. */
export function skippedInTap(output) {
  const reasons = [...output.matchAll(/^ *ok \d+ .*? # SKIP ?(.*)$/gm)].map(([, reason]) => reason);
  return [...new Set(reasons)];
}

/** The tests of a file, from TAP, including those of its suites: `{ name, ms }` of each. */
export function testsInTap(output) {
  const lines = output.matchAll(
    /^( *)(?:not )?ok \d+ - (.*?)(?: # .*)?\n\1 {2}---\n\1 {2}duration_ms: ([\d.]+)\n(?:\1 {2}type: '(\w+)'\n)?/gm,
  );
  return [...lines].filter(([, , , , type]) => type !== "suite").map(([, , name, ms]) => ({ name, ms: Number(ms) }));
}

/** From a single check that passes or fails. */
export function fromCheck(code) {
  return code === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

export function sum(counts) {
  return counts.reduce((all, one) => ({ passed: all.passed + one.passed, failed: all.failed + one.failed }), NOTHING);
}

/** The last line of a run, and its exit code. */
export function close(counts) {
  const { passed, failed } = sum(counts);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

function withRunnerFailure({ passed, failed }, code) {
  const ranNothing = passed + failed === 0;
  const failedWithoutReport = code !== 0 && failed === 0;
  return { passed, failed: failed + (ranNothing || failedWithoutReport ? 1 : 0) };
}
