// The AI SDK's tool objects as registered tools, run in the object.

import { within } from "./deadline.js";
import { problemOfTool } from "./fitting.js";
import { type InputSchema, schemaOf } from "./schema.js";

/**
 * Tools of the AI SDK, as returned by `tool({ … })`, by their names:
 *
 * - `inputSchema`: a schema of the AI SDK, of Zod, of Valibot or another library with Standard
 *   JSON Schema, or JSON Schema itself.
 * - `execute(input, options)`: `options` has `toolCallId`, `abortSignal`, and also `agent` and
 *   `sessionId`. Its `messages` are empty. A call over the Model Context Protocol that answers the
 *   tool's questions has `inputResponses`, and the tool's `requestState`.
 * - `needsApproval`: whether the user must approve a call. A function receives the call's input and the
 *   same options, and decides for each call. A call also needs approval if its input is invalid, or if
 *   the function throws, takes longer than 10 seconds, or returns something other than `true` or `false`.
 *
 * Their types are the AI SDK's, which differ from version to version.
 */
export type OwnTools = { [name: string]: object };

/** The fields of a tool that are read. */
interface OwnTool {
  description?: unknown;
  inputSchema?: any;
  parameters?: unknown;
  execute?: (input: any, options: any) => any;
  needsApproval?: unknown;
  toModelOutput?: any;
}

/** The time limit of a function that returns a schema. */
const SCHEMA_MS = 5_000;

/** The time limit of a `needsApproval` function. */
const APPROVAL_MS = 10_000;

/** A call in the core's format. */
export interface ToolRequest {
  name: string;
  arguments: object;
  agent: string;
  sessionId?: string;
  /** The answers of a client of the Model Context Protocol, and the tool's own state. */
  inputResponses?: object;
  requestState?: string;
}

interface Listed {
  tool: OwnTool;
  schema: InputSchema;
}

export class OwnToolbox {
  #tools = new Map<string, Listed>();

  /** The tools in the format of `defineTool`. Invalid ones are omitted and reported. */
  async define(
    tools: OwnTools,
    service: string,
    logFailure: (what: string, error: unknown) => void,
  ): Promise<object[]> {
    const defined: object[] = [];
    for (const [name, tool] of Object.entries(tools as { [name: string]: OwnTool })) {
      try {
        if (typeof tool?.execute !== "function")
          throw new TypeError("it has no `execute`; a page must send its own tools with its request");
        const problem = problemOfTool(tool);
        if (problem !== null) throw new TypeError(problem);
        const schema = await within(SCHEMA_MS, "inputSchema", () => schemaOf(tool.inputSchema));
        this.#tools.set(name, { tool, schema });
        // The core then checks each call: see `needsApproval` below.
        const needsApproval = tool.needsApproval !== undefined && tool.needsApproval !== false;
        defined.push({
          name,
          description: typeof tool.description === "string" ? tool.description : "",
          parameters: schema.json,
          service,
          needsApproval,
        });
      } catch (error) {
        logFailure(`the tool \`${name}\` is left out`, error);
      }
    }
    return defined;
  }

  /** Runs a call. The model receives a failure message; the tool's error is only logged. */
  async run(
    { name, arguments: given, agent, sessionId, inputResponses, requestState }: ToolRequest,
    toolCallId: string | null,
    abortSignal: AbortSignal | undefined,
    logFailure: (what: string, error: unknown) => void,
  ): Promise<Response> {
    const listed = this.#tools.get(name);
    if (listed === undefined) return new Response(`There is no tool \`${name}\` any more.`, { status: 404 });
    const failed = (error: unknown) => new Response(String((error as Error)?.message ?? error), { status: 422 });
    let input: any;
    try {
      input = await listed.schema.check(given);
    } catch (error) {
      return failed(error);
    }
    try {
      const options = {
        toolCallId: toolCallId ?? crypto.randomUUID(),
        messages: [],
        abortSignal,
        agent,
        sessionId,
        inputResponses,
        requestState,
      };
      const output = await lastOf(await listed.tool.execute!(input, options));
      return answerOf(await this.#shown(listed.tool, options.toolCallId, input, output));
    } catch (error) {
      logFailure(`the tool \`${name}\` failed`, error);
      return failed(error);
    }
  }

  /** Whether the user must approve a call. After a failure, they must. */
  async needsApproval(
    { name, arguments: given, agent, sessionId }: ToolRequest,
    toolCallId: string | null,
    logFailure: (what: string, error: unknown) => void,
  ): Promise<Response> {
    const listed = this.#tools.get(name);
    const rule = listed?.tool.needsApproval;
    if (typeof rule !== "function") return Response.json(rule !== false);
    try {
      const answer: unknown = await within(APPROVAL_MS, "needsApproval", async () => {
        const input = await listed!.schema.check(given);
        return await rule(input, { toolCallId: toolCallId ?? crypto.randomUUID(), messages: [], agent, sessionId });
      });
      if (typeof answer !== "boolean")
        throw new TypeError(`it returned ${typeof answer} instead of \`true\` or \`false\``);
      return Response.json(answer);
    } catch (error) {
      logFailure(`\`needsApproval\` of the tool \`${name}\` failed, so the user must approve the call`, error);
      return Response.json(true);
    }
  }

  /** The part of an output that the model sees, if the tool defines it. */
  async #shown({ toModelOutput }: OwnTool, toolCallId: string, input: unknown, output: unknown): Promise<unknown> {
    if (typeof toModelOutput !== "function") return output;
    const shown = await toModelOutput({ toolCallId, input, output });
    if (shown?.type === "error-text" || shown?.type === "error-json")
      throw new Error(typeof shown.value === "string" ? shown.value : JSON.stringify(shown.value));
    if (shown?.type !== "content") return shown?.value;
    return shown.value.flatMap((part: any) => (part.type === "text" ? [part.text] : [])).join("\n");
  }
}

/** A tool may return preliminary outputs before its last one. */
async function lastOf(output: any): Promise<unknown> {
  if (typeof output?.[Symbol.asyncIterator] !== "function") return output;
  let last: unknown;
  for await (const one of output) last = one;
  return last;
}

function answerOf(output: unknown): Response {
  if (typeof output === "string") return new Response(output, { headers: { "content-type": "text/plain" } });
  // JSON can't represent `undefined` or a function.
  return new Response(JSON.stringify(output) ?? "null", { headers: { "content-type": "application/json" } });
}
