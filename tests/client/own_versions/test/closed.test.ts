// Tests a custom class as a user would: in the runtime, with Cloudflare's vitest pool.

import { env, SELF } from "cloudflare:test";
import { expect, it } from "vitest";

it("runs a method of the class, and the class's object answers", async () => {
  const { events } = await (env as any).CLOSED.getByName("alice").note("hello");
  expect(events[0].seq).toBe(1);
  const rpc = "https://x/agents/session-agent/alice/rpc";
  const created = await SELF.fetch(`${rpc}/createSession`, { method: "POST", body: JSON.stringify({ id: "s" }) });
  expect(await created.json()).toMatchObject({ id: "s", agentId: "alice" });
});
