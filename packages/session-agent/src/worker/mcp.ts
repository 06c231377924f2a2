// A class's own resources and prompts for the Model Context Protocol, in addition to the agent's memory and
// tools. The core requests them as from a service.

import { base64Of } from "../bytes.js";
import { within } from "./deadline.js";

type MaybePromise<Value> = Value | Promise<Value>;

/** The request that every function receives. */
export interface McpRequest {
  agent: string;
  /** The session that the request names. */
  sessionId?: string;
}

/** The request of a function that may ask for input: see `McpQuestions`. */
export interface McpRequestWithAnswers extends McpRequest {
  /** The answers to the questions of the last call, by their names. They are untrusted. */
  inputResponses?: { [name: string]: { [field: string]: any } };
  /** The state that was returned with the questions. */
  requestState?: string;
}

/** Questions to the user of the client. The function is called again with the answers. */
export interface McpQuestions {
  resultType: "input_required";
  inputRequests: { [name: string]: { method: string; params?: { [field: string]: any } } };
  requestState?: string;
}

/** A text, bytes, or one of these with its own MIME type. */
export type McpContents =
  | string
  | Uint8Array
  | ArrayBuffer
  | { uri?: string; mimeType?: string; text: string }
  | { uri?: string; mimeType?: string; blob: string | Uint8Array | ArrayBuffer };

/** The suggested values of an argument: a list, or a function of the text typed so far. */
export type McpCompletion =
  | readonly string[]
  | ((
      typed: string,
      request: McpRequest & { arguments: { [name: string]: string } },
    ) => MaybePromise<readonly string[]>);

type Name<Text extends string> = Text extends `+${infer Rest}` ? Rest : Text;

/** The variables of an address such as `tickets://{id}`. */
export type VariablesOf<Template extends string> = string extends Template
  ? string
  : Template extends `${string}{${infer Variable}}${infer Rest}`
    ? Name<Variable> | VariablesOf<Rest>
    : never;

/** A resource, or a template of resources: see `resource`. */
export interface McpResource<Template extends string = string> {
  /** The address of one resource, with a scheme: `docs://readme`. */
  uri?: string;
  /** The address of several resources: `tickets://{id}`. `{id}` matches one segment of a path, `{+path}` several. */
  uriTemplate?: Template;
  name: string;
  title?: string;
  description?: string;
  /** Default: `text/plain` for texts, and `application/octet-stream` for bytes. */
  mimeType?: string;
  size?: number;
  /** Returns the content. `null`: the resource doesn't exist. */
  read(
    variables: { [name in VariablesOf<Template>]: string },
    request: McpRequestWithAnswers & { uri: string },
  ): MaybePromise<McpContents | { contents: McpContents[] } | McpQuestions | null | undefined>;
  /** Returns a text that changes with the content, for subscriptions. Default: the content itself. */
  version?(
    variables: { [name in VariablesOf<Template>]: string },
    request: McpRequest & { uri: string },
  ): MaybePromise<string | number | null | undefined>;
  /** Suggested values of the template's variables. */
  complete?: { [name in VariablesOf<Template>]?: McpCompletion };
}

/** An argument of a prompt. The client asks its user for it. */
export interface McpArgument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly required?: boolean;
  readonly complete?: McpCompletion;
}

/** A message of a prompt: a text, or content of the protocol, such as an image. Binary content may be a `Uint8Array`. */
export interface McpMessage {
  role: "user" | "assistant";
  content: string | { type: string; [field: string]: any };
}

type Values<Arguments extends readonly McpArgument[]> = {
  [Argument in Arguments[number] as Argument["name"]]: Argument extends { readonly required: true }
    ? string
    : string | undefined;
};

/** A prompt: see `prompt`. */
export interface McpPrompt<Arguments extends readonly McpArgument[] = readonly McpArgument[]> {
  name: string;
  title?: string;
  description?: string;
  arguments?: Arguments;
  /** Returns the messages; a string is one message of the user. `null`: the prompt doesn't exist now. */
  get(
    values: Values<Arguments>,
    request: McpRequestWithAnswers,
  ): MaybePromise<
    string | McpMessage[] | { description?: string; messages: McpMessage[] } | McpQuestions | null | undefined
  >;
}

/** The result of a class's method `mcp`. */
export interface OwnMcp {
  resources?: readonly McpResource<any>[];
  prompts?: readonly McpPrompt<any>[];
}

/** Returns the resource unchanged, so that TypeScript infers the template's variables. */
export function resource<const Template extends string = never>(given: McpResource<Template>): McpResource<any> {
  return given;
}

/** Returns the prompt unchanged, so that TypeScript infers the prompt's arguments. */
export function prompt<const Arguments extends readonly McpArgument[] = []>(
  given: McpPrompt<Arguments>,
): McpPrompt<any> {
  return given;
}

