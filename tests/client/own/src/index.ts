import { DurableObject } from "cloudflare:workers";
import { jsonSchema, tool } from "ai";
import {
  type ChangedMemory,
  type Compacted,
  type EndedTurn,
  routeSessionAgent,
  SessionAgent,
  type Status,
} from "session-agent/worker";
import { z } from "zod";
import { model } from "./model";

export { SessionAgent };

interface Env {
  SESSION_AGENT: DurableObjectNamespace<Assistant>;
  PLAIN: DurableObjectNamespace;
  ROOMS: DurableObjectNamespace;
}

const never = new Promise<never>(() => {});

/** The rights of an operator's cookie. They include nothing that needs the secret. */
const OPERATIONS =
  "createSession getSession runTurn cancelTurn chat getHistory getUsage renderPrompt callTool getBlock getBlocks loadEvents appendEvents configureCompaction estimateTokens compact search getConfig defineBlock setEntry searchContext deleteEntry deleteSkill".split(
    " ",
  );

export class Assistant extends SessionAgent<Env> {
  #greeting = "You are kind.";

  override model() {
    return model;
  }

  override tools() {
    return {
      weather: tool({
        description: "The weather of a city",
        inputSchema: z.object({ city: z.string() }),
        execute: async ({ city }) => ({ city, sky: "rain" }),
      }),
      pay: tool({
        description: "Pays",
        inputSchema: z.object({ amount: z.number().max(100) }),
        needsApproval: true,
        execute: async ({ amount }) => `Paid ${amount}.`,
      }),
      send: tool({
        description: "Sends money, and asks for large sums",
        inputSchema: z.object({ amount: z.number().transform(Number) }),
        needsApproval: async ({ amount }, { toolCallId }) => {
          if (amount === 13) throw new Error("no such sum");
          await this.ctx.storage.put("asked", { amount, toolCallId });
          // An invalid result, neither `true` nor `false`.
          if (amount === 14) return "perhaps" as never;
          return amount >= 100;
        },
        execute: async ({ amount }, { toolCallId }) => {
          await this.ctx.storage.put("sent", { amount, toolCallId });
          return `Sent ${amount}.`;
        },
      }),
      broken: tool({
        description: "Fails",
        inputSchema: z.object({}),
        execute: async (): Promise<string> => {
          throw new Error("No pencil.");
        },
      }),
      remember: tool({
        description: "Writes into another conversation",
        inputSchema: z.object({ text: z.string() }),
        execute: async ({ text }) => {
          await this.note(text);
          return "Noted.";
        },
      }),
      count: tool({
        description: "Counts",
        inputSchema: jsonSchema<{ to: number }>({ type: "object", properties: { to: { type: "integer" } } }),
        execute: async function* ({ to }) {
          for (let n = 1; n <= to; n += 1) yield `${n}`;
        },
      }),
      // An unknown kind of schema: this tool is skipped, and the others remain.
      odd: { description: "Odd", inputSchema: 7, execute: async () => "" },
    };
  }

