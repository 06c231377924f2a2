import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pythonPackages, pythons } from "../../scripts/setup/python.mjs";

const folder = mkdtempSync(join(tmpdir(), "session-agent-python-"));
after(() => rmSync(folder, { recursive: true }));

const packages = { title: "two packages", requirements: ["one==1", "two==2"] };

/**
 * A program that replaces Python: asked for its version, it prints `about`; otherwise it runs
 * `does`.
 */
function python(name, about, does = "exit 1") {
  const file = join(folder, name);
  const printed = typeof about === "string" ? about : JSON.stringify(about);
  writeFileSync(file, `#!/bin/sh\nif [ "$1" = -c ]; then echo '${printed}'; exit; fi\n${does}\n`, { mode: 0o755 });
  return (program) => (program === "python3" ? file : null);
}

const modern = { version: [3, 12], platform: "linux-x86_64", pip: true };
const ask = (find, variables = {}) => pythonPackages(packages, { cache: join(folder, "cache"), find, variables });

test("missing_packages_are_a_skip_reason_not_an_error", async () => {
  const cases = [
    [() => null, /no `python3` on the PATH/],
    [python("broken", "no JSON"), /does not run/],
    [python("old", { ...modern, version: [3, 10] }), /is Python 3\.10/],
    [python("bare", { ...modern, pip: false }), /has no pip/],
  ];
  for (const [find, because] of cases) {
    const answer = await ask(find);
    assert.match(answer.because, because);
    assert.match(answer.help, /install Python 3\.11 or newer with pip/);
  }
});

test("a_setting_disables_the_packages", async () => {
  const answer = await ask(python("unwanted", modern), { SESSION_AGENT_REAL_MODELS: "off" });
  assert.match(answer.because, /SESSION_AGENT_REAL_MODELS/);
});

test("a_failed_installation_reports_why_and_leaves_nothing_behind", async () => {
  const answer = await ask(python("offline", modern, "echo 'ERROR: No matching distribution' >&2; exit 1"));
  assert.match(answer.because, /pip could not install it \(No matching distribution\)/);
  assert.deepEqual(readdirSync(join(folder, "cache", "python")), []);
});

test("an_installed_environment_is_reused", async () => {
  const once = `while [ "$1" != --target ]; do shift; done\necho here > "$2/installed" && echo x >> ${folder}/times`;
  const find = python("good", modern, once);
  const [first, second] = [await ask(find), await ask(find)];
  assert.deepEqual(first, second);
  assert.ok(existsSync(join(first.env.PYTHONPATH, "installed")));
  assert.equal(readFileSync(join(folder, "times"), "utf8"), "x\n");
});

test("the_oldest_and_newest_python_are_found_without_duplicates", async () => {
  const home = join(folder, "home");
  const called = { python3: [3, 12], "python3.11": [3, 11], "python3.13": [3, 13], "python3.12": [3, 12] };
  const files = new Map(
    Object.entries(called).map(([name, version]) => [name, python(`found-${name}`, { ...modern, version })("python3")]),
  );
  const find = (program) => files.get(program) ?? null;
  const versions = async (options) => (await pythons({ home, ...options })).map(({ version }) => version.join("."));
  assert.deepEqual(await versions({ find }), ["3.11", "3.13"]);
  const only = (program) => (program === "python3" ? files.get("python3.13") : null);
  assert.deepEqual(await versions({ find: only }), ["3.13"]);
  // In addition to pyenv's.
  for (const [name, version] of Object.entries({ "3.10.1": [3, 10], "3.14.0": [3, 14] })) {
    const bin = join(home, ".pyenv", "versions", name, "bin");
    mkdirSync(bin, { recursive: true });
    python(join("home", ".pyenv", "versions", name, "bin", "python3"), { ...modern, version });
  }
  assert.deepEqual(await versions({ find }), ["3.11", "3.14"]);
  assert.match((await pythons({ find: () => null, home: folder })).because, /no `python3` on the PATH/);
});