/** The most of each, and the longest texts. As in crates/api/src/mcp/offered.rs. */
const MAX_RESOURCES = 200;
const MAX_PROMPTS = 100;
const MAX_ARGUMENTS = 32;
const MAX_NAME_CHARS = 200;
const MAX_TEXT_CHARS = 1_000;
const MAX_URI_BYTES = 1_000;
const MAX_VARIABLES = 8;
const MAX_ANSWER_BYTES = 4 << 20;
const MAX_VALUES = 1_000;

/** The time limit of a function. The core waits longer. */
const ANSWER_MS = 25_000;
const COMPLETION_MS = 5_000;

/** The agent's own resources, and its own prompt. */
const MEMORY = /^memory:/i;
const SYSTEM = "system";

const ADDRESS = /^[a-z][a-z0-9+.-]*:/i;
const VARIABLE = /^(\+?)([A-Za-z_]\w*)$/;

/** A request as the core sends it. */
interface CoreRequest extends McpRequestWithAnswers {
  ask: "list" | "read" | "version" | "prompt" | "complete";
  uri: string;
  name: string;
  of: string;
  isPrompt: boolean;
  argument: string;
  value: string;
  arguments: { [name: string]: string };
}

type LogFailure = (what: string, error: unknown) => void;

/** An argument that the client left out. */
class MissingArgument extends Error {}

export class OwnOffer {
  #resources = new Map<string, McpResource>();
  #templates: { template: Template; resource: McpResource }[] = [];
  #prompts = new Map<string, McpPrompt>();