  override blocks() {
    return [
      { label: "soul", kind: "readonly" as const, provider: { get: async () => this.#greeting } },
      {
        label: "notes",
        kind: "writable" as const,
        maxTokens: 500,
        provider: {
          get: () => this.ctx.storage.get<string>("notes"),
          set: (content: string) => this.ctx.storage.put("notes", content),
        },
      },
      {
        label: "facts",
        kind: "searchable" as const,
        provider: { search: (query: string) => [{ key: "tea", content: `Known of ${query}: tea.` }] },
      },
      {
        label: "guides",
        kind: "loadable" as const,
        provider: {
          get: () => [{ key: "deploy", description: "How we deploy" }],
          load: (key: string) => (key === "deploy" ? "Test, then ship." : null),
          delete: (key: string) => key === "deploy",
        },
      },
      { label: "lost", kind: "readonly" as const, provider: { get: () => Promise.reject(new Error("away")) } },
      // Each prompt waits as long for such a block as for a service, so a separate agent has it.
      ...(this.ctx.id.name === "homes"
        ? [{ label: "slow", kind: "readonly" as const, provider: { get: () => never } }]
        : []),
    ];
  }

  override summarize(prompt: string) {
    return `In short (${prompt.includes("Summarize") ? "asked" : "not asked"}).`;
  }

  override countTokens(text: string) {
    // The number of letters, for the agent that counts this way.
    if (text.includes("fail to count")) throw new Error("no such word");
    return text.startsWith("counted:") ? text.length : Math.ceil(text.length / 4);
  }

  override embed(texts: string[]) {
    return texts.map((text) => [
      text.includes("tea") || text.includes("drink") ? 1 : 0,
      text.includes("rain") ? 1 : 0,
      0.1,
    ]);
  }

  override authorize(request: Request) {
    const user = /user=(\w+)/.exec(request.headers.get("cookie") ?? "")?.[1];
    if (user === "operator") return { operations: OPERATIONS, allow: { agentMessages: true, purge: true } };
    if (user === "confused") throw new Error("no such key");
    if (user === "patient") return never;
    return user === undefined
      ? null
      : { preset: "chat" as const, sessionId: `of-${user}`, operations: ["createSession"] };
  }

  override async onTurnEnd({ sessionId, finishReason, usage }: EndedTurn) {
    await this.ctx.storage.put("ended", { sessionId, finishReason, usage });
  }

  override async onMemoryChange({ deliveryId, kind, label, key, version }: ChangedMemory) {
    if (label !== "diary") return;
    const changes = (await this.ctx.storage.get<object[]>("changes")) ?? [];
    await this.ctx.storage.put("changes", [...changes, { kind, key, content: version?.content }]);
    // Its own write is not reported.
    await this.setEntry({ label, key: `${key} again`, content: "Heard.", deliveryId });
  }

  override async onCompaction({ sessionId, tokensAfter, tokensBefore }: Compacted) {
    await this.ctx.storage.put("compacted", { sessionId, isLess: tokensAfter < tokensBefore });
  }

  override async onStatus(phase: Status["phase"]) {
    await this.ctx.storage.put("phases", [...((await this.ctx.storage.get<string[]>("phases")) ?? []), phase]);
  }

  async note(text: string) {
    if ((await this.getSession({ sessionId: "notebook" })) === null) await this.createSession({ id: "notebook" });
    return await this.appendEvents({ sessionId: "notebook", events: [{ action: "user_message", content: text }] });
  }

  /** Appends, in transactions of the class that are rolled back, and then outside of them. */
  async appendAndUndo() {
    const append = (content: string) => this.note(content);
    const undone = new Error("undone");
    await append("one");
    await append("two");
    try {
      this.ctx.storage.transactionSync(() => {
        // Nothing must be awaited, so the append is complete here.
        void this.appendEvents({ sessionId: "notebook", events: [{ action: "user_message", content: "lost" }] });
        throw undone;
      });
    } catch {}
    await append("three");
    await this.ctx.storage
      .transaction(async () => {
        await append("lost, too");
        throw undone;
      })
      .catch(() => {});
    await append("four");
    await this.ctx.storage.transaction(async (txn) => {
      await append("lost as well");
      txn.rollback();
      await append("five");
    });
    this.sql`CREATE TABLE IF NOT EXISTS own (word TEXT)`;
    await append("six");
    return await this.loadEvents({ sessionId: "notebook" });
  }

  async recorded(of: string) {
    return await this.ctx.storage.get(of);
  }
}

/** An object that no URL reaches. */
export class Rooms extends DurableObject {
  override async fetch(): Promise<Response> {
    return new Response("a room");
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    const agent = url.searchParams.get("agent") ?? "";
    const namespaces = { SESSION_AGENT: env.SESSION_AGENT, PLAIN: env.PLAIN };
    switch (url.pathname) {
      case "/own/note":
        return Response.json(await env.SESSION_AGENT.getByName(agent).note(await request.text()));
      case "/own/events":
        return Response.json(await env.SESSION_AGENT.getByName(agent).loadEvents({ sessionId: "notebook" }));
      case "/own/undone":
        return Response.json(await env.SESSION_AGENT.getByName(agent).appendAndUndo());
      case "/own/refused":
        return Response.json(
          await env.SESSION_AGENT.getByName(agent).request("loadEvents", JSON.stringify({ sessionId: "notebook" }), {}),
        );
      case "/own/recorded":
        return Response.json(
          (await env.SESSION_AGENT.getByName(agent).recorded(url.searchParams.get("of") ?? "")) ?? null,
        );
      default:
        return (
          (await routeSessionAgent(request, env, { namespaces })) ?? new Response("Nothing here.", { status: 404 })
        );
    }
  },
};
