// The console's files: their size, their content security policy, and their types.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { ROOT, TSC } from "../../scripts/paths.mjs";
import { SITE } from "../../scripts/build/site.mjs";
import { NODE } from "../../scripts/wrangler.mjs";
import { startServer } from "../workerd/harness.mjs";

/** The files that a browser loads before it shows a conversation. The target is 90,000 bytes. */
const MOST_FIRST_BYTES = 71 * 1000;
/** All views. */
const MOST_BYTES = 103 * 1000;
const MOST_LINES = 400;

const server = await startServer({ site: true });
after(() => server.stop());

/** The console's files, without the documents, to which the page only links. */
const OTHERS = ["openapi.json", "_headers", "llms.txt", "llms-full.txt"];
const FILES = (await readdir(SITE)).filter((name) => !OTHERS.includes(name));
const SCRIPTS = FILES.filter((name) => name.endsWith(".js"));

const sizeOf = async (names) => {
  const sizes = await Promise.all(
    names.map(async (name) => gzipSync(await readFile(join(SITE, name)), { level: 9 }).length),
  );
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
};

test("the_console_is_small", async (t) => {
  const page = await readFile(join(SITE, "index.html"), "utf8");
  const named = FILES.filter(
    (name) => name === "index.html" || page.includes(`href="/${name}"`) || page.includes(`src="/${name}"`),
  );
  const [first, all] = [await sizeOf(named), await sizeOf(FILES)];
  t.diagnostic(`${first} bytes gzipped at first, ${all} in all`);
  assert.ok(first < MOST_FIRST_BYTES, `${first} bytes at first, at most ${MOST_FIRST_BYTES}`);
  assert.ok(all < MOST_BYTES, `${all} bytes in all, at most ${MOST_BYTES}`);
});

test("the_csp_allows_only_this_origin_and_no_inline_code", async () => {
  for (const path of ["/", "/console.css", ...SCRIPTS.map((name) => `/${name}`)]) {
    const response = await server.fetch(path);
    await response.text();
    assert.equal(response.status, 200, path);
    const policy = response.headers.get("content-security-policy");
    const rules = Object.fromEntries(
      policy.split("; ").map((rule) => [rule.split(" ")[0], rule.split(" ").slice(1).join(" ")]),
    );
    assert.deepEqual(
      [
        rules["default-src"],
        rules["script-src"],
        rules["style-src"],
        rules["connect-src"],
        rules["frame-ancestors"],
        rules["base-uri"],
        rules["form-action"],
      ],
      ["'none'", "'self'", "'self'", "'self'", "'none'", "'none'", "'none'"],
    );
    assert.equal(rules["require-trusted-types-for"], "'script'");
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.equal(response.headers.get("referrer-policy"), "no-referrer");
  }
});

test("no_file_references_another_origin", async () => {
  for (const name of FILES) {
    const text = await readFile(join(SITE, name), "utf8");
    const named = (text.match(/https?:\/\/[\w.-]+/g) ?? []).filter(
      (url) => !/^http:\/\/www\.w3\.org/.test(url) && url !== "https://session-agent",
    );
    assert.deepEqual(named, [], name);
  }
});

test("the_llms_txt_files_are_served", async () => {
  for (const name of ["llms.txt", "llms-full.txt"]) {
    const response = await server.fetch(`/${name}`);
    assert.equal(response.status, 200, name);
    assert.match(response.headers.get("content-type"), /^text\/plain/);
    assert.equal(await response.text(), await readFile(join(SITE, name), "utf8"));
  }
});

test("a_page_without_scripts_explains_what_this_is", async () => {
  const response = await server.fetch("/");
  assert.match(await response.text(), /<h1>Session Agent<\/h1>/);
});

test("the_types_check", async () => {
  const failed = await promisify(execFile)(NODE, [
    TSC,
    "--project",
    join(ROOT, "console/tsconfig.json"),
    "--pretty",
    "false",
  ]).then(
    () => "",
    ({ stdout, message }) => stdout || message,
  );
  assert.equal(failed, "");
});

test("the_modules_are_short_and_contain_no_markup", async () => {
  const files = (await readdir(join(ROOT, "console/src"), { recursive: true })).filter((name) => /\.tsx?$/.test(name));
  assert.ok(files.length > 20);
  for (const name of files) {
    const text = await readFile(join(ROOT, "console/src", name), "utf8");
    assert.ok(text.split("\n").length <= MOST_LINES, `${name} has more than ${MOST_LINES} lines`);
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, name);
  }
});
