// The types of `session-agent/react` under `--strict` with TypeScript 5.9 and 7, and the modules
// that need React.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { CLIENT, ROOT, TSC } from "../../scripts/paths.mjs";
import { compilerErrors } from "./compile_typescript.mjs";
import { project } from "./packed_project.mjs";

const TYPESCRIPT = [join(ROOT, "tests/client/node_modules/typescript-5/lib/tsc.js"), TSC];
const LINKS = ["ai", "zod", "react", "@types/react", "@cloudflare/workers-types"];

const { folder, remove } = await project(join(import.meta.dirname, "react"), LINKS);
after(remove);

for (const tsc of TYPESCRIPT) {
  test(`the_hooks_infer_the_tools_of_the_class_with_typescript_${tsc === TSC ? 7 : 5}`, async () => {
    const problems = await compilerErrors(
      folder,
      ["types.tsx"],
      { jsx: "react-jsx", types: ["@cloudflare/workers-types", "react"], lib: ["esnext"], skipLibCheck: true },
      tsc,
    );
    assert.equal(problems, "");
  });
}

test("only_the_hooks_depend_on_react", async () => {
  const { peerDependenciesMeta } = JSON.parse(await readFile(join(CLIENT, "package.json"), "utf8"));
  assert.deepEqual(peerDependenciesMeta.react, { optional: true });
  const code = await readFile(join(CLIENT, "dist/index.js"), "utf8");
  assert.doesNotMatch(code, /react/);
  // Importing only this module loads React and renders nothing.
  const hooks = await import("session-agent/react");
  assert.deepEqual(Object.keys(hooks).toSorted(), [
    "InputRequestForm",
    "Markdown",
    "useAgent",
    "useMemory",
    "useProposals",
    "useSession",
    "useSessions",
    "useTurns",
    "visibleInput",
  ]);
});
