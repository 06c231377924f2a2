// memory-primitives and pr-791.

import {
  buildWorkingContext,
  getAgentByName,
  messageToEvent,
  SessionAgent,
  workersAIAdapter,
} from "session-agent/worker";
import type { Env as Bindings } from "../env";

export interface Env extends Bindings {
  MY_AGENT: DurableObjectNamespace<MyAgent>;
}

/** memory-primitives, "Inside the Agent"; `turn` is pr-791's. */
export class MyAgent extends SessionAgent<Env> {
  async handleUserMessage(sessionId: string, userMessage: string) {
    const ctx = this.buildWorkingContext(sessionId, {
      systemInstructions: ["You are a helpful assistant."],
      limit: 10,
    });
    ctx.addMessage({ role: "user", content: userMessage });

    const modelInput = workersAIAdapter.toModelMessages(ctx.systemInstructions, ctx.messages);
    const response = await this.env.AI.run("@cf/meta/llama-3-8b-instruct", modelInput);

    ctx.addMessage({ role: "assistant", content: response.response });
    this.persistWorkingContext(sessionId, ctx);

    return response.response;
  }

  turn(sessionId: string, userMessage: string, response: string) {
    const ctx = this._buildWorkingContext(sessionId, {
      systemInstructions: ["You are a helpful assistant."],
      limit: 100,
    });
    ctx.addMessage({ role: "user", content: userMessage });
    // ... LLM call, tool calls ...
    ctx.addMessage({ role: "assistant", content: response });
    this.persistWorkingContext(sessionId, ctx); // batch-persist new messages only
  }

  /** A context that nothing was added to writes nothing. */
  async nothing(sessionId: string) {
    return await this.persistWorkingContext(sessionId, this._buildWorkingContext(sessionId));
  }

  async begin() {
    const sessionId: string = await this.createSession({ topic: "weather" });
    const named = await this.createSession({ name: "Named" });
    return { sessionId, metadata: (await this.getSession(sessionId))?.metadata, named: named.name };
  }

  /** The review in pr-791 asks for it. */
  async destroy() {
    this.sql`DROP TABLE IF EXISTS cf_agents_events`;
    this.sql`DROP TABLE IF EXISTS cf_agents_sessions`;
    await super.destroy();
  }
}

/** memory-primitives, "From a Workflow". */
export async function fromWorkflow(env: Env, sessionId: string, userMessage: string) {
  const agent = await getAgentByName<SessionAgent>(env.MY_AGENT, "agent-id");

  // RPC — returns plain serializable data
  const events = await agent.loadEvents(sessionId, { limit: 10 });

  // Build context locally (pure function, no RPC)
  const ctx = buildWorkingContext(events, {
    systemInstructions: ["You are a helpful assistant."],
  });
  ctx.addMessage({ role: "user", content: userMessage });

  // ... call LLM, accumulate messages ...

  // Persist new messages back via RPC
  const newEvents = ctx.getNewMessages().map((msg) => messageToEvent(sessionId, msg));
  await agent.appendEvents(sessionId, newEvents);
}
