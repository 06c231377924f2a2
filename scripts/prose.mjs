// The prose check of `npm run lint`: checks the texts that a person or a model reads against the rules in
// prose/rules.mjs. It prints each location, the words, and a replacement.
//
//   node scripts/prose.mjs                 everything
//   node scripts/prose.mjs docs/chat.md    these files

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findingsIn } from "./prose/rules.mjs";
import { textsOf } from "./prose/texts.mjs";
import { ROOT } from "./paths.mjs";

/** The files with texts, as git knows them. */
const COVERED = [
  "README.md",
  "CHANGELOG.md",
  "ARCHITECTURE.md",
  "docs/*.md",
  "packages/*/README.md",
  "packages/create-session-agent/templates/*/README.md",
  "crates/client/README.md",
  "python/README.md",
  "examples/*/README.md",
  "console/index.html",
  "console/src/*.ts",
  "console/src/*.tsx",
  "packages/*.ts",
  "packages/*.tsx",
  "packages/*.mjs",
  "packages/*.js",
  "examples/*.ts",
  "examples/*.tsx",
  "scripts/*.mjs",
  "python/src/*.py",
  "crates/*/src/*.rs",
  "src/*.rs",
  "generated/openapi.json",
];

const LEFT_OUT = [
  // Generated from generated/openapi.json, and the check's own words.
  /^packages\/session-agent\/src\/operations\.ts$/,
  /^scripts\/prose/,
  // Tests, and the crate's own operations, which are generated.
  /(?:^|\/)(?:tests?|testing)(?:\.rs|\/)|^scripts\/(?:crate|client)\.mjs$|random_play\.rs$|\/recorded\.rs$|^crates\/client\/src\/operations\//,
];

export function coveredFiles() {
  const listed = execFileSync("git", ["ls-files", "--", ...COVERED], { cwd: ROOT, encoding: "utf8" });
  return listed.split("\n").filter((path) => path !== "" && !LEFT_OUT.some((pattern) => pattern.test(path)));
}

/** `{ path, line, text, found, instead }` of each finding. */
export function findings(paths = coveredFiles()) {
  return paths.flatMap((path) =>
    textsOf(join(ROOT, path)).flatMap(({ line, text }) =>
      findingsIn(text).map((finding) => ({ path, line, text, ...finding })),
    ),
  );
}

/** The exit code of the check. */
export function checkProse(paths) {
  const all = findings(paths);
  for (const { path, line, found, instead } of all) console.error(`${path}:${line}: “${found}”. Instead: ${instead}.`);
  if (all.length > 0) console.error(`\n${all.length} findings. scripts/prose/rules.mjs has the rules.`);
  return all.length === 0 ? 0 : 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const paths = process.argv.slice(2);
  process.exitCode = checkProse(paths.length > 0 ? paths : undefined);
}
