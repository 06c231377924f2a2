// Creates an example agent: a conversation with a tool call, two branches, and each kind of memory.
// Everything has an id, so creating it again changes nothing.

import { AlreadyExistsError } from "session-agent";
import { openAgent } from "./connection.ts";

export const EXAMPLE = "example";
const SESSION = "trip";

export async function makeExample(): Promise<string> {
  const agent = openAgent(EXAMPLE);
  const session = agent.session(SESSION);
  try {
    await session.create({ name: "A trip to Oslo" });
  } catch (error) {
    if (error instanceof AlreadyExistsError) return SESSION;
    throw error;
  }
  await agent.defineBlock({
    label: "soul",
    kind: "readonly",
    description: "The agent's role",
    defaultContent: "You are a travel companion. Be brief, and say when you don't know something.",
  });
  await agent.defineBlock({ label: "memory", kind: "writable", description: "Facts about the user", maxTokens: 400 });
  await agent.setBlock({ label: "memory", content: "Lives in Lisbon.", reason: "From the first message" });
  await agent.setBlock({
    label: "memory",
    content: "Lives in Lisbon.\nLikes window seats.\nTravels to Oslo in May.",
    reason: "Learned during the conversation",
  });
  await agent.defineBlock({ label: "places", kind: "searchable", description: "Places the user likes" });
  await agent.setEntry({
    label: "places",
    key: "opera",
    title: "Opera house",
    content: "You can walk on its roof and look out over the fjord.",
  });
  await agent.setEntry({
    label: "places",
    key: "library",
    title: "Deichman library",
    content: "Five floors by the harbor. Open until 10 p.m.",
  });
  await agent.defineBlock({ label: "guides", kind: "loadable", description: "Guides for common tasks" });
  await agent.putSkill({
    label: "guides",
    key: "packing",
    description: "What to pack",
    content: "# Packing\n\n- A rain jacket, all year round\n- Layers\n- No umbrella: it is too windy",
  });
  await session.appendEvents({
    events: [
      { id: "ask", action: "user_message", content: "Is it raining in Oslo?" },
      {
        id: "call",
        action: "tool_call_request",
        toolCalls: [{ id: "c1", name: "weather", arguments: { city: "Oslo", days: 2 } }],
      },
      {
        id: "result",
        action: "tool_result",
        toolCallId: "c1",
        toolName: "weather",
        content: '{"today": "Light rain, 9 °C", "tomorrow": "Sun, 14 °C"}',
      },
      {
        id: "first",
        action: "agent_message",
        content: "Yes, a little: 9 °C and light rain. It will be sunny tomorrow.",
      },
      { id: "thanks", action: "user_message", content: "Then I'll pack for both. What should I see?" },
      {
        id: "seen",
        action: "agent_message",
        content:
          "Walk on the roof of the opera house. If it rains, go to the library next door: it is open until 10 p.m.",
      },
      { id: "other", parentId: "ask", action: "agent_message", content: "It is. Bring an umbrella." },
    ],
  });
  await session.setLeaf({ id: "seen" });
  await session.addUsage({ id: "example", inputTokens: 1840, outputTokens: 260, cost: 0.0042 });
  return SESSION;
}
