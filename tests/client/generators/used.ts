// A program that uses the clients generated from openapi.json.

import createClient from "openapi-fetch";
import { client } from "./hey/client.gen";
import { appendMessage, createSession, getHistory, search } from "./hey/sdk.gen";
import type { paths } from "./types";

export async function byOpenapiTypescript(
  baseUrl: string,
): Promise<{ name: string | null; texts: unknown[]; field: unknown }> {
  const typed = createClient<paths>({ baseUrl });
  const params = { path: { agent: "typed" } };
  const { data } = await typed.POST("/agents/session-agent/{agent}/rpc/createSession", {
    params,
    body: { id: "s", name: "Typed" },
  });
  await typed.POST("/agents/session-agent/{agent}/rpc/appendMessage", {
    params,
    body: { sessionId: "s", message: { role: "user", parts: [{ type: "text", text: "I like tea." }] } },
  });
  const history = await typed.POST("/agents/session-agent/{agent}/rpc/getHistory", {
    params,
    body: { sessionId: "s" },
  });
  // @ts-expect-error: one of `query` and `queries` is needed.
  const refused = await typed.POST("/agents/session-agent/{agent}/rpc/search", { params, body: { limit: 3 } });
  const texts = history.data?.messages.map(({ parts }) => parts[0]?.text) ?? [];
  return { name: data?.name ?? null, texts, field: refused.error?.error.details.field };
}

export async function byHeyApi(baseUrl: string): Promise<{ name: string | null; texts: unknown[]; field: unknown }> {
  client.setConfig({ baseUrl });
  const path = { agent: "hey" };
  const { data } = await createSession({ path, body: { id: "s", name: "Hey" } });
  await appendMessage({
    path,
    body: { sessionId: "s", message: { role: "user", parts: [{ type: "text", text: "I like tea." }] } },
  });
  const history = await getHistory({ path, body: { sessionId: "s" } });
  // @ts-expect-error: one of `query` and `queries` is needed.
  const refused = await search({ path, body: { limit: 3 } });
  const texts = history.data?.messages.map(({ parts }) => parts[0]?.text) ?? [];
  return { name: data?.name ?? null, texts, field: refused.error?.error.details.field };
}
