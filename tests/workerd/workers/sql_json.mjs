// SQL values as JSON. Blobs have their own notation; the other types are plain JSON.

const BLOB = "$blob";

export function encode(value) {
  return map(value, (item) =>
    item instanceof ArrayBuffer || ArrayBuffer.isView(item) ? { [BLOB]: [...bytes(item)] } : undefined,
  );
}

export function decode(value) {
  return map(value, (item) => (Array.isArray(item[BLOB]) ? Uint8Array.from(item[BLOB]) : undefined));
}

function map(value, replace) {
  if (typeof value !== "object" || value === null) return value;
  const replaced = replace(value);
  if (replaced !== undefined) return replaced;
  if (Array.isArray(value)) return value.map((item) => map(item, replace));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, map(item, replace)]));
}

function bytes(item) {
  return item instanceof ArrayBuffer
    ? new Uint8Array(item)
    : new Uint8Array(item.buffer, item.byteOffset, item.byteLength);
}
