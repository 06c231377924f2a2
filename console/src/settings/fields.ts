// The agent's settings as fields of a form, and the changes to them. A setting may have several
// fields; an empty field is an unset value.

import { MODELS } from "../models.ts";

/** `long`: a list of texts in one field. `prose`: a text of several lines. */
export type Kind = "text" | "long" | "prose" | "list" | "number" | "choice" | "switch" | "json";

export interface SettingField {
  /** The setting, or `setting.part`. */
  path: string;
  label: string;
  kind: Kind;
  hint?: string;
  placeholder?: string;
  options?: ReadonlyArray<readonly [string, string]>;
  /** The suggested values. */
  list?: readonly string[];
  /** Without this field, the whole setting is unset. */
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
        placeholder: "the Worker's MODEL",
        hint: "demo, or provider:model, for example openai:gpt-5-mini. If empty, the agent uses the Worker's MODEL.",
      },
      {
        path: "summaryModel",
        label: "Summary model",
        kind: "text",
        list: MODELS,
        placeholder: "the agent's model",
      },
      {
        path: "summarize.service",
        label: "Summary service binding",
        kind: "text",
        hint: "Used instead of a model.",
      },
      {
        path: "maxContextTokens",
        label: "Context limit",
        kind: "number",
        placeholder: "the model's context window",
        hint: "In tokens, including the answer.",
      },
      {
        path: "maxOutputTokens",
        label: "Output limit",
        kind: "number",
        placeholder: "the model's limit",
        hint: "In tokens, for each answer.",
      },
      {
        path: "temperature",
        label: "Temperature",
        kind: "number",
        placeholder: "the model's default",
        hint: "From 0 to 2. Not sent to models that don't support it.",
      },
      {
        path: "reasoningEffort",
        label: "Reasoning effort",
        kind: "choice",
        options: [
          ["", "provider's default"],
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
        hint: "Sent at the start of every turn.",
      },
      {
        path: "refreshPrompt",
        label: "When to update the stored system prompt",
        kind: "choice",
        options: [
          ["manual", "on request"],
          ["compaction", "after each compaction"],
          ["turn", "before each turn and after each compaction"],
        ],
      },
      { path: "maxSteps", label: "Step limit per turn", kind: "number" },
      { path: "keepMedia", label: "How many recent messages are sent with their files", kind: "number" },
      {
        path: "whenBusy",
        label: "If a message arrives during a turn",
        kind: "choice",
        options: [
          ["reject", "reject it"],
          ["queue", "queue it"],
          ["replace", "stop the turn and answer it"],
        ],
      },
      {
        path: "sessionMemory",
        label: "Memory in requests over the base URL",
        kind: "choice",
        options: [
          ["on", "read and write it"],
          ["read", "read it"],
          ["off", "leave it out"],
        ],
      },
      { path: "sessionSearch", label: "Let the model search all sessions", kind: "switch" },
      { path: "vectors", label: "Search by meaning (vectors)", kind: "switch" },
      {
        path: "reservedMetadataKeys",
        label: "Reserved metadata keys",
        kind: "list",
        hint: "One per line. Clients can't set these on a message.",
      },
    ],
  },
  {
    title: "Cost and limits",
    fields: [
      { path: "prices.input", label: "Price per million input tokens", kind: "number" },
      { path: "prices.output", label: "Price per million output tokens", kind: "number" },
      {
        path: "prices.cachedInput",
        label: "Price per million cached input tokens",
        kind: "number",
        placeholder: "same as input tokens",
      },
      {
        path: "prices.models",
        label: "Prices per model",
        kind: "json",
        hint: 'JSON, for example {"openai:small": {"input": 0.1, "output": 0.4}}.',
      },
      { path: "limits.turnsPerMinute", label: "Turn limit (per minute)", kind: "number", placeholder: "no limit" },
      { path: "limits.tokensPerDay", label: "Token limit (per day)", kind: "number", placeholder: "no limit" },
      {
        path: "limits.costPerDay",
        label: "Cost limit (per day)",
        kind: "number",
        placeholder: "no limit",
        hint: "Calculated from the prices above.",
      },
    ],
  },
  {
    title: "Learning",
    fields: [
      {
        path: "learn.into",
        label: "Block for learned facts",
        kind: "text",
        placeholder: "learning is off",
        hint: "A searchable block of this agent, for example facts. If empty, learning is off.",
        isNeeded: true,
      },
      {
        path: "learn.after",
        label: "When to learn",
        kind: "choice",
        options: [
          ["", "not set"],
          ["turn", "after each turn"],
          ["idle", "after 10 minutes without messages"],
          ["manual", "on request"],
        ],
      },
      {
        path: "learn.review",
        label: "Review",
        kind: "choice",
        options: [
          ["", "not set"],
          ["propose", "propose changes for approval"],
          ["auto", "apply facts that the user stated"],
        ],
      },
      { path: "learn.model", label: "Learning model", kind: "text", list: MODELS, placeholder: "the agent's model" },
      { path: "learn.maxTokensPerDay", label: "Token limit for learning (per day)", kind: "number" },
      { path: "learn.instructions", label: "Additional instructions", kind: "prose" },
      {
        path: "learn.trust",
        label: "Trusted sources",
        kind: "list",
        hint: "agent, tool or import, one per line. Facts from these sources are applied without approval. The user is always trusted.",
      },
    ],
  },
  {
    title: "When a turn ends",
    fields: [
      {
        path: "onTurnEnd.url",
        label: "Webhook URL for turns",
        kind: "text",
        placeholder: "https://…",
        hint: "Its origin must be listed in TOOL_ORIGINS.",
      },
      {
        path: "onTurnEnd.service",
        label: "Service binding for turns",
        kind: "text",
        hint: "Set either the URL or the service binding.",
      },
    ],
  },
  {
    title: "When memory changes",
    fields: [
      {
        path: "onMemoryChange.url",
        label: "Webhook URL for memory changes",
        kind: "text",
        placeholder: "https://…",
        hint: "Its origin must be listed in TOOL_ORIGINS.",
      },
      {
        path: "onMemoryChange.service",
        label: "Service binding for memory changes",
        kind: "text",
        hint: "Set either the URL or the service binding.",
      },
    ],
  },
];

export type Texts = Readonly<Record<string, string>>;

/** The setting that a field belongs to. */
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
 * The input of `configureAgent`: only the changed settings. The others may come from the defaults, and
 * stay unset.
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
    throw new Error(`“${label}” is not valid JSON. Check for a missing quote or comma.`);
  }
}