  /** Reads the class's resources and prompts. Invalid ones are omitted and reported. */
  define({ resources = [], prompts = [] }: OwnMcp, logFailure: LogFailure): void {
    const each = <Item>(what: string, most: number, items: readonly Item[], add: (item: Item) => void) => {
      for (const [n, item] of items.entries()) {
        const name = String((item as { name?: unknown } | null)?.name ?? n + 1);
        try {
          if (n >= most) throw new TypeError(`there are more than ${most}`);
          add(item);
        } catch (error) {
          logFailure(`\`mcp\`: the ${what} \`${name}\` is left out`, error);
        }
      }
    };
    each("resource", MAX_RESOURCES, resources, (given) => this.#addResource(given));
    each("prompt", MAX_PROMPTS, prompts, (given) => this.#addPrompt(given));
  }

  #addResource(given: McpResource): void {
    checkWords(given);
    if (typeof given.read !== "function") throw new TypeError("it has no `read`");
    const address = given.uri ?? given.uriTemplate;
    if (typeof address !== "string" || (given.uri !== undefined) === (given.uriTemplate !== undefined))
      throw new TypeError("it needs a `uri` or a `uriTemplate`");
    if (!ADDRESS.test(address) || bytesIn(address) > MAX_URI_BYTES)
      throw new TypeError(`its address needs a scheme, and may have up to ${MAX_URI_BYTES} bytes`);
    if (MEMORY.test(address)) throw new TypeError("addresses that begin with `memory:` are the agent's own");
    if (this.#resources.has(address) || this.#templates.some(({ resource }) => resource.uriTemplate === address))
      throw new TypeError("another resource has its address");
    if (given.uri !== undefined) this.#resources.set(address, given);
    else this.#templates.push({ template: new Template(address), resource: given });
  }

  #addPrompt(given: McpPrompt): void {
    checkWords(given);
    if (typeof given.get !== "function") throw new TypeError("it has no `get`");
    if (given.name === SYSTEM || this.#prompts.has(given.name)) throw new TypeError("another prompt has its name");
    const { arguments: named = [] } = given;
    if (named.length > MAX_ARGUMENTS) throw new TypeError(`it has more than ${MAX_ARGUMENTS} arguments`);
    for (const argument of named) checkWords(argument);
    if (new Set(named.map(({ name }) => name)).size < named.length)
      throw new TypeError("two of its arguments have the same name");
    this.#prompts.set(given.name, given);
  }

  /** Answers the core. Errors of functions are only logged. */
  async ask(request: CoreRequest, logFailure: LogFailure): Promise<Response> {
    const what = request.ask === "prompt" ? `the prompt \`${request.name}\`` : `the resource \`${request.uri}\``;
    try {
      const answer = await this.#answer(request);
      if (answer === null) return new Response(null, { status: 404 });
      const text = JSON.stringify(answer);
      if (bytesIn(text) > MAX_ANSWER_BYTES) throw new TypeError(`it has more than ${MAX_ANSWER_BYTES} bytes`);
      return new Response(text, { headers: { "content-type": "application/json" } });
    } catch (error) {
      if (error instanceof MissingArgument) return new Response(error.message, { status: 400 });
      logFailure(
        `\`mcp\`: ${request.ask === "complete" ? `the completion of \`${request.argument}\`` : what} failed`,
        error,
      );
      return new Response(null, { status: 500 });
    }
  }

  async #answer(request: CoreRequest): Promise<object | null> {
    switch (request.ask) {
      case "list":
        return this.#list();
      case "read":
        return await this.#read(request);
      case "version":
        return await this.#version(request);
      case "prompt":
        return await this.#get(request);
      case "complete":
        return await this.#complete(request);
      default:
        return null;
    }
  }

  #list(): object {
    return {
      resources: [...this.#resources.values()].map(({ uri, size, ...given }) => ({ uri, size, ...described(given) })),
      templates: this.#templates.map(({ resource: { uriTemplate, ...given } }) => ({
        uriTemplate,
        ...described(given),
      })),
      prompts: [...this.#prompts.values()].map((given) => ({
        ...described(given),
        arguments: (given.arguments ?? []).map((argument) => ({
          ...described(argument),
          required: argument.required === true,
        })),
      })),
    };
  }

  /** The resource at an address, and the values of its variables. */
  #find(uri: string): { resource: McpResource; variables: { [name: string]: string } } | null {
    const resource = this.#resources.get(uri);
    if (resource !== undefined) return { resource, variables: {} };
    for (const { template, resource } of this.#templates) {
      const variables = template.match(uri);
      if (variables !== null) return { resource, variables };
    }
    return null;
  }

  async #read(request: CoreRequest): Promise<object | null> {
    const found = this.#find(request.uri);
    if (found === null) return null;
    const { resource, variables } = found;
    const { uri } = request;
    const given: any = await within(ANSWER_MS, "read", () => resource.read(variables, { ...fieldsFor(request), uri }));
    if (given === null || given === undefined) return null;
    if (asksForInput(given)) return given;
    const list = Array.isArray(given.contents) ? given.contents : [given];
    return { contents: list.map((content: McpContents) => contentOf(content, uri, resource.mimeType)) };
  }

  async #version(request: CoreRequest): Promise<object | null> {
    const found = this.#find(request.uri);
    if (found === null) return null;
    const { resource, variables } = found;
    if (typeof resource.version !== "function") return await this.#read(request);
    const version = await within(ANSWER_MS, "version", () =>
      resource.version!(variables, { ...fieldsFor(request), uri: request.uri }),
    );
    return version === null || version === undefined ? null : { version: String(version) };
  }

  async #get(request: CoreRequest): Promise<object | null> {
    const prompt = this.#prompts.get(request.name);
    if (prompt === undefined) return null;
    const values: { [name: string]: string } = {};
    for (const { name, required } of prompt.arguments ?? []) {
      if (Object.hasOwn(request.arguments, name)) values[name] = request.arguments[name]!;
      else if (required) throw new MissingArgument(name);
    }
    const given: any = await within(ANSWER_MS, "get", () => prompt.get(values, fieldsFor(request)));
    if (given === null || given === undefined) return null;
    if (asksForInput(given)) return given;
    if (typeof given === "string") return { messages: [messageOf({ role: "user", content: given })] };
    const messages = Array.isArray(given) ? given : given.messages;
    if (!Array.isArray(messages)) throw new TypeError("`get` must return a text, or messages");
    const description = given.description ?? prompt.description;
    return { description, messages: messages.map(messageOf) };
  }

  async #complete(request: CoreRequest): Promise<readonly string[] | null> {
    const completion = this.#completionOf(request);
    if (completion === undefined) return null;
    const { agent, sessionId, argument, arguments: others } = request;
    const values =
      typeof completion === "function"
        ? await within(COMPLETION_MS, `complete of \`${argument}\``, () =>
            completion(request.value, { agent, ...(sessionId && { sessionId }), arguments: others }),
          )
        : completion;
    if (!Array.isArray(values) || !values.every((value) => typeof value === "string"))
      throw new TypeError("`complete` must return a list of texts");
    return values.slice(0, MAX_VALUES);
  }

  #completionOf({ isPrompt, of, argument }: CoreRequest): McpCompletion | undefined {
    if (isPrompt) return this.#prompts.get(of)?.arguments?.find(({ name }) => name === argument)?.complete;
    const listed = this.#templates.find(({ resource }) => resource.uriTemplate === of);
    const complete = listed?.resource.complete;
    return complete !== undefined && Object.hasOwn(complete, argument) ? complete[argument] : undefined;
  }
}

/** A URI template. It is matched from left to right, without backtracking. */
class Template {
  /** Texts, and variables between them. */
  #parts: (string | { name: string; isPath: boolean })[] = [];

