// A tool's questions to the user: the part `data-input-request` of a message, and the answers of a
// form. The agent checks the answers against the questions.

/** The data of a part `data-input-request`: the questions of a call's tool. */
export interface InputRequest {
  /** The call that waits for the answers. */
  toolCallId: string;
  tool: string;
  /** The server whose tool asks, by the name given to `defineTool`. */
  server?: string;
  /** The questions by their ids. All texts are untrusted. */
  requests: { [id: string]: InputForm | InputPage };
  /** Whether answers are no longer accepted. */
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

/** A field of a form, and the name of its control. */
export interface FormField {
  control: string;
  name: string;
  field: InputField;
  isRequired: boolean;
}

/** The fields of the question with this id, in order. A page to open has none. */
export function fieldsOf(request: InputForm | InputPage, id: string): FormField[] {
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
  return answers(request, (question, id) => {
    if (question.mode === "url") return { action: "accept" };
    const content = fieldsOf(question, id).flatMap((shown) => {
      const value = valueOf(shown, form);
      return value === undefined ? [] : [[shown.name, value] as const];
    });
    return { action: "accept", content: Object.fromEntries(content) };
  });
}

function answers(
  { requests }: InputRequest,
  answer: (question: InputForm | InputPage, id: string) => InputAnswers["responses"][string],
): InputAnswers {
  return {
    responses: Object.fromEntries(Object.entries(requests).map(([id, question]) => [id, answer(question, id)])),
  };
}

/** The value of a field. `undefined`: it is empty. */
function valueOf({ control, field, isRequired }: FormField, form: FormData): unknown {
  if (field.type === "boolean") return form.has(control);
  if (field.type === "array") return form.getAll(control);
  const text = String(form.get(control) ?? "");
  if (field.type !== "string") return text === "" ? undefined : Number(text);
  if (text === "") return isRequired && field.oneOf === undefined ? "" : undefined;
  // A control for a local time has no zone.
  return field.format === "date-time" && !Number.isNaN(Date.parse(text)) ? new Date(text).toISOString() : text;
}
