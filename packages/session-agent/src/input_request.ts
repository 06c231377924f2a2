// The questions of a tool to the user: the part `data-input-request` of a message, and the answers
// that a form gives. The agent checks the answers against the questions.

/** The questions of a call's tool, as the part `data-input-request` has them. */
export interface InputRequest {
  /** The call that waits for the answers. */
  toolCallId: string;
  tool: string;
  /** The server whose tool asks, by the name given to `defineTool`. */
  server?: string;
  /** The questions by their ids. All texts are the server's own. */
  requests: { [id: string]: InputForm | InputPage };
  /** Whether no answer is accepted any more. */
  isClosed?: boolean;
}

/** A form to fill in. */
export interface InputForm {
  mode?: undefined;
  message: string;
  requestedSchema: { type: "object"; properties: { [name: string]: InputField }; required?: string[] };
}

/** A page to open. Show the user the whole address. */
export interface InputPage {
  mode: "url";
  message: string;
  url: string;
}

export interface InputField {
  type: "string" | "number" | "integer" | "boolean" | "array";
  title?: string;
  description?: string;
  format?: "email" | "uri" | "date" | "date-time";
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  /** The options of a text. */
  oneOf?: InputOption[];
  /** The options of a list. */
  items?: { anyOf: InputOption[] };
  default?: string | number | boolean | string[];
}

export interface InputOption {
  const: string;
  title: string;
}

/** The output to send for the call: with `addToolOutput` of the AI SDK, or `answer` of `useSession`. */
export interface InputAnswers {
  responses: { [id: string]: { action: "accept" | "decline" | "cancel"; content?: { [name: string]: unknown } } };
}

/** A field of a form on the page, and the name of its control. */
export interface ShownField {
  control: string;
  name: string;
  field: InputField;
  isRequired: boolean;
}

/** The fields of a question, in order. `id` is the question's. A page to open has none. */
export function fieldsOf(request: InputForm | InputPage, id: string): ShownField[] {
  if (request.mode === "url") return [];
  const { properties, required = [] } = request.requestedSchema;
  return Object.entries(properties).map(([name, field]) => ({
    control: JSON.stringify([id, name]),
    name,
    field,
    isRequired: required.includes(name),
  }));
}

/** Declines or cancels all questions. */
export function refuse(request: InputRequest, action: "decline" | "cancel" = "decline"): InputAnswers {
  return answers(request, () => ({ action }));
}

/** Accepts all questions, with the values of a form whose controls have the names of `fieldsOf`. */
export function accept(request: InputRequest, form: FormData): InputAnswers {
  return answers(request, (asked, id) => {
    if (asked.mode === "url") return { action: "accept" };
    const content = fieldsOf(asked, id).flatMap((shown) => {
      const value = valueOf(shown, form);
      return value === undefined ? [] : [[shown.name, value] as const];
    });
    return { action: "accept", content: Object.fromEntries(content) };
  });
}

function answers(
  { requests }: InputRequest,
  answer: (asked: InputForm | InputPage, id: string) => InputAnswers["responses"][string],
): InputAnswers {
  return { responses: Object.fromEntries(Object.entries(requests).map(([id, asked]) => [id, answer(asked, id)])) };
}

/** The value of a field. `undefined`: nothing was given. */
function valueOf({ control, field, isRequired }: ShownField, form: FormData): unknown {
  if (field.type === "boolean") return form.has(control);
  if (field.type === "array") return form.getAll(control);
  const text = String(form.get(control) ?? "");
  if (field.type !== "string") return text === "" ? undefined : Number(text);
  if (text === "") return isRequired && field.oneOf === undefined ? "" : undefined;
  // A control for a local time has no zone.
  return field.format === "date-time" && !Number.isNaN(Date.parse(text)) ? new Date(text).toISOString() : text;
}
