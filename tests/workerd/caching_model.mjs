// A scripted model with prompt caching like that of real providers. It reports what it read from
// its cache and has the APIs of OpenAI and Anthropic.
//
//   const model = await startCachingModel();
//   vars: { OPENAI_BASE_URL: model.url, ANTHROPIC_BASE_URL: model.url }
//
// - As OpenAI it needs no mark. It finds the longest beginning that it has read before, from
//   1,024 tokens on, in steps of 128.
// - As Anthropic it caches up to the marked blocks alone. From each mark it looks back up to
//   20 blocks for a beginning that it has cached.
//
// A token is four characters of what it reads: the tools, the system text, the messages.

import { once } from "node:events";
import { createServer } from "node:http";

const LEAST = 1_024;
const STEP = 128;
const MOST_MARKS = 4;
const MAX_MARK_DISTANCE = 20;

export async function startCachingModel() {
  const model = new CachingModel();
  await model.start();
  return model;
}

class CachingModel {
  #server = createServer((request, response) =>
    this.#answer(request, response).catch((error) => response.destroy(error)),
  );
  #read = [];
  #cached = new Set();
  /** The reported usage of each request: `{ input, cached }`. */
  counted = [];
  /** The address for both providers' settings. */
  url;

  async start() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${this.#server.address().port}/v1`;
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request, response) {
    let body = "";
    for await (const chunk of request) body += chunk;
    const blocks = blocksOf(JSON.parse(body));
    const isAnthropic = request.url.endsWith("/messages");
    const input = tokens(blocks.map(({ text }) => text).join(""));
    const cached = isAnthropic ? this.#marked(blocks) : this.#unmarked(blocks);
    this.counted.push({ input, cached });
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(isAnthropic ? anthropics(input, cached) : openais(input, cached)));
  }

  #unmarked(blocks) {
    const text = blocks.map(({ text }) => text).join("");
    let longest = 0;
    for (const known of this.#read) {
      let same = 0;
      while (same < text.length && text[same] === known[same]) same += 1;
      longest = Math.max(longest, same);
    }
    this.#read.push(text);
    const steps = Math.floor(longest / 4 / STEP) * STEP;
    return steps >= LEAST ? steps : 0;
  }

  #marked(blocks) {
    const marks = blocks.flatMap(({ isMarked }, index) => (isMarked ? [index] : []));
    if (marks.length > MOST_MARKS) throw new Error(`${marks.length} marks`);
    const prefix = (end) =>
      blocks
        .slice(0, end + 1)
        .map(({ text }) => text)
        .join("");
    let longest = 0;
    for (const mark of marks) {
      for (let end = mark; end >= 0 && end > mark - MAX_MARK_DISTANCE; end -= 1) {
        const known = prefix(end);
        if (this.#cached.has(known)) longest = Math.max(longest, tokens(known));
      }
    }
    for (const mark of marks) if (tokens(prefix(mark)) >= LEAST) this.#cached.add(prefix(mark));
    return longest;
  }
}

const tokens = (text) => Math.ceil(text.length / 4);

/** A request in the order in which a provider reads it, each piece with its mark. */
function blocksOf({ tools = [], system = [], messages }) {
  const block = (value) => {
    const { cache_control: mark, ...read } = value;
    return { text: JSON.stringify(read), isMarked: mark !== undefined };
  };
  const conversation = messages.flatMap(({ role, content, ...more }) => {
    if (Array.isArray(content)) return content.map((part) => block({ role, ...part }));
    return [block({ role, ...more, content })];
  });
  return [...tools.map(block), ...system.map(block), ...conversation];
}

const openais = (input, cached) => ({
  choices: [{ message: { content: "Noted." }, finish_reason: "stop" }],
  usage: { prompt_tokens: input, completion_tokens: 2, prompt_tokens_details: { cached_tokens: cached } },
});

const anthropics = (input, cached) => ({
  type: "message",
  content: [{ type: "text", text: "Noted." }],
  stop_reason: "end_turn",
  usage: { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: 2 },
});
