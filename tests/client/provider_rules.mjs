// The rules by which the providers refuse a conversation. A function for each API returns the
// problem, or undefined.

/** The maximum number of cache marks that Anthropic accepts. */
const MAX_MARKS = 4;

/** The prefix of call ids that the provider generated after reasoning. */
export const AFTER_THOUGHT = "t";

export function problemOfCompletion({ messages }) {
  let open = new Set();
  for (const { role, tool_calls = [], tool_call_id } of messages) {
    if (role === "tool") {
      if (!open.delete(tool_call_id)) return `The result ${tool_call_id} follows no call.`;
      continue;
    }
    if (open.size > 0) return `The calls ${[...open]} have no results.`;
    open = new Set(tool_calls.map(({ id }) => id));
    if (open.size < tool_calls.length) return "Two calls have one id.";
  }
  return open.size > 0 ? `The calls ${[...open]} have no results.` : undefined;
}

export function problemOfResponse({ input, previous_response_id, conversation }) {
  if (typeof input === "string" || previous_response_id || conversation) return undefined;
  const calls = input.filter(({ type }) => type === "function_call" || type === "custom_tool_call");
  const called = new Set(calls.map(({ call_id }) => call_id));
  const lost = input.find(({ type, call_id }) => type?.endsWith("call_output") && !called.has(call_id));
  if (lost) return `The result ${lost.call_id} follows no call.`;
  const isThought = ({ type, id }) => type === "reasoning" || (type === "item_reference" && id.startsWith("rs_"));
  const withoutReasoning = calls.find(
    (call) => call.call_id.startsWith(`call_${AFTER_THOUGHT}`) && !input.slice(0, input.indexOf(call)).some(isThought),
  );
  if (withoutReasoning) return `The call ${withoutReasoning.call_id} was provided without its thought.`;
  const changed = input.find(({ type, id }) => OWN_ITEMS.includes(type) && id && !OWN_ID.test(id));
  return changed && `There is no item ${changed.id}.`;
}

/** Items that a provider knows by id, and these ids. */
const OWN_ITEMS = ["reasoning", "web_search_call"];
const OWN_ID = /^(?:rs|ws)_\d+_\d+$/;

export function problemOfMessage(body) {
  const marks = JSON.stringify(body).match(/"cache_control":\{/g)?.length ?? 0;
  if (marks > MAX_MARKS) return `${marks} blocks are marked for the cache.`;
  const conversation = body.messages.filter(({ role }) => role !== "system");
  if (conversation[0].role !== "user") return "The first message is not the user's.";
  const blocksOf = ({ content }) => (typeof content === "string" ? [{ type: "text", text: content }] : content);
  const system = typeof body.system === "string" ? [{ type: "text", text: body.system }] : (body.system ?? []);
  const empty = [system, ...conversation.map(blocksOf)]
    .flat()
    .some(({ type, text }) => type === "text" && text.trim() === "");
  if (empty) return "A text is empty.";
  const thinks = body.thinking !== undefined && body.thinking.type !== "disabled";
  const hasThought = ({ type, id }) => type === "tool_use" && id.startsWith(`toolu_${AFTER_THOUGHT}`);
  let open = new Set();
  for (const message of conversation) {
    const blocks = blocksOf(message);
    const isCall = ({ type }) => type === "tool_use";
    // A call that followed a thought is sent back with it.
    if (thinks && message === conversation.at(-2) && blocks.some(hasThought) && blocks[0].type !== "thinking")
      return "The thoughts before a call are missing.";
    for (const { type, tool_use_id } of blocks) {
      if (type === "tool_result" && !open.delete(tool_use_id)) return `The result ${tool_use_id} follows no call.`;
      if (type !== "tool_result" && open.size > 0) return `The calls ${[...open]} have no results.`;
    }
    open = new Set(blocks.filter(isCall).map(({ id }) => id));
  }
  return open.size > 0 ? `The calls ${[...open]} have no results.` : undefined;
}
