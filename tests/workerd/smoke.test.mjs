// Tests of the test harness.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";

const server = await startServer();
after(() => server.stop());

async function objectWithARow(agent) {
  await server.sql(agent, "CREATE TABLE harness (id INTEGER PRIMARY KEY, value)");
  await server.sql(agent, "INSERT INTO harness (value) VALUES (?)", "kept");
}

test("the_worker_answers", async () => {
  const response = await server.fetch("/health");
  await response.text();
  assert.equal(response.status, 200);
});

test("sql_runs_in_the_storage_of_the_named_agent", async () => {
  await objectWithARow("sql/one");
  assert.deepEqual(await server.sql("sql/one", "SELECT id, value FROM harness"), [{ id: 1, value: "kept" }]);
  await assert.rejects(server.sql("sql/two", "SELECT id, value FROM harness"), /no such table: harness/);
});

test("every_type_of_value_round_trips_through_sql", async () => {
  const values = [null, 1.5, "naïve \u0000 ␤", new Uint8Array([0, 255])];
  const [row] = await server.sql("values", "SELECT ? AS n, ? AS r, ? AS t, ? AS b", ...values);
  assert.deepEqual(row, { n: null, r: 1.5, t: "naïve \u0000 ␤", b: new Uint8Array([0, 255]) });
});

test("an_evicted_object_is_recreated_on_its_storage", async () => {
  await objectWithARow("evicted");
  const before = await server.incarnation("evicted");
  await server.evict("evicted");
  assert.notEqual(await server.incarnation("evicted"), before);
  assert.deepEqual(await server.sql("evicted", "SELECT value FROM harness"), [{ value: "kept" }]);
});

test("an_aborted_object_is_recreated_on_its_storage", async () => {
  await objectWithARow("aborted");
  const before = await server.incarnation("aborted");
  await server.abort("aborted");
  assert.notEqual(await server.incarnation("aborted"), before);
  assert.deepEqual(await server.sql("aborted", "SELECT value FROM harness"), [{ value: "kept" }]);
});

test("storage_survives_a_crash", async () => {
  const server = await startServer();
  try {
    await server.sql("killed", "CREATE TABLE harness (value)");
    await server.sql("killed", "INSERT INTO harness (value) VALUES (?)", "kept");
    const before = await server.incarnation("killed");
    await server.kill9();
    assert.notEqual(await server.incarnation("killed"), before);
    assert.deepEqual(await server.sql("killed", "SELECT value FROM harness"), [{ value: "kept" }]);
  } finally {
    await server.stop();
  }
});

test("another_worker_connects_by_service_binding_and_script_name", async () => {
  for (const via of ["service", "object"]) {
    const { status, body } = await server.call("bound/α", "createSession", { name: via }, { via });
    assert.deepEqual([status, body.name, body.agentId], [200, via, "bound/α"]);
  }
});

test("a_call_reports_its_cost", async () => {
  const { status, rowsRead, rowsWritten } = await server.call("cost", "listSessions");
  assert.equal(status, 200);
  assert.deepEqual([Number.isInteger(rowsRead), Number.isInteger(rowsWritten)], [true, true]);
});

test("the_build_also_runs_without_inspection", async () => {
  const untouched = await startServer({ inspect: false });
  try {
    const response = await untouched.fetch("/health");
    await response.text();
    assert.equal(response.status, 200);
    await assert.rejects(untouched.sql("any", "SELECT 1"), /inspected/);
  } finally {
    await untouched.stop();
  }
});

test("an_additional_worker_is_bound_by_name", async () => {
  const withProvider = await startServer({
    workers: { "a-provider": `export default { fetch: () => new Response("from the provider") };` },
  });
  try {
    const { A_PROVIDER } = await withProvider.env();
    assert.equal(await (await A_PROVIDER.fetch("http://provider/")).text(), "from the provider");
  } finally {
    await withProvider.stop();
  }
});
