// The agent's settings as fields of a form, and what of them was changed. A setting may
// have several fields; an empty field is a value that nobody has set.

import { MODELS } from "../models.ts";

/** `long`: a list of texts, written as one. `prose`: one text of several lines. */
export type Kind = "text" | "long" | "prose" | "list" | "number" | "choice" | "switch" | "json";

export interface SettingField {
  /** The setting, and behind a dot what of the setting it is. */
  path: string;
  label: string;
  kind: Kind;
  hint?: string;
  placeholder?: string;
  options?: ReadonlyArray<readonly [string, string]>;
  /** The texts to which a text may be completed. */
  list?: readonly string[];
  /** Without it, the setting is given up. */
  isNeeded?: true;
}

export interface SettingGroup {
  title: string;
  fields: readonly SettingField[];
}

export const GROUPS: readonly SettingGroup[] = [
  {
    title: "Model",
    fields: [
      {
        path: "model",
        label: "Model",
        kind: "text",
        list: MODELS,
        placeholder: "the Worker's own",
        hint: "demo, or a provider's name and a colon before the model's. Empty: the Worker's MODEL.",
      },
      {
        path: "summaryModel",
        label: "Model for summaries",
        kind: "text",
        list: MODELS,
        placeholder: "the agent's model",
      },
      {
        path: "summarize.service",
        label: "Service binding that writes summaries",
        kind: "text",
        hint: "In place of a model.",
      },
      {
        path: "maxContextTokens",
        label: "Most tokens of a turn and its answer",
        kind: "number",
        placeholder: "the model's window",
      },
      {
        path: "maxOutputTokens",
        label: "Most tokens of one answer",
        kind: "number",
        placeholder: "the model's own limit",
      },
      {
        path: "temperature",
        label: "Temperature",
        kind: "number",
        placeholder: "the model's own",
        hint: "From 0 to 2. Models that refuse a temperature are not told.",
      },
      {
        path: "reasoningEffort",
        label: "Reasoning",
        kind: "choice",
        options: [
          ["", "as the provider decides"],
          ["none", "none"],
          ["minimal", "minimal"],
          ["low", "low"],
          ["medium", "medium"],
          ["high", "high"],
        ],
      },
    ],
  },
  {
    title: "Turns",
    fields: [
      {
        path: "systemInstructions",
        label: "System instructions",
        kind: "long",
        hint: "They stand in front of every turn of this agent.",
      },
      {
        path: "refreshPrompt",
        label: "The frozen prompt is rendered again",
        kind: "choice",
        options: [
          ["manual", "when somebody asks for it"],
          ["compaction", "with every compaction"],
          ["turn", "with every turn and every compaction"],
        ],
      },
      { path: "maxSteps", label: "Most steps of a turn", kind: "number" },
      { path: "keepMedia", label: "Newest messages whose files a model gets", kind: "number" },
      {
        path: "whenBusy",
        label: "A message that comes while a turn runs",
        kind: "choice",
        options: [
          ["reject", "is refused"],
          ["queue", "waits until the turn is over"],
          ["replace", "stops the turn, and is answered"],
        ],
      },
      { path: "sessionSearch", label: "The model may search all sessions", kind: "switch" },
      { path: "vectors", label: "Search compares meanings, too", kind: "switch" },
      {
        path: "reservedMetadataKeys",
        label: "Reserved metadata keys",
        kind: "list",
        hint: "One on each line. A client can't set them on a message.",
      },
    ],
  },
  {
    title: "Cost and limits",
    fields: [
      { path: "prices.input", label: "Price of a million input tokens", kind: "number" },
      { path: "prices.output", label: "Price of a million output tokens", kind: "number" },
      {
        path: "prices.cachedInput",
        label: "Price of a million cached input tokens",
        kind: "number",
        placeholder: "as other input tokens",
      },
      {
        path: "prices.models",
        label: "Models with prices of their own",
        kind: "json",
        hint: 'As JSON: {"openai:small": {"input": 0.1, "output": 0.4}}.',
      },
      { path: "limits.turnsPerMinute", label: "Most turns in a minute", kind: "number", placeholder: "no limit" },
      { path: "limits.tokensPerDay", label: "Most tokens in a day", kind: "number", placeholder: "no limit" },
      {
        path: "limits.costPerDay",
        label: "Highest cost of a day",
        kind: "number",
        placeholder: "no limit",
        hint: "It is counted by the prices above.",
      },
    ],
  },
  {
    title: "Learning",
    fields: [
      {
        path: "learn.into",
        label: "Searchable block that facts go to",
        kind: "text",
        placeholder: "the agent does not learn",
        hint: "A block of this agent, such as facts. Empty: the agent does not learn by itself.",
        isNeeded: true,
      },
      {
        path: "learn.after",
        label: "It learns",
        kind: "choice",
        options: [
          ["", "not set"],
          ["turn", "after each turn"],
          ["idle", "when nothing was said for ten minutes"],
          ["manual", "when somebody asks for it"],
        ],
      },
      {
        path: "learn.review",
        label: "What it has learnt",
        kind: "choice",
        options: [
          ["", "not set"],
          ["propose", "waits for a decision"],
          ["auto", "counts at once, where the user's own words bear it out"],
        ],
      },
      { path: "learn.model", label: "Model that learns", kind: "text", list: MODELS, placeholder: "the agent's model" },
      { path: "learn.maxTokensPerDay", label: "Tokens that learning may take in a day", kind: "number" },
      { path: "learn.instructions", label: "What else the model is told", kind: "prose" },
      {
        path: "learn.trust",
        label: "Sources that count at once",
        kind: "list",
        hint: "Any of agent, tool and import, one on each line. The user's own words count in any case.",
      },
    ],
  },
  {
    title: "When a turn is over",
    fields: [
      {
        path: "onTurnEnd.url",
        label: "Address that is told",
        kind: "text",
        placeholder: "https://…",
        hint: "Its origin must be in TOOL_ORIGINS.",
      },
      {
        path: "onTurnEnd.service",
        label: "Service binding that is told",
        kind: "text",
        hint: "A service binding or an address: one of the two.",
      },
    ],
  },
  {
    title: "When memory changes",
    fields: [
      {
        path: "onMemoryChange.url",
        label: "Address that is told of changes",
        kind: "text",
        placeholder: "https://…",
        hint: "Its origin must be in TOOL_ORIGINS.",
      },
      {
        path: "onMemoryChange.service",
        label: "Service binding that is told of changes",
        kind: "text",
        hint: "A service binding or an address: one of the two.",
      },
    ],
  },
];

