// The Worker for the tests: your own, with a model that needs no key. It repeats the user's text, and stores
// texts that begin with "Remember".

import { mockModel } from "session-agent/testing";
import worker, { Assistant as Own } from "../src/index.ts";

const model = mockModel(({ text, toolResults }) => {
  if (!text.startsWith("Remember") || toolResults.length > 0) return `You said: ${text}`;
  return { toolCalls: [{ toolName: "set_context", input: { label: "memory", content: text } }] };
});

export class Assistant extends Own {
  model() {
    return model;
  }
}

export default worker;
