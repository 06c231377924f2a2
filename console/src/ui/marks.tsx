// The marks of an entry or a session: its source, its tags, its metadata.

import { Name } from "./basics.tsx";
import { counted } from "../text.ts";

/** The number of fields that are shown of long metadata. */
const FIELDS = 8;

/** The marks that entries, their versions and sessions have. */
export interface Marked {
  source?: string | null;
  tags?: readonly string[];
  metadata?: object | null;
}

interface Props {
  of: Marked;
  /** A tag is then a button. */
  onTag?: ((tag: string) => void) | undefined;
  /** The owner of the tags, for the button's accessible name. */
  what?: string;
}

export function Marks({ of, onTag, what = "entries" }: Props) {
  const { source, tags = [], metadata } = of;
  const fields = Object.entries(metadata ?? {});
  const left = fields.length - FIELDS;
  if (source == null && tags.length === 0 && fields.length === 0) return null;
  return (
    <p class="validity note">
      {source != null && <span>Source: {source}</span>}
      {tags.map((tag) =>
        onTag === undefined ? (
          <span class="badge" key={tag}>
            <Name text={tag} />
          </span>
        ) : (
          <button
            type="button"
            class="badge tag"
            key={tag}
            aria-label={`Show only ${what} tagged ${tag}`}
            onClick={() => onTag(tag)}
          >
            <Name text={tag} />
          </button>
        ),
      )}
      {fields.slice(0, FIELDS).map(([name, value]) => (
        <span key={name}>
          <Name text={name} />: <Name text={typeof value === "string" ? value : JSON.stringify(value)} />
        </span>
      ))}
      {left > 0 && <span>and {counted(left, "field")} more</span>}
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

/** The object that a field contains; `null`: none. Throws if the field contains anything else. */
export function metadataOf(text: string): object | null {
  if (text.trim() === "") return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new TypeError('Metadata must be a JSON object, for example {"city": "Oslo"}.');
  return value;
}

/** The same object as a field shows it. */
export function metadataText(metadata: object | null | undefined): string {
  return metadata == null ? "" : JSON.stringify(metadata, null, 2);
}
