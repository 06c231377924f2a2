// The chat peer: `AIChatAgent` of `@cloudflare/ai-chat` on `agents`, asking an
// OpenAI-compatible model through the AI SDK, as its own guide builds it.
//
// Later changes of this Worker are seen against this file. So it stays as it is.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AIChatAgent } from "@cloudflare/ai-chat";
import { routeAgentRequest } from "agents";
import { convertToModelMessages, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { metered } from "./meter.mjs";

class Chat extends AIChatAgent {
  async onChatMessage() {
    const provider = createOpenAICompatible({ name: "bench", baseURL: this.env.OPENAI_BASE_URL, apiKey: "a bench's key" });
    const result = streamText({
      model: provider("test"),
      messages: await convertToModelMessages(this.messages),
      stopWhen: stepCountIs(5),
      tools: {
        weather: tool({
          description: "The weather.",
          inputSchema: z.object({ city: z.string() }),
          execute: async ({ city }) => ({ city, sky: "rain" }),
        }),
      },
    });
    return result.toUIMessageStreamResponse();
  }
}

export class ChatPeer extends metered(Chat) {}

export default {
  async fetch(request, env) {
    if (new URL(request.url).pathname === "/health") return Response.json({ ok: true });
    return (await routeAgentRequest(request, env)) ?? new Response("Not found", { status: 404 });
  },
};
