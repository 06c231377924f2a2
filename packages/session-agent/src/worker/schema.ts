// Schemas of tool inputs: the AI SDK's own, and those of any library that implements Standard JSON
// Schema, such as Zod 4.2 and Valibot (`toStandardJsonSchema`).

/** Marks an object as a schema of the AI SDK. */
const SCHEMA = Symbol.for("vercel.ai.schema");

const DRAFT = "draft-07";

export interface InputSchema {
  /** The schema that the model receives. */
  json: object;
  /** Validates the input; throws an error message for the model. */
  check(input: unknown): Promise<unknown>;
}

/** Reads the schema of a tool's input. */
export async function schemaOf(given: any): Promise<InputSchema> {
  if (given === undefined || given === null)
    return { json: { type: "object", properties: {} }, check: async (input) => input };
  if (typeof given === "function" && given[SCHEMA] === undefined && given["~standard"] === undefined)
    return await schemaOf(given());
  if (given[SCHEMA] === true) {
    return {
      json: await given.jsonSchema,
      check: async (input) => (given.validate === undefined ? input : valueOf(await given.validate(input))),
    };
  }
  const standard = given["~standard"];
  if (standard !== undefined)
    return { json: jsonOf(given, standard), check: async (input) => checked(await standard.validate(input)) };
  if (typeof given === "object" && (given.type === "object" || given.properties !== undefined))
    return { json: given, check: async (input) => input };
  throw new TypeError(
    "its `inputSchema` is neither a schema of the AI SDK, nor a Standard JSON Schema (Zod 4.2 and later, or Valibot with `toStandardJsonSchema`), nor a JSON Schema",
  );
}

function jsonOf(given: any, standard: any): object {
  if (typeof standard.jsonSchema?.input === "function") return standard.jsonSchema.input({ target: DRAFT });
  if (typeof given.toJSONSchema === "function") return given.toJSONSchema({ target: DRAFT, io: "input" });
  throw new TypeError(
    `its \`inputSchema\` of \`${standard.vendor}\` has no JSON Schema: use Zod 4.2 or later, or Valibot with \`toStandardJsonSchema\``,
  );
}

function valueOf(outcome: any): unknown {
  if (outcome?.success === false)
    throw new Error(`The arguments are invalid: ${outcome.error?.message ?? outcome.error}`);
  return outcome?.success === true ? outcome.value : outcome;
}

function checked(outcome: any): unknown {
  if (outcome.issues === undefined) return outcome.value;
  const problems = outcome.issues.map(({ message, path = [] }: any) => {
    const at = path.map((step: any) => (typeof step === "object" ? step.key : step)).join(".");
    return at === "" ? message : `${at}: ${message}`;
  });
  throw new Error(`The arguments are invalid: ${problems.join("; ")}`);
}
