// How often keyword search finds the answer to a question, on the two sets of questions/, and how
// much each parameter of the ranking contributes. Runs natively, with the Worker's own code.
// Results: bench/results/recall.md.
//
//   npm run bench -- recall
//   TRY="before=0.2;together=0,question=1" npm run bench -- recall   (also prints what two changes do)
//   VECTORS=http://127.0.0.1:1234/v1 npm run bench -- recall     (with meanings, by this model)

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeChats, makeDialogues } from "./questions/make.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PROGRAM = ["--package", "session-agent-conversation", "--features", "testing", "--example", "recall"];
/** At full speed: thousands of texts are indexed and searched. */
const FAST = ["base", "store", "search", "conversation"].flatMap((name) => [
  "--config",
  `profile.dev.package.session-agent-${name}.opt-level=2`,
]);

const folder = mkdtempSync(join(tmpdir(), "recall-"));
try {
  const sets = { dialogues: makeDialogues(), chats: makeChats() };
  const paths = [];
  for (const [name, set] of Object.entries(sets)) {
    const path = join(folder, `${name}.json`);
    writeFileSync(path, JSON.stringify(set));
    if (process.env.VECTORS) writeFileSync(join(folder, `${name}.vec`), await vectorsOf(set));
    paths.push(path);
  }
  execFileSync("cargo", ["build", "--quiet", ...FAST, ...PROGRAM], { cwd: ROOT, stdio: "inherit" });
  const env = { ...process.env, SWITCHES: "1" };
  const { stdout, status } = spawnSync("cargo", ["run", "--quiet", ...FAST, ...PROGRAM, "--", ...paths], {
    cwd: ROOT,
    env,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`The program ended with ${status}.`);
  const lines = stdout.split("\n");
  const text = page(
    lines.filter((line) => !isTry(line)),
    sets,
  );
  writeFileSync(new URL("results/recall.md", import.meta.url), text);
  console.log(text);
  // The effect of TRY is printed only, and not written to the page.
  console.log(lines.filter(isTry).join("\n"));
} finally {
  rmSync(folder, { recursive: true });
}

function isTry(line) {
  return /^ .* R@10 [+-]/.test(line);
}

/** The program's lines as a page: a table of kinds, and one of disabled rules. */
function page(lines, sets) {
  const out = [
    "# Recall",
    "",
    "By `npm run bench -- recall`: shares of what answers a question that are among the first 5 and the",
    "first 10 results, and the share of questions for which all of it is among the first 10.",
    "",
  ];
  let name;
  const figures = (line) => line.trim().split(/\s+/).slice(-4);
  const titleOf = (line) =>
    line
      .trim()
      .replace(/(\s+[\d.]+){4}$/, "")
      .trim();
  let head = "";
  for (const line of lines.filter(Boolean)) {
    if (!line.startsWith(" ")) {
      name = line.match(/(\w+)\.json$/)[1];
      const { groups } = sets[name];
      const messages = groups.reduce((sum, group) => sum + group.messages.length, 0);
      out.push(
        `## ${name[0].toUpperCase()}${name.slice(1)}`,
        "",
        `${messages.toLocaleString("en")} messages in ${groups.length} agents.`,
        "",
      );
      head = "";
      continue;
    }
    const wanted = titleOf(line).startsWith("without") ? "switched off" : "questions about";
    if (head !== wanted)
      out.push(...(head ? [""] : []), `| ${wanted} | questions | R@5 | R@10 | all at 10 |`, "|---|---|---|---|---|");
    head = wanted;
    out.push(`| ${[titleOf(line).replace(/^without /, ""), ...figures(line)].join(" | ")} |`);
    if (line === lines.filter(Boolean).findLast((other) => other.startsWith(" "))) out.push("");
  }
  return `${out
    .join("\n")
    .replace(/\n+## /g, "\n\n## ")
    .trimEnd()}\n`;
}

/** The vectors of all messages and questions, in the order in which the program reads them. */
async function vectorsOf({ groups }) {
  const texts = groups.flatMap(({ messages, questions }) => [
    ...messages.map(({ name, text }) => (name ? `${name}: ${text}` : text).slice(0, 2_000)),
    ...questions.map(({ question }) => question),
  ]);
  const known = new Map();
  const missing = [...new Set(texts)];
  for (let at = 0; at < missing.length; at += 32) {
    const input = missing.slice(at, at + 32);
    const init = { method: "POST", headers: { "content-type": "application/json" } };
    const model = process.env.EMBEDDINGS_MODEL ?? "all-minilm-l6-v2";
    const response = await fetch(`${process.env.VECTORS}/embeddings`, {
      ...init,
      body: JSON.stringify({ model, input }),
    });
    for (const { index, embedding } of (await response.json()).data) known.set(input[index], embedding);
  }
  const length = known.values().next().value.length;
  const numbers = new Float32Array(texts.length * length);
  for (const [index, text] of texts.entries()) {
    const vector = known.get(text);
    const norm = Math.hypot(...vector);
    numbers.set(
      vector.map((number) => number / norm),
      index * length,
    );
  }
  return Buffer.from(numbers.buffer);
}
