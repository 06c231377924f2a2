// Runs the JavaScript adapters for the Python tests: `write` creates a LangGraph thread and `read`
// prints one, `add` adds items of OpenAI's Agents SDK and `items` prints them.

import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { sessionAgent } from "session-agent";
import { SessionAgentSaver } from "session-agent/langgraph";
import { SessionAgentSession } from "session-agent/openai-agents";

const [what, url, name, token] = process.argv.slice(2);
const agent = sessionAgent(url, name, { token });
const saver = new SessionAgentSaver(agent);
const session = new SessionAgentSession(agent.session("s"));
const config = { configurable: { thread_id: "js", checkpoint_ns: "" } };

if (what === "write") {
  const values = {
    messages: [new HumanMessage({ content: "Hi", id: "h" }), new AIMessage("Hello")],
    n: 1,
    nothing: null,
  };
  const versions = Object.fromEntries(Object.keys(values).map((channel) => [channel, saver.getNextVersion(undefined)]));
  const checkpoint = {
    ...emptyCheckpoint(),
    channel_values: { ...values, seen: new Set(["a"]) },
    channel_versions: { ...versions, seen: "1" },
  };
  const written = await saver.put(
    config,
    checkpoint,
    { source: "input", step: -1, parents: {} },
    { ...versions, seen: "1" },
  );
  await saver.putWrites(
    written,
    [
      ["n", 2],
      ["__interrupt__", { value: "Sure?" }],
    ],
    "task",
    "path",
  );
} else if (what === "add") {
  const call = {
    type: "function_call",
    callId: "c1",
    name: "weather",
    status: "completed",
    arguments: '{"city":"Oslo"}',
  };
  const output = { type: "text", text: "Rain" };
  const result = { type: "function_call_result", name: "weather", callId: "c1", status: "completed", output };
  const content = [{ type: "output_text", text: "Take one." }];
  const answer = { type: "message", role: "assistant", status: "completed", content, providerData: { a: 1 } };
  await session.addItems([{ type: "message", role: "user", content: "Rain?" }, call, result, answer]);
} else if (what === "items") {
  console.log(JSON.stringify(await session.getItems()));
} else {
  const { checkpoint, metadata, pendingWrites } = await saver.getTuple({ configurable: { thread_id: "1" } });
  const { messages, texts } = checkpoint.channel_values;
  const printed = messages.map((message) => [message.getType(), message.content, message.id ?? null]);
  console.log(JSON.stringify({ texts, messages: printed, step: metadata.step, writes: pendingWrites.length }));
}
