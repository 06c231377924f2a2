// `npm run release`: the errors that it reports before it builds or uploads anything. The gate runs
// the dry run of all registries.

import assert from "node:assert/strict";
import { test } from "node:test";
import { problemWithChangelog, readArguments, sharedVersion } from "../../scripts/release.mjs";

test("a_release_names_one_registry_and_a_dry_run_covers_all", () => {
  assert.deepEqual(readArguments(["npm"]), { registries: ["npm"], dryRun: false });
  assert.deepEqual(readArguments(["--dry-run"]), { registries: ["npm", "crates", "pypi"], dryRun: true });
  assert.deepEqual(readArguments(["pypi", "--dry-run"]), { registries: ["pypi"], dryRun: true });
  for (const args of [[], ["npm", "crates"], ["maven"], ["toString"], ["npm", "--force"]])
    assert.throws(() => readArguments(args), /Name a registry: `npm run release -- npm\|crates\|pypi/, args.join(" "));
});

test("all_packages_have_one_version", () => {
  assert.match(sharedVersion(), /^\d+\.\d+\.\d+$/);
});

test("a_changelog_must_describe_the_version", () => {
  const ready = "# Changelog\n\n## Unreleased\n\n## 1.2.0\n\nA change.\n\n## 1.1.0\n\nAn older one.\n";
  assert.equal(problemWithChangelog(ready, "1.2.0"), null);
  assert.equal(problemWithChangelog(ready.replace("## Unreleased\n\n", ""), "1.2.0"), null);
  assert.match(problemWithChangelog(ready, "1.2"), /no section `## 1\.2`/);
  assert.match(problemWithChangelog(ready.replace("A change.\n", ""), "1.2.0"), /no section `## 1\.2\.0`/);
  assert.match(problemWithChangelog(ready.replace("## 1.2.0\n", ""), "1.1.0"), /under `## Unreleased`/);
});
