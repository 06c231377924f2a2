import { WorkerEntrypoint } from "cloudflare:workers";
import { getAgentByName as getByName, routeAgentRequest } from "agents/routing";
import { createCompactFunction, Session, SessionAgent, SessionManager } from "session-agent/worker";
import { modelCalls, type Env as Bindings, VECTORIZE_INDEX } from "./env";
import { Contextual } from "./programs/context";
import * as conversation from "./programs/conversation";
import * as memory from "./programs/memory";
import { fromWorkflow, MyAgent } from "./programs/primitives";
import { DatabaseSkillProvider } from "./programs/skills.js";
import * as turns from "./programs/turn";

export { Contextual, MyAgent, SessionAgent };

interface Env extends Bindings {
  SESSION_AGENT: DurableObjectNamespace<SessionAgent>;
  MY_AGENT: DurableObjectNamespace<MyAgent>;
  Documented: DurableObjectNamespace<Documented>;
  CONTEXTUAL: DurableObjectNamespace<Contextual>;
}

/** Replaces Workers AI. */
export class StandIn extends WorkerEntrypoint {
  run(_model: string, { messages }: { messages: Array<{ role: string; content: string }> }) {
    return { response: messages.map(({ role, content }) => `${role}: ${content}`).join(" | ") };
  }
}

const text = (words: string) => [{ type: "text", text: words }];

/** The programs of memory-docs, by the object's name. */
export class Documented extends SessionAgent<Env> {
  indexed: unknown[] = [];
  /** In a field, during construction: its blocks are those of every session, and write no row. */
  session = this.begin();

  begin(): Session {
    const env = { ...this.env, VECTORIZE_INDEX } as Env;
    switch (this.ctx.id.name) {
      case "readonly":
        return memory.readonly.call(this);
      case "fromBucket":
        return memory.fromBucket.call(this, env);
      case "writable":
        return memory.writable.call(this);
      case "searchable":
        return memory.searchable.call(this);
      case "searchableElsewhere":
        return memory.searchableElsewhere.call(this, env);
      case "skills":
        return memory.skills.call(this, env);
      case "database":
        return Session.create(this).withContext("skills", { provider: new DatabaseSkillProvider(env.DB) });
      case "compactingSkills":
        return memory.skills
          .call(this, env)
          .onCompaction(createCompactFunction({ summarize: async () => "All." }))
          .compactAfter(100_000);
      case "compacting":
        return turns.compacting.call(this);
      default:
        return Session.create(this);
    }
  }

  /** The same, after construction. */
  async later(program: "readonly" | "writable" | "searchable") {
    const session = memory[program].call(this);
    return { prompt: await session.freezeSystemPrompt(), tools: Object.keys(await session.tools()).sort() };
  }

  async look() {
    const prompt = await this.session.freezeSystemPrompt();
    return { prompt, tools: Object.keys(await this.session.tools()).sort(), indexed: this.indexed };
  }

  async tool(name: string, input: object) {
    const tools = await this.session.tools();
    return await tools[name]!.execute(input).catch((error: Error) => `failed: ${error.message}`);
  }

  async converse() {
    const history = await conversation.history(this.session);
    await this.session.appendMessage({ id: "friday", role: "assistant", parts: text("The deployment is on Friday.") });
    return { history, found: conversation.search(this.session), other: this.session.getPathLength() };
  }

  async turn(words: string) {
    await this.session.appendMessage({ id: crypto.randomUUID(), role: "user", parts: text(words) });
    const result = await turns.turn(this.session);
    await result.consumeStream();
    const results = (await result.steps).flatMap((step) => step.toolResults.map(({ output }) => output));
    return {
      results,
      tools: modelCalls.at(-1).tools.map(({ name }: { name: string }) => name),
      system: modelCalls.at(-1).prompt[0].content,
    };
  }

  cached() {
    return turns.cached.call(this);
  }

  async grow(count: number, words: string) {
    for (let n = 0; n < count; n += 1)
      await this.session.appendMessage({
        id: `m${n}`,
        role: n % 2 ? "assistant" : "user",
        parts: text(`${n} ${words}`),
      });
    return this.session.getHistory().map(({ id, parts }) => [id, parts[0].text.slice(0, 60), parts[0].text.length]);
  }

  async truncated() {
    return turns.truncated(this.session).map(({ parts }) => parts[0].text.length);
  }

