// A model that reads perfectly and knows nothing else: it answers only from its context, so its
// wrong answers show what the context lacks. It has OpenAI's API.
//
// - For a question, it looks for values in its context and believes the newest one from the user.
//   It does not believe a value whose only source is a tool or a document. It believes a value
//   without a source.
// - When it learns, it trusts tools: it proposes the user's facts, and a tool's facts as if they
//   were known. The agent decides whether these get into memory. It does not mistake a document
//   for the user's words.
//
//   const oracle = await startOracle(questions);   // of all groups
//   … oracle.url …
//   await oracle.stop();

import { once } from "node:events";
import { createServer } from "node:http";

export const UNKNOWN = "unknown";
/** The beginning of a learning model's prompt. */
const LEARNS = "Learn from this conversation";

export async function startOracle(questions) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { messages } = JSON.parse(body);
    const texts = messages.map(textOf);
    const last = texts.at(-1) ?? "";
    const content = last.startsWith(LEARNS) ? JSON.stringify(learn(last, questions)) : answer(texts, questions);
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
        usage: { prompt_tokens: tokensOf(body), completion_tokens: tokensOf(content) },
      }),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Four characters are a token. */
const tokensOf = (text) => Math.ceil(text.length / 4);

function textOf({ content, tool_calls: calls }) {
  const text = typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n");
  return calls ? `${text}${JSON.stringify(calls)}` : text;
}

/** The answer of a perfect reader of the context. */
function answer(texts, questions) {
  const prompt = texts.findLast((text) => questions.some(({ question }) => text.endsWith(question)));
  if (prompt === undefined) return UNKNOWN;
  // Text after the question, such as a reminder, is context, too.
  const context = plain(texts.filter((text) => text !== prompt).join("\n"));
  let believed = UNKNOWN;
  for (const { facts } of questions.filter(({ question }) => prompt.endsWith(question)))
    for (const fact of facts) {
      if (fact.taken) {
        if (facts.some(({ value }) => context.includes(value)) && context.includes(plain(fact.text)))
          believed = UNKNOWN;
      } else if (context.includes(fact.value)) {
        const isQuoted = fact.by !== "user" && context.includes(plain(fact.text));
        if (!isQuoted) believed = fact.value;
      }
    }
  return believed;
}

/** The changes of memory that a conversation implies. */
function learn(prompt, questions) {
  const known = new Set(lines(prompt, "entries").map(({ key }) => key));
  const changes = new Map();
  for (const { event, text } of lines(prompt, "events"))
    for (const { topic, facts } of questions)
      for (const fact of facts) {
        if (fact.by === "document" || !text.includes(fact.text)) continue;
        const key = topic.toLowerCase().replaceAll(/[^a-z]+/g, "-");
        if (fact.taken) {
          if (known.has(key)) changes.set(key, { action: "forget", key, events: [event] });
          else changes.delete(key);
          continue;
        }
        // A tool's text is listed beside the user's, and never replaces it.
        const entryKey = fact.by === "tool" ? `${key}-by-a-tool` : key;
        const action = known.has(entryKey) ? "replace" : "add";
        const content = fact.by === "tool" ? fact.text.replace(/^.*? that (?=the )/, "") : fact.text;
        changes.set(entryKey, { action, key: entryKey, content, events: [event] });
      }
  return { changes: [...changes.values()] };
}

/** The JSON lines between two tags. */
function lines(prompt, tag) {
  const inside = prompt.split(`\n<${tag}>\n`)[1]?.split(`\n</${tag}>`)[0] ?? "";
  return inside.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line)];
    } catch {
      return [];
    }
  });
}

/** A text without the differences between a text and its quotation. */
const plain = (text) => text.replaceAll(/\\n|\\"|[\s>"*]+/g, " ");
