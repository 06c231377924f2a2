// Classes whose methods misbehave. Each failure affects only its own feature.

import { tool } from "ai";
import { routeSessionAgent, SessionAgent } from "session-agent/worker";
import { z } from "zod";

type Env = { [binding: string]: any };

const clock = tool({ description: "The time", inputSchema: z.object({}), execute: async () => "noon" });
const model = (parts: object[], modelId: unknown = "rough"): any => ({
  specificationVersion: "v4",
  provider: "rough",
  modelId,
  doStream: async () => ({
    stream: new ReadableStream({
      start(controller) {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      },
    }),
  }),
});

/** Calls its own object during construction. */
export class Early extends SessionAgent<Env> {
  async blocks() {
    const { length } = await this.getBlocks({});
    return [{ label: "soul", kind: "readonly" as const, provider: { get: () => `I saw ${length} blocks.` } }];
  }
  async tools() {
    await this.getConfig({});
    return { clock };
  }
  countTokens() {
    return 7;
  }
}

/** Counts, and calls its own object during the count. */
export class Counting extends SessionAgent<Env> {
  blocks() {
    return [
      { label: "memory", kind: "writable" as const },
      { label: "counted", kind: "writable" as const },
    ];
  }
  async countTokens(text: string) {
    await this.setBlock({ label: "counted", content: "a text was counted" });
    return text.length;
  }
}

/** Returns counts that are far too large. */
export class Greedy extends SessionAgent<Env> {
  blocks() {
    return [{ label: "memory", kind: "writable" as const }];
  }
  countTokens() {
    return 1_000_000;
  }
}

/** Has no counter. */
export class Modest extends SessionAgent<Env> {
  blocks() {
    return [{ label: "memory", kind: "writable" as const }];
  }
}

/** Some of its tools and blocks are invalid. */
export class Partly extends SessionAgent<Env> {
  tools() {
    return { clock, set_context: clock, "no name!": clock };
  }
  blocks() {
    return [
      null as never,
      {} as never,
      { label: "soul", kind: "readonly" as const, provider: { get: () => "Here." } },
      { label: "notes", maxTokens: 500 },
    ];
  }
}

export class Nameless extends SessionAgent<Env> {
  model() {
    const text = { type: "text-delta", id: "t", delta: "Hello." };
    return model([text, { type: "finish", finishReason: "stop", usage: {} }], 5);
  }
}

export class Unset extends SessionAgent<Env> {
  model() {
    return "";
  }
}

export class Broken extends SessionAgent<Env> {
  model() {
    return model([
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "Half an ans" },
    ]);
  }
}

export class Garbled extends SessionAgent<Env> {
  model() {
    return model([null as never, { type: "text-delta", id: "t" }]);
  }
}

/** Returns `true` instead of the rights. */
export class Yes extends SessionAgent<Env> {
  authorize() {
    return true as never;
  }
}

const rights = { operations: ["createSession", "getSession", "listSessions", "runTurn"] };

/** Grants with a typical mistake, selected by the cookie. */
const GRANTS: { [cookie: string]: () => any } = {
  whole: () => rights,
  narrow: () => ({ ...rights, sessionId: "s" }),
  "session null": () => ({ ...rights, sessionId: null }),
  "session undefined": () => ({ ...rights, sessionId: undefined }),
  "session empty": () => ({ ...rights, sessionId: "" }),
  "session of nobody": () => ({ ...rights, sessionId: () => "s" }),
  "session hidden": () =>
    Object.create({ sessionId: "s" }, { operations: { value: rights.operations, enumerable: true } }),
  "operations null": () => ({ operations: null, sessionId: "s" }),
  "operations undefined": () => ({ operations: undefined, sessionId: "s" }),
  "preset null": () => ({ preset: null, sessionId: "s" }),
  "limits null": () => ({ ...rights, limits: null, holder: "ann" }),
  "limits of nothing": () => ({ ...rights, limits: {}, holder: "ann" }),
  "limits undefined": () => ({ ...rights, limits: { turnsPerMinute: undefined }, holder: "ann" }),
  "limits without a holder": () => ({ ...rights, limits: { turnsPerMinute: 1 } }),
  "holder of nothing": () => ({ ...rights, holder: "ann" }),
  "another agent": () => ({ ...rights, agent: "bob" }),
  list: () => [rights],
  limited: () => ({ ...rights, limits: { turnsPerMinute: 1 }, holder: "ann" }),
};

export class Granting extends SessionAgent<Env> {
  authorize(request: Request) {
    return GRANTS[decodeURIComponent(request.headers.get("cookie") ?? "")]!();
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, first, name, operation] = new URL(request.url).pathname.split("/");
    const namespaces = { YES: env.YES, GRANTING: env.GRANTING };
    if (first !== "own")
      return (await routeSessionAgent(request, env, { namespaces })) ?? new Response("Nothing.", { status: 404 });
    if (env[name!] === undefined) return new Response("ready");
    // The same name for all: the classes share an isolate.
    const answer = await env[name!].getByName("ann").request(operation, await request.text());
    return Response.json(answer.ok ? JSON.parse(answer.value) : answer.error);
  },
};
