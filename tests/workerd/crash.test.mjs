// A crash in Rust ends one instance of the module and nothing else.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

const server = await startServer();
after(() => server.stop());

test("after_a_crash_every_object_of_the_isolate_answers_from_storage", async () => {
  for (const agent of ["crashes", "bystander"]) {
    assert.equal((await server.call(agent, "createSession", { id: "s", name: agent })).status, 200);
  }
  const activation = await server.incarnation("crashes");
  await server.crash("crashes");
  for (const agent of ["crashes", "bystander", "newcomer"]) {
    const { status, body } = await server.call(agent, "listSessions", {});
    assert.equal(status, 200, agent);
    assert.deepEqual(
      body.sessions.map(({ name }) => name),
      agent === "newcomer" ? [] : [agent],
    );
  }
  assert.equal(await server.incarnation("crashes"), activation);
});
