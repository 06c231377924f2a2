// Runs one very long conversation with a model of a small window. The model counts its input with a
// tokenizer and refuses inputs that are too long, as OpenAI does. Facts are mentioned on the way,
// and some tools return 200 KB.
//
// The model's summaries keep the facts that it is shown.

import { once } from "node:events";
import { createServer } from "node:http";
import { startServer } from "./harness.mjs";

export const WINDOW = 8_000;
const OUTPUT_BYTES = 200_000;
const FACT = /Fact \d+: the code of [a-z]+-\d+ is [A-Z]+\d+\./g;
const NAMES = ["anchor", "beacon", "cedar", "delta", "ember", "falcon", "garnet", "harbor", "island", "juniper"];

export const factOf = (number) =>
  `Fact ${number}: the code of ${NAMES[number % NAMES.length]}-${number} is KX${number * 7919 + 13}.`;

/** Runs this many turns. `count` is the tokenizer. Returns the results. */
export async function runConversation({ turns, facts, readEvery, count, onTurn = () => {} }) {
  const model = await startProvider(count);
  const server = await startServer({
    vars: { AUTH: "open", MODEL: "openai:small", OPENAI_BASE_URL: `${model.url}/v1`, TOOL_ORIGINS: model.url },
    secrets: { OPENAI_API_KEY: "a key" },
  });
  const call = async (operation, input) => {
    const { status, body } = await server.call("long", operation, input);
    if (status !== 200) throw new Error(`${operation}: ${JSON.stringify(body)}`);
    return body;
  };
  await call("configureAgent", { maxContextTokens: WINDOW, sessionSearch: true });
  await call("defineTool", {
    name: "read",
    description: "Reads a file.",
    url: `${model.url}/tool`,
    needsApproval: false,
  });
  const planted = new Map(
    Array.from({ length: facts }, (_, n) => [Math.floor(((n + 0.5) * turns) / facts) + 1, n + 1]),
  );
  const sent = [];
  let answered = 0;
  for (let turn = 1; turn <= turns; turn += 1) {
    const words = `Message ${turn} of this talk says a few things about the weather, the work, and number ${turn * 31}. `;
    const fact = planted.has(turn) ? `${factOf(planted.get(turn))} ` : "";
    const task = turn % readEvery === 0 ? "Read the file." : "Go on.";
    model.turn = { turn, reads: turn % readEvery === 0 };
    const text = `${words.repeat(1 + (turn % 4))}${fact}${task}`;
    const message = { id: `u${turn}`, role: "user", parts: [{ type: "text", text }] };
    const response = await server.fetch("/agents/session-agent/long/chat", {
      method: "POST",
      body: JSON.stringify({ id: "s", message }),
    });
    const stream = await response.text();
    if (stream.includes(`Answer ${turn} `) && !stream.includes('"type":"error"')) answered += 1;
    sent.push(model.taken());
    onTurn(turn);
  }
  /** A search returns `pending` until the whole log is indexed. */
  const search = async (wanted) => {
    for (let tries = 0; tries < 100; tries += 1) {
      const { results, pending } = await call("search", wanted);
      if (!pending) return results;
      found.pending += 1;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error("the index is never whole");
  };
  const context = model.last;
  const found = { inContext: 0, bySearch: 0, pending: 0 };
  for (let number = 1; number <= facts; number += 1) {
    const fact = factOf(number);
    if (context.includes(fact)) {
      found.inContext += 1;
      continue;
    }
    const results = await search({ query: fact.split(" is ")[0].split("code of ")[1], sessionId: "s" });
    const code = fact.split(" is ")[1];
    if (results.some(({ snippet }) => snippet.includes(code.slice(0, -1)))) found.bySearch += 1;
  }
  const { length } = await call("getPathLength", { sessionId: "s" });
  const { compactions } = await call("getCompactions", { sessionId: "s" });
  const session = await call("getSession", { sessionId: "s" });
  await server.stop();
  await model.stop();
  return { answered, sent, found, messages: length, compactions: compactions.length, session, ...model.figures };
}

async function startProvider(count) {
  const provider = {
    turn: { turn: 0, reads: false },
    last: "",
    figures: { refusals: 0, summaries: 0, summaryTokens: 0, notices: 0, outputs: 0 },
    most: 0,
    taken() {
      const { most } = provider;
      provider.most = 0;
      return most;
    },
  };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (request.url === "/tool") {
      provider.figures.outputs += 1;
      return response.end("A line of the file that nobody needs. ".repeat(OUTPUT_BYTES / 38));
    }
    const input = JSON.parse(body);
    const texts = input.messages.map(
      ({ content, tool_calls: calls }) => `${content ?? ""}${calls ? JSON.stringify(calls) : ""}`,
    );
    const tools = input.tools ? count(JSON.stringify(input.tools)) : 0;
    const tokens = texts.reduce((sum, text) => sum + count(text) + 4, 3) + tools;
    if (tokens + (input.max_tokens ?? 0) > WINDOW) {
      provider.figures.refusals += 1;
      const message = `This model's maximum context length is ${WINDOW} tokens. However, you requested ${tokens + (input.max_tokens ?? 0)} tokens (${tokens} in the messages, ${input.max_tokens ?? 0} in the completion). Please reduce the length of the messages or completion.`;
      response.writeHead(400, { "content-type": "application/json" });
      return response.end(
        JSON.stringify({
          error: { message, type: "invalid_request_error", param: "messages", code: "context_length_exceeded" },
        }),
      );
    }
    const respond = (delta, reason, answer) => {
      const usage = { prompt_tokens: tokens, completion_tokens: count(answer), total_tokens: tokens + count(answer) };
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const chunk of [
        { choices: [{ index: 0, delta }] },
        { choices: [{ index: 0, delta: {}, finish_reason: reason }] },
        { choices: [], usage },
      ]) {
        response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      }
      response.end("data: [DONE]\n\n");
    };
    if (texts[0].startsWith("Summarize this conversation")) {
      provider.figures.summaries += 1;
      provider.figures.summaryTokens += tokens;
      const facts = [...new Set(texts[0].match(FACT) ?? [])];
      // No longer than requested.
      while (input.max_tokens && count(facts.join(" ")) > input.max_tokens - 20) facts.shift();
      const summary = `## Key points\n${facts.join(" ") || "Small talk."}`;
      return respond({ content: summary }, "stop", summary);
    }
    provider.most = Math.max(provider.most, tokens);
    provider.last = texts.join("\n");
    if (provider.last.includes("are not shown here")) provider.figures.notices += 1;
    const { turn, reads } = provider.turn;
    if (reads && input.messages.at(-1).role === "user") {
      const call = { index: 0, id: `c${turn}`, type: "function", function: { name: "read", arguments: "{}" } };
      return respond({ tool_calls: [call] }, "tool_calls", "{}");
    }
    const answer = `Answer ${turn} is that all of this is noted, and that the work goes on as it was planned. `.repeat(
      1 + (turn % 3),
    );
    return respond({ content: answer }, "stop", answer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  provider.url = `http://127.0.0.1:${server.address().port}`;
  provider.stop = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return provider;
}
