// Custom classes with models and tools of each version of the AI SDK that the package supports, and
// of one that it does not.

import { createOpenAI as openai5 } from "@ai-sdk/openai-5";
import { createOpenAI as openai6 } from "@ai-sdk/openai-6";
import { createOpenAI as openai7 } from "@ai-sdk/openai-7";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { tool as tool5 } from "ai-5";
import { tool as tool6 } from "ai-6";
import { tool as tool7 } from "ai-7";
import { type FailedCompaction, routeSessionAgent, SessionAgent } from "session-agent/worker";
import * as v from "valibot";
import { sessionAgent } from "session-agent";
import { z } from "zod";

export { SessionAgent };

interface Env {
  SESSION_AGENT: DurableObjectNamespace<Assistant>;
  PLAIN: DurableObjectNamespace<SessionAgent>;
  CLOSED: DurableObjectNamespace<Closed>;
  MODEL_URL: string;
}

const PROVIDERS = { 5: openai5, 6: openai6, 7: openai7 };
const city = z.object({ city: z.string() });
const execute = async ({ city }: { city: string }) => `Rain in ${city}.`;

export class Assistant extends SessionAgent<Env> {
  /** An agent's name contains its version: `model:5`. */
  model() {
    const [, version] = this.ctx.id.name!.split(":");
    if (version === "4")
      return { specificationVersion: "v1", provider: "old", modelId: "old", doStream: async () => ({}) };
    const create = PROVIDERS[version as unknown as 5] ?? openai7;
    return create({ baseURL: this.env.MODEL_URL, apiKey: "none" }).chat("test");
  }

  tools() {
    return {
      five: tool5({ description: "Of version 5", inputSchema: city, execute }),
      six: tool6({ description: "Of version 6", inputSchema: city, execute }),
      seven: tool7({ description: "Of version 7", inputSchema: city, execute }),
      valibot: tool7({
        description: "Its input by Valibot",
        inputSchema: toStandardJsonSchema(v.object({ city: v.pipe(v.string(), v.maxLength(20)) })),
        execute,
      }),
      standard: {
        description: "Its input by a schema itself",
        inputSchema: toStandardJsonSchema(v.object({ city: v.string() })),
        execute,
      },
      decided: tool7({
        description: "Asks by its input",
        inputSchema: city,
        needsApproval: ({ city }) => city !== "Oslo",
        execute,
      }),
      old: { description: "Of version 4", parameters: city, execute },
    };
  }

  summarize(): string {
    throw new Error("no pen");
  }

  async onCompactionError({ sessionId, code, message, details }: FailedCompaction) {
    await this.ctx.storage.put("failed", { sessionId, code, message, details });
  }

  async failed() {
    return (await this.ctx.storage.get("failed")) ?? null;
  }

  authorize() {
    return {
      operations: ["createSession", "runTurn", "appendEvents", "configureCompaction", "compact", "getHistory"],
      allow: { agentMessages: true },
    };
  }
}

/** A class whose operations only the class itself may call without a token. */
export class Closed extends SessionAgent<Env> {
  static override operationsForBindings = false;

  async note(content: string) {
    if ((await this.getSession({ sessionId: "s" })) === null) await this.createSession({ id: "s" });
    return await this.appendEvents({ sessionId: "s", events: [{ action: "user_message", content }] });
  }
}

/** The client's operations over a binding without a token: { binding, agent, token? }. */
async function byClient(
  env: Env,
  { binding, agent, token }: { binding: "SESSION_AGENT" | "CLOSED" | "PLAIN"; agent: string; token?: string },
): Promise<Response> {
  const opened = sessionAgent(env[binding] as never, agent, token === undefined ? {} : { token });
  const session = opened.session("s");
  try {
    await session.create();
    await session.appendMessages({ messages: [{ id: "m", role: "user", parts: [{ type: "text", text: "Hello" }] }] });
    const chunks: string[] = [];
    for await (const { type } of session.chat("How are you?")) chunks.push(type);
    const file = await new Response(await opened.exportAgent()).text();
    return Response.json({
      sessions: (await opened.listSessions()).sessions.length,
      messages: (await session.getMessages()).length,
      chunks,
      lines: file.trim().split("\n").length,
    });
  } catch (error) {
    return Response.json({ code: (error as { code?: string }).code, message: (error as Error).message });
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (!pathname.startsWith("/own/"))
      return (await routeSessionAgent(request, env)) ?? new Response("Nothing here.", { status: 404 });
    if (pathname === "/own/ready") return new Response("Ready.");
    if (pathname === "/own/client") return await byClient(env, await request.json());
    // Calls a method of an object over the binding: { binding, agent, method, given }.
    const { binding, agent, method, given } = await request.json<{
      binding: "CLOSED";
      agent: string;
      method: string;
      given: unknown[];
    }>();
    try {
      return Response.json({ answer: await (env[binding].getByName(agent) as any)[method](...given) });
    } catch (error) {
      return Response.json({ thrown: (error as Error).message });
    }
  },
};
