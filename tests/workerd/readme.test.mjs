// The README's tour, run as it is printed: each ```sh block's requests in order,
// their answers compared with the ```json block that follows.
//
// In a printed answer `…` inside a string stands for any text, a number under a
// key that ends in `At` for any time, and a `score` for any above 0. All else
// must be the same.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

const FEWEST_REQUESTS = 12;

const server = await startServer();
after(() => server.stop());

const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");

/** Pairs of a ```sh block and the ```json block after it. */
function tour() {
  const blocks = [...readme.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }));
  return blocks.flatMap(({ language, text }, n) => {
    if (language !== "sh") return [];
    assert.equal(blocks[n + 1]?.language, "json", `an answer follows:\n${text}`);
    return [{ requests: requestsIn(text), answers: answersIn(blocks[n + 1].text) }];
  });
}

const variables = {};

/** `curl -s URL -d 'BODY'`, the body over several lines if it likes. */
function requestsIn(text) {
  for (const [, name, value] of text.matchAll(/^(\w+)=(\S+)$/gm)) variables[name] = value;
  const requests = [...text.matchAll(/^curl -s (\S+) -d '([^']*)'$/gm)].map(([, url, body]) => ({
    path: new URL(url.replace(/\$(\w+)/g, (_, name) => variables[name])).pathname,
    body,
  }));
  assert.equal(requests.length, text.match(/curl/g).length, `every curl is understood:\n${text}`);
  return requests;
}

/** JSON values one after another, each starting at the beginning of a line. */
function answersIn(text) {
  return text.trimEnd().split(/\n(?=\{)/).map((answer) => JSON.parse(answer));
}

function compare(actual, printed, path) {
  if (typeof printed === "string" && printed.includes("…")) {
    const pattern = printed.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".+");
    assert.match(actual, new RegExp(`^${pattern}$`, "s"), path);
  } else if (typeof printed === "number" && /At$/.test(path)) {
    assert.ok(Number.isInteger(actual) && actual > 0, path);
  } else if (/score$/.test(path)) {
    assert.ok(actual > 0, path);
  } else if (printed !== null && typeof printed === "object") {
    assert.deepEqual(Object.keys(actual).sort(), Object.keys(printed).sort(), path);
    for (const key of Object.keys(printed)) compare(actual[key], printed[key], `${path}.${key}`);
  } else {
    assert.equal(actual, printed, path);
  }
}

test("the_tour_answers_as_it_is_printed", async () => {
  let sent = 0;
  for (const { requests, answers } of tour()) {
    assert.equal(answers.length, requests.length);
    for (const [n, { path, body }] of requests.entries()) {
      const response = await server.fetch(path, { method: "POST", body });
      compare(await response.json(), answers[n], `${path.split("/").at(-1)} ${sent + 1}`);
      sent += 1;
    }
  }
  assert.ok(sent >= FEWEST_REQUESTS, `${sent} requests`);
});

test("the_cost_table_is_the_benchs", async () => {
  const measured = await readFile(new URL("../../bench/rows.md", import.meta.url), "utf8");
  const rows = readme.match(/^\| .* \| \d+ \/ \d+ \| .*$/gm);
  assert.ok(rows.length >= 8);
  for (const row of rows) assert.ok(measured.includes(row), row);
});

test("every_link_into_the_tree_leads_somewhere", async () => {
  const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, path]) => path);
  assert.ok(links.length >= 3);
  for (const path of links) await readFile(new URL(`../../${path}`, import.meta.url));
});
