// The files that `npm test` runs: each once, whichever parts are named.

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "../../scripts/paths.mjs";
import { partsOf } from "../../scripts/test.mjs";
import { ALONE, FIRST, filesNamed, PARTS_IN_NODE, testsOf, WAITING } from "../../scripts/test/files.mjs";
import { timesOf } from "../../scripts/test/times.mjs";

test("every_test_file_is_in_exactly_one_part", () => {
  const folders = readdirSync(join(ROOT, "tests"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const files = folders.flatMap(({ name }) =>
    readdirSync(join(ROOT, "tests", name)).map((file) => `tests/${name}/${file}`),
  );
  const tests = files.filter((file) => file.endsWith(".test.mjs"));
  assert.ok(tests.length > 50);
  assert.deepEqual(PARTS_IN_NODE.flatMap((part) => testsOf([part])).sort(), tests.sort());
  assert.deepEqual(testsOf(PARTS_IN_NODE).sort(), tests);
});

test("named_files_exist_and_the_longest_run_first", () => {
  assert.deepEqual(
    [...ALONE, ...WAITING, ...FIRST].filter((file) => !existsSync(join(ROOT, file))),
    [],
  );
  assert.deepEqual(testsOf(["workerd", "client", "python", "console"]).slice(0, FIRST.length), FIRST);
});

test("arguments_after_a_part_belong_to_it", () => {
  assert.deepEqual(partsOf(["native", "chat::"]), { parts: ["native"], rest: ["chat::"] });
  assert.deepEqual(partsOf(["workerd", "client"]), { parts: ["workerd", "client"], rest: [] });
  assert.deepEqual(partsOf(["player", "--hours", "2"]), { parts: ["player"], rest: ["--hours", "2"] });
  assert.equal(partsOf([]).parts[0], "native");
  assert.throws(() => partsOf(["workerd", "client", "a.test.mjs"]), {
    name: "UserError",
    message: /^There is no part `/,
  });
});

test("a_test_is_named_without_its_part", () => {
  const chat = { parts: ["console"], rest: ["tests/console/chat.test.mjs"] };
  for (const name of ["tests/console/chat.test.mjs", "./tests/console/chat.test.mjs", "chat", "chat.test.mjs"])
    assert.deepEqual(partsOf([name]), chat, name);
  assert.deepEqual(partsOf([join(ROOT, "tests/console/chat.test.mjs")]), chat);
  assert.deepEqual(partsOf([ALONE[0]]), { parts: ["alone"], rest: [ALONE[0]] });
  // Several files of one name: each of them.
  const examples = ["tests/scripts/examples.test.mjs", "tests/client/examples.test.mjs"];
  assert.deepEqual(partsOf(["examples"]), { parts: ["scripts", "client"], rest: examples });
  assert.deepEqual(filesNamed(examples, ["scripts", "client"]), examples);
  assert.deepEqual(partsOf(["chat", "tests/player/kills.test.mjs"]), {
    parts: ["console", "player"],
    rest: ["tests/console/chat.test.mjs", "tests/player/kills.test.mjs"],
  });
});

test("rusts_tests_are_named_by_file_or_by_name", () => {
  const native = (...filters) => ({ parts: ["native"], rest: ["--", ...filters] });
  assert.deepEqual(partsOf(["tests/native/chat/queue.rs"]), native("chat::queue::"));
  assert.deepEqual(partsOf(["tests/native/chat/mod.rs"]), native("chat::"));
  const name = "queued_messages_are_answered_in_order";
  assert.deepEqual(partsOf([name, `queue::${name}`]), native(name, `queue::${name}`));
});

test("a_name_that_means_no_test_is_refused_in_a_sentence", () => {
  for (const wrong of [["nowhere"], ["tests/workerd/nowhere.test.mjs"], ["chat", "nowhere"], ["tests/native/chat.md"]])
    assert.throws(() => partsOf(wrong), {
      name: "UserError",
      message:
        `There is no part and no test \`${wrong.at(-1)}\`. The parts are: native, ${PARTS_IN_NODE.join(", ")}. A test is ` +
        "named by the path of its file, such as tests/workerd/search.test.mjs, or by its name, such as search.",
    });
  assert.throws(() => partsOf(["chat", "tests/native/chat/queue.rs"]), {
    name: "UserError",
    message: "Name Rust's tests and files of Node's tests in separate runs.",
  });
});

test("a_file_is_named_by_path_or_by_name", () => {
  const smoke = "tests/workerd/smoke.test.mjs";
  for (const name of [smoke, "smoke", "smoke.test.mjs"]) assert.deepEqual(filesNamed([name], ["workerd"]), [smoke]);
  assert.deepEqual(filesNamed(["isolate_memory"], ["alone"]), ["tests/workerd/isolate_memory.test.mjs"]);
  assert.deepEqual(filesNamed([ALONE[0]], ["workerd"]), [ALONE[0]]);
  assert.throws(() => filesNamed(["nowhere"], ["workerd"]), {
    name: "UserError",
    message: "There is no file of tests `nowhere` in workerd. Name one of tests/*/*.test.mjs.",
  });
});

test("the_longest_are_listed_first", () => {
  const file = (name, ms, tests) => ({ file: name, ms, tests });
  const printed = timesOf([
    file("a", 2_000, [{ name: "quick", ms: 10 }]),
    file("b", 65_000, [{ name: "slow", ms: 61_000 }]),
  ]);
  assert.match(printed, /61\.0 s {2}b: slow\n.*0\.0 s {2}a: quick\n[^]*65\.0 s {2}b\n.*2\.0 s {2}a\n/);
});
