import assert from "node:assert/strict";
import { test } from "node:test";
import versions from "../../scripts/node_version.cjs";
import { problemWith } from "../../scripts/setup/requirements.mjs";

const complete = { platform: "linux", rustc: "rustc 1.91.0 (f8297e351 2025-10-28)", has: () => true };
const without = (...missing) => ({ ...complete, has: (program) => !missing.includes(program) });

test("an_old_node_gets_an_upgrade_message", () => {
  for (const version of ["12.22.12", "18.20.8", "19.9.0"]) {
    assert.match(
      versions.problemWithNode(version),
      /needs Node 20 or newer and this is Node 1\d\..*https:\/\/nodejs\.org/,
    );
  }
  assert.equal(versions.problemWithNode("20.0.0"), null);
  assert.equal(versions.problemWithNode("26.1.0"), null);
});

test("wrangler_runs_under_22_12_and_newer", () => {
  const able = ["20.20.2", "22.11.0", "22.12.0", "23.0.0"].map(versions.runsWrangler);
  assert.deepEqual(able, [false, false, true, true]);
});

test("a_complete_machine_has_no_problem", () => {
  assert.equal(problemWith(complete), null);
});

test("each_missing_requirement_is_one_line_with_the_fix", () => {
  const problems = [
    [without("npm"), /`npm`.*https:\/\/nodejs\.org/],
    [without("cargo"), /Rust 1\.91 or newer.*https:\/\/rustup\.rs/],
    [{ ...complete, rustc: null }, /Rust 1\.91 or newer.*https:\/\/rustup\.rs/],
    [{ ...complete, rustc: "rustc 1.90.0 (1159e78c4 2025-09-14)" }, /rustc 1\.90\.0.*`rustup update stable`/],
    [without("cc", "gcc", "clang"), /C compiler.*build-essential/],
    [{ ...complete, platform: "win32" }, /WSL/],
  ];
  for (const [machine, expected] of problems) {
    const problem = problemWith(machine);
    assert.match(problem, expected);
    assert.equal(problem.split("\n").length, 1);
  }
});