export type Texts = Readonly<Record<string, string>>;

/** The setting that a field is of. */
export function settingOf({ path }: SettingField): string {
  return path.split(".", 1)[0]!;
}

/** The groups of the settings that this Worker has. */
export function groupsOf(origins: object): SettingGroup[] {
  return GROUPS.map(({ title, fields }) => ({
    title,
    fields: fields.filter((field) => settingOf(field) in origins),
  })).filter(({ fields }) => fields.length > 0);
}

export function textsOf(config: Readonly<Record<string, any>>): Texts {
  const texts: Record<string, string> = {};
  for (const field of GROUPS.flatMap(({ fields }) => fields)) {
    const [setting = "", part] = field.path.split(".");
    texts[field.path] = textOf(field.kind, part === undefined ? config[setting] : config[setting]?.[part]);
  }
  return texts;
}

function textOf(kind: Kind, value: any): string {
  if (value === null || value === undefined) return "";
  if (kind === "json") return JSON.stringify(value, null, 2);
  if (Array.isArray(value)) return value.join(kind === "long" ? "\n\n" : "\n");
  return String(value);
}

/**
 * The input of `configureAgent`: the settings that were changed alone. The others may come from
 * elsewhere, and stay there.
 */
export function changesOf(
  before: Texts,
  now: Texts,
  config: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const fields = GROUPS.flatMap(({ fields }) => fields);
  const changed = new Set(fields.filter(({ path }) => before[path] !== now[path]).map(settingOf));
  return Object.fromEntries(
    [...changed].map((setting) => [
      setting,
      settingFrom(
        fields.filter((field) => settingOf(field) === setting),
        now,
        config[setting],
      ),
    ]),
  );
}

/** `null`: the agent has no value of its own. The parts of the `stored` one that no field shows stay. */
function settingFrom(fields: readonly SettingField[], texts: Texts, stored: unknown): unknown {
  const values = fields.map((field) => [field.path.split(".")[1], valueOf(field, texts[field.path] ?? "")] as const);
  const [only] = values;
  if (only !== undefined && only[0] === undefined) return only[1];
  const given = values.filter(([, value]) => value !== null);
  const isGivenUp = fields.some(({ path, isNeeded }) => isNeeded && (texts[path] ?? "").trim() === "");
  if (given.length === 0 || isGivenUp) return null;
  const shown = new Set(values.map(([part]) => part));
  const unseen = Object.entries(stored ?? {}).filter(([part, value]) => !shown.has(part) && value !== null);
  return Object.fromEntries([...unseen, ...given]);
}

function valueOf({ kind, label }: SettingField, text: string): unknown {
  const trimmed = text.trim();
  if (kind === "switch") return text === "true";
  if (trimmed === "") return null;
  if (kind === "number") return Number(trimmed);
  if (kind === "long") return [text];
  if (kind === "prose") return text;
  if (kind === "list")
    return trimmed
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "");
  if (kind !== "json") return trimmed;
  try {
    return JSON.parse(trimmed);
  } catch {
    throw new Error(`“${label}” is not JSON. Look for a missing quote or comma.`);
  }
}
