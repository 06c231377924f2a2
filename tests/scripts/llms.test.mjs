// Compares llms.txt and llms-full.txt with the guides from which they are generated.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { renderLlms } from "../../scripts/build/llms.mjs";
import { PACKAGED } from "../../scripts/build/package.mjs";
import { SITE } from "../../scripts/build/site.mjs";
import { ROOT } from "../../scripts/paths.mjs";

const files = renderLlms();
/** For people who work on the code. */
const OURS = ["README.md", "benchmarks.md", "quirks.md", "storage.md"];

test("generated_files_are_current", async () => {
  assert.deepEqual(Object.keys(files), ["llms.txt", "llms-full.txt"]);
  for (const [name, text] of Object.entries(files)) {
    for (const folder of [SITE, join(PACKAGED, "site")])
      assert.equal(await readFile(join(folder, name), "utf8"), text, `${folder}: \`npm run build\` writes ${name}`);
  }
});

test("every_user_guide_is_in_the_index_and_the_full_text", async () => {
  const guides = (await readdir(join(ROOT, "docs"))).filter((name) => name.endsWith(".md") && !OURS.includes(name));
  assert.ok(guides.length > 15);
  for (const name of guides) {
    const text = await readFile(join(ROOT, "docs", name), "utf8");
    if (name !== "operations.md") assert.ok(files["llms-full.txt"].includes(text), name);
  }
  const entries = files["llms.txt"].match(/^- \[.+\]\(\/(?:llms-full\.txt|openapi\.json)\): .+$/gm);
  // And CHANGELOG.md.
  assert.equal(entries.length, guides.length + 1);
});

test("the_index_starts_as_the_format_requires", () => {
  assert.match(files["llms.txt"], /^# Session Agent\n\n> Durable memory for AI agents on Cloudflare\. .+\n\n/);
  for (const title of ["Start", "Build", "Connect", "Run", "Reference"])
    assert.ok(files["llms.txt"].includes(`\n## ${title}\n`), title);
});
