// A tool's questions to the user: forms, and pages to open. Their texts are untrusted and shown as text.

import { useId } from "preact/hooks";
import { acceptInput, type InputRequest, inputFieldsOf, refuseInput, type FormField } from "session-agent";
import { Button } from "../ui/basics.tsx";
import { shownName, shownText } from "../text.ts";
import type { CallDecision } from "./state.ts";

interface Props {
  data: InputRequest;
  decide: (call: CallDecision) => void;
  isBusy: boolean;
}

export function Question({ data, decide, isBusy }: Props) {
  const { toolCallId, tool, server, requests } = data;
  const id = useId();
  const answer = (output: ReturnType<typeof refuseInput>) => decide({ toolCallId, output });
  return (
    <form
      class="question"
      aria-labelledby={id}
      onSubmit={(event) => {
        event.preventDefault();
        answer(acceptInput(data, new FormData(event.currentTarget)));
      }}
    >
      <p id={id} class="part-name">
        {server === undefined ? `The tool ${shownName(tool)} asks` : `The server ${shownName(server)} asks`}
      </p>
      {Object.entries(requests).map(([key, request]) => (
        <fieldset key={key} disabled={isBusy}>
          <legend dir="auto">{shownText(request.message)}</legend>
          {request.mode === "url" ? (
            <p class="prose">
              <a href={request.url} target="_blank" rel="noopener noreferrer nofollow">
                {shownText(request.url)}
              </a>
            </p>
          ) : (
            inputFieldsOf(request, key).map((shown) => <QuestionField key={shown.control} {...shown} />)
          )}
        </fieldset>
      ))}
      <div class="actions">
        <Button kind="main" icon="check" type="submit" disabled={isBusy}>
          Accept
        </Button>
        <Button kind="danger" icon="close" disabled={isBusy} onClick={() => answer(refuseInput(data))}>
          Decline
        </Button>
      </div>
    </form>
  );
}

const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" } as const;

function QuestionField({ control, name, field, isRequired }: FormField) {
  const id = useId();
  const { type, format, minLength, maxLength, minimum: min, maximum: max } = field;
  const shared = { id, name: control, "aria-describedby": field.description && `${id}-about` };
  const initial = field.default as any;
  const options = field.oneOf ?? field.items?.anyOf;
  const label = shownName(field.title ?? name);
  return (
    <div class="field">
      <label for={id}>{isRequired ? `${label} (required)` : label}</label>
      {type === "boolean" ? (
        <input {...shared} type="checkbox" defaultChecked={initial === true} />
      ) : options !== undefined ? (
        <select {...shared} multiple={type === "array"} required={type === "array" ? !!field.minItems : isRequired}>
          {type !== "array" && <option value="" />}
          {options.map(({ const: value, title }) => (
            <option
              key={value}
              value={value}
              selected={type === "array" ? initial?.includes(value) : initial === value}
            >
              {shownName(title)}
            </option>
          ))}
        </select>
      ) : type === "string" ? (
        <input
          {...shared}
          type={(format === undefined ? "text" : TYPES[format]) as "text"}
          required={isRequired}
          minLength={minLength}
          maxLength={maxLength}
          defaultValue={format === "date-time" ? undefined : initial}
        />
      ) : (
        <input
          {...shared}
          type="number"
          step={type === "integer" ? 1 : "any"}
          required={isRequired}
          min={min}
          max={max}
          defaultValue={initial}
        />
      )}
      {field.description && (
        <small id={`${id}-about`} class="note" dir="auto">
          {shownText(field.description)}
        </small>
      )}
    </div>
  );
}
