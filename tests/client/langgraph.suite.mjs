// LangGraph's own validation suite for checkpoint savers. vitest runs this file for
// langgraph.test.mjs, which passes the server in the environment.

import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import { sessionAgent } from "session-agent";
import { SessionAgentSaver } from "session-agent/langgraph";
import { targetBy } from "./evicting_target.mjs";

const { SUITE_TARGET, SUITE_CONTROL } = process.env;
const { target, fetch: evictingFetch } = targetBy(JSON.parse(SUITE_TARGET), (agent) =>
  fetch(`${SUITE_CONTROL}/${encodeURIComponent(agent)}`, { method: "POST" }),
);

const initializer = {
  checkpointerName: "SessionAgentSaver",
  // `list` without a thread returns all threads, so each saver has its own agent.
  createCheckpointer: () =>
    new SessionAgentSaver(
      sessionAgent(target, crypto.randomUUID(), { ...(evictingFetch && { fetch: evictingFetch }) }),
    ),
};

validate(initializer);
deltaChannelHistoryTests(initializer);
