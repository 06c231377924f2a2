// Generates the client's module of operations from openapi.json: their types with descriptions, and
// which of them only read. The setup writes it next to the client's other modules
// (scripts/setup/client.mjs), so it is always up to date.

const HEAD = "// scripts/client.mjs makes this file of generated/openapi.json.";

/** Shapes whose names would collide with other names of the client. */
const RENAMED = { Event: "EventFields", WorkingContext: "BuiltContext", File: "ContextFile" };

/** The client has classes for errors and needs only the codes of this shape. */
const LEFT_OUT = new Set(["Error"]);

/** Types for which the document has less detail than the AI SDK. */
const MESSAGE_PARTS = "any[]";

/** The operations whose methods of an object accept positional arguments, as positional.ts reads them. */
const GIVEN = {
  getSession: "input: GetSessionInput | SessionRef, options?: ObjectRpcOptions",
  deleteSession: "input: DeleteSessionInput | SessionRef, options?: ObjectRpcOptions",
  loadEvents:
    '...given: [input: LoadEventsInput, options?: ObjectRpcOptions] | [session: SessionRef, filter?: Omit<LoadEventsInput, "sessionId">, options?: ObjectRpcOptions]',
  appendEvents:
    "...given: [input: AppendEventsInput, options?: ObjectRpcOptions] | [session: SessionRef, events: NewEvent[], options?: ObjectRpcOptions]",
  deleteEvents:
    "...given: [input: DeleteEventsInput, options?: ObjectRpcOptions] | [session: SessionRef, eventIds: string[], options?: ObjectRpcOptions]",
  persistWorkingContext:
    "...given: [input: PersistWorkingContextInput, options?: ObjectRpcOptions] | [session: SessionRef, context: WorkingContext | ContextMessageInput[]]",
  destroy: "input?: DestroyInput, options?: ObjectRpcOptions",
};

/** Additional overloads of an object's methods. A stub gets the last one of a method. */
const OVERLOADS = {
  createSession:
    "  /** Creates a session with this metadata, and returns its id. The fields must not be those of `createSession`. */\n  createSession<Given extends SessionMetadata>(metadata: Given & ([keyof Given] extends [never] ? never : unknown)): Promise<any>;\n",
  buildWorkingContext:
    "  /** The context of a turn, synchronously: a `WorkingContext`. Only in the class. */\n  buildWorkingContext(session: SessionRef, options?: object): any;\n",
};

/** Overrides of these operations return nothing, while the document describes a result. */
const GIVES = { destroy: "any" };

/** The type of an input without fields: the type `{}` accepts anything. */
const NO_FIELDS = "{ [field: string]: never }";

/** The type of an event, by its action. */
const EVENTS = `/** An event of a log. Its \`action\` determines its fields. */
export type SessionEvent = EventFields &
  (
    | { action: "user_message" | "agent_message" | "system_instruction" | "compaction" }
    | { action: "tool_call_request"; toolCalls: ToolCall[] }
    | { action: "tool_result"; toolCallId: string }
  );`;
const HELPERS = `/** A name that no operation here has. The fields of a known one are checked. */
export type NewerName<Name extends string> = Name extends keyof Operations ? never : Name;

/** An input without the session's id, which a session's client knows. */
export type WithoutSession<Input> = keyof Input extends "sessionId" ? ${NO_FIELDS} : Omit<Input, "sessionId">;`;

/** The generated module. */
export function render(api) {
  const operations = operationsOf(api);
  return `${renderTypes(api, operations)}\n${renderTable(operations)}`;
}