  /** A custom algorithm, and the other methods of a `Session`. */
  async whole() {
    const seen: number[] = [];
    const session = Session.create(this)
      .forSession("own")
      .onCompaction(async (messages) => {
        seen.push(messages.length);
        return { summary: "All of it.", fromMessageId: messages[0].id, toMessageId: messages.at(-2).id };
      });
    for (const n of [0, 1, 2, 3]) await session.appendMessage({ id: `w${n}`, role: "user", parts: text(`word ${n}`) });
    const compacted = await session.compact();
    const after = session.getHistory().map(({ id }) => id.slice(0, 11));
    await session.appendMessage({ id: "w4", role: "user", parts: text("word 4") });
    await session.compact();
    const added = await session.addContext("extra", { provider: { get: async () => "More." } });
    const prompt = await session.refreshSystemPrompt();
    const removed = await session.removeContext("extra");
    const store = new Map<string, string>();
    const cached = Session.create(this).withCachedPrompt({
      get: async () => store.get("p") ?? null,
      set: async (content) => void store.set("p", content),
    });
    const first = await cached.freezeSystemPrompt();
    const manager = SessionManager.create(this).withSearchableHistory("history");
    const split = await manager.compactAndSplit("own", "They spoke of words.");
    return {
      seen,
      compacted,
      after,
      again: session.getHistory().map(({ id }) => id.slice(0, 11)),
      overlays: session.getCompactions().map(({ fromMessageId, toMessageId }) => [fromMessageId, toMessageId]),
      leaf: session.getLatestLeaf()?.id,
      added: [added.kind, added.content],
      prompt,
      removed,
      isStable: [first === store.get("p"), first === (await cached.freezeSystemPrompt())],
      split: [split.parentSessionId, manager.getHistory(split.id)[0]!.parts[0].text],
      found: manager.search("words").map(({ sessionId }) => sessionId === split.id),
      searched: await manager.tools().session_search!.execute({ query: "words" }),
      // The field's own name also opens sessions.
      client: (await this.session("own").getPathLength()).length,
      chatted: await this.chatted(),
    };
  }

  async chatted() {
    let text = "";
    for await (const chunk of this.session("chatted").chat("Hello"))
      if (chunk.type === "text-delta") text += (chunk as any).delta;
    return text.length > 0;
  }

  async loaded() {
    return [...this.session.getLoadedSkillKeys()];
  }

  override async appendEvents(...given: Parameters<SessionAgent["appendEvents"]>) {
    const outcome = await super.appendEvents(...given);
    this.indexed.push(outcome.events.length);
    return outcome;
  }

  async overridden() {
    await this.createSession({ id: "overridden" });
    await this.appendEvents("overridden", [{ action: "user_message", content: "hi" }]);
    await this.appendEvents({ sessionId: "overridden", events: [{ action: "user_message", content: "ho" }] });
    // This does not call the overridden method.
    await super.session("overridden").appendEvents({ events: [{ action: "user_message", content: "hu" }] });
    const error = await (this as any).getBlock("memory").catch((error: Error) => error.message);
    const { length } = await this.loadEvents("overridden");
    return { appended: this.indexed, count: (await this.loadEvents("overridden", { limit: 1 })).length, length, error };
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const url = new URL(request.url);
    const { pathname } = url;
    if (pathname === "/own/ready") return new Response("ready");
    if (pathname === "/own/put") {
      await memory.describe(env, await request.text());
      await env.SKILLS_BUCKET.put("skills/plain", "Plain.");
      await env.CONFIG_BUCKET.put("soul.md", "You are of the bucket.");
      await env.DB.exec("CREATE TABLE IF NOT EXISTS skills (key TEXT PRIMARY KEY, content TEXT, description TEXT)");
      return new Response("put");
    }
    if (pathname === "/own/workflow") {
      const { sessionId } = (await request.json()) as { sessionId: string };
      await fromWorkflow(env, sessionId, "From afar");
      return Response.json(await env.MY_AGENT.getByName("agent-id").loadEvents({ sessionId }));
    }
    if (pathname === "/own/npm") {
      const stub = await getByName(env.MY_AGENT as never, "agent-id");
      return Response.json(await (stub as unknown as MyAgent).listSessions());
    }
    if (pathname === "/own/call") {
      const { binding, agent, method, given = [] } = (await request.json()) as any;
      try {
        const answer = await (env as any)[binding].getByName(agent)[method](...given);
        return Response.json({ answer: answer ?? null });
      } catch (error) {
        return Response.json({ thrown: (error as Error).message, code: (error as any).code ?? null });
      }
    }
    return (await routeAgentRequest(request, env)) ?? new Response("Nothing here.", { status: 404 });
  },
};
