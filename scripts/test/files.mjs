// Lists the test files, those that run exclusively, and those that start first.

import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { ROOT } from "../paths.mjs";
import { UserError } from "../user_error.mjs";

/** The folders of tests that Node's runner runs. Each is a part of `npm test`. */
const FOLDERS = ["scripts", "workerd", "client", "python", "console", "cargo", "player"];

/**
 * None of Node's tests runs beside these, which are a part of their own. One measures memory. The other
 * sends 64 long vectors at once to a real model, for which a search waits 5 seconds.
 */
export const ALONE = ["tests/workerd/isolate_memory.test.mjs", "tests/workerd/real_embeddings.test.mjs"];

/** These mostly wait for deadlines and for time to pass. */
export const WAITING = [
  "tests/workerd/slow_bodies.test.mjs",
  "tests/workerd/turn_kill.test.mjs",
  "tests/workerd/purge.test.mjs",
  "tests/workerd/outgoing_calls.test.mjs",
  "tests/workerd/model_wait.test.mjs",
  "tests/workerd/stalled_peers.test.mjs",
];

/** The longest ones run first, so that a run does not wait for one of them at its end. */
export const FIRST = [
  "tests/client/examples.test.mjs",
  "tests/workerd/rust_client.test.mjs",
  "tests/client/second_worker.test.mjs",
  "tests/client/versions.test.mjs",
  "tests/python/package.test.mjs",
  "tests/client/connection_matrix.test.mjs",
  "tests/client/create_react.test.mjs",
  "tests/client/base_url_coding_agents.test.mjs",
  "tests/client/langgraph.test.mjs",
  "tests/workerd/upgrades.test.mjs",
  "tests/workerd/documents.test.mjs",
  "tests/console/chat.test.mjs",
  "tests/console/access.test.mjs",
];

export const PARTS_IN_NODE = [...FOLDERS, "alone"];

/** The files of these parts, in the order in which they start. */
export function testsOf(parts) {
  const files = parts.flatMap((part) =>
    part === "alone" ? ALONE : testsIn(`tests/${part}`).filter((file) => !ALONE.includes(file)),
  );
  return [...FIRST.filter((file) => files.includes(file)), ...files.filter((file) => !FIRST.includes(file))];
}

/** The named files, each by its path or as `isolate_memory` for `tests/workerd/isolate_memory.test.mjs`. */
export function filesNamed(names, parts) {
  const all = [...testsOf(parts), ...ALONE];
  return names.map((name) => {
    const isNamed = (file) => basename(file, ".test.mjs") === basename(name, ".test.mjs");
    const file = all.includes(name) ? name : all.find(isNamed);
    if (file !== undefined) return file;
    throw new UserError(
      `There is no file of tests \`${name}\` in ${parts.join(", ")}. Name one of tests/*/*.test.mjs.`,
    );
  });
}

/** Files are listed one by one, because versions of `node --test` treat a folder differently. */
function testsIn(folder) {
  return readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith(".test.mjs"))
    .sort()
    .map((name) => `${folder}/${name}`);
}
