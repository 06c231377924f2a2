// Converts the fields of a token's form into the input of `mintToken`.

import type { Operations } from "session-agent";

export interface TokenForm {
  readonly preset: "chat" | "read" | "none";
  /** Empty: the whole agent. */
  readonly session: string;
  /** Names, one on each line. */
  readonly operations: string;
  /** Seconds. */
  readonly expiresIn: string;
  /** The fields of `allow` that are on. */
  readonly allow: readonly string[];
  readonly models: string;
  readonly tools: string;
  readonly limits: { readonly turnsPerMinute: string; readonly tokensPerDay: string; readonly costPerDay: string };
  readonly holder: string;
}

export const EMPTY: TokenForm = {
  preset: "chat",
  session: "",
  operations: "",
  expiresIn: "3600",
  allow: [],
  models: "",
  tools: "",
  limits: { turnsPerMinute: "", tokensPerDay: "", costPerDay: "" },
  holder: "",
};

/** An empty field is omitted, and the Worker's default applies. */
export function tokenInput(form: TokenForm): Operations["mintToken"]["input"] {
  const [session, holder] = [form.session.trim(), form.holder.trim()];
  const [operations, models, tools] = [linesOf(form.operations), linesOf(form.models), linesOf(form.tools)];
  const limits = Object.entries(form.limits)
    .filter(([, text]) => text.trim() !== "")
    .map(([name, text]) => [name, Number(text)]);
  const allow = {
    ...Object.fromEntries(form.allow.map((name) => [name, true])),
    ...(models.length > 0 && { models }),
    ...(tools.length > 0 && { tools }),
  };
  return {
    expiresIn: Number(form.expiresIn),
    ...(form.preset !== "none" && { preset: form.preset }),
    ...(session !== "" && { sessionId: session }),
    ...(operations.length > 0 && { operations }),
    ...(Object.keys(allow).length > 0 && { allow }),
    // The holder only groups turns for limits, so it needs limits.
    ...(limits.length > 0 && { limits: Object.fromEntries(limits), ...(holder !== "" && { holder }) }),
  };
}

function linesOf(text: string): string[] {
  return text
    .split(/[\n,]/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
}
