// Serializes the rights of `mintToken` and `authorize` as JSON. A missing field grants more than a present
// one: without `sessionId`, a token is for every session. JSON drops `undefined`, functions and inherited
// fields, so it would silently drop a restriction. Such values are rejected by name.

/** The maximum depth of the fields of rights. A deeper object is invalid, or contains itself. */
const MAX_DEPTH = 8;

/** A refusal, as those of operations. */
function refusal(field: string, problem: string): Error {
  const error = new Error(`\`${field}\` ${problem}. Rights must be an object that contains only JSON values.`);
  return Object.assign(error, { code: "invalid_request", details: { field }, status: 400 });
}

/** The JSON of rights. Throws for a value that is `null` or that JSON can't represent. */
export function rightsText(rights: unknown, name: string): string {
  return JSON.stringify(copyOf(rights, name, 0));
}

/** A copy whose values were read once: a getter may return a different value each time. */
function copyOf(value: unknown, field: string, depth: number): unknown {
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value !== "object" || value === null) throw refusal(field, `can't be ${String(value)}: omit it`);
  if (depth >= MAX_DEPTH) throw refusal(field, "lies too deep");
  if (Array.isArray(value)) return Array.from(value, (item, index) => copyOf(item, `${field}[${index}]`, depth + 1));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw refusal(field, "is not a plain object");
  const copy: { [name: string]: unknown } = {};
  for (const key of Reflect.ownKeys(value)) {
    const path = depth === 0 ? String(key) : `${field}.${String(key)}`;
    if (typeof key === "symbol" || !Object.prototype.propertyIsEnumerable.call(value, key))
      throw refusal(path, "is hidden");
    if (key === "__proto__" || key === "toJSON") throw refusal(path, "is not a field of rights");
    copy[key] = copyOf((value as { [name: string]: unknown })[key], path, depth + 1);
  }
  return copy;
}
