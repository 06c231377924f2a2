// Converts memories of mem0 and facts of Zep into entries of a searchable block. The functions are pure.
// Data that doesn't fit into an entry is reported with a reason.

import { described, isObject, parsed, type JsonObject, timeOf } from "./import_others.js";
import type { BlockPlan } from "./import_tables.js";

type Entry = Required<BlockPlan>["entries"][number];

/** A fact to write into a searchable block. */
export interface FactsPlan {
  entries: Entry[];
  skipped: Array<{ id: string | null; reason: string }>;
}

/** Fields that are imported, or follow from the text. */
const OF_MEM0 = [
  ...["id", "memory", "data", "metadata", "categories", "created_at", "createdAt", "updated_at", "updatedAt"],
  ...["expiration_date", "hash", "score"],
];
const OF_ZEP = [
  ...["uuid", "uuid_", "fact", "attributes", "valid_at", "validAt", "invalid_at", "invalidAt", "created_at"],
  ...["createdAt", "expired_at", "expiredAt", "fact_embedding"],
];

/** Memories of mem0: the result of `getAll`, or its list. Each becomes an entry with its own id. */
export function entriesOfMem0(memories: unknown): FactsPlan {
  return factsOf(memories, "results", "importMem0", (memory, leave) => {
    const text = memory.memory ?? memory.data?.memory;
    if (typeof text !== "string") return undefined;
    const whose = ["user_id", "agent_id", "app_id", "run_id", "actor_id", "role"];
    const created = memory.created_at ?? memory.createdAt;
    const updated = memory.updated_at ?? memory.updatedAt;
    const until = memory.expiration_date;
    const older = updated != null && created != null && created !== updated ? { created_at: created } : {};
    nameOthers(memory, [...whose, ...OF_MEM0], leave);
    return {
      key: memory.id,
      content: text,
      ...timesOf(updated ?? created, until, leave),
      ...metadataOf({ ...fieldsOf(memory, whose), ...older, ...(isObject(memory.metadata) && memory.metadata) }, leave),
      ...tagsOf(memory.categories, leave),
    };
  });
}

/** Facts of Zep: edges of its graph, or the facts of its older memory. */
export function entriesOfZep(facts: unknown): FactsPlan {
  return factsOf(facts, "edges", "importZepFacts", (fact, leave) => {
    if (typeof fact.fact !== "string") return undefined;
    const since = fact.valid_at ?? fact.validAt ?? fact.created_at ?? fact.createdAt;
    const until = fact.invalid_at ?? fact.invalidAt ?? fact.expired_at ?? fact.expiredAt;
    const about = ["name", "source_node_uuid", "target_node_uuid", "episodes", "rating", "score"];
    nameOthers(fact, [...about, ...OF_ZEP], leave);
    return {
      key: fact.uuid ?? fact.uuid_,
      content: fact.fact,
      ...timesOf(since, until, leave),
      ...metadataOf({ ...fieldsOf(fact, about), ...(isObject(fact.attributes) && fact.attributes) }, leave),
    };
  });
}

/** An entry's limits, those of `setEntry`. */
const MAX_KEY_CHARS = 200;
const MAX_CONTENT_BYTES = 65_536;
const MAX_METADATA_BYTES = 4096;
const MAX_TAGS = 32;
const MAX_TAG_CHARS = 100;

/** Reports data that doesn't fit into an entry. */
type Leave = (reason: string) => void;

function fieldsOf(thing: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(names.flatMap((name) => (thing[name] == null ? [] : [[name, thing[name]]])));
}

/** Reports the fields that are not imported. */
function nameOthers(thing: JsonObject, read: readonly string[], leave: Leave): void {
  const others = Object.keys(thing).filter((name) => thing[name] != null && !read.includes(name));
  if (others.length > 0) leave(`It is imported without ${others.map((name) => `\`${name}\``).join(", ")}.`);
}

function metadataOf(metadata: JsonObject, leave: Leave): { metadata?: JsonObject } {
  if (Object.keys(metadata).length === 0) return {};
  if (new TextEncoder().encode(JSON.stringify(metadata)).length <= MAX_METADATA_BYTES) return { metadata };
  leave(`It is imported without its metadata, which has more than ${MAX_METADATA_BYTES / 1024} KiB.`);
  return {};
}

function tagsOf(categories: unknown, leave: Leave): { tags?: string[] } {
  const given = Array.isArray(categories) ? categories : [];
  const fits = (tag: unknown): tag is string =>
    typeof tag === "string" && tag.trim() !== "" && tag.length <= MAX_TAG_CHARS && !/[\u0000-\u001f\u007f]/.test(tag);
  const tags = [...new Set(given.filter(fits))].slice(0, MAX_TAGS);
  const left = new Set(given).size - tags.length;
  if (left > 0) leave(`It is imported without ${left} of its categories: an entry has at most ${MAX_TAGS} short tags.`);
  return tags.length > 0 ? { tags } : {};
}

function factsOf(
  given: unknown,
  field: string,
  name: string,
  entryOf: (fact: JsonObject, leave: Leave) => Entry | undefined,
): FactsPlan {
  const value: any = typeof given === "string" ? parsed(given, name) : given;
  const list = Array.isArray(value) ? value : (value?.[field] ?? value?.facts ?? value?.relevant_facts);
  if (!Array.isArray(list))
    throw new TypeError(
      `${name} takes a list, or an object with the list under \`${field}\`, but got ${described(value)}.`,
    );
  const plan: FactsPlan = { entries: [], skipped: [] };
  list.forEach((fact, n) => {
    const left: string[] = [];
    const entry = isObject(fact) ? entryOf(fact, (reason) => void left.push(reason)) : undefined;
    if (entry === undefined)
      throw new TypeError(`Number ${n + 1} of the list can't be imported: it is ${described(fact)}.`);
    if (typeof entry.key !== "string" || entry.key === "") {
      plan.skipped.push({ id: null, reason: "It has no id." });
      return;
    }
    const refusal = refusalOf(entry);
    if (refusal === undefined) plan.entries.push(entry);
    const reasons = refusal === undefined ? left : [refusal];
    plan.skipped.push(...reasons.map((reason) => ({ id: entry.key, reason })));
  });
  return plan;
}

/** The times between which a fact is valid. Texts that are not times are reported. */
function timesOf(since: unknown, until: unknown, leave: Leave): { validFrom?: number; validUntil?: number } {
  const [validFrom, validUntil] = [timeOf(since), timeOf(until)];
  if ((since != null && validFrom === undefined) || (until != null && validUntil === undefined))
    leave("It is imported without a time that can't be read.");
  return { ...(validFrom !== undefined && { validFrom }), ...(validUntil !== undefined && { validUntil }) };
}

/** Why an entry can't be written at all. */
function refusalOf({ key, content }: Entry): string | undefined {
  if (content === "") return "It has no text.";
  if (key.length > MAX_KEY_CHARS) return `Its id has more than ${MAX_KEY_CHARS} characters.`;
  const { length } = new TextEncoder().encode(content);
  return length > MAX_CONTENT_BYTES
    ? `Its text has ${length} bytes; an entry has at most ${MAX_CONTENT_BYTES}.`
    : undefined;
}
