// Checks that each call in a model's input is followed by exactly one result and each result has
// its call, as every provider requires.

/** The problem with the pairs of messages in a provider's format; `null`: none. */
export function unpaired(messages, shape) {
  const open = [];
  for (const [at, message] of messages.entries()) {
    const { calls, results } = shape(message);
    if (results.length === 0 && open.length > 0) return `message ${at} follows calls without results: ${open}`;
    for (const id of results) {
      const found = open.indexOf(id);
      if (found < 0) return `message ${at} has a result of ${id}, which the message above did not call`;
      open.splice(found, 1);
    }
    if (calls.length > 0 && open.length > 0) return `message ${at} calls before the results of ${open}`;
    if (new Set(calls).size < calls.length) return `message ${at} has two calls of one id: ${calls}`;
    open.push(...calls);
  }
  return open.length > 0 ? `the last calls have no results: ${open}` : null;
}

export const SHAPES = {
  plain: ({ toolCalls, toolCallId }) => ({
    calls: (toolCalls ?? []).map(({ id }) => id),
    results: toolCallId == null ? [] : [toolCallId],
  }),
  openai: ({ tool_calls, tool_call_id }) => ({
    calls: (tool_calls ?? []).map(({ id }) => id),
    results: tool_call_id === undefined ? [] : [tool_call_id],
  }),
  anthropic: ({ content }) => {
    const parts = Array.isArray(content) ? content : [];
    return {
      calls: parts.filter(({ type }) => type === "tool_use").map(({ id }) => id),
      results: parts.filter(({ type }) => type === "tool_result").map(({ tool_use_id }) => tool_use_id),
    };
  },
};
SHAPES["workers-ai"] = SHAPES.openai;
