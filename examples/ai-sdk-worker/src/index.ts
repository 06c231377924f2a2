// A Worker that runs the model loop itself, with the AI SDK, and stores its memory in Session Agent over a
// service binding. It works with a model of any provider: see model.ts.
//
//   curl localhost:8788/ask -d '{"session": "first", "text": "Remember that I like tea."}'

import { isStepCount, streamText } from "ai";
import { LeafMovedError, SessionNotFoundError, sessionAgent } from "session-agent";
import { model } from "./model";

interface Env {
  MEMORY: Fetcher;
  SESSION_AGENT_TOKEN?: string;
}

const MAX_BODY_BYTES = 64 * 1024;
const MAX_STEPS = 5;

export default {
  async fetch(request: Request, env: Env, ctx: ExecutionContext): Promise<Response> {
    if (request.method !== "POST" || new URL(request.url).pathname !== "/ask") {
      return new Response("POST /ask with { session, text }.\n", { status: 404 });
    }
    const question = await questionIn(request);
    if (question === null) return new Response("Send { session, text }, two strings.\n", { status: 400 });

    const agent = sessionAgent(env.MEMORY, userOf(request), { token: env.SESSION_AGENT_TOKEN });
    await agent.defineBlock({
      label: "memory",
      kind: "writable",
      description: "What you know of the user",
      maxTokens: 1100,
    });
    const session = agent.session(question.session);

    // The question is stored before the model is called.
    const message = { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text: question.text }] };
    await session.appendMessage({ message }).catch(async (error) => {
      if (!(error instanceof SessionNotFoundError)) throw error;
      await session.create({ name: question.text.slice(0, 60) });
      await session.appendMessage({ message });
    });

    const input = await session.modelInput();
    const { system, messages, tools } = input;
    const result = streamText({ model, system, messages, tools, stopWhen: isStepCount(MAX_STEPS) });
    ctx.waitUntil(
      session.persist(result, input).catch((error) => {
        if (!(error instanceof LeafMovedError)) throw error;
        console.warn("Another question was stored first. This answer is not stored.");
      }),
    );
    return result.toTextStreamResponse();
  },
};

/** Each user has an agent. Replace this with your own authentication. */
function userOf(_request: Request): string {
  return "demo";
}

async function questionIn(request: Request): Promise<{ session: string; text: string } | null> {
  if (Number(request.headers.get("content-length") ?? Infinity) > MAX_BODY_BYTES) return null;
  const { session, text } = await request.json<any>().catch(() => ({}));
  const isText = (value: unknown) => typeof value === "string" && value !== "";
  return isText(session) && isText(text) ? { session, text } : null;
}
