// Checks a value against a schema of openapi.json, and describes the first wrong field in a sentence. It
// supports the keywords that openapi.json uses, and ignores others.

/** The error in `value`, which is at `path`; `undefined`: none. */
export function findFault(schema, value, path, schemas) {
  if (schema === true || schema === undefined) return undefined;
  if (schema.$ref !== undefined) {
    const { $ref, ...rest } = schema;
    return findFault(schemas[$ref.split("/").pop()], value, path, schemas) ?? findFault(rest, value, path, schemas);
  }
  const choices = schema.anyOf ?? schema.oneOf;
  return (
    (choices && findChoiceFault(choices, value, path, schemas)) ??
    findTypeFault(schema, value, path) ??
    findPartFault(schema, value, path, schemas)
  );
}

function findChoiceFault(choices, value, path, schemas) {
  const faults = [];
  for (const choice of choices) {
    const fault = findFault(choice, value, path, schemas);
    if (fault === undefined) return undefined;
    faults.push(fault);
  }
  const words = choices.map((choice) => choice.const).filter((word) => word !== undefined);
  if (words.length === choices.length)
    return `\`${path}\` must be ${listed(
      words.map((word) => JSON.stringify(word)),
      "or",
    )}.`;
  // The error comes from the alternative that is most similar to the value.
  return faults.find((fault) => !fault.startsWith(`\`${path}\` must be `)) ?? faults[0];
}

function findTypeFault(schema, value, path) {
  if (schema.const !== undefined && schema.const !== value)
    return `\`${path}\` must be ${JSON.stringify(schema.const)}.`;
  const types = [schema.type ?? []].flat();
  if (types.length === 0 || types.some((type) => isOf(type, value))) return undefined;
  return `\`${path}\` must be ${listed(
    types.map((type) => KINDS[type] ?? type),
    "or",
  )}.`;
}

const KINDS = {
  string: "a string",
  integer: "an integer",
  number: "a number",
  boolean: "`true` or `false`",
  array: "an array",
  object: "an object",
  null: "`null`",
};

function isOf(type, value) {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function findPartFault(schema, value, path, schemas) {
  if (typeof value === "number") return findBoundFault(schema, value, path, ["minimum", "maximum"], "");
  if (typeof value === "string")
    return findBoundFault(schema, [...value].length, path, ["minLength", "maxLength"], " characters");
  if (Array.isArray(value)) {
    const bound = findBoundFault(schema, value.length, path, ["minItems", "maxItems"], " items");
    return (
      bound ??
      first(value, (item, index) => schema.items && findFault(schema.items, item, `${path}[${index}]`, schemas))
    );
  }
  if (value === null || typeof value !== "object") return undefined;
  const { properties, required = [], additionalProperties = true } = schema;
  const missing = required.find((name) => !(name in value));
  if (missing !== undefined) return `\`${join(path, missing)}\` is missing.`;
  return first(Object.entries(value), ([name, field]) => {
    const at = join(path, name);
    if (properties !== undefined && Object.hasOwn(properties, name))
      return findFault(properties[name], field, at, schemas);
    if (additionalProperties === false)
      return `\`${at}\` is not a field here. The fields are ${listed(
        Object.keys(properties ?? {}).map((known) => `\`${known}\``),
        "and",
      )}.`;
    return findFault(additionalProperties, field, at, schemas);
  });
}

function findBoundFault(schema, number, path, [least, most], unit) {
  const has = unit === "" ? "be" : "have";
  if (schema[least] !== undefined && number < schema[least])
    return `\`${path}\` must ${has} at least ${schema[least]}${unit}.`;
  if (schema[most] !== undefined && number > schema[most])
    return `\`${path}\` must ${has} at most ${schema[most]}${unit}.`;
  return undefined;
}

function first(list, find) {
  for (const [index, item] of list.entries()) {
    const fault = find(item, index);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const join = (path, name) => (path === "" ? name : `${path}.${name}`);

function listed(words, last) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}