function operationsOf({ paths, components }) {
  const calls = Object.entries(paths).filter(([path]) => path.includes("/rpc/"));
  return calls
    .map(([, { post }]) => {
      const { schema } = post.requestBody.content["application/json"];
      const resolved = schema.$ref ? components.schemas[schema.$ref.split("/").at(-1)] : schema;
      const required = resolved.required ?? [];
      const output = post.responses["200"].content["application/json"].schema;
      return {
        name: post.operationId,
        schema,
        output,
        fields: Object.keys(resolved.properties ?? {}),
        required,
        words: [post.summary, post.description].filter(Boolean).join("\n\n"),
        ofSession: "sessionId" in (resolved.properties ?? {}),
        reads: post["x-presets"].includes("read"),
      };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

function renderTable(operations) {
  const lines = operations.map(
    ({ name, ofSession, reads }) => `  ${name}: { ofSession: ${ofSession}, reads: ${reads} },`,
  );
  return `/** Every operation: whether it takes a session's id, and whether it changes nothing. */
export const OPERATIONS: { readonly [operation: string]: { readonly ofSession: boolean; readonly reads: boolean } } = {
${lines.join("\n")}
};
`;
}

function renderTypes({ components: { schemas } }, operations) {
  const shapes = Object.entries(schemas).filter(([name]) => !LEFT_OUT.has(name));
  const codes = schemas.Error.properties.error.properties.code.enum;
  const parts = [
    HEAD,
    'import type { ObjectRpcOptions, SessionRef } from "./bindings.js";',
    'import type { WorkingContext } from "./context.js";',
    'import type { CallOptions } from "./options.js";',
    `/** The code of an error. Codes are stable. */\nexport type ErrorCode = ${codes.map((code) => JSON.stringify(code)).join(" | ")};`,
    ...shapes.map(([name, schema]) => declaration(renamed(name), name === "UiMessage" ? withAnyParts(schema) : schema)),
    EVENTS,
    ...operations.map(({ name, schema }) => inputOf(name, schema)),
    `/** What each operation takes and gives. */\nexport interface Operations {\n${operations.map(({ name, output }) => `  ${name}: { input: ${inputName(name)}; output: ${typeOf(output)} };`).join("\n")}\n}`,
    HELPERS,
    methods("AgentOperations", "Every operation, as a method.", operations, inputName),
    `/** Metadata of a session that is given alone. */\nexport type SessionMetadata = { [field: string]: any } & { [Field in keyof CreateSessionInput]?: never };`,
    methods(
      "ObjectOperations",
      "Every operation as a method of an agent's object: plain values in and out. A refusal is thrown.",
      operations,
      inputName,
      "ObjectRpcOptions",
    ),
    methods(
      "SessionOperations",
      "The operations on a session, as methods that know the session's id.",
      operations.filter(({ ofSession }) => ofSession),
      (name) => `WithoutSession<${inputName(name)}>`,
    ),
  ];
  return `${parts.join("\n\n")}\n`;
}

const renamed = (name) => RENAMED[name] ?? name;
const inputName = (name) => `${name[0].toUpperCase()}${name.slice(1)}Input`;
const withAnyParts = (schema) => ({
  ...schema,
  properties: { ...schema.properties, parts: { "x-type": MESSAGE_PARTS } },
});

function inputOf(name, schema) {
  const doc = { ...schema, description: `What \`${name}\` takes.` };
  return schema.$ref
    ? `${comment(doc.description)}export type ${inputName(name)} = ${typeOf(schema)};`
    : declaration(inputName(name), doc);
}

function declaration(name, schema) {
  const head = comment(wordsOf(schema));
  if (schema.properties === undefined) return `${head}export type ${name} = ${typeOf(schema)};`;
  return `${head}export interface ${name} ${objectType(schema)}`;
}

function methods(name, words, operations, input, options = "CallOptions") {
  const isOwn = options !== "CallOptions";
  const lines = operations.map((operation) => {
    const left = operation.required.filter((field) => name !== "SessionOperations" || field !== "sessionId");
    const mark = left.length === 0 ? "?" : "";
    const given = (isOwn && GIVEN[operation.name]) || `input${mark}: ${input(operation.name)}, options?: ${options}`;
    const output = (isOwn && GIVES[operation.name]) || typeOf(operation.output);
    const before = (isOwn && OVERLOADS[operation.name]) || "";
    return `${before}${comment(operation.words, "  ")}  ${operation.name}(${given}): Promise<${output}>;`;
  });
  return `${comment(words)}export interface ${name} {\n${lines.join("\n\n")}\n}`;
}

/** The TypeScript of a schema. */
function typeOf(schema, indent = "") {
  if (schema?.$ref?.endsWith("/Event")) return "SessionEvent";
  if (schema["x-type"]) return schema["x-type"];
  if (schema === true || schema === undefined) return "any";
  if (schema.$ref) return renamed(schema.$ref.split("/").at(-1));
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map((one) => typeOf(one, indent)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === undefined) return "any";
  return [schema.type]
    .flat()
    .map((type) => plain(type, schema, indent))
    .join(" | ");
}

function plain(type, schema, indent) {
  if (type === "integer") return "number";
  if (type === "array") {
    const item = typeOf(schema.items ?? true, indent);
    return item.includes(" ") ? `Array<${item}>` : `${item}[]`;
  }
  if (type === "object") {
    if (schema.properties) return objectType(schema, indent);
    return schema.additionalProperties === false ? NO_FIELDS : "{ [field: string]: any }";
  }
  return type;
}

function objectType(schema, indent = "") {
  const { properties, required = [] } = schema;
  const names = [...new Set([...required, ...Object.keys(properties)])];
  const fields = names.map((name) => {
    const field = properties[name];
    const mark = required.includes(name) ? "" : "?";
    return `${comment(wordsOf(field), `${indent}  `)}${indent}  ${name}${mark}: ${typeOf(field, `${indent}  `)};`;
  });
  if (schema.additionalProperties === true) fields.push(`${indent}  [field: string]: any;`);
  return fields.length === 0 ? "{}" : `{\n${fields.join("\n")}\n${indent}}`;
}

function wordsOf(schema) {
  const choices = (schema.oneOf ?? []).filter((one) => one.const !== undefined && one.description);
  const listed = choices.map((one) => `- \`${one.const}\`: ${one.description}`);
  const usual =
    schema.default === undefined || schema.default === null ? [] : [`Default: \`${JSON.stringify(schema.default)}\`.`];
  return [schema.description, listed.join("\n"), ...usual].filter(Boolean).join("\n");
}

/** A JSDoc comment, or nothing. */
function comment(words, indent = "") {
  if (!words) return "";
  const lines = words.replaceAll("*/", "*\\/").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}
