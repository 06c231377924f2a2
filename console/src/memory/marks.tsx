// What stands on an entry beside its text: who it comes from, its tags, its metadata.

import { Button, Name } from "../ui/basics.tsx";

/** What entries and found entries have of this. */
export interface Marked {
  source?: string | null;
  tags?: readonly string[];
  metadata?: object | null;
}

/** With `onTag`, a tag is a button. */
export function Marks({ of, onTag }: { of: Marked; onTag?: (tag: string) => void }) {
  const { source, tags = [], metadata } = of;
  const fields = Object.entries(metadata ?? {});
  if (source == null && tags.length === 0 && fields.length === 0) return null;
  return (
    <p class="validity note">
      {source != null && <span>From: {source}</span>}
      {tags.map((tag) =>
        onTag === undefined ? (
          <span class="state" key={tag}>
            <Name text={tag} />
          </span>
        ) : (
          <Button kind="quiet" key={tag} label={`Only entries with the tag ${tag}`} onClick={() => onTag(tag)}>
            <Name text={tag} />
          </Button>
        ),
      )}
      {fields.map(([name, value]) => (
        <span key={name}>
          <Name text={name} />: <Name text={typeof value === "string" ? value : JSON.stringify(value)} />
        </span>
      ))}
    </p>
  );
}

/** The lines of a field, each of them a tag. */
export function tagsOf(text: string): string[] {
  return text
    .split("\n")
    .map((tag) => tag.trim())
    .filter((tag) => tag !== "");
}

/** The object that a field holds; `null`: none. Throws where it is no object. */
export function metadataOf(text: string): object | null {
  if (text.trim() === "") return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new TypeError('The metadata must be a JSON object, as {"city": "Oslo"}.');
  return value;
}
