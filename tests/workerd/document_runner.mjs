// Runs a document's ```sh blocks on their own server and compares the answers with the printed
// ones. A guide starts where the README's tour ends, as the guide tells its readers.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "./harness.mjs";
import { answersIn, Reader } from "./document_reader.mjs";

/**
 * Follows these documents, one after the other. `onCommand` receives each command that is not a
 * request, as words, and its document. The result has the number of requests, and the ```json
 * blocks that were compared with an answer.
 */
export async function runDocuments(documents, onCommand) {
  const storage = await mkdtemp(join(tmpdir(), "session-agent-tour-"));
  const reader = new Reader();
  const printed = [];
  let [server, sent, secrets] = [await startServer({ storage }), 0, {}];
  try {
    for (const document of documents) {
      for (const [n, { language, text }] of document.blocks.entries()) {
        if (language !== "sh") continue;
        const next = document.blocks[n + 1];
        const answers = next?.language === "json" ? answersIn(next) : [];
        if (answers.length > 0) printed.push(next);
        for (const { setting, command, request } of reader.follow(text)) {
          if (command) await onCommand(command, document);
          if (setting) {
            await server.stop();
            secrets = { ...(setting.isAdded ? secrets : {}), [setting.name]: setting.value };
            server = await startServer({ storage, secrets });
          }
          if (!request) continue;
          const { path, init, file } = request;
          const response = await server.fetch(path, init);
          const where = `${path} ${init.body ?? ""}`;
          sent += 1;
          if (file) {
            assert.ok(response.ok, `${where}: ${response.status}`);
            reader.keep(file, await response.text());
          } else {
            assert.ok(answers.length > 0, `no answer is printed for ${where}`);
            const answer = answers.shift();
            assert.equal(response.ok, !Object.hasOwn(answer ?? {}, "error"), where);
            reader.compare(await response.json(), answer, where);
          }
        }
        assert.deepEqual(answers, [], `more answers than requests:\n${text}`);
      }
    }
  } finally {
    await server.stop();
    await rm(storage, { recursive: true, force: true });
  }
  return { sent, printed };
}
