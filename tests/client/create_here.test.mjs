// `npm run create`: a project from this clone, installed and deployed in a dry run without the
// registry.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { createProject, readArguments } from "../../scripts/create.mjs";
import { ROOT } from "../../scripts/paths.mjs";
import { quietEnv } from "../../scripts/wrangler.mjs";
import { wrangler } from "./packed_project.mjs";

const parent = await mkdtemp(join(tmpdir(), "session-agent-create-here-"));
after(() => rm(parent, { recursive: true, force: true }));

test("a_project_from_this_clone_installs_offline_and_passes_a_dry_run", async () => {
  const folder = join(parent, "my-agent");
  assert.equal(await createProject(folder, "worker"), 0);
  const manifest = join(folder, "package.json");
  const project = JSON.parse(await readFile(manifest, "utf8"));
  assert.match(project.dependencies["session-agent"], /^file:packages\/session-agent-[\d.]+\.tgz$/);
  // The registry is only needed for wrangler, which the tests have installed.
  await writeFile(manifest, JSON.stringify({ ...project, devDependencies: {} }));
  await promisify(execFile)("npm", ["install", "--offline", "--no-audit", "--no-fund"], {
    cwd: folder,
    env: quietEnv(),
  });
  assert.ok(existsSync(join(folder, "node_modules/session-agent/worker/index_bg.wasm")));
  await symlink(join(ROOT, "node_modules/wrangler"), join(folder, "node_modules/wrangler"), "dir");
  assert.match(await wrangler(folder, "deploy", "--dry-run"), /env\.SESSION_AGENT \(SessionAgent\)/);
});

test("a_non_empty_folder_is_unchanged", async () => {
  const folder = join(parent, "taken");
  assert.equal(await createProject(folder, "worker"), 0);
  const before = await readFile(join(folder, "package.json"), "utf8");
  assert.equal(await createProject(folder, "class"), 1);
  assert.equal(await readFile(join(folder, "package.json"), "utf8"), before);
});

test("the_folder_is_relative_to_the_working_directory", () => {
  assert.deepEqual(readArguments(["../my-agent"], "/a/clone"), { folder: "/a/my-agent", template: "class" });
  assert.deepEqual(readArguments(["-t", "react", "here"], "/a"), { folder: "/a/here", template: "react" });
  for (const args of [[], ["one", "two"], ["one", "--templat", "class"]])
    assert.throws(() => readArguments(args, "/a"), { name: "UserError" });
});