  constructor(template: string) {
    const pieces = template.split(/\{([^{}]*)\}/);
    for (const [n, piece] of pieces.entries()) {
      if (n % 2 === 0) {
        if (/[{}]/.test(piece)) throw new TypeError("a brace of its `uriTemplate` has no other");
        const isBetween = n > 0 && n < pieces.length - 1;
        if (piece === "" && isBetween) throw new TypeError("two variables of its `uriTemplate` have no text between");
        if (piece !== "") this.#parts.push(piece);
        continue;
      }
      const [, plus, name] = VARIABLE.exec(piece) ?? [];
      if (name === undefined) throw new TypeError(`its \`uriTemplate\` can't have \`{${piece}}\``);
      this.#parts.push({ name, isPath: plus === "+" });
    }
    const names = this.#parts.flatMap((part) => (typeof part === "string" ? [] : [part.name]));
    if (names.length < 1 || names.length > MAX_VARIABLES || new Set(names).size < names.length)
      throw new TypeError(`its \`uriTemplate\` needs 1 to ${MAX_VARIABLES} variables with different names`);
  }

  match(uri: string): { [name: string]: string } | null {
    const values: { [name: string]: string } = {};
    let at = 0;
    for (const [n, part] of this.#parts.entries()) {
      if (typeof part === "string") {
        if (!uri.startsWith(part, at)) return null;
        at += part.length;
        continue;
      }
      const next = this.#parts[n + 1] as string | undefined;
      const isLast = n + 2 >= this.#parts.length;
      const end = next === undefined ? uri.length : isLast ? endBefore(uri, next) : uri.indexOf(next, at + 1);
      const text = uri.slice(at, end);
      if (end <= at || (!part.isPath && text.includes("/"))) return null;
      try {
        values[part.name] = decodeURIComponent(text);
      } catch {
        return null;
      }
      at = end;
    }
    return at === uri.length ? values : null;
  }
}

const endBefore = (uri: string, last: string): number => (uri.endsWith(last) ? uri.length - last.length : -1);

const bytesIn = (text: string): number => new TextEncoder().encode(text).length;

const asksForInput = (given: any): boolean => given?.resultType === "input_required";

/** The fields of a request that a function receives. */
function fieldsFor({ agent, sessionId, inputResponses, requestState }: CoreRequest): McpRequestWithAnswers {
  return {
    agent,
    ...(sessionId !== undefined && { sessionId }),
    ...(inputResponses !== undefined && { inputResponses }),
    ...(requestState !== undefined && { requestState }),
  };
}

function described({ name, title, description, mimeType }: { [field: string]: any }): object {
  return { name, title, description, mimeType };
}

function checkWords(given: { [field: string]: any }): void {
  if (typeof given?.name !== "string" || given.name === "" || given.name.length > MAX_NAME_CHARS)
    throw new TypeError(`it needs a \`name\` of 1 to ${MAX_NAME_CHARS} characters`);
  for (const field of ["title", "description", "mimeType"]) {
    const text = given[field];
    if (text !== undefined && (typeof text !== "string" || text.length > MAX_TEXT_CHARS))
      throw new TypeError(`its \`${field}\` must be a text of up to ${MAX_TEXT_CHARS} characters`);
  }
}

function bytesOf(given: unknown): Uint8Array | undefined {
  if (given instanceof Uint8Array) return given;
  return given instanceof ArrayBuffer ? new Uint8Array(given) : undefined;
}

/** One content of a resource, in the protocol's format. */
function contentOf(given: any, uri: string, mimeType: string | undefined): object {
  if (typeof given === "string") return { uri, mimeType: mimeType ?? "text/plain", text: given };
  const bytes = bytesOf(given);
  const { uri: own = uri, mimeType: kind = mimeType, text, blob } = bytes === undefined ? given : { blob: bytes };
  if (typeof text === "string") return { uri: own, mimeType: kind ?? "text/plain", text };
  const coded = typeof blob === "string" ? blob : bytesOf(blob);
  if (coded === undefined) throw new TypeError("`read` must return a text, bytes, or contents of the protocol");
  return {
    uri: own,
    mimeType: kind ?? "application/octet-stream",
    blob: typeof coded === "string" ? coded : base64Of(coded),
  };
}

/** A message of a prompt, in the protocol's format. The core checks it. */
function messageOf({ role, content }: McpMessage): object {
  if (typeof content === "string") return { role, content: { type: "text", text: content } };
  const data = bytesOf(content?.data);
  const blob = bytesOf(content?.resource?.blob);
  return {
    role,
    content: {
      ...content,
      ...(data && { data: base64Of(data) }),
      ...(blob && { resource: { ...content.resource, blob: base64Of(blob) } }),
    },
  };
}
