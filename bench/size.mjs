// The size of what is deployed. Results: results/size.md.
//
//   npm run bench -- size

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { ROOT } from "../scripts/paths.mjs";
import { modulesOf } from "./frame/frame.mjs";
import { bars, report, table, whole } from "./frame/report.mjs";

const gzipped = (bytes) => gzipSync(bytes, { level: 9 }).length;
const kib = (bytes) => bytes / 1_024;

/** The bytes of the wasm, raw and gzipped. */
export async function wasmSize() {
  const wasm = await readFile(join(ROOT, "build/index_bg.wasm"));
  return { raw: wasm.length, gzipped: gzipped(wasm) };
}

if (process.argv[1] === import.meta.filename) {
  const wasm = await wasmSize();
  const sizes = [["this Worker, its wasm", wasm]];
  for (const [name, source] of [
    ["this Worker, all of it", "agent.mjs"],
    ["the floor", "floor.mjs"],
    ["the peer", "peer.mjs"],
    ["the chat peer", "chat_peer.mjs"],
  ]) {
    const parts = Object.values(await modulesOf(source, { minify: true })).map(({ contents }) => Buffer.from(contents));
    const sum = (of) => parts.reduce((total, part) => total + of(part), 0);
    sizes.push([name, { raw: sum((part) => part.length), gzipped: sum(gzipped) }]);
  }
  await report(
    "size",
    [
      "# Size",
      "",
      "By `npm run bench -- size`, in KiB. JavaScript is bundled and minified.",
      "",
      ...table(
        ["what", "raw", "gzipped"],
        sizes.map(([name, size]) => [name, whole(kib(size.raw)), whole(kib(size.gzipped))]),
      ),
    ],
    {
      "": bars({
        title: "Size of what is deployed",
        unit: "KiB; less is better",
        series: ["raw", "gzipped"],
        groups: sizes.map(([name, size]) => ({ name, bars: [kib(size.raw), kib(size.gzipped)] })),
      }),
    },
  );
}
