// The form for a tool's questions. Its texts are untrusted: they are shown as text, and a page to open is
// shown with its whole address.

import { createElement as h, type FormEvent, type ReactElement, type ReactNode, useId } from "react";
import { accept, fieldsOf, type InputAnswers, type InputRequest, refuse, type FormField } from "../input_request.js";

export interface InputFormProps {
  request: InputRequest;
  /** Sends the answers: `answer` of `useSession`, or `addToolOutput` of the AI SDK. */
  onAnswer: (answers: InputAnswers) => void;
  disabled?: boolean;
}

/** Shows a tool's questions to the user: `part.data` of a part `data-input-request`. Empty once it is closed. */
export function InputRequestForm({ request, onAnswer, disabled }: InputFormProps): ReactElement | null {
  const id = useId();
  // Other programs can also write such a part, so its data is checked.
  if (!request?.requests || request.isClosed) return null;
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onAnswer(accept(request, new FormData(event.currentTarget)));
  };
  const asks = request.server === undefined ? `The tool ${request.tool} asks:` : `The server ${request.server} asks:`;
  return h(
    "form",
    { className: "input-request", onSubmit: submit, "aria-labelledby": id },
    h("p", { id }, asks),
    ...Object.entries(request.requests).map(([key, question]) =>
      h(
        "fieldset",
        { key, disabled },
        h("legend", null, question.message),
        question.mode === "url"
          ? h(
              "a",
              {
                href: /^https:/i.test(question.url) ? question.url : undefined,
                target: "_blank",
                rel: "noopener noreferrer nofollow",
              },
              question.url,
            )
          : fieldsOf(question, key).map((shown) => h(FieldOf, { key: shown.control, shown })),
      ),
    ),
    h("button", { type: "submit", disabled }, "Accept"),
    h("button", { type: "button", disabled, onClick: () => onAnswer(refuse(request)) }, "Decline"),
  );
}

function FieldOf({ shown: { control, name, field, isRequired } }: { shown: FormField }): ReactElement {
  const id = useId();
  const label = h("label", { htmlFor: id }, field.title ?? name, isRequired && " *");
  const about = field.description && h("small", { id: `${id}-about` }, field.description);
  const common = {
    id,
    name: control,
    required: isRequired,
    "aria-describedby": field.description === undefined ? undefined : `${id}-about`,
  };
  const initial = field.default as any;
  if (field.type === "boolean") {
    // An unchecked box is also an answer.
    const box = h("input", { ...common, required: false, type: "checkbox", defaultChecked: initial === true });
    return h("p", null, box, label, about);
  }
  return h("p", null, label, controlOf(field, common, initial), about);
}

function controlOf(field: FormField["field"], common: { required: boolean }, initial: any): ReactNode {
  const options = field.oneOf ?? field.items?.anyOf;
  if (options !== undefined) {
    const isList = field.type === "array";
    const none = !isList && h("option", { key: "", value: "" });
    const shown = options.map(({ const: value, title }) => h("option", { key: `=${value}`, value }, title));
    const required = isList ? (field.minItems ?? 0) > 0 : common.required;
    return h(
      "select",
      { ...common, required, multiple: isList, defaultValue: initial ?? (isList ? [] : "") },
      none,
      shown,
    );
  }
  if (field.type !== "string") {
    const step = field.type === "integer" ? 1 : "any";
    const { minimum: min, maximum: max } = field;
    return h("input", { ...common, type: "number", step, min, max, defaultValue: initial });
  }
  const types = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };
  const type = field.format === undefined ? "text" : types[field.format];
  const { minLength, maxLength } = field;
  // A default time has a zone, which the control doesn't accept.
  const value = field.format === "date-time" ? undefined : initial;
  return h("input", { ...common, type, minLength, maxLength, defaultValue: value });
}
